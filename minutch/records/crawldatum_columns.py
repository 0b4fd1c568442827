"""CrawlDatum as columns, in pure Python: for small tables, and the yardstick for the kernels.

    version 7:  byte 7 | byte status | long fetch time | byte retries | int interval | float score
                | long modified time | byte n | n bytes of signature, if n > 0 | boolean | MapWritable, if true
    MapWritable: byte n | n × (byte id | writeUTF class name) | int size | size × (byte id | key | byte id | value)

Metadata is carried as it was stored, an empty map as none (Nutch writes none for it). Versions 1 to 6 differ in more
than one place; they, and only they, go through the row codec.
Source: org.apache.nutch.crawl.CrawlDatum.readFields and write; org.apache.hadoop.io.AbstractMapWritable.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from minutch.errors import FormatError, TruncatedError

CURRENT_VERSION = 7
FIXED_SIZE = 28  # up to and with the signature's length
_FIXED = struct.Struct(">bBqbifqb")


class DatumRow(NamedTuple):
    """One CrawlDatum, its fields in the order of the columns."""

    status: int
    fetch_time: int
    modified_time: int
    retries: int
    fetch_interval: int
    score: float
    signature: bytes | None
    metadata: bytes | None


def map_is_empty(data: bytes) -> bool:
    """Whether a serialized MapWritable has no entries."""
    pos = 1
    for _ in range(data[0]):
        pos += 3 + int.from_bytes(data[pos + 1 : pos + 3], "big")
    size = data[pos : pos + 4]
    if len(size) < 4:
        raise TruncatedError("data ends inside metadata", offset=pos, expected="4 bytes", found=len(size))
    return size == b"\0\0\0\0"


def decode_datum(data: bytes) -> DatumRow:
    """A serialized CrawlDatum of any version. FormatError with the offset in `data` if it is none."""
    if not data:
        raise TruncatedError("empty CrawlDatum", offset=0, expected="a version byte")
    if data[0] != CURRENT_VERSION:
        return _decode_old(data)
    if len(data) < FIXED_SIZE + 1:
        raise TruncatedError("CrawlDatum too short", offset=0, expected=f"{FIXED_SIZE + 1} bytes", found=len(data))
    _, status, fetch_time, retries, interval, score, modified, size = _FIXED.unpack_from(data)
    end = FIXED_SIZE + max(size, 0)
    if len(data) <= end:
        raise TruncatedError("data ends inside a signature", offset=FIXED_SIZE, expected=f"{size} bytes")
    metadata = None
    if data[end]:
        if len(data) == end + 1:
            raise TruncatedError("data ends before the metadata", offset=end + 1)
        metadata = data[end + 1 :]
        metadata = None if map_is_empty(metadata) else metadata
    elif len(data) != end + 1:
        raise FormatError("bytes left over after a CrawlDatum", offset=end + 1, expected=0, found=len(data) - end - 1)
    signature = data[FIXED_SIZE:end] if size > 0 else None
    return DatumRow(status, fetch_time, modified, retries, interval, score, signature, metadata)


def _decode_old(data: bytes) -> DatumRow:
    """Versions 1 to 6 (and the error for any other) through the row codec, which knows their layouts and statuses."""
    from minutch.records.crawldatum import CrawlDatum

    datum = CrawlDatum.from_bytes(data)
    return decode_datum(datum.to_bytes())


def encode_datum(row: Sequence[object]) -> bytes:
    """The serialized CrawlDatum, version 7, of a row in the order of DatumRow."""
    status, fetch_time, modified, retries, interval, score, signature, metadata = row
    signature = signature if isinstance(signature, bytes) else b""
    fixed = _FIXED.pack(
        CURRENT_VERSION, status, fetch_time, retries, interval, score, modified, (len(signature) ^ 0x80) - 0x80
    )
    if isinstance(metadata, bytes):
        return b"".join((fixed, signature, b"\1", metadata))
    return fixed + signature + b"\0"
