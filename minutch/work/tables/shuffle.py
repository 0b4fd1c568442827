"""Sorts rows to their partitions: what Hadoop's shuffle does between map and reduce, within bounded
memory.

    partition = (Text.hashCode & 0x7fffffff) % number of parts
    Text.hashCode: h = 1; for each signed byte b of the UTF-8: h = 31 * h + b, in 32 bits

Rows are added in any order and taken out partition by partition, sorted by key, rows of one key in
the order in which they were added.

They are cut into ranges of keys (`cacheranges`), and each range is gathered and sorted as it is
asked for.

What goes beyond the budget is written to runs in a directory of its own, range by range, as it
came: rows are sorted once, when a range is read, from all runs. So a run has the borders of those
before it, and more where rows are too many for these: a range of a later run lies within one of
each earlier run.

Source: org.apache.hadoop.mapreduce.lib.partition.HashPartitioner,
org.apache.hadoop.io.WritableComparator.hashBytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Self

import numpy as np
import polars as pl

from minutch.kernels import hash as hashes
from minutch.kernels import keycolumns as kernels
from minutch.kernels.arrow import from_series
from minutch.paths import local_scratch
from minutch.work.tables import cacheranges
from minutch.work.tables.cacheranges import RUNS, CacheRanges, StoredRanges, has_only
from minutch.work.tables.frame import Rows, empty, key_order, sort_by_key
from minutch.work.tables.install import SPILL, make_folder, remove
from minutch.work.tables.parallel import ordered, workers


class _Source:
    """A partition's rows of a run, or in memory, by ranges that lie within its own."""

    def __init__(self, ranges: StoredRanges | CacheRanges, part: int, borders: pl.Series) -> None:
        self._ranges, self._borders = ranges, borders
        first = part * (len(ranges.borders) + 1)
        # The run's range in which each of the finer ones begins.
        own = ranges.borders.search_sorted(borders, side="right").to_numpy().astype(np.int64)
        self._buckets = first + np.append(0, own)
        # Where two of these lie in one of the run's, its rows are cut at the border between them.
        self._is_cut = np.diff(self._buckets, prepend=-1, append=-1) == 0

    def size(self, number: int) -> int:
        """Returns how many rows a range has at most."""
        return self._ranges.size(int(self._buckets[number]))

    def rows(self, number: int) -> pl.DataFrame:
        """Returns the rows of a range."""
        rows = self._ranges.gathered(int(self._buckets[number]))
        if self._is_cut[number] or self._is_cut[number + 1]:
            if number:
                rows = rows.filter(pl.col("key") >= pl.lit(self._borders[number - 1], pl.Binary))
            if number < len(self._borders):
                rows = rows.filter(pl.col("key") < pl.lit(self._borders[number], pl.Binary))
        return rows


def _together_in(sources: Sequence[_Source], number: int) -> pl.DataFrame:
    return pl.concat([source.rows(number) for source in sources], rechunk=True)


def partition_of(keys: pl.Series, parts: int) -> pl.Series:
    """Returns the part (0 to parts - 1, UInt32) of each of `keys` (Binary)."""
    strings = from_series(keys)
    out = np.empty(len(keys), np.uint32)
    hashes.partitions(strings.views, strings.addresses, parts, out)
    return pl.Series("part", out)


def split(frame: pl.DataFrame, parts: int) -> list[pl.DataFrame]:
    """Returns `frame` cut into its partitions, rows in their order; partition i is at index i."""
    if parts == 1:
        return [frame]
    part = partition_of(frame["key"], parts)
    return [frame.filter(part == i) for i in range(parts)]


