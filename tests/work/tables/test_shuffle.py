"""The shuffle: rows come out partitioned, sorted and in order of arrival, held in memory or
spilled.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random

import polars as pl
import pytest

from minutch.hadoop.formats import javahash
from minutch.work.tables import cacheranges
from minutch.work.tables.shuffle import Shuffle
from tests.support.examples import few
from tests.support.tables import a_key

SCHEMA = pl.Schema({"key": pl.Binary(), "row": pl.Int64()})
PARTS = 3


def some_frames(seed: int, count: int = 40) -> list[pl.DataFrame]:
    """Tables with keys that come again and again; rows are numbered in order of arrival."""
    random = Random(seed)
    keys = [a_key(random) for _ in range(300)]
    frames, row = [], 0
    for _ in range(count):
        size = random.randrange(200)
        frames.append(
            pl.DataFrame(
                {"key": random.choices(keys, k=size), "row": range(row, row + size)}, schema=SCHEMA
            )
        )
        row += size
    return frames


@pytest.mark.parametrize("budget", few([30_000, 1 << 30, 1]))
@pytest.mark.parametrize("seed", few(range(3)))
def test_rows_come_out_sorted_whatever_the_budget(
    tmp_path: Path, seed: int, budget: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cacheranges, "RANGE_ROWS", 50)
    frames = some_frames(seed)
    everything = [row for frame in frames for row in frame.iter_rows()]
    part_of = {key: javahash.partition(key, PARTS) for key in {row[0] for row in everything}}
    with Shuffle(PARTS, SCHEMA, budget=budget, spill=tmp_path) as rows:
        for frame in frames:
            rows.add(frame)
        assert bool(list(tmp_path.iterdir())) == (budget < 1 << 30)
        for part in range(PARTS):
            tables = list(rows.sorted(part))
            found = [row for table in tables for row in table.iter_rows()]
            mine = [row for row in everything if part_of[row[0]] == part]
            assert found == sorted(mine, key=lambda row: row[0])
            borders = [(table["key"][0], table["key"][-1]) for table in tables if len(table)]
            assert all(before[1] < after[0] for before, after in pairwise(borders))
        assert rows.rows == len(everything)
    assert not list(tmp_path.iterdir())


def test_nothing_added(tmp_path: Path) -> None:
    with Shuffle(2, SCHEMA, budget=1, spill=tmp_path) as rows:
        for part in range(2):
            (table,) = rows.sorted(part)
            assert table.is_empty() and table.schema == SCHEMA


def test_spilled_runs_go_away_with_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), Shuffle(2, SCHEMA, budget=1, spill=tmp_path) as rows:
        rows.add(some_frames(1, 1)[0])
        raise ZeroDivisionError
    assert not list(tmp_path.iterdir())
