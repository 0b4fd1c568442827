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

from minutch.kernels.arrow import from_series
from minutch.linkdb.store import LinkDb
from minutch.linkdb.values import LINKS_SCHEMA
from minutch.records.linksets import LinkSets, Rows
from minutch.tables.frame import concat
from minutch.tables.merge import aligned, key_order
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


def united(sources: Sequence[Shuffle], part: int, limit: int) -> Iterator[LinkSets]:
    """The records of a partition of some Shuffles, links of the first one first."""
    sources = [source for source in sources if source.rows]
    if len(sources) == 1:
        yield from (unite(links, limit, rows) for links, rows in sources[0].ordered(part))
        return
    for tables in aligned(*(source.sorted(part) for source in sources)) if sources else ():
        yield unite(pl.concat(tables), limit)


def unite(links: pl.DataFrame, limit: int, order: Rows | None = None) -> LinkSets:
    """One record for each key of `links`: every link once, at most `limit`, as Java's new sets have them.

    `order` has the rows by key, if that is known.
    """
    from minutch.kernels import inlinks as links_kernels

    if links["from_url"].null_count():
        links, order = links.filter(links["from_url"].is_not_null()), None
    links = links.rechunk()
    if order is None:
        order = key_order(links, np.arange(len(links), dtype=np.uint32))
    keys, urls, anchors = (from_series(links[name]) for name in ("key", "from_url", "anchor"))
    rows, starts = np.empty(len(order), np.uint32), np.empty(len(order) + 1, np.int64)
    count = links_kernels.unite(order, *keys[:2], *urls[:2], *anchors[:2], limit, rows, starts)
    return LinkSets(links, rows[: starts[count]], starts[: count + 1])
