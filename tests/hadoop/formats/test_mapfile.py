"""MapFile: golden directories both ways, look-ups, order, lost and damaged indexes."""

from __future__ import annotations

import csv
import shutil
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.errors import ChecksumError, FormatError
from minutch.hadoop.formats import mapfile
from minutch.hadoop.formats.checksum import write_file
from minutch.hadoop.formats.compress import DEFAULT_CODEC
from minutch.hadoop.formats.mapfile import MapFileReader, MapFileWriter, rebuild_index, sort_key
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.hadoop.formats.sequencewriter import SequenceFileWriter
from minutch.hadoop.formats.writables import (
    BytesWritable,
    DoubleWritable,
    FloatWritable,
    IntWritable,
    LongWritable,
    Text,
    VLongWritable,
    Writable,
)
from tests.support.golden import needs_golden
from tests.support.sequencefiles import SEQUENCEFILES, Records, copy_writable, golden_records

TEXT = Text.class_name
DIRECTORIES = [
    ("mapfile-NONE", "mapfile", 128),
    ("mapfile-RECORD", "mapfile", 128),
    ("mapfile-interval16", "mapfile", 16),
    ("mapfile-empty", "", 128),
    ("arrayfile", "arrayfile", 128),
    ("setfile", "setfile", 128),
]
FILES = ("data", "index", ".data.crc", ".index.crc")


def _records(kind: str) -> Records:
    return golden_records(kind) if kind else []


def _numbers(count: int) -> Records:
    return [(IntWritable(2 * i).to_bytes(), Text(f"value {i}").to_bytes()) for i in range(count)]


def _write(path: Path, records: Records, **options: object) -> Path:
    with MapFileWriter(path, IntWritable.class_name, TEXT, **options) as writer:  # type: ignore[arg-type]
        for key, value in records:
            writer.append_raw(key, value)
    return path


@needs_golden("sequencefiles/{name}")
@pytest.mark.parametrize(("name", "kind", "interval"), DIRECTORIES)
def test_golden_directory_both_ways(name: str, kind: str, interval: int, tmp_path: Path) -> None:
    golden = SEQUENCEFILES / name
    with MapFileReader(golden) as reader, SequenceFileReader(golden / "index") as index:
        assert list(reader) == _records(kind)
        assert (index.compression, index.codec) == ("BLOCK", DEFAULT_CODEC)
        with MapFileWriter(
            tmp_path / name,
            reader.key_class,
            reader.value_class,
            compression=reader.data.compression,
            interval=interval,
            sync=reader.data.sync,
            index_sync=index.sync,
        ) as writer:
            for key, value in _records(kind):
                writer.append_raw(key, value)
    for file in FILES:
        assert (tmp_path / name / file).read_bytes() == (golden / file).read_bytes(), file


