"""Records of all kinds for the bulk codecs."""

from __future__ import annotations

import struct
from pathlib import Path
from random import Random

import polars as pl

from minutch.hadoop.formats.batch import Batch
from minutch.hadoop.formats.javaio import DataInput, encode_vlong
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.hadoop.formats.sequencewriter import TEXT, SequenceFileWriter
from minutch.hadoop.formats.writables import (
    FloatWritable,
    IntWritable,
    LongWritable,
    MapWritable,
    Text,
    Writable,
)
from minutch.records import crawldatum_columns, protocol
from minutch.records.crawldatum import STATUS_NAMES, CrawlDatum
from minutch.records.protocol import ProtocolStatus
from minutch.work.tables.recordfiles import CRAWL_DATUM, Patched

Records = list[tuple[bytes, bytes]]
"""Key bytes (of the URL, not of the Text) and serialized values."""

SYNC = bytes(range(16))


def a_key(random: Random) -> bytes:
    """A URL: short, long, not ASCII, not even UTF-8, or with common beginnings."""
    kind = random.randrange(8)
    if kind == 0:
        return random.randbytes(random.randrange(1, 30))
    if kind == 1:
        return b"http://long.example/" + random.choice((b"a", b"b")) * random.choice(
            (100, 107, 108, 300, 70_000)
        )
    if kind == 2:
        return f"http://bücher.example/{random.randrange(10**6)}/ß漢字".encode()
    return b"http://www.host%d.example/page-%d.html" % (
        random.randrange(20),
        random.randrange(10**9),
    )


def a_metadata(random: Random) -> MapWritable:
    """Metadata of zero to five entries of several classes."""
    values: list[Writable] = [
        Text("text/html"),
        Text("ä" * random.randrange(100)),
        IntWritable(random.randrange(-(2**31), 2**31)),
        FloatWritable(0.5),
        LongWritable(-5),
        ProtocolStatus.of(protocol.SUCCESS),
    ]
    return MapWritable({Text(f"key{i}"): random.choice(values) for i in range(random.randrange(6))})


def a_datum(random: Random) -> CrawlDatum:
    """A CrawlDatum with any values."""
    return CrawlDatum(
        status=random.choice((*STATUS_NAMES, 0, 127)),
        fetch_interval=random.choice((0, 2_592_000, -1, 2**31 - 1, -(2**31))),
        score=struct.unpack(
            ">f", struct.pack(">f", random.choice((0.0, -0.0, 1.5, random.random(), float("inf"))))
        )[0],
        fetch_time=random.choice((0, -1, 1_763_700_000_000, 2**63 - 1, -(2**63))),
        modified_time=random.choice((0, 1_763_700_000_123, -(2**63))),
        retries=random.randrange(-128, 128),
        signature=random.choice(
            (None, random.randbytes(16), b"\0", random.randbytes(12), random.randbytes(127))
        ),
        metadata=a_metadata(random) if random.random() < 0.4 else MapWritable(),
    )


def old_datum(random: Random, version: int) -> bytes:
    """A serialized CrawlDatum of an older version (1 to 6), without metadata."""
    status = random.randrange(10) if version < 5 else random.choice(tuple(STATUS_NAMES))
    out = struct.pack(">bBqb", version, status, random.randrange(10**12), random.randrange(5))
    out += (
        struct.pack(">i", 86400)
        if version > 5
        else struct.pack(">f", random.choice((30.0, 86400.5, 1.4)))
    )
    out += struct.pack(">f", 0.25)
    if version > 2:
        signature = random.choice((b"", random.randbytes(16)))
        out += struct.pack(">qb", random.randrange(10**12), len(signature)) + signature
    return out + b"\0" if version > 3 else out


def some_records(random: Random, count: int, *, old_versions: bool = False) -> Records:
    """Records with distinct keys in ascending order."""
    keys = sorted({a_key(random) for _ in range(count)})
    versions = (1, 2, 3, 4, 5, 6) if old_versions else ()
    return [
        (
            key,
            old_datum(random, random.choice(versions))
            if versions and random.random() < 0.3
            else value,
        )
        for key in keys
        for value in [a_datum(random).to_bytes()]
    ]


def patched_frame(patched: Patched) -> pl.DataFrame:
    """All entries of a patched table, as a table of CRAWLDB_SCHEMA."""
    pieces = [
        (places.key(row), places.value(row))
        for places in patched.records()
        for row in range(places.size)
    ]
    return crawldatum_columns.decode(
        Batch.of([key for key, _ in pieces], [value for _, value in pieces])
    )


def write_records(
    path: Path, records: Records, compression: str, value_class: str = CRAWL_DATUM
) -> None:
    """A plain SequenceFile of `records`."""
    with SequenceFileWriter(path, TEXT, value_class, compression=compression, sync=SYNC) as file:
        for key, value in records:
            file.append_raw(encode_vlong(len(key)) + key, value)


def read_records(path: Path) -> Records:
    """The records of a SequenceFile with Text keys, record by record."""
    with SequenceFileReader(path) as reader:
        return [(DataInput(key).read_text_bytes(), value) for key, value in reader]
