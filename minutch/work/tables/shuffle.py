"""Sorts rows to their partitions: what Hadoop's shuffle does between map and reduce, within bounded
memory.

    partition = (Text.hashCode & 0x7fffffff) % number of parts
    Text.hashCode: h = 1; for each signed byte b of the UTF-8: h = 31 * h + b, in 32 bits

Rows are added in any order and taken out partition by partition, sorted by key, rows of one key in
the order in which they were added. What goes beyond the budget is written to sorted runs in a
directory of its own (Arrow IPC files, one for each range) and merged as it is read back.

They are cut into ranges of keys that are no larger than a processor's cache (`CacheRanges`), and
each range is gathered and sorted as it is asked for. Sorting rows and walking them in their order
jumps about in memory. Where each range is gathered first, into memory of its own, what jumps about
afterwards stays in the cache; and no more than a range is ever there twice.

Source: org.apache.hadoop.mapreduce.lib.partition.HashPartitioner,
org.apache.hadoop.io.WritableComparator.hashBytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from minutch.hadoop.formats.batch import Offsets
from minutch.kernels import hash as hashes
from minutch.kernels import keycolumns as kernels
from minutch.kernels.arrow import MAX_BUFFER, Strings, from_series, to_series
from minutch.paths import local_scratch
from minutch.work.tables.frame import Rows, aligned, empty, key_order, sort_by_key
from minutch.work.tables.install import SPILL, make_folder, remove
from minutch.work.tables.parallel import for_each, ordered, workers

RANGE_ROWS = 1 << 17
"""Rows that a range should have, some megabytes of URLs: half as many take more steps."""
_SAMPLES = 32  # keys for each range that are looked at to find its borders
_FEW_ROWS = 1 << 14  # tables with fewer are put together first


class _Column(NamedTuple):
    """A column of a table: strings for kernels, and which are there, if not all; or the values."""

    values: Strings | npt.NDArray[np.generic] | pl.Series
    present: npt.NDArray[np.bool_] | None = None

    @classmethod
    def of(cls, column: pl.Series) -> _Column:
        nulls = column.null_count()
        if column.dtype == pl.Binary:
            return cls(from_series(column), column.is_not_null().to_numpy() if nulls else None)
        return cls(column if nulls or not column.dtype.is_numeric() else column.to_numpy())


class _Piece(NamedTuple):
    """A table, its rows' numbers by bucket, and for each column the bytes that its strings have in
    each bucket.
    """

    columns: list[_Column]
    order: Rows
    starts: Offsets
    sizes: list[Offsets]

    def rows(self, bucket: int) -> Rows:
        return self.order[self.starts[bucket] : self.starts[bucket + 1]]


class CacheRanges:
    """The rows of `tables`, with a Binary column `key` without nulls, by partition and range."""

    def __init__(
        self, tables: Sequence[pl.DataFrame], numbers: Sequence[npt.NDArray[np.uint32]], parts: int
    ) -> None:
        """`numbers` has the partition of each row of each table."""
        tables, numbers = _together(tables, numbers)
        rows = sum(map(len, tables))
        self._tables, self._schema = tables, tables[0].schema
        self._count = max(1, rows // parts // RANGE_ROWS)
        # Borders are evenly spaced keys of a sorted sample.
        every = max(1, rows // (self._count * _SAMPLES))
        sample = pl.concat([table["key"].gather_every(every) for table in tables]).sort()
        chosen = sample.gather(np.arange(1, self._count) * len(sample) // self._count)
        borders = from_series(chosen)
        buckets = parts * self._count
        key_at = list(self._schema).index("key")

        def group(table: pl.DataFrame, part: npt.NDArray[np.uint32]) -> _Piece:
            columns = [_Column.of(column) for column in table]
            key = columns[key_at].values
            assert isinstance(key, Strings), "keys are strings"
            mine, starts = np.empty(len(table), np.int32), np.empty(buckets + 1, np.int64)
            order = np.empty(len(table), np.uint32)
            kernels.group(key.column, borders.column, part, mine, starts, order)
            sizes = [np.zeros(buckets, np.int64) for _ in columns]
            for column, size in zip(columns, sizes, strict=True):
                if isinstance(column.values, Strings):
                    kernels.add_sizes(column.values.views, mine, size)
            return _Piece(columns, order, starts, sizes)

        self._pieces = for_each(lambda pair: group(*pair), zip(tables, numbers, strict=True))
        self._starts = np.array([piece.starts for piece in self._pieces])

    def of_part(self, part: int) -> Iterator[pl.DataFrame]:
        """Returns the rows of a partition, a table for each range, in order; so are the rows."""
        return map(self.gathered, self.numbers(part))

    def numbers(self, part: int) -> range:
        """Returns the numbers of a partition's ranges."""
        return range(part * self._count, (part + 1) * self._count)

    def gathered(self, bucket: int) -> pl.DataFrame:
        """Returns the rows of a range, by its number."""
        sizes = [
            sum(int(piece.sizes[number][bucket]) for piece in self._pieces)
            for number in range(len(self._schema))
        ]
        if max(sizes) > MAX_BUFFER:  # one key with tens of millions of rows, say
            mine = [pl.Series(piece.rows(bucket)) for piece in self._pieces]
            return pl.concat([table[rows] for table, rows in zip(self._tables, mine, strict=True)])
        columns = [
            self._column(number, name, bucket, size)
            for number, (name, size) in enumerate(zip(self._schema, sizes, strict=True))
        ]
        return pl.DataFrame(columns, schema=self._schema)

    def _column(self, number: int, name: str, bucket: int, size: int) -> pl.Series:
        columns = [piece.columns[number] for piece in self._pieces]
        if self._schema[name] == pl.Binary:
            return self._strings(name, columns, bucket, size)
        rows = [piece.rows(bucket) for piece in self._pieces]
        if all(isinstance(column.values, np.ndarray) for column in columns):
            return pl.Series(
                name,
                np.concatenate(
                    [column.values[mine] for column, mine in zip(columns, rows, strict=True)]
                ),
            )
        return pl.concat(
            [table[name].gather(mine) for table, mine in zip(self._tables, rows, strict=True)]
        )

    def _strings(self, name: str, columns: list[_Column], bucket: int, size: int) -> pl.Series:
        first, counts = (
            self._starts[:, bucket],
            self._starts[:, bucket + 1] - self._starts[:, bucket],
        )
        # The kernel takes addresses; `self._pieces` keeps what they point to.
        strings = [column.values for column in columns if isinstance(column.values, Strings)]
        rows_at = np.array([piece.order.ctypes.data for piece in self._pieces]) + 4 * first
        views = np.array([column.views.ctypes.data for column in strings])
        buffers = np.array([column.addresses.ctypes.data for column in strings])
        out, taken = np.empty(size, np.uint8), np.empty((counts.sum(), 4), np.int32)
        used = kernels.take_strings(views, buffers, rows_at, counts, out, taken)
        if all(column.present is None for column in columns):
            return to_series(name, taken, [out[:used]])
        present = [
            np.ones(len(rows), np.bool_) if column.present is None else column.present[rows]
            for column, rows in zip(
                columns, (piece.rows(bucket) for piece in self._pieces), strict=True
            )
        ]
        return to_series(
            name, taken, [out[:used]], np.packbits(np.concatenate(present), bitorder="little")
        )


