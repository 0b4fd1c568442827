"""SequenceFile: golden files both ways, old versions, ranges, cut-offs and damage."""

from __future__ import annotations

import io
import struct
import tracemalloc
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.errors import ChecksumError, FormatError, TruncatedError
from minutch.hadoop.formats import sequencefile
from minutch.hadoop.formats.compress import CODECS, DEFAULT_CODEC, codec
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.hadoop.formats.sequencewriter import SYNC_INTERVAL, SequenceFileWriter
from minutch.hadoop.formats.writables import IntWritable, LongWritable, Text
from tests.support.examples import few
from tests.support.golden import needs_golden
from tests.support.sequencefiles import (
    SEQUENCEFILES,
    Records,
    golden_records,
    manifest,
    old_header,
    record,
)

TEXT = Text.class_name
LONG = LongWritable.class_name
SYNC = bytes(range(100, 116))
LAYOUTS = [("NONE", DEFAULT_CODEC)] + [
    (layout, name) for layout in ("RECORD", "BLOCK") for name in sorted(CODECS)
]


def _read(path: Path, **options: int) -> Records:
    with SequenceFileReader(path, **options) as reader:
        return list(reader)


def _write(
    path: Path,
    records: Records,
    layout: str = "NONE",
    codec_name: str = DEFAULT_CODEC,
    **options: int,
) -> Path:
    with SequenceFileWriter(
        path, TEXT, TEXT, compression=layout, codec=codec_name, sync=SYNC, **options
    ) as writer:
        for key, value in records:
            writer.append_raw(key, value)
    return path


def _sample(count: int = 40) -> Records:
    return [
        (Text(f"http://h{i % 7}.example.org/{i}").to_bytes(), Text("text " * (i % 9)).to_bytes())
        for i in range(count)
    ]


# Golden files


@needs_golden
@pytest.mark.parametrize("row", few(manifest(), 15), ids=lambda row: row["file"])
def test_golden_file_both_ways(row: dict[str, str], tmp_path: Path) -> None:
    path = SEQUENCEFILES / row["file"]
    records = golden_records(row["kind"])
    with SequenceFileReader(path) as reader:
        assert list(reader) == records
        header = reader.header
        assert header.compression == row["compression"]
        assert reader.codec == (
            None
            if row["compression"] == "NONE"
            else f"org.apache.hadoop.io.compress.{row['codec']}"
        )
    assert len(records) == int(row["records"])
    copy = tmp_path / "copy"
    with SequenceFileWriter(
        copy,
        header.key_class,
        header.value_class,
        compression=header.compression,
        codec=header.codec or DEFAULT_CODEC,
        metadata=header.metadata,
        sync=header.sync,
        block_size=int(row["blocksize"]),
    ) as writer:
        for key, value in records:
            writer.append_raw(key, value)
    assert _read(copy) == records
    if header.compression == "NONE":
        assert copy.read_bytes() == path.read_bytes()
        assert (tmp_path / ".copy.crc").read_bytes() == path.with_name(
            f".{path.name}.crc"
        ).read_bytes()


@needs_golden
@pytest.mark.parametrize(
    "row", [row for row in manifest() if row["compression"] == "BLOCK"], ids=lambda row: row["file"]
)
def test_blocks_end_where_hadoop_ends_them(row: dict[str, str], tmp_path: Path) -> None:
    def sizes(path: Path) -> list[int]:
        with SequenceFileReader(path) as reader:
            counts: dict[int, int] = {}
            for _ in reader:
                counts[reader.position] = counts.get(reader.position, 0) + 1
            return list(counts.values())

    path = SEQUENCEFILES / row["file"]
    copy = _write(
        tmp_path / "copy", golden_records(row["kind"]), "BLOCK", block_size=int(row["blocksize"])
    )
    assert sizes(copy) == sizes(path)


