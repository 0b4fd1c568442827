"""Rows to their partitions, sorted: what Hadoop's shuffle does between map and reduce, within a
bound of memory.

    partition = (Text.hashCode & 0x7fffffff) % number of parts
    Text.hashCode: h = 1; for each signed byte b of the UTF-8: h = 31 * h + b, in 32 bits

Rows are added in any order and taken out partition by partition, sorted by key, rows of one key in
the order in which they were added. They are cut into ranges of keys (`ranges`), and each range is
gathered and sorted as it is asked for. What goes beyond the budget is written to sorted runs in a
directory of its own (Arrow IPC files, one for each range) and merged as it is read back. Source:
org.apache.hadoop.mapreduce.lib.partition.HashPartitioner,
org.apache.hadoop.io.WritableComparator.hashBytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt
import polars as pl

from minutch.hadoop.stores import local_scratch
from minutch.kernels import hash as hashes
from minutch.kernels import ranges as kernels
from minutch.kernels.arrow import from_series
from minutch.work.tables.cacheranges import CacheRanges
from minutch.work.tables.frame import empty
from minutch.work.tables.install import SPILL
from minutch.work.tables.merge import Rows, aligned, key_order, sort_by_key
from minutch.work.tables.parallel import ordered, workers
from minutch.work.tables.workfolders import make_folder, remove

RUN_ROWS = 100_000
"""Rows of a run that are read at a time."""


def partition_of(keys: pl.Series, parts: int) -> pl.Series:
    """Returns the part (0 to parts - 1, UInt32) of each of `keys` (Binary)."""
    strings = from_series(keys)
    out = np.empty(len(keys), np.uint32)
    hashes.partitions(strings.views, strings.addresses, parts, out)
    return pl.Series("part", out)


def split(frame: pl.DataFrame, parts: int) -> list[pl.DataFrame]:
    """`frame` cut into its partitions, rows in their order; partition i is at index i."""
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
        self._numbers: list[npt.NDArray[np.uint32]] = []
        self._ranges: CacheRanges | None = None
        self._runs: list[list[list[Path]]] = [[] for _ in range(parts)]
        self._lock = Lock()
        self._taken = 0

    def add(self, frame: pl.DataFrame) -> None:
        """Takes in the rows of `frame`, which has the columns of `schema`, `key` among them."""
        if frame.is_empty():
            return
        self.rows += len(frame)
        self._frames.append(frame)
        self._numbers.append(partition_of(frame["key"], self.parts).to_numpy())
        self._held += sum(map(_size_of, frame))
        if self._held > self._budget:
            self._write_runs()

    def sorted(self, part: int) -> Iterator[pl.DataFrame]:
        """Yields the rows of a partition in frames sorted by key (at least one frame); no key is
        spread over two frames.

        Partitions may be taken side by side, each once, either so or by `ordered`.
        """
        some = False
        for frame in self._merged(part):
            some = True
            yield frame
        if not some:
            yield empty(self.schema)

    def _merged(self, part: int) -> Iterator[pl.DataFrame]:
        runs, memory = self._runs[part], self._sorted(self._take())
        if not runs:
            yield from memory(part)
            return
        for frames in aligned(*map(_read_run, runs), chain([empty(self.schema)], memory(part))):
            yield sort_by_key(pl.concat(frames))

    def grouped(self, part: int) -> Iterator[pl.DataFrame]:
        """Yields the rows of a partition in frames over which no key is spread, those of a key in
        the order they came in.
        """
        if self._runs[part]:
            yield from self._merged(part)
        elif self.parts == 1:
            frames, self._frames, self._numbers = self._frames, [], []
            yield pl.concat([empty(self.schema), *frames])
        elif (ranges := self._take()) is not None:
            yield from ranges.of_part(part)

    def ordered(self, part: int) -> Iterator[tuple[pl.DataFrame, Rows]]:
        """Yields a frame for each of some ranges of keys, with the numbers of its rows in order; no
        rows are moved.

        There may be no frame.
        """
        if self._runs[part]:
            for frame in self._merged(part):
                yield frame, np.arange(len(frame), dtype=np.uint32)
            return
        ranges = self._take()
        for frame in ranges.of_part(part) if ranges is not None else ():
            yield frame, key_order(frame, np.arange(len(frame), dtype=np.uint32))

    def _take(self) -> CacheRanges | None:
        """Returns the rows in memory of one partition; they are freed when the last partition is
        taken.
        """
        with self._lock:
            if self._ranges is None and self._frames:
                self._ranges = CacheRanges(self._frames, self._numbers, self.parts)
                self._frames, self._numbers = [], []
            ranges = self._ranges
            self._taken += 1
            if self._taken == self.parts:
                self._forget()
        return ranges

    def _sorted(self, ranges: CacheRanges | None) -> Callable[[int], Iterator[pl.DataFrame]]:
        """Returns the sorted ranges of a partition, some ahead where there are fewer partitions
        than cores.
        """
        threads = 1 if self.parts >= workers() else 0

        def of_part(part: int) -> Iterator[pl.DataFrame]:
            if ranges is None:
                return iter(())
            gathered = ranges.gathered
            return ordered(
                lambda number: sort_by_key(gathered(number)),
                ranges.numbers(part),
                threads,
                leave=True,
            )

        return of_part

    def _write_runs(self) -> None:
        if self._directory is None:
            self._directory = make_folder(local_scratch(self._spill), SPILL)
        frames_of = self._sorted(CacheRanges(self._frames, self._numbers, self.parts))
        self._frames, self._numbers = [], []
        for part in range(self.parts):
            run: list[Path] = []
            for frame in frames_of(part):
                if len(frame):
                    path = self._directory / f"{part}-{len(self._runs[part])}-{len(run)}.arrow"
                    frame.write_ipc(path, compression="uncompressed", record_batch_size=RUN_ROWS)
                    run.append(path)
            if run:
                self._runs[part].append(run)
        self._forget()

    def _forget(self) -> None:
        self._frames, self._numbers, self._held, self._ranges = [], [], 0, None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._directory is not None:
            remove(self._directory)


def _size_of(column: pl.Series) -> int:
    """Bytes of a column, without what its strings lie in besides them."""
    if column.dtype != pl.Binary:
        return int(column.estimated_size())
    views = from_series(column).views
    return int(views.nbytes + kernels.held_bytes(views))


def _read_run(paths: list[Path]) -> Iterator[pl.DataFrame]:
    for path in paths:
        frame = pl.read_ipc(path)
        yield from (frame[start : start + RUN_ROWS] for start in range(0, len(frame), RUN_ROWS))