def _together(
    tables: Sequence[pl.DataFrame], numbers: Sequence[npt.NDArray[np.uint32]]
) -> tuple[list[pl.DataFrame], list[npt.NDArray[np.uint32]]]:
    """Small tables made larger: each costs something for each range."""
    groups: list[list[int]] = []
    room = 0
    for at, table in enumerate(tables):
        if len(table) > room:
            groups.append([])
            room = _FEW_ROWS
        groups[-1].append(at)
        room -= len(table)
    every = [([tables[at] for at in group], [numbers[at] for at in group]) for group in groups]
    return (
        [some[0] if len(some) == 1 else pl.concat(some, rechunk=True) for some, _ in every],
        [own[0] if len(own) == 1 else np.concatenate(own) for _, own in every],
    )


RUN_ROWS = 100_000
"""Rows of a run that are read at a time."""


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
        # Runs in the order they were written, memory last: a stable sort keeps the order of equals.
        for frames in aligned(*map(_read_run, runs), chain([empty(self.schema)], memory(part))):
            yield sort_by_key(pl.concat(frames))

    def grouped(self, part: int) -> Iterator[pl.DataFrame]:
        """Yields a partition's rows in frames that share no key, a key's in the order they came."""
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
        """Returns the rows in memory of a partition; they are freed when the last one is taken."""
        with self._lock:
            if self._ranges is None and self._frames:
                self._ranges = CacheRanges(self._frames, self._numbers, self.parts)
                self._frames, self._numbers = [], []
            ranges = self._ranges
            self._taken += 1
            if self._taken == self.parts:  # each is taken once
                self._forget()
        return ranges

    def _sorted(self, ranges: CacheRanges | None) -> Callable[[int], Iterator[pl.DataFrame]]:
        """Returns the sorted ranges of a partition, some ahead if it has fewer than the cores."""
        threads = 1 if self.parts >= workers() else 0  # partitions side by side fill the cores

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

    def __exit__(self, *_: object) -> None:
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
