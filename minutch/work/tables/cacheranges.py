"""Rows of many tables, cut into ranges of keys that are no larger than a processor's cache: in
memory (`CacheRanges`), or written to a file as they came (`StoredRanges`).

Sorting rows and walking them in their order jumps about in memory. Where each range is gathered
first, into memory of its own, what jumps about afterwards stays in the cache; and no more than a
range is ever there twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from minutch.hadoop.formats.batch import Offsets
from minutch.kernels import keycolumns as kernels
from minutch.kernels.arrow import MAX_BUFFER, Strings, from_series, to_series
from minutch.work.tables.frame import Rows
from minutch.work.tables.parallel import for_each, ordered

RANGE_ROWS = 1 << 17
"""Rows that a range should have, some megabytes of URLs: half as many take more steps."""
RUNS = 8
"""Runs whose rows of a range are as many together."""
_SAMPLES = 32  # keys for each range that are looked at to find its borders
_FEW_ROWS = 1 << 14  # tables with fewer are put together first
_ALIGNED = 16
MANY = 4
"""Times of its rows from which a range is cut once more."""


class _Strings(NamedTuple):
    """Strings of a range: views, what these point to, and a bitmap of those that are there."""

    views: npt.NDArray[np.int32]
    data: npt.NDArray[np.uint8]
    valid: npt.NDArray[np.uint8] | None = None


_Values = _Strings | npt.NDArray[np.generic] | pl.Series
"""A column of a range; a Series where it is of other types, or numbers with nulls."""


def _to_series(name: str, values: _Values) -> pl.Series:
    if isinstance(values, _Strings):
        return to_series(name, values.views, [values.data], values.valid)
    return pl.Series(name, values)


class _Column(NamedTuple):
    """A column of a table: strings for kernels, and which are there, if not all; or the values."""

    values: Strings | npt.NDArray[np.generic] | pl.Series
    present: npt.NDArray[np.bool_] | None = None

    @classmethod
    def of(cls, column: pl.Series) -> _Column:
        nulls = column.null_count()
        if column.dtype == pl.Binary:
            return cls(from_series(column), column.is_not_null().to_numpy() if nulls else None)
        # Kernels take numbers by their width alone, and know no nulls.
        is_plain = column.dtype.is_numeric() and not nulls
        return cls(np.ascontiguousarray(column.to_numpy()) if is_plain else column)


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
    """Rows of tables, with a Binary column `key` without nulls, by partition and range."""

    def __init__(
        self,
        tables: Sequence[pl.DataFrame],
        parts: int,
        schema: pl.Schema,
        constants: Mapping[str, pl.Series],
        borders: pl.Series | None = None,
        runs: int = 1,
    ) -> None:
        """`constants` are the columns of `schema` that the tables lack. `borders` are kept. The
        rows are one of so many `runs`.
        """
        self.schema, self.constants = schema, dict(constants)
        self._names = [name for name in schema if name not in constants]
        tables = _together([table.select(self._names) for table in tables])
        rows = sum(map(len, tables))
        self._tables = tables
        # All partitions have the same borders: between two, each has about its `parts`-th of the
        # rows.
        size = max(1, RANGE_ROWS // runs) * parts
        every = max(1, rows // (max(1, rows // size) * _SAMPLES))
        sample = pl.concat([table["key"].gather_every(every) for table in tables]).sort()
        self.borders = _cut(borders, sample, rows, size)
        self._count = len(self.borders) + 1
        strings = from_series(self.borders)
        buckets = parts * self._count
        key_at = self._names.index("key")

        def group(table: pl.DataFrame) -> _Piece:
            columns = [_Column.of(column) for column in table]
            key = columns[key_at].values
            assert isinstance(key, Strings), "keys are strings"
            mine, starts = np.empty(len(table), np.int32), np.empty(buckets + 1, np.int64)
            order = np.empty(len(table), np.uint32)
            # One pass over the rows: their partitions and ranges, and their numbers by bucket.
            kernels.group(key.column, strings.column, parts, mine, starts, order)
            sizes = [np.zeros(buckets, np.int64) for _ in columns]
            for column, size in zip(columns, sizes, strict=True):
                if isinstance(column.values, Strings):
                    kernels.add_sizes(column.values.views, mine, size)
            return _Piece(columns, order, starts, sizes)

        self._pieces = for_each(group, tables)
        self._starts = np.array([piece.starts for piece in self._pieces])

    def numbers(self, part: int) -> range:
        """Returns the numbers of a partition's ranges."""
        return range(part * self._count, (part + 1) * self._count)

    def size(self, bucket: int) -> int:
        """Returns how many rows a range has, by its number."""
        return int((self._starts[:, bucket + 1] - self._starts[:, bucket]).sum())

    def gathered(self, bucket: int) -> pl.DataFrame:
        """Returns the rows of a range, in the order of the tables."""
        return _table(self.schema, self.constants, self.columns(bucket), self.size(bucket))

    def columns(self, bucket: int) -> list[_Values | None]:
        """Returns the columns of a range; None where one has the same value everywhere."""
        sizes = [
            sum(int(piece.sizes[number][bucket]) for piece in self._pieces)
            for number in range(len(self._names))
        ]
        if max(sizes) > MAX_BUFFER:  # one key with tens of millions of rows, say
            mine = [pl.Series(piece.rows(bucket)) for piece in self._pieces]
            tables = [table[rows] for table, rows in zip(self._tables, mine, strict=True)]
            return self._spread(list(pl.concat(tables)))
        counts = self._starts[:, bucket + 1] - self._starts[:, bucket]
        starts = self._starts[:, bucket]
        # Row numbers have 4 bytes.
        rows_at = np.array([piece.order.ctypes.data for piece in self._pieces]) + 4 * starts
        return self._spread(
            [
                self._column(number, name, bucket, (rows_at, counts, size))
                for number, (name, size) in enumerate(zip(self._names, sizes, strict=True))
            ]
        )

    def _spread(self, values: Sequence[_Values]) -> list[_Values | None]:
        held = dict(zip(self._names, values, strict=True))
        return [held.get(name) for name in self.schema]

    def _column(
        self, number: int, name: str, bucket: int, taken: tuple[Offsets, Offsets, int]
    ) -> _Values:
        columns = [piece.columns[number] for piece in self._pieces]
        if self.schema[name] == pl.Binary:
            return self._strings(columns, bucket, *taken)
        arrays = [column.values for column in columns if isinstance(column.values, np.ndarray)]
        if len(arrays) == len(columns):
            rows_at, counts, _ = taken
            width = arrays[0].itemsize
            out = np.empty(counts.sum() * width, np.uint8)
            values = np.array([array.ctypes.data for array in arrays])
            kernels.take_numbers(values, rows_at, counts, width, out)
            return out.view(arrays[0].dtype)
        rows = [piece.rows(bucket) for piece in self._pieces]
        return pl.concat(
            [table[name].gather(mine) for table, mine in zip(self._tables, rows, strict=True)]
        )

    def _strings(
        self, columns: list[_Column], bucket: int, rows_at: Offsets, counts: Offsets, size: int
    ) -> _Strings:
        # The kernel takes addresses; `self._pieces` keeps what they point to.
        strings = [column.values for column in columns if isinstance(column.values, Strings)]
        views = np.array([column.views.ctypes.data for column in strings])
        buffers = np.array([column.addresses.ctypes.data for column in strings])
        out, taken = np.empty(size, np.uint8), np.empty((counts.sum(), 4), np.int32)
        used = kernels.take_strings(views, buffers, rows_at, counts, out, taken)
        if all(column.present is None for column in columns):
            return _Strings(taken, out[:used])
        present = [
            np.ones(len(rows), np.bool_) if column.present is None else column.present[rows]
            for column, rows in zip(
                columns, (piece.rows(bucket) for piece in self._pieces), strict=True
            )
        ]
        valid = np.packbits(np.concatenate(present), bitorder="little")
        return _Strings(taken, out[:used], valid)


