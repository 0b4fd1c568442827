"""`minutch text`: lines and JSON of any Hadoop file; nothing is lost."""

from __future__ import annotations

import bz2
import gzip
import io
import json
from pathlib import Path

import pytest

from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.errors import FormatError, UsageError
from minutch.hadoop.formats.mapfile import MapFileWriter
from minutch.hadoop.formats.sequencewriter import SequenceFileWriter
from minutch.hadoop.formats.text import as_json, as_text, files_below, to_json
from minutch.hadoop.formats.writables import (
    BytesWritable,
    DoubleWritable,
    FloatWritable,
    IntWritable,
    MapWritable,
    NullWritable,
    Text,
    Writable,
)
from minutch.job import JobContext
from minutch.records.crawldatum import CrawlDatum, NutchWritable
from minutch.records.links import LAYOUT_PLAIN, Inlink, Inlinks
from minutch.records.metadata import Metadata
from minutch.records.parsedata import ParseData
from tests.support.commands import text as command
from tests.support.examples import few, tabled
from tests.support.golden import GOLDEN, needs_golden
from tests.support.sequencefiles import SEQUENCEFILES, golden_records

TEXT = Text.class_name


def _file(path: Path, *records: tuple[Writable, Writable]) -> Path:
    key, value = records[0]
    with SequenceFileWriter(path, key.class_name, value.class_name) as writer:
        for record in records:
            writer.append(*record)
    return path


def _run(*args: str) -> tuple[int, str]:
    out = io.StringIO()
    code = command.run(
        list(args), JobContext(Configuration(), FakeClock(), out=out, err=io.StringIO())
    )
    return code, out.getvalue()


@needs_golden
def test_golden_map_writables_print_as_javas_do() -> None:
    readable = (SEQUENCEFILES / "records-mapwritable-readable.txt").read_text(encoding="utf-8")
    expected: dict[str, list[str]] = {}
    entries: list[str] = []
    for line in readable.splitlines():
        if line.startswith("  "):
            key, _, value = line[2:].partition(" => ")
            entries.append(f"{key.partition(' ')[2]}={value.partition(' ')[2]}")
        else:
            entries = expected[line] = []
    lines = dict(
        line.rstrip("\n").split("\t", 1) for line in as_text(SEQUENCEFILES / "mapwritable.seq")
    )
    assert len(lines) == len(golden_records("mapwritable"))
    assert lines == {name: "{" + ", ".join(entries) + "}" for name, entries in expected.items()}


@needs_golden("{path}")
@pytest.mark.parametrize(
    "path",
    few(
        [
            "crawl-small/run-rich-r2/crawl",
            "nutch-1.20/crawl",
            "nutch-trunk-edge-linkdb",
            "crawl-small/run-default-r1/crawl",
            "nutch-testresources",
        ],
        3,
    ),
)
def test_golden_databases_and_segments_as_text_and_json(path: str) -> None:
    code, text = _run(str(GOLDEN / path))
    assert code == 0
    code, lines = _run("-json", str(GOLDEN / path))
    assert code == 0
    objects = [json.loads(line) for line in lines.splitlines()]
    assert len(objects) > 10
    assert not any("raw" in item for item in objects)
    assert all(isinstance(item["key"], str) for item in objects if "key" in item)
    records = [item for item in objects if item.get("keyClass") == TEXT]
    assert all(f"{item['key']}\t" in text for item in records)


def test_lines_of_text(tmp_path: Path) -> None:
    path = _file(tmp_path / "file", (Text("a"), IntWritable(1)), (Text("é"), IntWritable(-2)))
    assert list(as_text(path)) == ["a\t1\n", "é\t-2\n"]


def test_folders_are_walked_in_order_of_names(tmp_path: Path) -> None:
    for part in ("part-r-00001", "part-r-00000"):
        with MapFileWriter(tmp_path / "db" / "current" / part, TEXT, TEXT) as writer:
            writer.append(Text(part), Text("value"))
    (tmp_path / "db" / ".locked").touch()
    (tmp_path / "db" / "_SUCCESS").touch()
    (tmp_path / "db" / "notes.txt").write_text("two\nlines", encoding="utf-8")
    assert [str(path.relative_to(tmp_path)) for path in files_below(tmp_path)] == [
        "db/current/part-r-00000/data",
        "db/current/part-r-00001/data",
        "db/notes.txt",
    ]
    code, text = _run(str(tmp_path))
    assert (code, text) == (0, "part-r-00000\tvalue\npart-r-00001\tvalue\ntwo\nlines")
    code, text = _run(str(tmp_path / "db/notes.txt"), "-json")
    assert [json.loads(line)["line"] for line in text.splitlines()] == ["two", "lines"]


def test_an_index_that_is_named_is_printed(tmp_path: Path) -> None:
    with MapFileWriter(tmp_path / "map", TEXT, TEXT) as writer:
        writer.append(Text("k"), Text("v"))
    code, text = _run(str(tmp_path / "map" / "index"))
    assert code == 0
    assert text.startswith("k\t")