class Shuffle:
    """Sorts rows into `parts` partitions, holding about `budget` bytes; what is beyond goes to a
    directory in `spill`.

    A context manager: leaving it deletes what was spilled.
    """

    def __init__(self, parts: int, schema: pl.Schema, *, budget: int, spill: Path) -> None:
        self.parts = parts
        self.schema = schema
        self.rows = 0
        self._budget = budget
        self._spill = spill
        self._directory: Path | None = None
        self._held = 0
        self._frames: list[pl.DataFrame] = []
        self._constants: dict[str, pl.Series] = {}
        self._ranges: CacheRanges | None = None
        self._runs: list[StoredRanges] = []
        self._lock = Lock()
        self._taken = 0

    def add(self, frame: pl.DataFrame) -> None:
        """Takes in the rows of `frame`, which has the columns of `schema`, `key` among them."""
        if frame.is_empty():
            return
        self.rows += len(frame)
        frame = self._narrowed(frame)
        self._frames.append(frame)
        self._held += sum(map(_size_of, frame))
        if self._held > self._budget:
            self._write_run()

    def _narrowed(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Returns the columns that do not have the same value in all rows that are held."""
        if not self._frames:
            values = [pl.Series(some.name, [some[0]], some.dtype) for some in frame.drop("key")]
            self._constants = {v.name: v for v in values if has_only(frame[v.name], v)}
        for name, value in tuple(self._constants.items()):
            if not has_only(frame[name], value):
                del self._constants[name]
                columns = [value.new_from_index(0, len(held)) for held in self._frames]
                self._held += sum(map(_size_of, columns))
                self._frames = [
                    held.with_columns(column)
                    for held, column in zip(self._frames, columns, strict=True)
                ]
        return frame.drop(list(self._constants))

    def sorted(self, part: int) -> Iterator[pl.DataFrame]:
        """Yields the rows of a partition in frames sorted by key (at least one frame); no key is
        spread over two frames.

        Partitions may be taken side by side, each once, either so or by `ordered`.
        """
        # Partitions that are taken side by side keep all processors busy.
        threads = 1 if self.parts >= workers() else 0
        some = False
        for frame in ordered(
            lambda gathered: sort_by_key(gathered()), self._ranges_of(part), threads, leave=True
        ):
            some = True
            yield frame
        if not some:
            yield empty(self.schema)

    def grouped(self, part: int) -> Iterator[pl.DataFrame]:
        """Yields a partition's rows in frames that share no key, a key's in the order they came."""
        if self.parts == 1 and not self._runs:
            frames, self._frames = self._frames, []
            constants = [
                pl.lit(value).first().alias(name) for name, value in self._constants.items()
            ]
            whole = (frame.with_columns(constants).select(*self.schema) for frame in frames)
            yield pl.concat([empty(self.schema), *whole])
            return
        for gathered in self._ranges_of(part):
            yield gathered()

    def ordered(self, part: int) -> Iterator[tuple[pl.DataFrame, Rows]]:
        """Yields a frame for each of some ranges of keys, with the numbers of its rows in order; no
        rows are moved.

        There may be no frame.
        """
        for gathered in self._ranges_of(part):
            frame = gathered()
            yield frame, key_order(frame, np.arange(len(frame), dtype=np.uint32))

    def _ranges_of(self, part: int) -> Iterator[Callable[[], pl.DataFrame]]:
        """Yields what gathers the rows of a partition, range by range."""
        memory = self._take()
        if not self._runs:
            if memory is not None:
                yield from (partial(memory.gathered, bucket) for bucket in memory.numbers(part))
            return
        ranges: list[StoredRanges | CacheRanges] = [*self._runs]
        ranges += [] if memory is None else [memory]
        # The last ones are the finest: each run has those of the runs before it.
        borders = ranges[-1].borders
        sources = [_Source(some, part, borders) for some in ranges]
        for number in range(len(borders) + 1):
            there = [source for source in sources if source.size(number)]
            gathered = partial(_together_in, there, number)
            count = sum(source.size(number) for source in there)
            # Ranges that are small in each run may be too large together.
            if count <= cacheranges.MANY * cacheranges.RANGE_ROWS:
                if there:
                    yield gathered
                continue
            rows = gathered()
            if len(rows):
                finer = CacheRanges([rows], 1, self.schema, {})
                yield from (partial(finer.gathered, bucket) for bucket in finer.numbers(0))

    def _take(self) -> CacheRanges | None:
        """Returns the rows in memory of a partition; they are freed when the last one is taken."""
        with self._lock:
            if self._ranges is None and self._frames:
                self._ranges = self._cut(RUNS if self._runs else 1)
                self._frames = []
            ranges = self._ranges
            self._taken += 1
            if self._taken == self.parts:  # each is taken once
                self._forget()
        return ranges

    def _cut(self, runs: int) -> CacheRanges:
        borders = self._runs[-1].borders if self._runs else None
        held = self._frames
        return CacheRanges(held, self.parts, self.schema, self._constants, borders, runs)

    def _write_run(self) -> None:
        if self._directory is None:
            self._directory = make_folder(local_scratch(self._spill), SPILL)
        ranges = self._cut(RUNS)
        self._runs.append(StoredRanges(self._directory / f"{len(self._runs)}", ranges, self.parts))
        self._forget()

    def _forget(self) -> None:
        self._frames, self._held, self._ranges = [], 0, None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._directory is not None:
            remove(self._directory)


def _size_of(column: pl.Series) -> int:
    """Bytes of a column, without what its strings lie in besides them."""
    if column.dtype != pl.Binary:
        return int(column.estimated_size())
    views = from_series(column).views
    return int(views.nbytes + kernels.held_bytes(views))