def _cut(borders: pl.Series | None, sample: pl.Series, rows: int, size: int) -> pl.Series:
    """Returns borders, the given ones among them, of ranges with about `size` rows; the sorted
    `sample` is of so many `rows`.
    """
    if borders is None:
        count = max(1, rows // size)
        return sample.gather(np.arange(1, count) * len(sample) // count)  # quantiles
    edges = [0, *sample.search_sorted(borders), len(sample)]
    more: list[int] = []
    for low, high in pairwise(edges):
        count = (high - low) * rows // (len(sample) * size)
        if count >= MANY:
            more += [low + n * (high - low) // count for n in range(1, count)]
    # The given borders stay, so that a run's ranges lie within those of the runs before it.
    return pl.concat([borders, sample.gather(more)]).sort()


def has_only(column: pl.Series, value: pl.Series) -> bool:
    """Returns True if each row has this value, null or a number."""
    if value.null_count():
        return column.null_count() == len(column)
    if column.null_count() or not column.dtype.is_numeric() or column[-1] != value[0]:
        return False
    own, other = column.to_numpy(), value.to_numpy()
    kind = f"u{own.itemsize}"  # 0.0 and -0.0 are two values
    return bool((np.ascontiguousarray(own).view(kind) == other.view(kind)).all())


def _table(
    schema: pl.Schema,
    constants: dict[str, pl.Series],
    columns: Sequence[_Values | None],
    rows: int,
) -> pl.DataFrame:
    return pl.DataFrame(
        [
            constants[name].new_from_index(0, rows) if values is None else _to_series(name, values)
            for name, values in zip(schema, columns, strict=True)
        ],
        schema=schema,
    )


class _Place(NamedTuple):
    """Where the arrays of a column are in a run's file: offset, type and length of each."""

    kind: type
    arrays: list[tuple[int, np.dtype[Any], int]]


class StoredRanges:
    """Rows in a file, by partition and range."""

    def __init__(self, path: Path, ranges: CacheRanges, parts: int) -> None:
        self.borders, self._schema = ranges.borders, ranges.schema
        self._constants = ranges.constants
        buckets = range(parts * (len(self.borders) + 1))
        self._sizes = [ranges.size(bucket) for bucket in buckets]
        with path.open("wb") as file:
            self._places = [
                [None if values is None else _write(file, values) for values in columns]
                for columns in ordered(ranges.columns, buckets)
            ]
        self._data = np.asarray(np.memmap(path, np.uint8, "r"))

    def size(self, bucket: int) -> int:
        """Returns how many rows a range has, by its number."""
        return self._sizes[bucket]

    def gathered(self, bucket: int) -> pl.DataFrame:
        """Returns the rows of a range, in the order in which they came; they stay in the file."""
        columns = [None if place is None else self._read(place) for place in self._places[bucket]]
        return _table(self._schema, self._constants, columns, self._sizes[bucket])

    def _read(self, place: _Place) -> _Values:
        arrays: list[npt.NDArray[Any]] = [
            self._data[offset : offset + count * dtype.itemsize].view(dtype)
            for offset, dtype, count in place.arrays
        ]
        if place.kind is _Strings:
            views, *others = arrays
            return _Strings(views.reshape(-1, 4), *others)
        if place.kind is pl.Series:
            return pl.read_ipc(BytesIO(arrays[0].tobytes())).to_series()
        return arrays[0]


def _write(file: BinaryIO, values: _Values) -> _Place:
    if isinstance(values, pl.Series):
        stream = values.to_frame("").write_ipc(None, compression="uncompressed")
        arrays: list[npt.NDArray[Any]] = [np.frombuffer(stream.getbuffer(), np.uint8)]
    elif isinstance(values, _Strings):
        arrays = [values.views.ravel(), values.data]
        arrays += [] if values.valid is None else [values.valid]
    else:
        arrays = [values]
    places = []
    for array in arrays:
        file.write(bytes(-file.tell() % _ALIGNED))
        places.append((file.tell(), array.dtype, len(array)))
        file.write(array.data)
    return _Place(_Strings if isinstance(values, _Strings) else type(values), places)


def _together(tables: Sequence[pl.DataFrame]) -> list[pl.DataFrame]:
    """Small tables made larger: each costs something for each range."""
    groups: list[list[pl.DataFrame]] = []
    room = 0
    for table in tables:
        if len(table) > room:
            groups.append([])
            room = _FEW_ROWS
        groups[-1].append(table)
        room -= len(table)
    return [some[0] if len(some) == 1 else pl.concat(some, rechunk=True) for some in groups]
