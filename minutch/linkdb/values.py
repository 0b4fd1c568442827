"""Inlinks records as they pass through map and reduce tasks: sets of rows, each set with its key.

`Values` is a list of sets. `unite` makes one set of all that have the same key, as LinkDbMerger's reducer does:

    for each set, in order: take its first links, at most as many as the result still lacks to the limit
    a link that is there already (same URL and anchor) is taken, but changes nothing

Sets are iterated as Java does it (`javaset`). Matched: org.apache.nutch.crawl.LinkDbMerger.LinkDbMergeReducer, Inlinks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from minutch.linkdb.javaset import iteration_order, link_hashes, table_sizes

Ints = NDArray[np.int64]

LINKS_SCHEMA = pl.Schema({"key": pl.Binary(), "from_url": pl.Binary(), "anchor": pl.Binary()})
"""Links on their way into a LinkDb: INLINKS_SCHEMA without metadata, which no job keeps."""


class Links:
    """The rows that sets refer to: a table with the columns `from_url` and `anchor`, and what is derived from them."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame

    @cached_property
    def spread(self) -> Ints:
        """Hash codes, as `javaset` wants them."""
        return link_hashes(self.frame.select(pl.col("from_url", "anchor").fill_null(b"")))

    @cached_property
    def identity(self) -> NDArray[np.uint64]:
        """A number per row that is the same for equal links only."""
        return self.frame.select(pl.struct("from_url", "anchor").hash()).to_series().to_numpy()

    @cached_property
    def sizes(self) -> Ints:
        """Bytes of each link in an Inlinks record."""
        sizes: Ints = 1 + text_sizes(self.frame["from_url"]) + text_sizes(self.frame["anchor"])
        return sizes


def text_sizes(column: pl.Series) -> Ints:
    """Bytes of each string of a Binary column as a serialized Text."""
    size = column.bin.size().fill_null(0).cast(pl.Int64).to_numpy()
    length: Ints = size + np.where(size < 128, 1, np.where(size < 256, 2, np.where(size < 65536, 3, 4)))
    return length


@dataclass(frozen=True)
class Values:
    """Sets in some order: set i has the key `keys[i]` (a number) and the rows `rows[starts[i]:starts[i + 1]]`."""

    links: Links
    keys: Ints
    starts: Ints
    rows: Ints

    @classmethod
    def singles(cls, links: Links, keys: Ints, rows: Ints) -> Self:
        """A set of its own for each of `rows`; `keys` has the key of every row of `links`."""
        return cls(links, keys[rows], np.arange(len(rows) + 1), rows)

    @classmethod
    def records(cls, links: Links, keys: Ints, records: Ints) -> Self:
        """A set for each run of rows with the same number in `records`; `keys` has the key of every row."""
        firsts = np.flatnonzero(np.diff(records, prepend=-1))
        return cls(links, keys[firsts], np.append(firsts, len(keys)), np.arange(len(keys)))

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def counts(self) -> Ints:
        """Rows of each set."""
        return np.diff(self.starts)

    def sizes(self) -> Ints:
        """Bytes of each set as an Inlinks record."""
        totals = np.concatenate([[0], np.cumsum(self.links.sizes[self.rows])])
        sizes: Ints = 4 + totals[self.starts[1:]] - totals[self.starts[:-1]]
        return sizes

    def table(self, *more: str) -> pl.DataFrame:
        """The rows of all sets in order, in the columns of LINKS_SCHEMA and `more`."""
        return self.links.frame.select(*LINKS_SCHEMA.names(), *more)[self.rows]

    def take(self, order: Ints) -> Values:
        """The sets at the positions `order`."""
        counts = self.counts[order]
        starts = np.concatenate([[0], np.cumsum(counts)])
        within = np.arange(starts[-1]) - np.repeat(starts[:-1], counts)
        return Values(self.links, self.keys[order], starts, self.rows[np.repeat(self.starts[order], counts) + within])

    def iterated(self, tables: Ints | None = None) -> Values:
        """The sets with their rows in Java's order, in tables of the given sizes (None: of new sets)."""
        order = iteration_order(self.links.spread[self.rows], self.starts, tables)
        return Values(self.links, self.keys, self.starts, self.rows[order])

    def reread(self) -> Values:
        """As `iterated`, where one Inlinks object reads set after set and its table only grows."""
        return self.iterated(np.maximum.accumulate(table_sizes(self.counts))) if len(self) else self

    def united(self, limit: int | None = None) -> Values:
        """One set for each run of sets with the same key, of at most `limit` links, in the order of a new set."""
        firsts = np.flatnonzero(np.diff(self.keys, prepend=-1))
        keys, starts = self.keys[firsts], np.append(self.starts[firsts], len(self.rows))
        kept = self._first_of_equal(np.repeat(np.arange(len(keys)), np.diff(starts)))
        if limit is not None:
            kept &= self._within(limit, firsts)
        counts = np.add.reduceat(np.append(kept, False), starts[:-1]) if len(keys) else np.zeros(0, dtype=np.int64)
        found = counts > 0
        starts = np.concatenate([[0], np.cumsum(counts[found])])
        return Values(self.links, keys[found], starts, self.rows[kept]).iterated()

    def _first_of_equal(self, owner: Ints) -> NDArray[np.bool_]:
        """Which rows are the first of their kind in their key."""
        pairs = pl.DataFrame({"owner": owner, "identity": self.links.identity[self.rows]})
        is_first: NDArray[np.bool_] = pairs.select(pl.struct(pl.all()).is_first_distinct()).to_series().to_numpy()
        return is_first.copy()

    def _within(self, limit: int, firsts: Ints) -> NDArray[np.bool_]:
        """Which rows are looked at before their key has `limit` links."""
        taken = np.ones(len(self.rows), dtype=bool)
        ends = np.append(firsts[1:], len(self.keys))
        for key in np.flatnonzero(self.starts[ends] - self.starts[firsts] > limit):
            have: set[int] = set()
            for value in range(firsts[key], ends[key]):
                start, end = int(self.starts[value]), int(self.starts[value + 1])
                stop = max(start, min(end, start + limit - len(have)))
                have.update(self.links.identity[self.rows[start:stop]].tolist())
                taken[stop:end] = False
        return taken
