"""SelectorEntry in bulk: from the values of a Batch to the columns of a table, and back.

    value := Text URL | CrawlDatum | int segment number

The table has the columns of CRAWLDB_SCHEMA, `key` being the entry's URL, and `segment` (Int32). The bytes are those of
the codec for single records (`selectorentry`), which tests hold against this one.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from minutch.kernels import selectorentry as selectorentry_kernels
from minutch.kernels.arrow import Bytes, from_series
from minutch.kernels.layout import running_sum
from minutch.records import crawldatum_bulk
from minutch.tables.spans import Batch, Lengths, Offsets


def decode(batch: Batch) -> pl.DataFrame | None:
    """The entries of `batch` (its keys are left aside); None if one is cut off, or its datum not of version 7."""
    urls, data = ((np.empty(batch.size, np.int64), np.empty(batch.size, np.int32)) for _ in range(2))
    segment = np.empty(batch.size, np.int32)
    values = batch.values
    if not selectorentry_kernels.take_apart(values, batch.value_at, batch.value_len, *urls, *data, segment):
        return None
    frame = crawldatum_bulk.decode(Batch(values, *urls, values, *data))
    return None if frame is None else frame.with_columns(pl.Series("segment", segment))


def encode(frame: pl.DataFrame) -> tuple[Bytes, Offsets, Lengths]:
    """The serialized SelectorEntry of each row: a buffer, and the offsets and lengths in it.

    Raises ValueError for a signature longer than 127 bytes.
    """
    data, datum_at, datum_len = crawldatum_bulk.encode(frame)
    urls = from_series(frame["key"])
    at, length = np.empty(len(frame), np.int64), np.empty(len(frame), np.int32)
    selectorentry_kernels.sizes(urls.views, datum_len, length)
    out = np.empty(int(running_sum(length, at)), np.uint8)
    segment = np.ascontiguousarray(frame["segment"].to_numpy())
    selectorentry_kernels.put_together(out, at, urls.views, urls.addresses, data, datum_at, datum_len, segment)
    return out, at, length
