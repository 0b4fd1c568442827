"""Distinct strings numbered: as a dictionary does it."""

from __future__ import annotations

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.plugin.columns import by_distinct, numbered

STRINGS = (
    st.sampled_from(["", "a", "b", "12345678", "123456789", "é" * 9, "http://host/" + "x" * 30])
    | st.text()
)


@settings(deadline=None)
@given(st.lists(STRINGS, min_size=1, max_size=60))
def test_equal_strings_have_one_number(values: list[str]) -> None:
    first: dict[str, int] = {}
    for row, value in enumerate(values):
        first.setdefault(value, row)
    rows, numbers = numbered(pl.Series(values, dtype=pl.String))
    assert rows.to_list() == list(first.values())
    assert numbers.to_list() == [list(first).index(value) for value in values]


@given(st.lists(STRINGS | st.none(), max_size=30))
def test_each_distinct_string_is_asked_for_once(values: list[str | None]) -> None:
    asked: list[str] = []

    def change(urls: pl.Series) -> pl.Series:
        asked.extend(urls)
        return pl.Series([None if len(url) > 8 else url + "!" for url in urls], dtype=pl.String)

    found = by_distinct(pl.Series("url", values, dtype=pl.String), change)
    assert found.to_list() == [
        None if value is None or len(value) > 8 else value + "!" for value in values
    ]
    assert found.name == "url" or not values
    assert len(asked) == len(set(asked)) == len({value for value in values if value is not None})