@pytest.mark.parametrize(
    ("name", "pack"), [("a.gz", gzip.compress), ("a", gzip.compress), ("a.bz2", bz2.compress)]
)
def test_packed_text_is_unpacked(name: str, pack: object, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(pack("http://é/\n".encode() * 3))  # type: ignore[operator]
    assert "".join(as_text(tmp_path / name)) == "http://é/\n" * 3


def test_broken_packed_text_is_our_error(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"text")[:-3])
    with pytest.raises(FormatError) as caught:
        list(as_text(tmp_path / "a.gz"))
    assert caught.value.path == str(tmp_path / "a.gz")


def test_unknown_classes_are_hexadecimal(tmp_path: Path) -> None:
    with SequenceFileWriter(tmp_path / "file", TEXT, "com.example.Unknown") as writer:
        writer.append_raw(Text("k").to_bytes(), b"\x00\xff")
    assert list(as_text(tmp_path / "file")) == ["k\t00ff\n"]
    assert [json.loads(line) for line in as_json(tmp_path / "file")] == [
        {
            "file": str(tmp_path / "file"),
            "keyClass": TEXT,
            "key": "k",
            "valueClass": "com.example.Unknown",
            "value": "00ff",
            "raw": True,
        }
    ]


def test_bytes_that_are_not_utf8_survive(tmp_path: Path) -> None:
    with SequenceFileWriter(tmp_path / "file", TEXT, TEXT) as writer:
        writer.append_raw(b"\x02a\xff", b"\x01b")
    (line,) = as_json(tmp_path / "file")
    assert line.isascii()
    assert json.loads(line)["key"].encode("utf-8", "surrogateescape") == b"a\xff"
    assert "".join(as_text(tmp_path / "file")).encode("utf-8", "surrogateescape") == b"a\xff\tb\n"


@tabled(
    ("value", "expected"),
    [
        (IntWritable(5), 5),
        (FloatWritable(0.5), 0.5),
        (DoubleWritable(float("nan")), "NaN"),
        (DoubleWritable(float("-inf")), "-Infinity"),
        (NullWritable(), None),
        (BytesWritable(b"\x01\xff"), "01ff"),
        (MapWritable({Text("a"): IntWritable(1), Text("b"): Text("x")}), {"a": 1, "b": "x"}),
        (
            MapWritable({IntWritable(1): Text("x")}),
            [{"keyClass": IntWritable.class_name, "key": 1, "value": "x"}],
        ),
        (Metadata.of({"k": ["1", "2"]}), {"k": ["1", "2"]}),
        (
            Inlinks([Inlink("http://a/", "x")]),
            [{"fromUrl": "http://a/", "anchor": "x", "metadata": None}],
        ),
        (NutchWritable(Text("x")), {"class": TEXT, "value": "x"}),
    ],
)
def test_json_of_values(value: Writable, expected: object) -> None:
    assert to_json(value) == expected


def test_json_of_records() -> None:
    datum = to_json(CrawlDatum(status=2, fetch_time=5, score=0.5, signature=b"\x01", retries=1))
    assert datum == {
        "status": 2,
        "fetchInterval": 0,
        "score": 0.5,
        "fetchTime": 5,
        "modifiedTime": 0,
        "retries": 1,
        "signature": "01",
        "metadata": {},
    }
    assert list(to_json(ParseData(title="t"))) == [
        "status",
        "title",
        "outlinks",
        "contentMeta",
        "parseMeta",
    ]


def test_inlinks_of_both_layouts(tmp_path: Path) -> None:
    from minutch.hadoop.formats.javaio import DataOutput

    out = DataOutput()
    Inlinks([Inlink("http://a/", "x")]).write(out, LAYOUT_PLAIN)
    with SequenceFileWriter(tmp_path / "file", TEXT, Inlinks.class_name) as writer:
        writer.append_raw(Text("k").to_bytes(), out.getvalue())
    assert _run(str(tmp_path / "file")) == (0, "k\tInlinks:\n fromUrl: http://a/ anchor: x\n\n")
    _file(tmp_path / "new", (Text("k"), Inlinks([Inlink("http://a/", "x")])))
    assert _run(str(tmp_path / "new")) == (
        0,
        "k\tInlinks:\n fromUrl: http://a/ anchor: x metadata: \n\n",
    )


def test_damaged_files_are_reported_and_the_others_printed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _file(tmp_path / "a", (Text("a"), Text("1")))
    (tmp_path / "a").write_bytes((tmp_path / "a").read_bytes()[:-1])
    _file(tmp_path / "b", (Text("b"), Text("2")))
    assert _run(str(tmp_path)) == (1, "b\t2\n")
    assert f"{tmp_path / 'a'} at offset 0: checksum error" in caplog.text
    assert _run(str(tmp_path / "nowhere"), str(tmp_path / "b")) == (1, "b\t2\n")
    with pytest.raises(FileNotFoundError):
        _run(str(tmp_path / "nowhere"))


def test_without_a_path_the_usage_is_shown() -> None:
    with pytest.raises(UsageError, match="text <path>"):
        _run()
