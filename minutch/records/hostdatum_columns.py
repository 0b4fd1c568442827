"""HostDatum as columns: a batch as a table, and rows as they go into a file.

Metadata is carried as it was stored, an empty map as none. What is not laid out as `hostdatum` says
goes through the dataclass, which names the error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from minutch.errors import FormatError
from minutch.hadoop.formats.batch import Batch, Lengths, Offsets, Places, string_column
from minutch.hadoop.formats.javaio import encode_vlong
from minutch.kernels.arrow import Bytes, from_series
from minutch.records.hostdatum import COUNTS, HostDatum

HOSTDB_SCHEMA: Final = pl.Schema(
    {
        "key": pl.Binary(),  # the host
        "score": pl.Float32(),
        "last_check": pl.Int64(),  # ms since the epoch, 0 = never looked up
        "homepage_url": pl.Binary(),
        **{name: pl.Int64() for name in COUNTS},
        "metadata": pl.Binary(),  # null = none or empty, else Hadoop's MapWritable as it was stored
    }
)

_HEAD: Final = 12  # score, last check
_NUMBERS: Final = 64  # eight counts of 8 bytes
_NO_METADATA: Final = b"\0\0\0\0\0"
_ROWS_AT_A_TIME: Final = 100_000


def decode(batch: Batch) -> pl.DataFrame:
    """Returns the records of `batch` as a table of HOSTDB_SCHEMA. FormatError names the key."""
    at, size = batch.value_at, batch.value_len.astype(np.int64)
    url_size, url_at = _url(batch)
    counts_at = url_at + url_size
    rest_at = counts_at + _NUMBERS
    rest = at + size - rest_at
    if not (rest >= 5).all():
        _explain(batch, int(np.flatnonzero(~(rest >= 5))[0]))
    score = _words(batch.values, at, 4).view(">f4").astype(np.float32)
    last_check = _words(batch.values, at + 4, 8).view(">i8").astype(np.int64)
    counts = {
        name: _words(batch.values, counts_at + 8 * i, 8).view(">i8")
        for i, name in enumerate(COUNTS)
    }
    is_empty = (_words(batch.values, rest_at, 5) == 0).reshape(-1, 5).all(axis=1)
    rest[is_empty & (rest == len(_NO_METADATA))] = 0  # an empty map counts as none
    return pl.DataFrame(
        [
            string_column("key", batch.keys, batch.key_at, batch.key_len),
            pl.Series("score", score),
            pl.Series("last_check", last_check),
            string_column("homepage_url", batch.values, url_at, url_size.astype(np.int32)),
            *(pl.Series(name, values.astype(np.int64)) for name, values in counts.items()),
            string_column("metadata", batch.values, rest_at, rest.astype(np.int32), least=1),
        ]
    )


def _words(buffer: Bytes, at: Offsets, size: int) -> Bytes:
    """`size` bytes at each offset, one after the other."""
    if not len(at):
        return np.empty(0, np.uint8)
    return np.ascontiguousarray(np.lib.stride_tricks.sliding_window_view(buffer, size)[at]).reshape(
        -1
    )


def _url(batch: Batch) -> tuple[Offsets, Offsets]:
    """Returns the sizes of the URLs, and where they begin. Raises FormatError for records that end
    before, or make no sense.
    """
    at, end = batch.value_at, batch.value_at + batch.value_len
    short = np.flatnonzero(batch.value_len < _HEAD + 1 + _NUMBERS + 5)
    if len(short):
        _explain(batch, int(short[0]))
    first = batch.values[at + _HEAD].view(np.int8).astype(np.int64)
    size, start = first.copy(), at + _HEAD + 1
    for row in np.flatnonzero(first < 0):  # URLs of 128 bytes and more
        more = -112 - first[row]
        if not 1 <= more <= 4:
            _explain(batch, int(row))
        place = start[row]
        size[row] = int.from_bytes(batch.values[place : place + more].tobytes(), "big")
        start[row] += more
    beyond = np.flatnonzero(start + size + _NUMBERS + 5 > end)
    if len(beyond):
        _explain(batch, int(beyond[0]))
    return size, start


def _explain(batch: Batch, row: int) -> None:
    """Raises the error that reading a record by itself leads to."""
    try:
        HostDatum.from_bytes(batch.value(row))
        raise FormatError("a HostDatum that can't be taken apart")
    except FormatError as exc:
        raise exc.at(f"record of {batch.key(row)!r}") from exc


def encode(frame: pl.DataFrame) -> tuple[Bytes, Offsets, Lengths]:
    """Returns the serialized HostDatum of each row: a buffer, and the offsets and lengths in it."""
    head = np.empty((len(frame), _HEAD), np.uint8)
    head[:, :4] = frame["score"].to_numpy().astype(">f4").reshape(-1, 1).view(np.uint8)
    head[:, 4:] = frame["last_check"].to_numpy().astype(">i8").reshape(-1, 1).view(np.uint8)
    numbers = (
        np.stack([frame[name].to_numpy() for name in COUNTS], axis=1).astype(">i8").view(np.uint8)
    )
    urls = (encode_vlong(len(url)) + url for url in frame["homepage_url"])
    pieces = zip(
        _rows(head), urls, _rows(numbers), frame["metadata"].fill_null(_NO_METADATA), strict=True
    )
    values = [b"".join(piece) for piece in pieces]
    length = np.fromiter(map(len, values), np.int32, len(values))
    return (
        np.frombuffer(b"".join(values) or b"\0", np.uint8),
        np.cumsum(length, dtype=np.int64) - length,
        length,
    )


def _rows(table: Bytes) -> Iterator[bytes]:
    data, width = table.tobytes(), table.shape[1]
    return (data[start : start + width] for start in range(0, len(data), width))


def records(frame: pl.DataFrame) -> Iterator[Places]:
    """Yields the rows of a table of HOSTDB_SCHEMA as they go into a file."""
    for part in frame.iter_slices(_ROWS_AT_A_TIME):
        yield Places.of(from_series(part["key"]), *encode(part))
