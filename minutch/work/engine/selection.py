"""What engines need from tables: the best of many rows, and databases whose parts already are the
partitions of the job.

    RankWindow     the best of many rows, a window of ranks at a time: memory is for as many as may
                   get a place, not for all. The first window has the lowest ranks. Where it has too
                   few rows that get a place, because others are over the limit of their host, say,
                   everything is read again for the next one
    select_rows    gives rows their places, some at a time, until none are left; engines bring them
    StoredParts    parts that are read where they lie: nothing of them is shuffled, and nothing is
                   held in memory but what is at hand. As in a shuffle, rows of one key keep the
                   order of the input
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from minutch.hadoop.formats.batch import own_column
from minutch.job import Counters
from minutch.work.engine.interface import Partition, ReadRows, SelectionRules, TableNumber, Task
from minutch.work.tables.frame import Rows, empty
from minutch.work.tables.parallel import for_each
from minutch.work.tables.spans import FileSplit

Ranks = NDArray[np.uint64]
LAST: Final = (1 << 64) - 1
"""The highest rank there may be."""


class RankWindow:
    """The rows with ranks from `first` on: the best `most` of them, and all that are ranked as the
    last of these.

    Tables may come from several threads, in any order. They are ranked when they have more than
    `room` rows, not before; where all have no more, all of them are in the window.
    """

    def __init__(
        self, first: int, most: int, room: int, ranks_in: Callable[[pl.DataFrame], Ranks]
    ) -> None:
        self.last = LAST
        """The highest rank in the window."""
        self._first, self._most, self._ranks_in = first, most, ranks_in
        self._room = max(room, most)
        self._held: dict[TableNumber, tuple[pl.DataFrame, Ranks | None]] = {}
        self._rows = 0
        self._lock = Lock()

    def add(self, place: TableNumber, table: pl.DataFrame) -> None:
        """Takes in what of a table is in the window."""
        held: tuple[pl.DataFrame, Ranks | None] = table, None
        if self._first or self.last < LAST:  # else all are in: ranks may never be needed
            held = _between(table, self._ranks_in(table), self._first, self.last)
        with self._lock:
            self._held[place] = held
            self._rows += len(held[0])
            if self._rows > self._room:
                self._close()

    def tables(self) -> list[pl.DataFrame]:
        """Returns the rows, in the order of the input."""
        if self.last < LAST:
            self._close()
        # By place: threads have added them in any order.
        return [self._held[place][0] for place in sorted(self._held)]

    def _close(self) -> None:
        """Moves the end of the window down to where there are about as many as are wanted."""
        ranked = dict(zip(self._held, for_each(self._ranked, self._held.values()), strict=True))
        ranks = np.concatenate([own for _, own in ranked.values()])
        if len(ranks) > self._most:
            # The rank of row `most`, without sorting.
            self.last = min(self.last, int(np.partition(ranks, self._most - 1)[self._most - 1]))
        within = (ranks >= np.uint64(self._first)) & (ranks <= np.uint64(self.last))
        ends = np.cumsum([len(table) for table, _ in ranked.values()])
        shares = np.split(within, ends[:-1])
        self._held = {
            place: _those(*own, share)
            for (place, own), share in zip(ranked.items(), shares, strict=True)
        }
        self._rows = sum(len(table) for table, _ in self._held.values())

    def _ranked(self, held: tuple[pl.DataFrame, Ranks | None]) -> tuple[pl.DataFrame, Ranks]:
        table, ranks = held
        return table, self._ranks_in(table) if ranks is None else ranks


def _between(
    table: pl.DataFrame, ranks: Ranks, first: int, last: int
) -> tuple[pl.DataFrame, Ranks]:
    """Returns the rows with ranks from `first` to `last`, copied unless these are all."""
    return _those(table, ranks, (ranks >= np.uint64(first)) & (ranks <= np.uint64(last)))


def _those(
    table: pl.DataFrame, ranks: Ranks, within: NDArray[np.bool_]
) -> tuple[pl.DataFrame, Ranks]:
    if within.all():
        return table, ranks
    table = table.filter(pl.Series(within))
    # Strings are copied, or a few rows would hold those of all.
    return table.with_columns(map(own_column, table.select(pl.col(pl.Binary)))), ranks[within]


ALL: Final = (1 << 63) - 1
"""More rows than there are."""
_ROOM: Final = 4
_MORE_ROOM: Final = 200_000
"""Rows that compete at a time: a multiple of the places, and more: groups differ."""
_SAMPLES: Final = 1024
"""Ranks of a sketch."""
_WORTH: Final = 32 << 20
"""Bytes of pieces from which on a sample is worth its time."""
_PART: Final = 64
_STRETCHES: Final = 4
_STRETCH: Final = 1 << 16
"""A sample is one part in so many of a piece, from so many places, of so many bytes each."""


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
    """Selects rows of some groups, of `total` in all; `windows` yields their tables."""
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
        step = max(1, -(-len(ranks) // _SAMPLES))  # rounded up: no more than _SAMPLES
        return RankSketch(len(ranks), step, ranks[step - 1 :: step].copy())


def rank_of(sketches: Sequence[RankSketch], wanted: float) -> int:
    """Returns a rank with `wanted` rows up to it, and few more; LAST if there are not so many."""
    if not sketches:
        return LAST
    ranks = np.concatenate([sketch.ranks for sketch in sketches])
    steps = np.concatenate([np.full(len(sketch.ranks), sketch.step) for sketch in sketches])
    order = np.argsort(ranks)
    # Each rank of a sketch stands for `step` rows: the sum says how many come before.
    enough = int(np.searchsorted(np.cumsum(steps[order]), wanted))
    return int(ranks[order[enough]]) if enough < len(order) else LAST


def sampled(pieces: Sequence[Any]) -> tuple[list[FileSplit], float]:
    """Returns some stretches of each piece to sample, and their share of the whole; none if reading
    everything is quick.
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


ReadPart = Callable[[Path, Counters], Iterator[pl.DataFrame]]
"""A function of a part that gives its rows in tables sorted by key, at least one, and counts what
it leaves out.
"""


@dataclass(frozen=True)
class StoredParts:
    """The parts of a database as a source (see `Source`). Without any parts there are no rows."""

    paths: Sequence[Path]
    read: ReadPart
    schema: pl.Schema
    counters: Counters = field(default_factory=Counters)

    def open(self, part: int) -> Partition:
        """Returns the part of this number."""
        return _StoredPart(self, self.paths[part] if self.paths else None)


@dataclass(frozen=True)
class _StoredPart:
    """A stored part; None where there is no database yet."""

    stored: StoredParts
    path: Path | None
    counters: Counters = field(default_factory=Counters)

    def sorted(self) -> Iterator[pl.DataFrame]:
        if self.path is None:
            # At least one table, for its schema.
            return iter((empty(self.stored.schema),))
        return self.stored.read(self.path, self.counters)

    def grouped(self) -> Iterator[pl.DataFrame]:
        return self.sorted()

    def ordered(self) -> Iterator[tuple[pl.DataFrame, Rows]]:
        return ((frame, np.arange(len(frame), dtype=np.uint32)) for frame in self.sorted())
