"""Streams side by side: every row once, all rows of a key together, ranges in order."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from random import Random

import polars as pl

from minutch.work.tables.frame import aligned
from tests.support.examples import tabled

Stream = list[pl.DataFrame]


def stream(keys: list[bytes], cuts: list[int]) -> Stream:
    """The sorted `keys`, cut into tables at the rows `cuts`."""
    frame = pl.DataFrame(
        {"key": keys, "row": range(len(keys))}, schema={"key": pl.Binary, "row": pl.Int64}
    )
    return [frame[start:end] for start, end in pairwise([0, *cuts, len(keys)])]


def check(streams: list[Stream], least: int = 1) -> list[tuple[pl.DataFrame, ...]]:
    ranges = list(aligned(*streams, least=least))
    for i, frames in enumerate(streams):
        rows = [row for tables in ranges for row in tables[i].iter_rows()]
        assert rows == [row for frame in frames for row in frame.iter_rows()]
    spans = [
        (min(keys), max(keys))
        for tables in ranges
        if (keys := [k for t in tables for k in t["key"]])
    ]
    assert all(before[1] < after[0] for before, after in pairwise(spans))
    return ranges


@tabled("seed", range(60))
def test_random_streams(seed: int) -> None:
    random = Random(seed)
    streams = []
    for _ in range(random.randrange(1, 5)):
        count = random.randrange(40)
        keys = sorted(b"%d" % random.randrange(30) for _ in range(count))
        streams.append(
            stream(keys, sorted(random.randrange(count + 1) for _ in range(random.randrange(6))))
        )
    check(streams)
    check(streams, random.randrange(2, 30))


def test_a_key_that_is_spread_over_many_tables_comes_in_one_piece() -> None:
    ranges = check([stream([b"a"] + [b"m"] * 9 + [b"z"], [2, 4, 6]), stream([b"m"], [])])
    assert [tables[0]["key"].to_list().count(b"m") for tables in ranges if len(tables[1])] == [9]


def test_few_rows_wait_for_the_next_table_once() -> None:
    halves = [stream([b"b", b"d", b"f", b"h"], [1, 2, 3]), stream([b"a", b"c", b"e", b"g"], [2])]
    assert [sum(map(len, tables)) for tables in check(halves)] == [3, 1, 1, 2, 1]
    assert [sum(map(len, tables)) for tables in check(halves, 2)] == [3, 2, 2, 1]
    assert [sum(map(len, tables)) for tables in check(halves, 9)] == [4, 3, 1]


def test_empty_streams() -> None:
    assert check([stream([], []), stream([], [])]) == []
    assert len(check([stream([], []), stream([b"a"], [])])) == 1
    assert len(check([stream([], [0, 0]), stream([b"a", b"b"], [0, 1, 1])])) >= 1


def test_only_a_few_tables_are_held_at_a_time() -> None:
    pulled = 0

    def tables() -> Iterator[pl.DataFrame]:
        nonlocal pulled
        for i in range(100):
            pulled += 1
            yield stream([b"%03d" % i], [])[0]

    ranges = aligned(tables(), [stream([b"050"], [])[0]])
    next(ranges)
    assert pulled < 5
