"""CrawlDatum as columns: from a batch to a table, and back. The bytes are those of `crawldatum`.

    version 7:  byte 7 | byte status | long fetch time | byte retries | int interval | float score |
                long modified time | byte n | n bytes of signature, if n > 0 | boolean |
                MapWritable, if true

Metadata is carried as it was stored, an empty map as none (Nutch writes none for it). Versions 1 to
6, and what is damaged, go through the dataclass, which knows their layouts and the errors. Source:
org.apache.nutch.crawl.CrawlDatum.readFields and write.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from minutch.hadoop.formats.batch import (
    Batch,
    Lengths,
    Offsets,
    Places,
    keys_of,
    places,
    string_column,
)
from minutch.kernels import crawldatum as kernels
from minutch.kernels import find, layout
from minutch.kernels.arrow import Bytes, from_series
from minutch.records.crawldatum import fields as crawldatum_fields
from minutch.records.crawldatum.fields import FIELDS, NUMBERS

MAX_SIGNATURE = 127
_ROWS_AT_A_TIME = 100_000
_RECORDS_AT_A_TIME = 1 << 15


def decode(batch: Batch) -> pl.DataFrame:
    """Returns the records of `batch` as a table: `key`, then the columns of CRAWLDB_SCHEMA.

    Keys, signatures and metadata are views into the batch's buffers. Raises FormatError, which
    names the key.
    """
    fields = crawldatum_fields.decode(batch, FIELDS)
    return pl.DataFrame([keys_of(batch), *map(fields.column, FIELDS)])


def decode_packed(batch: Batch) -> pl.DataFrame:
    """Returns the records of `batch` as a table of PACKED_SCHEMA. Raises FormatError, which names
    the key.
    """
    status, fetch_time, score = (
        np.empty(batch.size, NUMBERS[name]) for name in ("status", "fetch_time", "score")
    )
    value = batch.values, batch.value_at, batch.value_len
    if not kernels.plain(*value, status, fetch_time, score.view(np.int32)):
        frame = decode(batch)
        return decode_packed(Batch(batch.keys, batch.key_at, batch.key_len, *encode(frame)))
    return pl.DataFrame(
        [
            string_column("key", batch.keys, batch.key_at, batch.key_len),
            pl.Series("status", status),
            pl.Series("fetch_time", fetch_time),
            pl.Series("score", score),
            string_column("value", *value),
        ]
    )


def decode_optional(values: Bytes, at: Offsets, length: Lengths) -> list[pl.Series]:
    """Returns the columns of CRAWLDB_SCHEMA without `key`, of records of version 7; zeros and nulls
    where there is no byte.
    """
    batch = Batch(values, at, length, values, at, length)
    fields = crawldatum_fields.decode_values(batch, FIELDS, optional=True)
    assert fields is not None, "records that were decoded or encoded before"
    return [*map(fields.column, FIELDS)]


def encode(frame: pl.DataFrame) -> tuple[Bytes, Offsets, Lengths]:
    """Returns the serialized CrawlDatum of each row: a buffer, and the offsets and lengths in it.

    Raises ValueError for a signature longer than 127 bytes.
    """
    signatures, metadata = from_series(frame["signature"]), from_series(frame["metadata"])
    at, length = np.empty(len(frame), np.int64), np.empty(len(frame), np.int32)
    longest = int(signatures.views[:, 0].max(initial=0))
    if longest > MAX_SIGNATURE:
        raise ValueError(f"signature of {longest} bytes, at most {MAX_SIGNATURE} can be stored")
    length[:] = kernels.FIXED_SIZE + 1
    length += signatures.views[:, 0]
    length += metadata.views[:, 0]
    buffer = np.empty(int(find.running_sum(length, at)), np.uint8)
    kernels.encode(buffer, at, _numbers(frame), signatures.column, metadata.column)
    return buffer, at, length


def records(frame: pl.DataFrame) -> Iterator[Places]:
    """Yields the rows of a table of CRAWLDB_SCHEMA as they go into a file."""
    for part in frame.iter_slices(_ROWS_AT_A_TIME):
        yield Places.of(from_series(part["key"]), *encode(part))


def patched_records(
    table: pl.DataFrame,
    rows: pl.DataFrame,
    at: Offsets,
    before: Offsets,
    scored: Offsets,
    scores: pl.Series,
) -> Iterator[Places]:
    """Yields the records of a packed table with `rows` put in: row i for record at[i], or if that
    is -1 before before[i].

    The records `scored` are copied with new `scores` (Float32).
    """
    keys, values = from_series(table["key"]), from_series(table["value"])
    value_at, value_len = places(values)
    copied = np.empty(int(value_len[scored].sum(dtype=np.int64)), np.uint8)
    kernels.copy_scored(value_at, value_len, scored, scores.to_numpy().view(np.int32), copied)
    found = Places(*places(keys), value_at, value_len, (keys, values, copied))
    if len(rows):
        found = _put_in(found, Places.of(from_series(rows["key"]), *encode(rows)), at, before)
    for start in range(0, found.size, _RECORDS_AT_A_TIME):
        yield found.between(start, start + _RECORDS_AT_A_TIME)


def _put_in(table: Places, rows: Places, at: Offsets, before: Offsets) -> Places:
    count = table.size + int((at < 0).sum())
    key_at, value_at = np.empty(count, np.int64), np.empty(count, np.int64)
    key_len, value_len = np.empty(count, np.int32), np.empty(count, np.int32)
    found = find.Places(key_at, key_len, value_at, value_len)
    layout.put_in(table.arrays, rows.arrays, at, before, found)
    return Places(*found, (table.owner, rows.owner))


def _numbers(frame: pl.DataFrame) -> kernels.Numbers:
    columns: list[Any] = [np.ascontiguousarray(frame[name].to_numpy()) for name in NUMBERS]
    return kernels.Numbers(
        *(column.view(np.int32) if column.dtype == np.float32 else column for column in columns)
    )
