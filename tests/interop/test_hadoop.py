"""Files between minutch and Hadoop's own classes, both ways."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from minutch.hadoop.formats.compress import DEFAULT_CODEC, PACKAGE
from minutch.hadoop.formats.mapfile import MapFileReader, MapFileWriter
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.hadoop.formats.sequencewriter import SequenceFileWriter
from minutch.hadoop.formats.writables import (
    BooleanWritable,
    BytesWritable,
    DoubleWritable,
    FloatWritable,
    IntWritable,
    LongWritable,
    MapWritable,
    MD5Hash,
    NullWritable,
    Text,
    VIntWritable,
    VLongWritable,
    Writable,
)
from tests.interop.harness import Harness, read_records, write_records

pytestmark = pytest.mark.jvm

TEXT, LONG = Text.class_name, LongWritable.class_name
CODECS = [
    PACKAGE + name
    for name in ("DefaultCodec", "DeflateCodec", "BZip2Codec", "SnappyCodec", "Lz4Codec")
]
READ_ONLY = [
    PACKAGE + "GzipCodec"
]  # without its native library Hadoop reads gzip but doesn't write it

Records = list[tuple[bytes, bytes]]


def _records(count: int) -> Records:
    return [
        (
            Text(f"http://www.example.org/{i:06}/日本語").to_bytes(),
            Text(
                " ".join(f"word{i * j % 97}" for j in range(i % 50)) * (200 if i % 100 == 99 else 1)
            ).to_bytes(),
        )
        for i in range(count)
    ]


def _layouts(codecs: list[str]) -> list[tuple[str, str]]:
    return [
        ("NONE", DEFAULT_CODEC),
        *((layout, codec) for layout in ("RECORD", "BLOCK") for codec in codecs),
    ]


def test_hadoop_reads_what_minutch_writes(hadoop: Harness, tmp_path: Path) -> None:
    records = _records(3000)
    layouts = _layouts(CODECS + READ_ONLY)
    requests: list[tuple[str | Path, ...]] = []
    for number, (layout, codec) in enumerate(layouts):
        path = tmp_path / f"file-{number}"
        with SequenceFileWriter(
            path, TEXT, TEXT, compression=layout, codec=codec, metadata={"a": "b"}
        ) as writer:
            for key, value in records:
                writer.append_raw(key, value)
        requests += [
            ("read", path, tmp_path / f"read-{number}"),
            ("split", path, tmp_path / f"split-{number}", "7"),
        ]
    hadoop.run(requests)
    for number in range(len(layouts)):
        assert [
            item[:2] for item in read_records(tmp_path / f"read-{number}", header=True)
        ] == records
        assert read_records(tmp_path / f"split-{number}") == records


def test_minutch_reads_what_hadoop_writes(hadoop: Harness, tmp_path: Path) -> None:
    records = _records(3000)
    listing = write_records(tmp_path / "records", records)
    layouts = _layouts(CODECS)
    hadoop.run(
        [
            ("write", listing, tmp_path / f"file-{number}", TEXT, TEXT, layout, codec)
            for number, (layout, codec) in enumerate(layouts)
        ]
    )
    for number, (layout, codec) in enumerate(layouts):
        path = tmp_path / f"file-{number}"
        with SequenceFileReader(path) as reader:
            assert (reader.compression, reader.codec) == (
                layout,
                codec if layout != "NONE" else None,
            )
            assert list(reader) == records
        size = path.stat().st_size
        cuts = [0, size // 3, size // 2, size]
        parts = [
            item for a, b in pairwise(cuts) for item in SequenceFileReader(path, start=a, end=b)
        ]
        assert parts == records


@pytest.mark.parametrize("layout", ["NONE", "RECORD", "BLOCK"])
def test_map_files_both_ways(hadoop: Harness, layout: str, tmp_path: Path) -> None:
    records = _records(2000)
    keys = [records[i][0] for i in (0, 1, 127, 128, 129, 1000, 1999)] + [Text("nothing").to_bytes()]
    expected = [dict(records).get(key, b"") for key in keys]
    with MapFileWriter(tmp_path / "ours", TEXT, TEXT, compression=layout) as writer:
        for key, value in records:
            writer.append_raw(key, value)
    listing = write_records(tmp_path / "records", records)
    sought = write_records(tmp_path / "keys", [(key,) for key in keys])
    hadoop.run(
        [
            ("mapget", tmp_path / "ours", sought, tmp_path / "found"),
            ("read", tmp_path / "ours" / "index", tmp_path / "index"),
            ("mapwrite", listing, tmp_path / "theirs", TEXT, TEXT, layout, DEFAULT_CODEC),
        ]
    )
    assert [value for (value,) in read_records(tmp_path / "found")] == expected
    with MapFileReader(tmp_path / "theirs") as theirs, MapFileReader(tmp_path / "ours") as ours:
        assert [theirs.get(key) or b"" for key in keys] == expected
        if layout == "NONE":
            assert theirs.index_entries() == ours.index_entries()
    index = [
        (key, int.from_bytes(value, "big"))
        for key, value, *_ in read_records(tmp_path / "index", header=True)
    ]
    with MapFileReader(tmp_path / "ours") as ours:
        assert index == ours.index_entries()


VALUES: list[Writable] = [
    IntWritable(-5),
    LongWritable(1 << 60),
    VIntWritable(-113),
    VLongWritable(-(1 << 50)),
    FloatWritable(0.1),
    DoubleWritable(2e23),
    BooleanWritable(True),
    BytesWritable(b"\x00\xff bytes"),
    NullWritable(),
    MD5Hash(bytes(range(16))),
    MapWritable({Text(f"key{i}"): IntWritable(i) for i in range(40)}),
]


def test_values_have_hadoops_bytes_and_strings(hadoop: Harness, tmp_path: Path) -> None:
    requests = []
    for number, value in enumerate(VALUES):
        with SequenceFileWriter(tmp_path / f"file-{number}", TEXT, value.class_name) as writer:
            writer.append(Text("key"), value)
        requests.append(("read", tmp_path / f"file-{number}", tmp_path / f"read-{number}"))
    hadoop.run(requests)
    for number, value in enumerate(VALUES):
        ((_, data, _, text),) = read_records(tmp_path / f"read-{number}", header=True)
        assert data == value.to_bytes(), value
        assert text.decode() == str(value)
