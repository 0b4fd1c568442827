"""Links by the million: gathered within a bound of memory, sorted by URL, united partition by partition.

Up to `FOLLOWED` links `mapreduce` does the work, step by step as Hadoop does, which decides the last details of their
order. Beyond that they are sorted once, those that were stored before the new ones; each URL's links come in Java's
order for a new set that they are put into in that order. That is one of the orders that Nutch's result may have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from minutch.formats.columns_arrow import from_series
from minutch.linkdb.javaset import link_hashes
from minutch.linkdb.store import LinkDb
from minutch.linkdb.values import LINKS_SCHEMA
from minutch.tables.frame import concat
from minutch.tables.merge import aligned
from minutch.tables.shuffle import Shuffle

FOLLOWED: Final = 300_000
_BYTES_PER_LINK: Final = 50  # of a stored LinkDb, at least

Change = Callable[[pl.DataFrame], pl.DataFrame]


def is_small(dbs: Sequence[LinkDb]) -> bool:
    """Whether all of `dbs` together are small enough for their order to be followed."""
    size = sum((part / "data").stat().st_size for db in dbs for part in db.parts())
    return size <= FOLLOWED * _BYTES_PER_LINK


class Gathered:
    """Links of map tasks: tables as long as they are few, a Shuffle beyond that. A context manager."""

    def __init__(
        self, parts: int, *, budget: int, spill: Path, change: Change = lambda links: links, few: int | None = None
    ) -> None:
        """`change` is what links go through on their way into the Shuffle, `few` how many stay out of it (FOLLOWED)."""
        self.shuffle = Shuffle(parts, LINKS_SCHEMA, budget=budget, spill=spill)
        self._change = change
        self._tasks: list[list[pl.DataFrame]] | None = []
        self._rows = 0
        self._few = FOLLOWED if few is None else few

    def begin_task(self) -> None:
        """What comes now is another task's."""
        if self._tasks is not None:
            self._tasks.append([])

    def add(self, table: pl.DataFrame) -> None:
        """Take in a table of LINKS_SCHEMA."""
        self._rows += len(table)
        if self._tasks is None:
            self.shuffle.add(self._change(table))
        else:
            self._tasks[-1].append(table)
            if self._rows > self._few:
                self.spread()

    def spread(self) -> None:
        """Go over to the Shuffle."""
        for table in (table for task in self._tasks or () for table in task):
            self.shuffle.add(self._change(table))
        self._tasks = None

    @property
    def tasks(self) -> Sequence[pl.DataFrame] | None:
        """A table for each task; None if there were too many links."""
        return None if self._tasks is None else [concat(task, LINKS_SCHEMA) for task in self._tasks]

    def __enter__(self) -> Self:
        self.shuffle.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shuffle.__exit__(kind, error, trace)


def united(sources: Sequence[Shuffle], part: int, limit: int) -> Iterator[pl.DataFrame]:
    """The records of a partition of some Shuffles, links of the first one first; in tables of LINKS_SCHEMA."""
    streams = [source.sorted(part) for source in sources if source.rows]
    if len(streams) == 1:
        yield from (unite(table, limit, in_order=True) for table in streams[0])
        return
    for tables in aligned(*streams) if streams else ():
        yield unite(pl.concat(tables), limit)


def unite(links: pl.DataFrame, limit: int, *, in_order: bool = False) -> pl.DataFrame:
    """One record for each key of `links`, in order: every link once, at most `limit`, as Java's new sets have them.

    `in_order` says that `links` are sorted by key.
    """
    from minutch.formats import columns_kernels
    from minutch.linkdb import links_kernels
    from minutch.tables import sort_kernels

    links = links.filter(links["from_url"].is_not_null()) if links["from_url"].null_count() else links
    links = links.rechunk()
    keys, urls, anchors = (from_series(links[name]) for name in ("key", "from_url", "anchor"))
    order = np.arange(len(links), dtype=np.uint32)
    if not in_order and columns_kernels.out_of_order(keys.views, keys.addresses) >= 0:
        sort_kernels.sort_order(keys.views, keys.addresses, order)
    starts = np.empty(len(links) + 1, np.int64)
    count = links_kernels.run_starts(keys.views, keys.addresses, order, starts)
    starts[count] = len(links)
    starts = starts[: count + 1]
    rows, spread = np.empty(len(links), np.int64), _hashes(links, order, np.diff(starts))
    used = links_kernels.unite(order, starts, spread, *urls[:2], *anchors[:2], limit, rows)
    return links[rows[:used]]


def _hashes(links: pl.DataFrame, order: NDArray[np.uint32], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The hash codes of the links whose set has others too; 0 for the rest."""
    spread = np.zeros(len(links), np.int64)
    wanted = np.zeros(len(links), np.bool_)
    wanted[order[np.repeat(counts > 1, counts)]] = True
    spread[wanted] = link_hashes(links.filter(pl.Series(wanted)))
    return spread
