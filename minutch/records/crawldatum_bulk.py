"""CrawlDatum in bulk: from the values of a Batch to the columns of a table, and back.

The bytes are those of the codec for single records (`crawldatum`), which tests hold against this one.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import polars as pl

from minutch.kernels import crawldatum as crawldatum_kernels
from minutch.kernels import layout as columns_kernels
from minutch.kernels.arrow import Bytes, from_series
from minutch.tables.spans import Batch, Lengths, Offsets
from minutch.tables.spans_reading import string_column
from minutch.tables.writer import BulkMapWriter, BulkWriter, Records, places

NUMBERS = {
    "status": np.dtype(np.uint8),
    "fetch_time": np.dtype(np.int64),
    "modified_time": np.dtype(np.int64),
    "retries": np.dtype(np.int8),
    "fetch_interval": np.dtype(np.int32),
    "score": np.dtype(np.float32),
}
MAX_SIGNATURE = 127
_ROWS_AT_A_TIME = 100_000
_RECORDS_AT_A_TIME = 1 << 15


def decode(batch: Batch) -> pl.DataFrame | None:
    """The records of `batch` as a table (key, then the columns of CRAWLDB_SCHEMA); None if one is not of version 7.

    Keys, signatures and metadata are views into the batch's buffers.
    """
    columns = decode_values(batch.values, batch.value_at, batch.value_len)
    if columns is None:
        return None
    return pl.DataFrame([string_column("key", batch.keys, batch.key_at, batch.key_len), *columns])


def decode_values(values: Bytes, at: Offsets, length: Lengths, *, optional: bool = False) -> list[pl.Series] | None:
    """The columns of CRAWLDB_SCHEMA without `key`, of serialized records; None if one is not of version 7.

    Where they are `optional`, numbers are 0 and strings null in the place of records without a byte.
    """
    count = len(at)
    numbers = {name: np.empty(count, dtype) for name, dtype in NUMBERS.items()}
    signature = np.empty(count, np.int64), np.empty(count, np.int32)
    metadata = np.empty(count, np.int64), np.empty(count, np.int32)
    fields = [column if name != "score" else column.view(np.int32) for name, column in numbers.items()]
    fields += [*signature, *metadata]
    if not crawldatum_kernels.decode(values, at, length, optional, *fields):
        return None
    columns = [pl.Series(name, column) for name, column in numbers.items()]
    columns.append(string_column("signature", values, *signature, least=1))
    columns.append(string_column("metadata", values, *metadata, least=1))
    return columns


def packed(batch: Batch) -> pl.DataFrame | None:
    """The records of `batch` as a table of PACKED_SCHEMA; None if one is not as `encode` writes it."""
    status, fetch_time, score = (np.empty(batch.size, NUMBERS[name]) for name in ("status", "fetch_time", "score"))
    value = batch.values, batch.value_at, batch.value_len
    if not crawldatum_kernels.plain(*value, status, fetch_time, score.view(np.int32)):
        return None
    return pl.DataFrame(
        [
            string_column("key", batch.keys, batch.key_at, batch.key_len),
            pl.Series("status", status),
            pl.Series("fetch_time", fetch_time),
            pl.Series("score", score),
            string_column("value", *value),
        ]
    )


def encode(frame: pl.DataFrame) -> tuple[Bytes, Offsets, Lengths]:
    """The serialized CrawlDatum of each row: a buffer, and the offsets and lengths in it.

    Raises ValueError for a signature longer than 127 bytes.
    """
    signatures, metadata = from_series(frame["signature"]), from_series(frame["metadata"])
    at, length = np.empty(len(frame), np.int64), np.empty(len(frame), np.int32)
    longest = int(signatures.views[:, 0].max(initial=0))
    if longest > MAX_SIGNATURE:
        raise ValueError(f"signature of {longest} bytes, at most {MAX_SIGNATURE} can be stored")
    length[:] = crawldatum_kernels.FIXED_SIZE + 1
    length += signatures.views[:, 0]
    length += metadata.views[:, 0]
    buffer = np.empty(int(columns_kernels.running_sum(length, at)), np.uint8)
    fields = [*_numbers(frame), *signatures[:2], *metadata[:2]]
    crawldatum_kernels.encode(buffer, at, *fields)
    return buffer, at, length


class DatumSink:
    """A file of <Text, CrawlDatum> that takes tables."""

    def __init__(self, file: BulkWriter) -> None:
        self._file = file
        self.close, self.discard = file.close, file.discard

    def write(self, frame: pl.DataFrame) -> None:
        """Append the rows of `frame`."""
        for part in frame.iter_slices(_ROWS_AT_A_TIME):
            self._file.write(from_series(part["key"]), *encode(part))


class Patches(Protocol):
    """Serialized records with their keys (`table`: key, value), and rows that are put among them; see `put_in`."""

    @property
    def table(self) -> pl.DataFrame: ...
    @property
    def rows(self) -> pl.DataFrame: ...
    @property
    def at(self) -> Offsets: ...
    @property
    def before(self) -> Offsets: ...


class PatchedSink:
    """A MapFile of <Text, CrawlDatum>, uncompressed, into which most records are copied as they lie in memory."""

    def __init__(self, file: BulkMapWriter) -> None:
        self._file = file
        self.close, self.discard = file.close, file.discard

    def write(self, patches: Patches) -> None:
        """Append records."""
        keys, values = from_series(patches.table["key"]), from_series(patches.table["value"])
        records = Records(*places(keys), *places(values), (keys, values))
        if len(patches.rows):
            rows = Records.of(from_series(patches.rows["key"]), *encode(patches.rows))
            records = put_in(records, rows, patches.at, patches.before)
        for start in range(0, len(records.key_at), _RECORDS_AT_A_TIME):
            self._file.append(records.between(start, start + _RECORDS_AT_A_TIME))


def put_in(table: Records, rows: Records, at: Offsets, before: Offsets) -> Records:
    """The records of `table` with `rows` among them: row i for record at[i], or if that is -1 ahead of before[i]."""
    count = len(table.key_at) + int((at < 0).sum())
    key_at, value_at = np.empty(count, np.int64), np.empty(count, np.int64)
    key_len, value_len = np.empty(count, np.int32), np.empty(count, np.int32)
    columns_kernels.put_in(*table[:4], *rows[:4], at, before, key_at, key_len, value_at, value_len)
    return Records(key_at, key_len, value_at, value_len, (table.owner, rows.owner))


def _numbers(frame: pl.DataFrame) -> list[Any]:
    columns = [np.ascontiguousarray(frame[name].to_numpy()) for name in NUMBERS]
    return [column.view(np.int32) if column.dtype == np.float32 else column for column in columns]
