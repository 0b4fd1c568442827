"""Inverting and merging: sets, limits, records of several tasks; the sorted way beside the followed one."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.linkdb import bulk, mapreduce
from minutch.linkdb.bulk import Gathered, unite, united
from minutch.linkdb.values import LINKS_SCHEMA, Links, Values
from minutch.tables.shuffle import Shuffle
from tests.linkdb.test_javaset import links

Sets = dict[bytes, list[tuple[bytes, bytes]]]


def sets(tables: list[pl.DataFrame]) -> Sets:
    """The links of each key, in order; keys must not come twice."""
    found: Sets = {}
    for table in tables:
        last = None
        for key, url, anchor in table.select("key", "from_url", "anchor").iter_rows():
            assert key == last or key not in found
            found.setdefault(key, []).append((url, anchor))
            last = key
    return found


def unordered(found: Sets) -> dict[bytes, set[tuple[bytes, bytes]]]:
    assert all(len(set(one)) == len(one) for one in found.values())
    return {key: set(one) for key, one in found.items()}


ROWS = st.lists(
    st.tuples(st.sampled_from("kmnopq"), st.integers(0, 9).map(str), st.sampled_from(["", "x"])), max_size=40
)


@settings(deadline=None)
@given(st.lists(ROWS, min_size=1, max_size=4), st.integers(1, 3))
def test_every_link_arrives_once(tasks: list[list[tuple[str, str, str]]], parts: int) -> None:
    found = mapreduce.invert([links(*rows) for rows in tasks], parts, 10_000)
    assert len(found) == parts
    expected: dict[bytes, set[tuple[bytes, bytes]]] = {}
    for key, url, anchor in (row for rows in tasks for row in rows):
        expected.setdefault(key.encode(), set()).add((url.encode(), anchor.encode()))
    assert unordered(sets(found)) == expected
    for table in found:
        assert table["key"].is_sorted()


@settings(deadline=None)
@given(st.lists(ROWS, min_size=1, max_size=3), st.integers(1, 4))
def test_the_sorted_way_gives_the_same_sets(tasks: list[list[tuple[str, str, str]]], limit: int) -> None:
    together = pl.concat([links(*rows) for rows in tasks])
    quick, followed = sets([unite(together, 10_000).table()]), sets(mapreduce.invert([together], 1, 10_000))
    assert unordered(quick) == unordered(followed)
    limited = sets([unite(together, limit).table()])
    assert {key: len(one) for key, one in limited.items()} == {
        key: min(len(one), limit) for key, one in followed.items()
    }


def test_merging_puts_records_together() -> None:
    first = mapreduce.passed(links(("a", "1", "x"), ("a", "2", "x"), ("b", "1", "x")), None)
    second = mapreduce.passed(links(("a", "2", "x"), ("a", "3", "x"), ("c", "9", "")), None)
    found = unordered(sets(mapreduce.merge([first, second], 1, 10_000)))
    assert {key: {url for url, _ in one} for key, one in found.items()} == {
        b"a": {b"1", b"2", b"3"},
        b"b": {b"1"},
        b"c": {b"9"},
    }


def test_records_without_links_go_away() -> None:
    table = links(("a", "1", "x")).vstack(links(("b", "1", "x")).with_columns(from_url=None, anchor=None))
    assert list(sets(mapreduce.merge([mapreduce.passed(table, None)], 1, 10))) == [b"a"]
    dumped = mapreduce.dumped([table], 1)[0]
    assert dumped["key"].to_list() == [b"a", b"b"]


def test_change_may_rename_and_reject() -> None:
    def change(table: pl.DataFrame) -> pl.DataFrame:
        upper = table.with_columns(from_url=pl.col("from_url").cast(pl.String).str.to_uppercase().cast(pl.Binary))
        return upper.filter(pl.col("anchor") != b"no")

    table = links(("a", "u", "x"), ("a", "U", "x"), ("a", "v", "no"), ("b", "w", "no"))
    assert sets(mapreduce.merge([mapreduce.passed(table, change)], 1, 10)) == {b"a": [(b"U", b"x")]}


def test_a_limit_looks_only_at_the_first_links_of_each_record() -> None:
    # the second record may give one more link, and it is one that is there already
    table = Links(links(("k", "1", ""), ("k", "2", ""), ("k", "1", ""), ("k", "3", "")))
    values = Values(table, np.array([7, 7]), np.array([0, 2, 4]), np.arange(4))
    assert values.united(3).counts.tolist() == [2]
    assert values.united(4).counts.tolist() == [3]


def test_no_links_at_all() -> None:
    nothing = links()
    assert [len(table) for table in mapreduce.invert([nothing], 2, 5)] == [0, 0]
    assert [len(table) for table in mapreduce.merge([mapreduce.passed(nothing, None)], 1, 5)] == [0]
    assert unite(nothing, 5).records == 0


def test_gathered_goes_over_to_disk(tmp_path: Path) -> None:
    rows = [(f"k{i % 50}", f"u{i}", "x") for i in range(300)]
    with Gathered(2, budget=1000, spill=tmp_path, few=100) as gathered:
        gathered.begin_task()
        for i in range(0, 300, 30):
            gathered.add(links(*rows[i : i + 30]).drop("metadata"))
        assert gathered.tasks is None
        parts = [[one.table() for one in united([gathered.shuffle], part, 10_000)] for part in range(2)]
    found = sets([table for part in parts for table in part])
    assert unordered(found) == unordered(sets(mapreduce.invert([links(*rows)], 1, 10_000)))


def test_few_links_stay_in_their_tasks(tmp_path: Path) -> None:
    with Gathered(1, budget=1000, spill=tmp_path) as gathered:
        gathered.begin_task()
        gathered.add(links(("a", "1", "")).drop("metadata"))
        gathered.begin_task()
        tasks = gathered.tasks
    assert tasks is not None
    assert [len(task) for task in tasks] == [1, 0]


@pytest.mark.parametrize("budget", [10, 1_000_000])
def test_stored_links_come_before_new_ones(budget: int, tmp_path: Path) -> None:
    def shuffle(spill: str, *rows: tuple[str, str, str]) -> Shuffle:
        result = stack.enter_context(Shuffle(1, LINKS_SCHEMA, budget=budget, spill=tmp_path / spill))
        result.add(links(*rows).select(LINKS_SCHEMA.names()))
        return result

    with ExitStack() as stack:
        stored = shuffle("stored", ("b", "1", ""), ("a", "1", ""))
        new = shuffle("new", ("a", "2", ""), ("c", "2", ""))
        found = sets([one.table() for one in united([stored, shuffle("none"), new], 0, 1)])
    assert found == {b"a": [(b"1", b"")], b"b": [(b"1", b"")], b"c": [(b"2", b"")]}


def test_large_sets_are_found_equal() -> None:
    rows = [("k", f"http://h/{i % 700}", "same") for i in range(1400)]
    table = links(*rows)
    ones = np.zeros(len(table), dtype=np.int64)
    followed = Values.records(Links(table), ones, ones).united(10_000).table()
    assert bulk.unite(table, 10_000).table().drop("metadata").equals(followed)
    assert len(followed) == 700
