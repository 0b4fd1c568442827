"""The best of what is due, a window of ranks at a time: memory is for as many entries as may get a place, not for all.

The first window has the lowest ranks (see `select`). Where it has too few entries that get a place, because others are
over the limit of their host, say, the CrawlDb is read again for the next one.
"""

from __future__ import annotations

from threading import Lock
from typing import Final

import numpy as np
import polars as pl

from minutch.fetchlist.select import Ranks, ranks_in
from minutch.records.batch import own_column

LAST: Final = (1 << 64) - 1
"""The highest rank there may be."""
Place = tuple[int, int]
"""Where a table stands in the CrawlDb: part, and number in the part."""


class Window:
    """The entries with ranks from `first` on: the best `most` of them, and all that are ranked as the last of these.

    Tables may come from several threads, in any order.
    """

    def __init__(self, first: int, most: int) -> None:
        self.last = LAST
        """The highest rank in the window."""
        self._first, self._most = first, most
        self._held: dict[Place, tuple[pl.DataFrame, Ranks]] = {}
        self._rows = 0
        self._lock = Lock()

    def add(self, place: Place, table: pl.DataFrame) -> None:
        """Take in what of a table of entries that are due is in the window."""
        ranks = ranks_in(table)
        table, ranks = _between(table, ranks, self._first, self.last)
        with self._lock:
            self._held[place] = table, ranks
            self._rows += len(table)
            if self._rows > 2 * self._most:
                self._close()

    def tables(self) -> list[pl.DataFrame]:
        """The entries, in the order of the CrawlDb."""
        if self._rows > self._most or self.last < LAST:
            self._close()
        return [self._held[place][0] for place in sorted(self._held)]

    def _close(self) -> None:
        """Move the end of the window down to where there are about as many as are wanted."""
        ranks = np.concatenate([ranks for _, ranks in self._held.values()])
        if len(ranks) > self._most:
            self.last = min(self.last, int(np.partition(ranks, self._most - 1)[self._most - 1]))
        for place, (table, own) in self._held.items():
            self._held[place] = _between(table, own, self._first, self.last)
        self._rows = sum(len(table) for table, _ in self._held.values())


def _between(table: pl.DataFrame, ranks: Ranks, first: int, last: int) -> tuple[pl.DataFrame, Ranks]:
    """The entries with ranks from `first` to `last`, in memory of their own unless these are all."""
    within = (ranks >= np.uint64(first)) & (ranks <= np.uint64(last))
    if within.all():
        return table, ranks
    table = table.filter(pl.Series(within))
    return table.with_columns(map(own_column, table.select(pl.col(pl.Binary)))), ranks[within]
