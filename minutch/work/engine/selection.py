"""Selects the best rows, some at a time, until no places are left; engines bring the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from minutch.job import Counters
from minutch.work.engine.interface import ReadRows, SelectionRules, Task
from minutch.work.tables.rankwindow import LAST, Ranks
from minutch.work.tables.spans import FileSplit

ALL: Final = (1 << 63) - 1
"""More rows than there are."""
_ROOM: Final = 4
_MORE_ROOM: Final = 200_000
"""Rows that compete at a time: a multiple of the places, and some more, as the shares of groups
differ.
"""
_SAMPLES: Final = 1024
"""Ranks of a sketch."""
_WORTH: Final = 32 << 20
"""Bytes of pieces from which on a sample is worth its time."""
_PART: Final = 64
_STRETCHES: Final = 4
_STRETCH: Final = 1 << 16
"""A sample is one part in so many of a piece, from so many places; at least so many bytes from
each.
"""


class SelectedRows(NamedTuple):
    """The rows that got a place."""

    rows: pl.DataFrame
    """Rows that got a place."""
    seen: int
    """Number of rows looked at."""
    is_full: bool
    """True if no further row can get a place."""


def select_rows(
    rules: SelectionRules,
    parts: range,
    windows: Iterator[Sequence[pl.DataFrame]],
    counters: Counters,
    total: int,
) -> SelectedRows:
    """Selects rows of some groups, of `total` in all; `windows` yields tables of them, at least
    one.
    """
    first = next(windows)
    selection = rules.selection(first, parts)
    chosen, seen = [selection.choose(first, counters, total)], sum(map(len, first))
    while not selection.is_full and (tables := next(windows, None)) is not None:
        chosen.append(selection.choose(tables, counters, total))
        seen += sum(map(len, tables))
    return SelectedRows(pl.concat(chosen), seen, selection.is_full)


def window_rows(places: int | None) -> int:
    """Returns the number of rows to take at a time, at least."""
    return ALL if places is None else min(_ROOM * places + _MORE_ROOM, ALL)


class RankSketch(NamedTuple):
    """A sketch of the ranks of a piece's rows: up to each of `ranks` there are `step` rows more
    than up to the one before.
    """

    rows: int
    step: int
    ranks: Ranks


@dataclass(frozen=True)
class SketchRanks:
    """A function for `Engine.map`: the sketch of a piece."""

    find: ReadRows[Any]
    rules: SelectionRules

    def __call__(self, task: Task, piece: Any) -> RankSketch:
        found = [self.rules.ranks_in(table) for table in self.find(task, piece)]
        ranks = np.sort(np.concatenate([np.empty(0, np.uint64), *found]))
        step = max(1, -(-len(ranks) // _SAMPLES))
        return RankSketch(len(ranks), step, ranks[step - 1 :: step].copy())


def rank_of(sketches: Sequence[RankSketch], wanted: float) -> int:
    """Returns a rank up to which there are `wanted` rows, and few more; LAST where there are not so
    many.
    """
    if not sketches:
        return LAST
    ranks = np.concatenate([sketch.ranks for sketch in sketches])
    steps = np.concatenate([np.full(len(sketch.ranks), sketch.step) for sketch in sketches])
    order = np.argsort(ranks)
    enough = int(np.searchsorted(np.cumsum(steps[order]), wanted))
    return int(ranks[order[enough]]) if enough < len(order) else LAST


def sampled(pieces: Sequence[Any]) -> tuple[list[FileSplit], float]:
    """Returns some stretches of each of many pieces, and their share of them; none where all are
    soon read.
    """
    pieces = [piece for piece in pieces if isinstance(piece, FileSplit)]
    total = sum(piece.end - piece.start for piece in pieces)
    if total < _WORTH:
        return [], 0.0
    found = [stretch for piece in pieces for stretch in _stretches(piece)]
    return found, sum(stretch.end - stretch.start for stretch in found) / total


def _stretches(piece: FileSplit) -> list[FileSplit]:
    size = piece.end - piece.start
    length = max(_STRETCH, size // (_STRETCHES * _PART))
    starts = (piece.start + size * number // _STRETCHES for number in range(_STRETCHES))
    return [FileSplit(piece.path, start, min(start + length, piece.end)) for start in starts]
