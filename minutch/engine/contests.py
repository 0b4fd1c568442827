"""How a contest goes, whichever engine brings its rows: best first, some at a time, until no places are left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from minutch.engine.interface import Contest
from minutch.job import Counters


def judged(
    contest: Contest, parts: range, windows: Iterator[Sequence[pl.DataFrame]], counters: Counters, total: int
) -> tuple[pl.DataFrame, int]:
    """The rows that get places, and how many were looked at; `windows` are tables of those in `parts`, one at least."""
    first = next(windows)
    judge = contest.judge(first, parts)
    chosen, seen = [judge.choose(first, counters, total)], sum(map(len, first))
    while not judge.is_full and (tables := next(windows, None)) is not None:
        chosen.append(judge.choose(tables, counters, total))
        seen += sum(map(len, tables))
    return pl.concat(chosen), seen
