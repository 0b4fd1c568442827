"""Documents and pages as columns, and as records: both say the same."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.plugin.documents import Documents, as_lists, cut_texts, float_texts, texts_of
from minutch.records.document import Date, FieldValue, Long, NutchDocument, value_text
from tests.support.examples import examples

VALUES = st.one_of(
    st.text(max_size=5),
    st.booleans(),
    st.integers(-5, 5),
    st.integers(-5, 5).map(Long),
    st.floats(-4, 4, width=16),
    st.integers(-(10**9), 10**12).map(Date),
)
OF_ONE_TYPE = st.sampled_from([str, bool, int, Long, float, Date]).flatmap(
    lambda kind: st.lists(VALUES.filter(lambda value: type(value) is kind), max_size=3)
)
FIELDS = st.dictionaries(
    st.sampled_from("abc"), st.one_of(OF_ONE_TYPE, st.lists(VALUES, max_size=3)), max_size=3
)


def documents(rows: list[dict[str, list[FieldValue]]]) -> Documents:
    found = Documents(
        pl.Series([f"http://a.org/{number}" for number in range(len(rows))], dtype=pl.String)
    )
    made = []
    for row in rows:
        document = NutchDocument()
        for name, values in row.items():
            for value in values:
                document.add(name, value)
        made.append(document)
    found.replace(made)
    return found


def contents(found: Documents) -> list[dict[str, list[FieldValue]]]:
    return [{name: field.values for name, field in row.fields.items()} for row in found.rows()]


def kinds(found: Documents) -> list[dict[str, list[type]]]:
    return [
        {name: [type(value) for value in values] for name, values in row.items()}
        for row in contents(found)
    ]


@settings(max_examples=examples(60))
@given(st.lists(FIELDS, max_size=4))
def test_records_through_columns_and_back(rows: list[dict[str, list[FieldValue]]]) -> None:
    found = documents(rows)
    before, types = contents(found), kinds(found)
    names = found.names()  # columns from here on
    assert set(names) == {name for row in before for name in row}
    assert contents(found) == before
    assert kinds(found) == types


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(FIELDS, FIELDS), min_size=1, max_size=4))
def test_values_are_added_after_those_that_are_there(
    pairs: list[tuple[dict[str, list[FieldValue]], ...]],
) -> None:
    both, more = (
        documents([first for first, _ in pairs]),
        documents([second for _, second in pairs]),
    )
    for name in more.names():
        column = more.column(name)
        assert column is not None
        both.add(name, column)
    expected = [
        {name: first.get(name, []) + second.get(name, []) for name in {**first, **second}}
        for first, second in pairs
    ]
    assert contents(both) == [
        {name: values for name, values in row.items() if values} for row in expected
    ]


@settings(max_examples=examples(60))
@given(st.lists(FIELDS, min_size=1, max_size=4))
def test_texts(rows: list[dict[str, list[FieldValue]]]) -> None:
    found = documents(rows)
    expected = [
        {name: list(map(value_text, values)) for name, values in row.items()}
        for row in contents(found)
    ]
    for name in found.names():
        column = found.column(name)
        assert column is not None
        assert as_lists(texts_of(column)).to_list() == [row.get(name) for row in expected]


@settings(max_examples=examples(30))
@given(st.lists(FIELDS, min_size=2, max_size=4), st.booleans())
def test_filtering_keeps_rows_together(
    rows: list[dict[str, list[FieldValue]]], as_rows: bool
) -> None:
    found = documents(rows)
    before = contents(found)
    if not as_rows:
        found.names()
    mask = pl.Series([number % 2 == 0 for number in range(len(rows))])
    kept = found.filter(mask)
    assert contents(kept) == before[::2]
    assert kept.keys.to_list() == found.keys.to_list()[::2]


def test_a_copy_is_changed_alone() -> None:
    found = documents([{"a": ["x"]}])
    twin = found.copy()
    twin.add("a", pl.Series(["y"]))
    twin.set("b", pl.Series(["z"]))
    assert (contents(found), contents(twin)) == ([{"a": ["x"]}], [{"a": ["x", "y"], "b": ["z"]}])
    assert twin.remove("nothing") is None


def test_a_boost_is_a_field_and_a_weight() -> None:
    found = documents([{}, {}])
    found.boost(pl.Series([0.5, 1e-5], dtype=pl.Float32))
    assert contents(found) == [{"boost": ["0.5"]}, {"boost": ["1.0E-5"]}]
    assert [row.weight for row in found.rows()] == pytest.approx([0.5, 1e-5])


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=12)), st.integers(0, 8))
def test_texts_cut_by_utf16_units(texts: list[str], length: int) -> None:
    column = pl.Series("t", texts, dtype=pl.String)
    units = (text.encode("utf-16-le")[: 2 * length] for text in texts)
    expected = [
        cut.decode("utf-16-le", "surrogatepass").encode("utf-8", "replace").decode()
        for cut in units
    ]
    assert cut_texts(column, length).to_list() == expected
    assert column.to_list() == texts


def test_floats_that_are_not_there() -> None:
    assert float_texts(pl.Series([None, float("nan"), 1.0], dtype=pl.Float32)).to_list() == [
        None,
        "NaN",
        "1.0",
    ]
