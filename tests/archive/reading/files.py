"""Archives made for tests, in every way in which files of records are compressed; and what is read of them."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Iterable, Sequence

from minutch.archive.reading.bytesource import ByteSource, GzipSource, PlainSource
from minutch.archive.reading.records import MOST_BLOCK, Grammar, Record, RecordReader
from minutch.archive.reading.warcrecords import WARC

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
    return b"".join(gzip.compress(data[at : at + BLOCKS], mtime=0) for at in range(0, len(data), BLOCKS))


CONTAINERS: Sequence[Container] = (plain, gzip_each, gzip_whole, gzip_blocks)


def source(data: bytes, grammar: Grammar, *, compressed: bool) -> ByteSource:
    """A source over bytes."""
    file = io.BytesIO(data)
    if compressed:
        return GzipSource(file, lambda head: bool(grammar.start.match(head)))
    return PlainSource(file)


def reader(
    data: bytes, grammar: Grammar = WARC, most: int = MOST_BLOCK, compressed: bool | None = None
) -> RecordReader:
    """A reader over bytes; they are compressed if they look so."""
    packed = data.startswith(b"\x1f\x8b") if compressed is None else compressed
    return RecordReader(source(data, grammar, compressed=packed), grammar, "test.warc", most=most)


def read(data: bytes, grammar: Grammar = WARC, compressed: bool | None = None) -> tuple[list[Record], int]:
    """All records, and how many damaged places."""
    records = reader(data, grammar, compressed=compressed)
    return list(records), records.damages
