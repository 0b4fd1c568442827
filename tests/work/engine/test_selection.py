"""As many rows compete for places as may win, by what is known of their ranks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.cycle.fetchlist.selector import GenerateOptions, Selector
from minutch.work.engine.interface import Task
from minutch.work.engine.selection import (
    ALL,
    LAST,
    Ranks,
    RankSketch,
    SketchRanks,
    rank_of,
    sampled,
    window_rows,
)
from minutch.work.tables.spans import FileSplit
from tests.cycle.hostdb.test_updatehostdb import write_hostdb
from tests.support.segments import conf_for


class Numbers:
    """Rows that are ranks."""

    def ranks_in(self, table: pl.DataFrame) -> Ranks:
        return table["rank"].to_numpy()


def sketch(piece: list[list[int]]) -> RankSketch:
    """Of a piece whose tables have these ranks."""

    def find(task: Task, tables: list[list[int]]) -> Iterator[pl.DataFrame]:
        return (pl.DataFrame({"rank": pl.Series(table, dtype=pl.UInt64)}) for table in tables)

    return SketchRanks(find, Numbers())(Task(), piece)  # type: ignore[arg-type]


RANKS = st.lists(st.integers(0, 50) | st.integers(0, LAST - 1), max_size=20)


@given(st.lists(st.lists(RANKS, max_size=4), max_size=4), st.integers(1, 60))
def test_a_rank_has_as_many_rows_as_are_wanted(pieces: list[list[list[int]]], wanted: int) -> None:
    ranks = sorted(rank for piece in pieces for table in piece for rank in table)
    sketches = [sketch(piece) for piece in pieces]
    assert sum(found.rows for found in sketches) == len(ranks)
    assert rank_of(sketches, wanted) == (ranks[wanted - 1] if wanted <= len(ranks) else LAST)


@pytest.mark.parametrize("wanted", [1, 999, 10_000, 250_000, 299_000])
def test_of_many_rows_there_are_a_few_more(wanted: int) -> None:
    random = np.random.default_rng(1)
    pieces = [
        random.integers(0, LAST, size, dtype=np.uint64) for size in (100_000, 150_000, 0, 50_000)
    ]
    last = rank_of([sketch([list(piece)]) for piece in pieces], wanted)
    assert wanted <= sum(int((piece <= last).sum()) for piece in pieces) < wanted + 500


def test_a_sample_is_a_part_of_each_piece() -> None:
    pieces = [
        FileSplit(Path("a"), 0, 100 << 20),
        FileSplit(Path("a"), 100 << 20, 200 << 20),
        FileSplit(Path("b"), 0, 1000),
    ]
    stretches, share = sampled(pieces)
    assert share == pytest.approx(1 / 64, rel=0.01)
    assert pieces[2] in stretches
    for path, start, end in stretches:
        assert any(path == own and a <= start < end <= b for own, a, b in pieces)
    assert sampled(pieces[2:]) == ([], 0.0)


def test_places_decide_how_many_compete(tmp_path: Path) -> None:
    conf = conf_for()
    assert Selector.from_conf(conf, GenerateOptions(top_n=100, max_segments=3), 0).limit == 300
    assert Selector.from_conf(conf, GenerateOptions(), 0).limit is None
    write_hostdb(tmp_path, {})
    with_hostdb = GenerateOptions(top_n=100, hostdb=tmp_path)
    assert Selector.from_conf(conf, with_hostdb, 0).limit == 100
    assert (
        300
        < window_rows(300)
        < window_rows(1 << 40)
        < window_rows(1 << 62)
        == window_rows(None)
        == ALL
    )
