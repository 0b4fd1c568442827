"""The best of many rows, a window of ranks at a time: memory is for as many as may get a place, not
for all.

The first window has the lowest ranks. Where it has too few rows that get a place, because others
are over the limit of their host, say, everything is read again for the next one.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from minutch.hadoop.formats.batch import own_column
from minutch.work.tables.parallel import for_each

Ranks = NDArray[np.uint64]
LAST: Final = (1 << 64) - 1
"""The highest rank there may be."""
TableNumber = tuple[int, int]
"""Position of a table in the input: piece, and number in the piece."""


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
        self._first, self._most, self._room, self._ranks_in = first, most, max(room, most), ranks_in
        self._held: dict[TableNumber, tuple[pl.DataFrame, Ranks | None]] = {}
        self._rows = 0
        self._lock = Lock()

    def add(self, place: TableNumber, table: pl.DataFrame) -> None:
        """Takes in what of a table is in the window."""
        held: tuple[pl.DataFrame, Ranks | None] = table, None
        if self._first or self.last < LAST:
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
        return [self._held[place][0] for place in sorted(self._held)]

    def _close(self) -> None:
        """Moves the end of the window down to where there are about as many as are wanted."""
        ranked = dict(zip(self._held, for_each(self._ranked, self._held.values()), strict=True))
        ranks = np.concatenate([own for _, own in ranked.values()])
        if len(ranks) > self._most:
            self.last = min(self.last, int(np.partition(ranks, self._most - 1)[self._most - 1]))
        self._held = {
            place: _between(*own, self._first, self.last) for place, own in ranked.items()
        }
        self._rows = sum(len(table) for table, _ in self._held.values())

    def _ranked(self, held: tuple[pl.DataFrame, Ranks | None]) -> tuple[pl.DataFrame, Ranks]:
        table, ranks = held
        return table, self._ranks_in(table) if ranks is None else ranks


def _between(
    table: pl.DataFrame, ranks: Ranks, first: int, last: int
) -> tuple[pl.DataFrame, Ranks]:
    """Returns the rows with ranks from `first` to `last`, in memory of their own unless these are
    all.
    """
    within = (ranks >= np.uint64(first)) & (ranks <= np.uint64(last))
    if within.all():
        return table, ranks
    table = table.filter(pl.Series(within))
    return table.with_columns(map(own_column, table.select(pl.col(pl.Binary)))), ranks[within]