@needs_golden("sequencefiles/{name}")
@pytest.mark.parametrize(
    ("name", "kind", "interval"), [*DIRECTORIES, ("mapfile-BLOCK", "mapfile", 128)]
)
def test_lost_index_of_a_golden_directory(
    name: str, kind: str, interval: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with MapFileReader(SEQUENCEFILES / name) as reader:
        entries = reader.index_entries()
    copy = copy_writable(SEQUENCEFILES / name, tmp_path / name)
    (copy / "index").unlink()
    with MapFileReader(copy) as reader:
        for key, value in _records(kind)[::97]:
            assert reader.get(key) == value
        assert reader.index_entries() == (entries if interval == 128 else entries[::8])
    assert "no index" in caplog.text or not kind
    rebuild_index(copy, interval=interval)
    with MapFileReader(copy) as reader:
        assert reader.index_entries() == entries
    assert sorted(path.name for path in copy.iterdir()) == sorted(FILES)


@needs_golden("sequencefiles/mapfile-{layout}")
@pytest.mark.parametrize("layout", ["NONE", "RECORD", "BLOCK"])
def test_golden_lookups(layout: str) -> None:
    """The listing's getClosest was printed from an object that getClosestBefore had moved on: it is
    the same column.
    """
    values = dict(golden_records("mapfile"))
    keys = sorted((Text.from_bytes(key).value for key in values), key=str.encode)
    with (
        MapFileReader(SEQUENCEFILES / f"mapfile-{layout}") as reader,
        (SEQUENCEFILES / "mapfile-lookups.csv").open(encoding="utf-8") as lines,
    ):
        for row in csv.DictReader(lines):
            key = Text(row["key"]).to_bytes()
            assert reader.get(key) == values.get(key)
            assert reader.seek(key) == (row["get_found"] == "true")
            after = next(reader.scan(key), None)
            expected = next(
                (other for other in keys if other.encode() >= row["key"].encode()), None
            )
            assert (Text.from_bytes(after[0]).value if after else None) == expected


@given(
    keys=st.lists(st.integers(-50, 50), max_size=60),
    layout=st.sampled_from(["NONE", "RECORD", "BLOCK"]),
    interval=st.integers(1, 20),
)
def test_lookups_among_repeated_keys(
    keys: list[int], layout: str, interval: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    records = [
        (IntWritable(key).to_bytes(), Text(str(i)).to_bytes()) for i, key in enumerate(sorted(keys))
    ]
    path = _write(
        tmp_path_factory.mktemp("map") / "map", records, compression=layout, interval=interval
    )
    with MapFileReader(path) as reader:
        for sought in range(-52, 53, 3):
            key = IntWritable(sought).to_bytes()
            later = [
                item for item in records if sort_key(IntWritable.class_name)(item[0]) >= sought
            ]
            assert reader.get(key) == (later[0][1] if later and later[0][0] == key else None)
            assert list(reader.scan(key)) == later


@pytest.mark.parametrize("layout", ["NONE", "RECORD", "BLOCK"])
def test_a_look_up_reads_between_two_markers(
    layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is sought, and wherever the file is cut in half."""
    monkeypatch.setattr(mapfile, "_NEAR", 1)
    records = _numbers(60)
    path = _write(tmp_path / "m", records)
    options = {"sync_interval": 100} if layout != "BLOCK" else {"block_size": 60}
    with SequenceFileWriter(
        path / "data", IntWritable.class_name, TEXT, compression=layout, **options
    ) as writer:
        for key, value in records:
            writer.append_raw(key, value)
    with MapFileReader(path) as reader:
        seek, places = reader.data.seek, set[int]()
        monkeypatch.setattr(reader.data, "seek", lambda at: [places.add(at), seek(at)])
        for number in [*range(-1, 121), 50, 3]:
            key = IntWritable(number).to_bytes()
            assert reader.get(key) == dict(records).get(key)
            assert list(reader.scan(key)) == records[max(0, -(-number // 2)) :]
    assert len(places) > 10


def test_keys_out_of_order_are_an_error(tmp_path: Path) -> None:
    with (
        pytest.raises(FormatError, match="out of order") as caught,
        MapFileWriter(tmp_path / "m", TEXT, TEXT) as writer,
    ):
        writer.append(Text("b"), Text("1"))
        writer.append(Text("b"), Text("2"))
        writer.append(Text("a"), Text("3"))
    assert caught.value.path == str(tmp_path / "m" / "data")
    assert list((tmp_path / "m").iterdir()) == []


def test_text_is_ordered_by_bytes_not_by_length(tmp_path: Path) -> None:
    with MapFileWriter(tmp_path / "m", TEXT, TEXT) as writer:
        for key in ("a", "a" * 200, "b", "é", "日", "😀"):
            writer.append(Text(key), Text(""))
    with MapFileReader(tmp_path / "m") as reader:
        assert reader.get(Text("a" * 200).to_bytes()) == b"\0"
        assert [str(key) for key, _ in reader.records()][:1] == ["b"]
        reader.reset()
        assert len(list(reader)) == 6


@pytest.mark.parametrize(
    "keys",
    [
        [IntWritable(-5), IntWritable(0), IntWritable(7)],
        [LongWritable(-(2**60)), LongWritable(-1), LongWritable(2**60)],
        [VLongWritable(-300), VLongWritable(-1), VLongWritable(5), VLongWritable(300)],
        [
            FloatWritable(-1.5),
            FloatWritable(-0.0),
            FloatWritable(0.0),
            FloatWritable(2.5),
            FloatWritable(float("nan")),
        ],
        [DoubleWritable(float("-inf")), DoubleWritable(-1.0), DoubleWritable(1.0)],
        [
            BytesWritable(b""),
            BytesWritable(b"\x00" * 300),
            BytesWritable(b"\x01"),
            BytesWritable(b"\xff"),
        ],
    ],
    ids=lambda keys: type(keys[0]).__name__,
)
def test_order_of_key_classes(keys: list[Writable], tmp_path: Path) -> None:
    key_class = keys[0].class_name
    with MapFileWriter(tmp_path / "m", key_class, key_class) as writer:
        for key in keys:
            writer.append(key, key)
    with MapFileReader(tmp_path / "m") as reader:
        assert all(reader.get(key.to_bytes()) == key.to_bytes() for key in keys)
    if len(keys) > 1:
        with (
            pytest.raises(FormatError),
            MapFileWriter(tmp_path / "n", key_class, key_class) as writer,
        ):
            writer.append(keys[1], keys[1])
            writer.append(keys[0], keys[0])


def test_index_of_an_unknown_key_class_is_by_bytes() -> None:
    assert sorted([b"b", b"a", b"ab"], key=sort_key("com.example.Key")) == [b"a", b"ab", b"b"]


def test_a_file_without_records(tmp_path: Path) -> None:
    with MapFileReader(_write(tmp_path / "empty", [])) as reader:
        assert list(reader) == []
        assert reader.get(IntWritable(1).to_bytes()) is None


@pytest.mark.parametrize("file", ["data", "index"])
def test_damage_at_every_offset(file: str, tmp_path: Path) -> None:
    path = _write(tmp_path / "m", _numbers(40), interval=4)
    whole = (path / file).read_bytes()
    for at in range(0, len(whole), 3):
        (path / file).write_bytes(whole[:at] + bytes((whole[at] ^ 1,)) + whole[at + 1 :])
        with pytest.raises(ChecksumError) as caught, MapFileReader(path) as reader:
            reader.get(IntWritable(70).to_bytes())
            reader.index_entries()
        assert caught.value.path == str(path / file)
        try:
            with MapFileReader(path, verify=False) as reader:
                reader.get(IntWritable(70).to_bytes())
                reader.index_entries()
        except FormatError as exc:
            assert exc.path in {str(path / "data"), str(path / "index")}


def test_index_that_is_not_one(tmp_path: Path) -> None:
    path = _write(tmp_path / "m", _numbers(40))
    for values in ([b"short"], [struct.pack(">q", 100), struct.pack(">q", 200)]):
        with SequenceFileWriter(
            path / "index", IntWritable.class_name, LongWritable.class_name
        ) as writer:
            for i, value in enumerate(values):
                writer.append_raw(IntWritable(-i).to_bytes(), value)
        with pytest.raises(FormatError) as caught, MapFileReader(path) as reader:
            reader.index_entries()
        assert caught.value.path == str(path / "index")


def test_rebuilding_refuses_damaged_data_and_keeps_the_index(tmp_path: Path) -> None:
    path = _write(tmp_path / "m", _numbers(400))
    index = (path / "index").read_bytes()
    data = (path / "data").read_bytes()
    (path / "data").write_bytes(data[:-5])
    with pytest.raises(ChecksumError):
        rebuild_index(path)
    write_file(path / "data", data[:-5])
    with pytest.raises(FormatError, match="ends inside"):
        rebuild_index(path)
    assert (path / "index").read_bytes() == index
    assert sorted(item.name for item in path.iterdir()) == sorted(FILES)


@pytest.mark.parametrize("renamed", [0, 1])
def test_a_rebuilt_index_never_has_the_sums_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, renamed: int
) -> None:
    """Killed before the first or the second rename: whichever index is there can be read."""
    path = _write(tmp_path / "m", _numbers(400))
    replace, left = Path.replace, [None] * renamed

    def killed(self: Path, target: Path) -> Path:
        if not left:
            raise KeyboardInterrupt
        left.pop()
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        rebuild_index(path, interval=7)
    monkeypatch.undo()
    with MapFileReader(path) as reader:
        assert len(reader.index_entries()) == (-(-400 // 7) if renamed else -(-400 // 128))


def test_rebuilding_refuses_unsorted_data(tmp_path: Path) -> None:
    path = _write(tmp_path / "m", _numbers(10))
    with SequenceFileWriter(path / "data", IntWritable.class_name, TEXT) as writer:
        for number in (1, 3, 2):
            writer.append(IntWritable(number), Text(""))
    with pytest.raises(FormatError, match="out of order"):
        rebuild_index(path, interval=1)


def test_missing_data_is_the_systems_error(tmp_path: Path) -> None:
    path = _write(tmp_path / "m", _numbers(10))
    shutil.move(path / "data", path / "other")
    with pytest.raises(FileNotFoundError):
        MapFileReader(path)
