"""Rows to their partitions, sorted: what Hadoop's shuffle does between map and reduce, within a bound of memory.

    partition = (Text.hashCode & 0x7fffffff) % number of parts
    Text.hashCode: h = 1; for each signed byte b of the UTF-8: h = 31 * h + b, in 32 bits

Rows are added in any order and taken out partition by partition, sorted by key, rows of one key in the order in which
they were added. What goes beyond the budget is written to sorted runs in a directory of its own (Arrow IPC files) and
merged as it is read back.
Source: org.apache.hadoop.mapreduce.lib.partition.HashPartitioner, org.apache.hadoop.io.WritableComparator.hashBytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Self

import numpy as np
import polars as pl

from minutch.kernels import hash as hashes
from minutch.kernels.arrow import from_series
from minutch.tables.install import SPILL
from minutch.tables.merge import Rows, aligned, key_order, sort_by_key, sorted_rows
from minutch.tables.ranges import Ranges
from minutch.tables.workfolders import make_folder, remove

RUN_ROWS = 100_000
"""Rows of a run that are read at a time."""


def partition_of(keys: pl.Series, parts: int) -> pl.Series:
    """The part (0 to parts - 1, UInt32) of each of `keys` (Binary)."""
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
    """Sorts rows into `parts` partitions, holding about `budget` bytes; what is beyond goes to a directory in `spill`.

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
        self._numbers: list[pl.Series] = []
        self._ranges: Ranges | None = None
        self._runs: list[list[Path]] = [[] for _ in range(parts)]
        self._lock = Lock()
        self._taken = 0

    def add(self, frame: pl.DataFrame) -> None:
        """Take in the rows of `frame`, which has the columns of `schema`, `key` among them."""
        if frame.is_empty():
            return
        self.rows += len(frame)
        self._frames.append(frame)
        self._numbers.append(partition_of(frame["key"], self.parts))
        self._held += int(frame.estimated_size())
        if self._held > self._budget:
            self._write_runs()

    def sorted(self, part: int) -> Iterator[pl.DataFrame]:
        """The rows of a partition in frames sorted by key (at least one frame); no key is spread over two frames.

        Partitions may be taken side by side, each once, either so or by `ordered`.
        """
        memory = self._take(part)
        self._count_taken()
        if not self._runs[part]:
            yield memory
            return
        streams = [*map(_read_run, self._runs[part]), [memory]]
        for frames in aligned(*streams):
            yield sort_by_key(pl.concat(frames))

    def ordered(self, part: int) -> Iterator[tuple[pl.DataFrame, Rows]]:
        """As `sorted`, by kernels: a frame for each of some ranges of keys, with the numbers of its rows in order.

        All columns are Binary, without nulls. There may be no frame.
        """
        if self._runs[part]:
            for sorted_frame in self.sorted(part):
                yield sorted_frame, np.arange(len(sorted_frame), dtype=np.uint32)
            return
        with self._lock:
            if self._ranges is None and self._frames:
                self._ranges = Ranges(self._frames, self._numbers, self.parts)
            ranges = self._ranges
        self._count_taken()
        for frame in ranges.of_part(part) if ranges is not None else ():
            yield frame, key_order(frame, np.arange(len(frame), dtype=np.uint32))

    def _together(self) -> tuple[pl.DataFrame, pl.Series | None]:
        """What is in memory as one table, and the partition of each row; None if there is only one partition."""
        with self._lock:  # once
            if len(self._frames) > 1:
                self._frames = [pl.concat(self._frames, rechunk=True)]
                self._numbers = [pl.concat(self._numbers, rechunk=True)]
            frame = self._frames[0] if self._frames else pl.DataFrame(schema=self.schema)
            return frame, self._numbers[0] if self._numbers and self.parts > 1 else None

    def _count_taken(self) -> None:
        with self._lock:
            self._taken += 1
            if self._taken == self.parts:
                self._forget()

    def _take(self, part: int) -> pl.DataFrame:
        """The rows of a partition that are in memory, sorted."""
        frame, numbers = self._together()
        if numbers is None:
            return sort_by_key(frame)
        mine = numbers == part
        return sorted_rows(frame, mine.arg_true().to_numpy().astype(np.uint32))  # a copy: it gets sorted

    def _write_runs(self) -> None:
        if self._directory is None:
            self._directory = make_folder(self._spill, SPILL)
        for part in range(self.parts):
            run = self._take(part)
            if len(run):
                path = self._directory / f"{part}-{len(self._runs[part])}.arrow"
                run.write_ipc(path, compression="lz4", record_batch_size=RUN_ROWS)
                self._runs[part].append(path)
        self._forget()

    def _forget(self) -> None:
        self._frames, self._numbers, self._held, self._ranges = [], [], 0, None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._directory is not None:
            remove(self._directory)


def _read_run(path: Path) -> Iterator[pl.DataFrame]:
    run = pl.scan_ipc(path)
    rows = run.select(pl.len()).collect().item()
    for start in range(0, rows, RUN_ROWS):
        yield run.slice(start, RUN_ROWS).collect()
