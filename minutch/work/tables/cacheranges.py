"""Tables that are larger than a processor's cache, cut into ranges of keys that are not.

Sorting rows and walking them in their order jumps about in memory. Where each range of keys is
gathered first, into memory of its own, what jumps about afterwards stays in the cache; and no more
than a range is ever there twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from minutch.hadoop.formats.batch import Offsets
from minutch.kernels import ranges as kernels
from minutch.kernels.arrow import MAX_BUFFER, Strings, from_series, to_series
from minutch.work.tables.parallel import for_each

RANGE_ROWS = 1 << 17
"""About as many rows as a range should have: some megabytes of URLs."""
_SAMPLES = 32  # keys for each range that are looked at to find its borders
_FEW_ROWS = 1 << 14  # tables with fewer are put together first

Rows = npt.NDArray[np.uint32]


class _Column(NamedTuple):
    """A column of a table: strings for kernels, and which of them are there, if not all are; else
    the values.
    """

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
    """The rows of `tables`, which have a Binary column `key` without nulls, by partition and
    range.
    """

    def __init__(
        self, tables: Sequence[pl.DataFrame], numbers: Sequence[npt.NDArray[np.uint32]], parts: int
    ) -> None:
        """`numbers` has the partition of each row of each table."""
        tables, numbers = _together(tables, numbers)
        rows = sum(map(len, tables))
        self._tables, self._schema = tables, tables[0].schema
        self._count = max(1, rows // parts // RANGE_ROWS)
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
        """Returns the rows of a partition, a table for each range; the ranges ascend, in each rows
        have their order.
        """
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
