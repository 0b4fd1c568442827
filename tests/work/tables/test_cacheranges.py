"""Ranges of keys: all rows of many tables, by partition and range, in their order within a
range.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random

import polars as pl
import pytest

from minutch.hadoop.formats import javahash
from minutch.work.tables import cacheranges, shuffle
from minutch.work.tables.shuffle import Shuffle, partition_of
from tests.support.examples import few
from tests.support.tables import a_key

SCHEMA = pl.Schema({"anchor": pl.Binary(), "key": pl.Binary()})
PARTS = 3


def some_tables(random: Random, keys: list[bytes], count: int) -> list[pl.DataFrame]:
    """Tables with keys that come again and again; the other column tells where a row is from, in
    few or many bytes.
    """
    tables = []
    for number in range(count):
        rows = [
            (b"%d/%d" % (number, row // 2) * random.choice((1, 5)), random.choice(keys))
            for row in range(100)
        ]
        tables.append(pl.DataFrame(rows, schema=SCHEMA, orient="row"))
    return tables


def some_keys(random: Random, kind: str) -> list[bytes]:
    """Keys that differ everywhere, late, or in length only."""
    if kind == "any":
        return [a_key(random) for _ in range(300)]
    if kind == "late":
        return [b"https://www.example.org/%d" % random.randrange(10**6) for _ in range(300)] + [
            b"",
            b"https",
            b"z",
        ]
    return [b"\0" * random.randrange(40) for _ in range(30)]


@pytest.mark.parametrize("kind", ["any", "late", "length"])
@pytest.mark.parametrize("parts", few([PARTS, 1]))
@pytest.mark.parametrize("seed", few(range(3)))
@pytest.mark.parametrize(("room", "size"), few([(500, 40), (1 << 30, 40), (1 << 30, 5000)]))
def test_rows_come_by_partition_and_range(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    parts: int,
    kind: str,
    room: int,
    size: int,
) -> None:
    random = Random(seed)
    tables = some_tables(random, some_keys(random, kind), 20)
    everything = [row for table in tables for row in table.iter_rows()]
    with Shuffle(parts, SCHEMA, budget=1 << 30, spill=tmp_path) as rows:
        monkeypatch.setattr(cacheranges, "RANGE_ROWS", size)
        monkeypatch.setattr(cacheranges, "MAX_BUFFER", room)
        for table in tables:
            rows.add(table)
        for part in range(parts):
            frames = [frame[pl.Series(order)] for frame, order in rows.ordered(part)]
            assert len(frames) == max(1, 2000 // parts // size)
            mine = [row for row in everything if javahash.partition(row[1], parts) == part]
            assert [row for frame in frames for row in frame.iter_rows()] == sorted(
                mine, key=lambda row: row[1]
            )
            full = [frame for frame in frames if len(frame)]
            assert all(before["key"][-1] < after["key"][0] for before, after in pairwise(full))
            assert kind == "length" or max(map(len, full)) < 10 * size
        assert rows.rows == len(everything)


def test_nothing_added_has_no_range(tmp_path: Path) -> None:
    with Shuffle(2, SCHEMA, budget=1, spill=tmp_path) as rows:
        assert list(rows.ordered(1)) == []


def test_spilled_rows_are_ordered_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cacheranges, "RANGE_ROWS", 50)
    tables = some_tables(Random(1), [b"a", b"b", b"c"], 4)
    with Shuffle(1, SCHEMA, budget=100, spill=tmp_path) as rows:
        for table in tables:
            rows.add(table)
        found = [
            row for frame, order in rows.ordered(0) for row in frame[pl.Series(order)].iter_rows()
        ]
    assert found == sorted(
        (row for table in tables for row in table.iter_rows()), key=lambda row: row[1]
    )


WIDE = pl.Schema(
    {
        "key": pl.Binary(),
        "row": pl.Int64(),
        "small": pl.UInt8(),
        "score": pl.Float32(),
        "same": pl.Int32(),
        "late": pl.Int16(),
        "seldom": pl.Binary(),
        "zero": pl.Float32(),
        "missing": pl.Int8(),
        "flag": pl.Boolean(),
        "text": pl.Binary(),
        "nothing": pl.Binary(),
    }
)


def wide_tables(random: Random, order: str) -> list[pl.DataFrame]:
    """Tables of all kinds of columns, whose keys come in any order, in theirs, or are one key."""
    keys = [b"k%05d" % random.randrange(400) for _ in range(800)]
    if order == "sorted":
        keys.sort()
    if order == "equal":
        keys = [b"a key that is not short"] * 800
    rows = [
        (
            key,
            row,
            random.randrange(256),
            random.random(),
            7,
            row // 150,
            b"here" if row > 760 else None,
            random.choice((0.0, -0.0)),
            random.choice((None, 1, 2)),
            random.random() < 0.5,
            random.choice((None, b"", b"short", b"not so short, is it?")),
            None,
        )
        for row, key in enumerate(keys)
    ]
    return list(pl.DataFrame(rows, schema=WIDE, orient="row").iter_slices(100))


@pytest.mark.parametrize("order", ["any", "sorted", "equal"])
@pytest.mark.parametrize("parts", few([2, 1]))
@pytest.mark.parametrize(("budget", "cores"), few([(8_000, 1), (1 << 30, 3), (8_000, 3)]))
def test_every_kind_of_column_in_memory_and_on_disk(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    order: str,
    parts: int,
    budget: int,
    cores: int,
) -> None:
    monkeypatch.setattr(cacheranges, "RANGE_ROWS", 64)
    monkeypatch.setattr(shuffle, "workers", lambda: cores)
    tables = wide_tables(Random(order), order)
    everything = pl.concat(tables)
    part = partition_of(everything["key"], parts)
    for take in (Shuffle.sorted, Shuffle.grouped):
        with Shuffle(parts, WIDE, budget=budget, spill=tmp_path) as rows:
            for table in tables:
                rows.add(table)
            assert (len(list(tmp_path.rglob("*"))) > 3) == (budget == 8_000)
            for number in range(parts):
                frames = list(take(rows, number))
                found = pl.concat([pl.DataFrame(schema=WIDE), *frames])
                assert found.schema == WIDE
                mine = everything.filter(part == number)
                if take is Shuffle.grouped:
                    found = found.sort("key", maintain_order=True)
                expected = mine.sort("key", maintain_order=True)
                assert found.equals(expected)
                assert found["zero"].cast(pl.String).equals(expected["zero"].cast(pl.String))
                full = [frame["key"] for frame in frames if len(frame)]
                assert all(a.max() < b.min() for a, b in pairwise(full))
                assert order != "any" or len(full) > 4 or (parts == 1 and budget > 8_000)


def test_ranges_of_later_runs_are_cut_where_rows_are_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cacheranges, "RANGE_ROWS", 64)
    tables = wide_tables(Random(2), "sorted")
    with Shuffle(1, WIDE, budget=8_000, spill=tmp_path) as rows:
        for table in tables:
            rows.add(table)
        sizes = [len(frame) for frame in rows.sorted(0)]
    assert sum(sizes) == 800
    assert max(sizes) <= 2 * cacheranges.MANY * 64
