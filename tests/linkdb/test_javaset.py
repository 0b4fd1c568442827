"""The order of links in a record is that of java.util.HashSet<Inlink>."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.formats.javahash import hash_map_order, string_hash
from minutch.linkdb import bulk, javaset
from minutch.linkdb.javaset import iteration_order, link_hashes, string_hashes, table_sizes
from minutch.linkdb.values import Links, Values
from minutch.records.links import Inlink, Inlinks
from minutch.tables.frame import INLINKS_SCHEMA
from tests.support.tables import by_kernels

TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)


def links(*rows: tuple[str, str, str]) -> pl.DataFrame:
    """A table of (key, from URL, anchor)."""
    data = [(key.encode(), url.encode(), anchor.encode(), None) for key, url, anchor in rows]
    return pl.DataFrame(data, schema=INLINKS_SCHEMA, orient="row")


@pytest.fixture(params=["interpreted", "compiled"])
def _both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "compiled":
        monkeypatch.setattr(javaset, "_BULK", 0)


@pytest.mark.usefixtures("_both_ways")
def test_hash_codes() -> None:
    texts = ["", "a", "http://www.example.org/ä", "x" * 300, "\U0001f600", "日本"]
    column = pl.Series([text.encode() for text in texts], dtype=pl.Binary)
    assert string_hashes(column).tolist() == [string_hash(text) for text in texts]


@settings(deadline=None)
@given(st.lists(st.binary(max_size=24) | TEXTS.map(str.encode), max_size=12))
def test_the_kernel_hashes_alike_whatever_the_bytes(strings: list[bytes]) -> None:
    column = pl.Series(strings, dtype=pl.Binary)
    with by_kernels():
        found = string_hashes(column)
    assert found.tolist() == [string_hash(data.decode("utf-8", "replace")) for data in strings]


def test_table_sizes() -> None:
    counts = [0, 1, 2, 3, 4, 6, 7, 12, 13, 24, 25, 1000]
    assert table_sizes(np.array(counts)).tolist() == [2, 2, 4, 4, 8, 8, 16, 16, 32, 32, 64, 2048]


@given(st.lists(st.lists(st.integers(0, 0xFFFFFFFF), max_size=40, unique=True), max_size=6))
def test_new_sets_are_in_the_order_of_a_hash_map(sets: list[list[int]]) -> None:
    hashes = np.array([value for one in sets for value in one], dtype=np.int64)
    spread = hashes ^ (hashes >> 16)
    starts = np.cumsum([0, *map(len, sets)])
    order = iteration_order(spread, starts, None).tolist()
    expected = [int(start) + i for one, start in zip(sets, starts, strict=False) for i in hash_map_order(one, 1)]
    assert order == expected


def test_links_of_one_bucket_make_a_small_table_grow() -> None:
    one = [i << 8 for i in range(11)]  # all in bucket 0 of tables up to 256
    starts = np.array([0, len(one)])
    expected = hash_map_order([value ^ value >> 16 for value in one], 1)
    assert iteration_order(np.array(one), starts, None).tolist() == expected


def test_a_set_that_is_read_into_keeps_its_table() -> None:
    spread = np.array([4, 1, 8, 2])
    starts = np.array([0, 2, 4])
    assert iteration_order(spread, starts, np.array([4, 4])).tolist() == [0, 1, 2, 3]
    assert iteration_order(spread, starts, np.array([16, 16])).tolist() == [1, 0, 3, 2]


@settings(deadline=None)
@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=30))
def test_a_record_is_as_the_record_class_writes_it(pairs: list[tuple[str, str]]) -> None:
    table = links(*(("key", url, anchor) for url, anchor in pairs))
    expected = [(link.from_url, link.anchor) for link in Inlinks(Inlink(*pair) for pair in pairs).java_order()]
    ones = np.zeros(len(table), dtype=np.int64)
    for united in (Values.records(Links(table), ones, ones).united().table(), bulk.unite(table, 1000).table()):
        assert [
            (url.decode(), anchor.decode()) for _, url, anchor in united.select(pl.exclude("metadata")).iter_rows()
        ] == expected


def test_hashes_of_links() -> None:
    table = links(("k", "http://a/", "one"))
    value = Inlink("http://a/", "one").java_hash() & 0xFFFFFFFF
    assert link_hashes(table).tolist() == [value ^ value >> 16]