@needs_golden
@pytest.mark.parametrize("layout", ["NONE", "RECORD", "BLOCK"])
def test_golden_file_with_a_marker_before_every_record(layout: str, tmp_path: Path) -> None:
    path = SEQUENCEFILES / f"big-{layout}.seq"
    with SequenceFileReader(path) as reader:
        assert list(reader) == golden_records("big")
        sync = reader.sync
    data = path.read_bytes()
    marks = data.count(b"\xff\xff\xff\xff" + sync)
    with SequenceFileWriter(
        tmp_path / "copy", TEXT, TEXT, compression=layout, sync=sync, sync_interval=2000
    ) as writer:
        for key, value in golden_records("big"):
            writer.append_raw(key, value)
    copy = (tmp_path / "copy").read_bytes()
    assert copy.count(b"\xff\xff\xff\xff" + sync) == (marks if layout != "BLOCK" else 1)
    if layout == "NONE":
        assert copy == data


@needs_golden
@pytest.mark.parametrize("layout", ["NONE", "BLOCK"])
def test_golden_empty_file(layout: str, tmp_path: Path) -> None:
    path = SEQUENCEFILES / f"empty-{layout}.seq"
    with SequenceFileReader(path) as reader:
        assert list(reader) == []
        header = reader.header
    with SequenceFileWriter(
        tmp_path / "copy",
        header.key_class,
        header.value_class,
        compression=layout,
        sync=header.sync,
    ):
        pass
    assert (tmp_path / "copy").read_bytes() == path.read_bytes()


