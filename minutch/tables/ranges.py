"""Tables that are larger than a processor's cache, cut into ranges of keys that are not.

Sorting rows and walking them in their order jumps about in memory. Where each range of keys is gathered first, into
memory of its own, what jumps about afterwards stays in the cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from minutch.kernels import ranges as kernels
from minutch.kernels.arrow import MAX_BUFFER, Strings, from_series, to_series
from minutch.records.batch import Offsets
from minutch.tables.parallel import for_each

RANGE_ROWS = 1 << 16
"""About as many rows as a range should have: some megabytes of URLs."""
_SAMPLES = 32  # keys for each range that are looked at to find its borders


class _Piece(NamedTuple):
    """A table, its rows' numbers by bucket, and for each column the bytes that it has in each bucket."""

    columns: list[Strings]
    order: npt.NDArray[np.uint32]
    starts: Offsets
    sizes: list[Offsets]


class Ranges:
    """The rows of `tables` by partition and range of keys. All columns are Binary, without nulls, one of them `key`."""

    def __init__(self, tables: Sequence[pl.DataFrame], numbers: Sequence[pl.Series], parts: int) -> None:
        """`numbers` has the partition of each row of each table."""
        rows = sum(map(len, tables))
        self._tables, self._names = tables, tables[0].columns
        self._count = max(1, rows // parts // RANGE_ROWS)
        every = max(1, rows // (self._count * _SAMPLES))
        sample = pl.concat([table["key"].gather_every(every) for table in tables]).sort()
        chosen = sample.gather(np.arange(1, self._count) * len(sample) // self._count)
        borders = from_series(chosen)
        buckets = parts * self._count

        def group(table: pl.DataFrame, part: pl.Series) -> _Piece:
            columns = [from_series(column) for column in table]
            key = columns[self._names.index("key")]
            mine, starts = np.empty(len(table), np.int32), np.empty(buckets + 1, np.int64)
            order = np.empty(len(table), np.uint32)
            kernels.group(*key[:2], *borders[:2], part.to_numpy(), mine, starts, order)
            sizes = [np.zeros(buckets, np.int64) for _ in columns]
            for column, size in zip(columns, sizes, strict=True):
                kernels.add_sizes(column.views, mine, size)
            return _Piece(columns, order, starts, sizes)

        self._pieces = for_each(lambda pair: group(*pair), zip(tables, numbers, strict=True))
        self._starts = np.array([piece.starts for piece in self._pieces])

    def of_part(self, part: int) -> Iterator[pl.DataFrame]:
        """The rows of a partition, a table for each range; the ranges ascend, in each rows have their order."""
        return map(self._gathered, range(part * self._count, (part + 1) * self._count))

    def _gathered(self, bucket: int) -> pl.DataFrame:
        first, counts = self._starts[:, bucket], self._starts[:, bucket + 1] - self._starts[:, bucket]
        sizes = [sum(int(piece.sizes[number][bucket]) for piece in self._pieces) for number in range(len(self._names))]
        if max(sizes) > MAX_BUFFER:  # one key with tens of millions of rows, say
            rows = [piece.order[piece.starts[bucket] : piece.starts[bucket + 1]] for piece in self._pieces]
            return pl.concat([table[pl.Series(mine)] for table, mine in zip(self._tables, rows, strict=True)])
        rows_at = np.array([piece.order.ctypes.data for piece in self._pieces]) + 4 * first
        columns = []
        for number, (name, size) in enumerate(zip(self._names, sizes, strict=True)):
            strings = [piece.columns[number] for piece in self._pieces]
            views = np.array([column.views.ctypes.data for column in strings])
            buffers = np.array([column.addresses.ctypes.data for column in strings])
            out, taken = np.empty(size, np.uint8), np.empty((counts.sum(), 4), np.int32)
            used = kernels.take_strings(views, buffers, rows_at, counts, out, taken)
            columns.append(to_series(name, taken, [out[:used]]))
        return pl.DataFrame(columns)
