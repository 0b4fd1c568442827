"""Which part file a key belongs to: Hadoop's HashPartitioner over Text.

    partition = (Text.hashCode & 0x7fffffff) % number of parts
    Text.hashCode: h = 1; for each signed byte b of the UTF-8: h = 31 * h + b, in 32 bits

Source: org.apache.hadoop.mapreduce.lib.partition.HashPartitioner, org.apache.hadoop.io.WritableComparator.hashBytes.
"""

from __future__ import annotations

import polars as pl

from minutch.formats.javahash import partition
from minutch.tables.spans import kernels_loaded

BULK_KEYS = 50_000
"""Keys from which loading the kernels takes less time than hashing one by one."""


def partition_of(keys: pl.Series, parts: int) -> pl.Series:
    """The part (0 to parts - 1, UInt32) of each of `keys` (Binary)."""
    if parts == 1:
        return pl.repeat(0, len(keys), dtype=pl.UInt32, eager=True).alias("part")
    if len(keys) < BULK_KEYS and not kernels_loaded():
        return pl.Series("part", [partition(key, parts) for key in keys], dtype=pl.UInt32)
    import numpy as np

    from minutch.kernels import layout as columns_kernels
    from minutch.kernels.arrow import from_series

    strings = from_series(keys)
    out = np.empty(len(keys), np.uint32)
    columns_kernels.partitions(strings.views, strings.addresses, parts, out)
    return pl.Series("part", out)


def split(frame: pl.DataFrame, parts: int) -> list[pl.DataFrame]:
    """`frame` cut into its partitions, rows in their order; partition i is at index i."""
    if parts == 1:
        return [frame]
    part = partition_of(frame["key"], parts)
    return [frame.filter(part == i) for i in range(parts)]