@needs_golden
@pytest.mark.parametrize("row", manifest(), ids=lambda row: row["file"])
@pytest.mark.parametrize("parts", [2, 5])
def test_ranges_that_adjoin_give_every_record_once(row: dict[str, str], parts: int) -> None:
    path = SEQUENCEFILES / row["file"]
    size = path.stat().st_size
    cuts = [size * i // parts for i in range(parts)] + [size]
    records = [item for start, end in pairwise(cuts) for item in _read(path, start=start, end=end)]
    assert records == golden_records(row["kind"])


# Round trips


@pytest.mark.parametrize(("layout", "codec_name"), LAYOUTS)
@given(records=st.lists(st.tuples(st.binary(max_size=40), st.binary(max_size=200)), max_size=20))
def test_any_records_come_back(
    layout: str, codec_name: str, records: Records, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("seq") / "file"
    _write(path, records, layout, codec_name, sync_interval=200, block_size=300)
    assert _read(path) == records


@given(
    layout=st.sampled_from(["NONE", "RECORD", "BLOCK"]),
    sizes=st.lists(st.integers(0, 300), max_size=30),
    cuts=st.lists(st.integers(0, 6000), max_size=4),
)
def test_ranges_cut_anywhere(
    layout: str, sizes: list[int], cuts: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    records = [(bytes((i,)), bytes(size)) for i, size in enumerate(sizes)]
    path = _write(
        tmp_path_factory.mktemp("seq") / "file", records, layout, sync_interval=400, block_size=500
    )
    edges = [0, *sorted(cuts), path.stat().st_size + 1]
    found = [item for start, end in pairwise(edges) for item in _read(path, start=start, end=end)]
    assert found == records


def test_records_of_any_size_and_markers_in_large_files(tmp_path: Path) -> None:
    records = [(bytes(4), bytes(i * 5000 % 300_007)) for i in range(60)]
    path = _write(tmp_path / "file", records)
    assert _read(path) == records
    assert path.read_bytes().count(b"\xff\xff\xff\xff" + SYNC) > 20


def test_markers_stand_every_100_kilobytes(tmp_path: Path) -> None:
    path = _write(tmp_path / "file", [(b"k", bytes(999))] * 400)
    data = path.read_bytes()
    marks = [at for at in range(len(data)) if data.startswith(b"\xff\xff\xff\xff" + SYNC, at)]
    assert SYNC_INTERVAL == 102_400
    assert marks[0] >= SYNC_INTERVAL > marks[0] - 1008
    assert all(SYNC_INTERVAL <= b - a - 20 < SYNC_INTERVAL + 1008 for a, b in pairwise(marks))


def test_writables_and_metadata(tmp_path: Path) -> None:
    with SequenceFileWriter(tmp_path / "file", TEXT, LONG, metadata={"b": "2", "a": "é"}) as writer:
        writer.append(Text("x"), LongWritable(-5))
        with pytest.raises(FormatError, match="wrong class"):
            writer.append(Text("x"), IntWritable(5))
    with SequenceFileReader(tmp_path / "file") as reader:
        assert list(reader.records()) == [(Text("x"), LongWritable(-5))]
        assert reader.metadata == {"a": "é", "b": "2"}
        assert (reader.key_class, reader.value_class, reader.version) == (TEXT, LONG, 6)


def test_reading_from_a_stream(tmp_path: Path) -> None:
    records = _sample(5000)
    for layout in ("NONE", "RECORD", "BLOCK"):
        data = _write(tmp_path / layout, records, layout).read_bytes()
        with SequenceFileReader(io.BytesIO(data)) as reader:
            assert list(reader) == records


@pytest.mark.parametrize("layout", ["NONE", "RECORD", "BLOCK"])
def test_writing_to_a_stream(layout: str, tmp_path: Path) -> None:
    stream = io.BytesIO()
    with SequenceFileWriter(stream, TEXT, TEXT, compression=layout, sync=SYNC) as writer:
        for key, value in _sample(500):
            writer.append_raw(key, value)
        assert layout == "BLOCK" or writer.position == len(stream.getvalue())
    assert stream.getvalue() == _write(tmp_path / "file", _sample(500), layout).read_bytes()
    with pytest.raises(FormatError, match="stream: wrong size"):
        SequenceFileWriter(io.BytesIO(), TEXT, TEXT, sync=b"")


def test_position_leads_back_to_a_record(tmp_path: Path) -> None:
    records = _sample(3000)
    with SequenceFileReader(_write(tmp_path / "file", records, sync_interval=500)) as reader:
        places = []
        place = reader.position
        for _ in reader:
            places.append(place)
            place = reader.position
        for i in (2999, 0, 1500, 7):
            reader.seek(places[i])
            assert next(iter(reader)) == records[i]


def test_error_in_the_block_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), SequenceFileWriter(tmp_path / "file", TEXT, TEXT) as writer:
        writer.append_raw(b"k", b"v")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


# Older versions


def test_version_1_as_the_file_format_page_shows_it() -> None:
    data = bytes.fromhex(
        "53455101 0004 6c6f6e67 0004 6c6f6e67 00000010 00000008 0000000000000280 00000000000a429b"
    )
    with SequenceFileReader(io.BytesIO(data)) as reader:
        assert (reader.version, reader.key_class, reader.value_class) == (1, "long", "long")
        assert list(reader.records()) == [(LongWritable(640), LongWritable(672411))]


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_older_headers(version: int) -> None:
    body = b"".join(record(*item) for item in _sample(20))
    if version > 1:
        body += b"\xff\xff\xff\xff" + SYNC + record(b"after", b"marker")
    data = old_header(version, TEXT, TEXT, sync=SYNC) + body
    with SequenceFileReader(io.BytesIO(data)) as reader:
        assert list(reader) == _sample(20) + ([(b"after", b"marker")] if version > 1 else [])
        assert (reader.key_class, reader.compression, reader.metadata) == (TEXT, "NONE", {})


@pytest.mark.parametrize("version", [3, 4, 5])
def test_older_compressed_files(version: int) -> None:
    compress = codec(DEFAULT_CODEC).compress
    body = b"".join(record(key, compress(value)) for key, value in _sample(20))
    with SequenceFileReader(
        io.BytesIO(old_header(version, TEXT, TEXT, compressed=True, sync=SYNC) + body)
    ) as reader:
        assert list(reader) == _sample(20)
        assert (reader.compression, reader.codec) == ("RECORD", DEFAULT_CODEC)


@pytest.mark.parametrize("version", [0, 7, 255])
def test_unknown_versions(version: int) -> None:
    with pytest.raises(FormatError, match="version"):
        SequenceFileReader(io.BytesIO(b"SEQ" + bytes((version,)) + bytes(100)))


# Damage


@pytest.mark.parametrize("layout", ["NONE", "RECORD", "BLOCK"])
def test_cut_off_at_every_length(layout: str, tmp_path: Path) -> None:
    records = _sample(12)
    path = _write(tmp_path / "whole", records, layout, sync_interval=200, block_size=150)
    data = path.read_bytes()
    for size in range(len(data)):
        cut = tmp_path / "cut"
        cut.write_bytes(data[:size])
        found = []
        try:
            with SequenceFileReader(cut) as reader:
                found.extend(reader)
        except TruncatedError as exc:
            assert exc.path == str(cut)
            assert exc.offset is not None
            assert 0 <= exc.offset <= size
        assert found == records[: len(found)]
        assert len(found) < len(records)


@pytest.mark.parametrize("layout", ["NONE", "RECORD", "BLOCK"])
def test_a_file_cut_off_between_records_is_found_out_by_its_sums(
    layout: str, tmp_path: Path
) -> None:
    path = _write(tmp_path / "file", _sample(), layout, block_size=150)
    with SequenceFileReader(path) as reader:
        next(iter(reader))
        end = reader.position
    path.write_bytes(path.read_bytes()[:end])
    with pytest.raises(ChecksumError):
        _read(path)


@pytest.mark.parametrize("layout", ["NONE", "RECORD", "BLOCK"])
def test_damage_at_every_offset(layout: str, tmp_path: Path) -> None:
    records = _sample(12)
    path = _write(tmp_path / "file", records, layout, sync_interval=200, block_size=150)
    data = path.read_bytes()
    for at in range(len(data)):
        path.write_bytes(data[:at] + bytes((data[at] ^ 0xFF,)) + data[at + 1 :])
        with pytest.raises(ChecksumError) as caught:
            _read(path)
        assert (caught.value.path, caught.value.offset) == (str(path), at // 512 * 512)
        try:
            with SequenceFileReader(path, verify=False) as reader:
                list(reader)
        except FormatError as exc:
            assert exc.path == str(path)
            assert exc.offset is not None


@given(data=st.binary(max_size=300), version=st.integers(1, 6))
def test_any_bytes_raise_only_our_error(data: bytes, version: int) -> None:
    with (
        suppress(FormatError),
        SequenceFileReader(io.BytesIO(b"SEQ" + bytes((version,)) + data)) as reader,
    ):
        list(reader)


@given(data=st.binary(max_size=300), layout=st.sampled_from(["NONE", "RECORD", "BLOCK"]))
def test_any_bytes_after_the_header_raise_only_our_error(
    data: bytes, layout: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = _write(tmp_path_factory.mktemp("seq") / "file", [], layout)
    marked = path.read_bytes() + b"\xff\xff\xff\xff" + SYNC + data
    with suppress(FormatError), SequenceFileReader(io.BytesIO(marked)) as reader:
        list(reader)


@pytest.mark.parametrize(
    ("lengths", "what"),
    [
        ((-2, 0), "impossible lengths"),
        ((5, 6), "impossible lengths"),
        ((5, -1), "impossible lengths"),
        ((0x7FFF_FFFF, 4), "ends inside a record"),
    ],
)
def test_impossible_lengths(lengths: tuple[int, int], what: str, tmp_path: Path) -> None:
    header = old_header(2, TEXT, TEXT, sync=SYNC)
    path = tmp_path / "file"
    path.write_bytes(header + record(b"good", b"one") + struct.pack(">ii", *lengths) + bytes(100))
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match=what) as caught, SequenceFileReader(path) as reader:
            list(reader)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert (caught.value.path, caught.value.offset) == (
        str(path),
        len(header) + len(record(b"good", b"one")),
    )


def test_length_beyond_the_end_of_a_stream() -> None:
    data = old_header(2, TEXT, TEXT, sync=SYNC) + struct.pack(">ii", 0x7FFF_FFFF, 4) + bytes(100)
    with pytest.raises(TruncatedError), SequenceFileReader(io.BytesIO(data)) as reader:
        list(reader)


def test_wrong_marker_is_named() -> None:
    header = old_header(2, TEXT, TEXT, sync=SYNC)
    with pytest.raises(FormatError, match="wrong sync marker") as caught:
        list(SequenceFileReader(io.BytesIO(header + b"\xff\xff\xff\xff" + bytes(16))))
    assert caught.value.offset == len(header)


def test_block_without_a_marker_is_named(tmp_path: Path) -> None:
    path = _write(tmp_path / "file", [], "BLOCK")
    with pytest.raises(FormatError, match="no sync marker"):
        list(SequenceFileReader(io.BytesIO(path.read_bytes() + bytes(40))))


def test_bad_record_names_its_place(tmp_path: Path) -> None:
    path = _write(tmp_path / "file", [(Text("a").to_bytes(), Text("b").to_bytes())])
    at = path.stat().st_size
    path.write_bytes(path.read_bytes() + record(Text("a").to_bytes(), b"\x05ab"))
    (tmp_path / ".file.crc").unlink()
    with (
        pytest.raises(FormatError, match="bad record") as caught,
        SequenceFileReader(path) as reader,
    ):
        list(reader.records())
    assert (caught.value.path, caught.value.offset) == (str(path), at)


def test_unknown_classes_are_readable_raw_only(tmp_path: Path) -> None:
    with SequenceFileWriter(tmp_path / "file", TEXT, "com.example.Unknown") as writer:
        writer.append_raw(b"k", b"v")
    assert _read(tmp_path / "file") == [(b"k", b"v")]
    with (
        pytest.raises(FormatError, match=r"com\.example\.Unknown"),
        SequenceFileReader(tmp_path / "file") as reader,
    ):
        next(reader.records())


def test_unknown_codec_is_named(tmp_path: Path) -> None:
    path = _write(tmp_path / "file", [], "RECORD")
    path.write_bytes(path.read_bytes().replace(b"DefaultCodec", b"DefaultCodex"))
    with pytest.raises(FormatError, match="DefaultCodex") as caught:
        SequenceFileReader(path, verify=False)
    assert caught.value.path == str(path)
    with pytest.raises(FormatError, match="unknown compression codec"):
        SequenceFileWriter(tmp_path / "new", TEXT, TEXT, compression="RECORD", codec="Zip")


def test_wrong_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="unknown compression"):
        SequenceFileWriter(tmp_path / "file", TEXT, TEXT, compression="block")
    with pytest.raises(FormatError, match="sync marker"):
        SequenceFileWriter(tmp_path / "file", TEXT, TEXT, sync=b"short")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("layout", ["NONE", "RECORD", "BLOCK"])
def test_a_record_is_found_in_any_order(
    layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a value holds what a record looks like, and wherever a read ends."""
    key = Text("sought").to_bytes()
    decoy = len(key).to_bytes(4, "big") + key
    path = tmp_path / "file"
    options = {"sync_interval": 300} if layout != "BLOCK" else {"block_size": 200}
    records = [(Text(f"{n * 7 % 40}").to_bytes(), decoy * (n % 4)) for n in range(40)]
    records[33:33] = [(key, b"first"), (key, b"second")]
    with SequenceFileWriter(path, TEXT, TEXT, compression=layout, **options) as writer:
        for one, value in records:
            writer.append_raw(one, value)
    for size in (50, 64, 333, 1 << 20):
        monkeypatch.setattr(sequencefile, "SMALLEST_READ", min(size, 16))
        monkeypatch.setattr(sequencefile, "LARGEST_READ", size)
        for one, value in [(key, b"first"), *records[:3]]:
            with SequenceFileReader(path) as reader:
                assert reader.find(one) == value
        with SequenceFileReader(path) as reader:
            assert reader.find(Text("nowhere").to_bytes()) is None
