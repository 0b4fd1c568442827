"""Archives made for tests, in every way in which files of records are compressed; and what is read
of them.
"""

from __future__ import annotations

import functools
import gzip
import io
import random
import struct
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from minutch.warc.reading.archivefiles import COMPRESSIONS, GZIP, ZSTD
from minutch.warc.reading.bytesource import ByteSource
from minutch.warc.reading.recordheads import WARC, Grammar
from minutch.warc.reading.recordreader import MOST_BLOCK, Record, RecordReader

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Container = Callable[[Iterable[bytes]], bytes]
"""Makes a file of records."""
BLOCKS = 5000
"""Bytes in each member of a file that is compressed in blocks, whatever records begin where."""


def warc_record(number: int, block: bytes, **fields: str) -> bytes:
    """A response record; `warc_date="…"` adds a field."""
    lines = [
        "WARC/1.0",
        "WARC-Type: response",
        f"WARC-Record-ID: <urn:test:{number}>",
        f"WARC-Target-URI: http://h/{number}",
        "WARC-Date: 2026-01-02T03:04:05Z",
        *(f"{name.replace('_', '-')}: {value}" for name, value in fields.items()),
        f"Content-Length: {len(block)}",
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + block + b"\r\n\r\n"


def arc_record(url: str, block: bytes, media_type: str = "text/html") -> bytes:
    """A record of version 1."""
    return f"{url} 10.0.0.1 20120109000001 {media_type} {len(block)}\n".encode() + block + b"\n"


def answer(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    """An HTTP answer."""
    lines = [f"HTTP/1.1 {status}", "Content-Type: text/html", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def plain(records: Iterable[bytes]) -> bytes:
    return b"".join(records)


def gzip_each(records: Iterable[bytes]) -> bytes:
    return b"".join(gzip.compress(record, mtime=0) for record in records)


def gzip_whole(records: Iterable[bytes]) -> bytes:
    return gzip.compress(b"".join(records), mtime=0)


def gzip_blocks(records: Iterable[bytes]) -> bytes:
    data = b"".join(records)
    return b"".join(
        gzip.compress(data[at : at + BLOCKS], mtime=0) for at in range(0, len(data), BLOCKS)
    )


def zstd_frame(data: bytes, shared: Any = None) -> bytes:
    """A frame with a checksum."""
    return bytes(
        zstd.compress(data, options={zstd.CompressionParameter.checksum_flag: 1}, zstd_dict=shared)
    )


def zstd_each(records: Iterable[bytes]) -> bytes:
    return b"".join(zstd_frame(record) for record in records)


def zstd_whole(records: Iterable[bytes]) -> bytes:
    return zstd_frame(b"".join(records))


def zstd_blocks(records: Iterable[bytes]) -> bytes:
    data = b"".join(records)
    return b"".join(zstd_frame(data[at : at + BLOCKS]) for at in range(0, len(data), BLOCKS))


def skippable(number: int, data: bytes) -> bytes:
    """A frame that decoders pass over."""
    return struct.pack("<II", 0x184D2A50 + number, len(data)) + data


def zstd_shared(records: Iterable[bytes], *, packed: bool = True) -> bytes:
    """With a dictionary in front, itself a frame or as it is, and something to be passed over."""
    shared = dictionary()
    data = bytes(shared.dict_content)
    frames = b"".join(zstd_frame(record, shared) + skippable(3, b"nothing") for record in records)
    return skippable(13, zstd_frame(data) if packed else data) + frames


@functools.cache
def dictionary() -> Any:
    """Made of heads of records."""
    random_ = random.Random(3)
    samples = [warc_record(number, random_.randbytes(60)) for number in range(300)]
    return zstd.train_dict(samples, 2000)


CONTAINERS: Sequence[Container] = (
    plain,
    gzip_each,
    gzip_whole,
    gzip_blocks,
    zstd_each,
    zstd_whole,
    zstd_blocks,
    zstd_shared,
)


def compression_of(data: bytes) -> str:
    """Returns the compression of a file, by its first bytes."""
    return (
        GZIP
        if data.startswith(b"\x1f\x8b")
        else ZSTD
        if data[1:4] in (b"\xb5\x2f\xfd", b"\x2a\x4d\x18")
        else ""
    )


def source(data: bytes, grammar: Grammar, compression: str) -> ByteSource:
    """A source over bytes."""
    return COMPRESSIONS[compression](
        io.BytesIO(data), lambda head: bool(grammar.start.match(head)), 0, None
    )


def reader(
    data: bytes, grammar: Grammar = WARC, most: int = MOST_BLOCK, compression: str | None = None
) -> RecordReader:
    """A reader over bytes; they are compressed as they look, if nothing is said."""
    by = compression_of(data) if compression is None else compression
    return RecordReader(source(data, grammar, by), grammar, "test.warc", most=most)


def read(
    data: bytes, grammar: Grammar = WARC, compression: str | None = None
) -> tuple[list[Record], int]:
    """All records, and how many damaged places."""
    records = reader(data, grammar, compression=compression)
    return list(records), records.damages
