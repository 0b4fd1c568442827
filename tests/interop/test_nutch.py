"""Databases and segments between minutch and Nutch's own classes and commands, both ways."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from minutch.conf import Configuration
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.linkdb.store import LinkDb
from minutch.cycle.segment.store import LAYOUTS, Segment, part_writer
from minutch.hadoop.formats.javaio import DataOutput
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.hadoop.formats.sequencewriter import SequenceFileWriter
from minutch.hadoop.formats.writables import Text, Writable
from minutch.job import JobContext
from minutch.records.links import LAYOUT_METADATA, LAYOUT_PLAIN, Inlink, Inlinks
from minutch.records.links_columns import LinkSets
from minutch.records.metadata import TWIN_KEY
from minutch.records.webgraph import LinkNodes
from minutch.work.tables.compression import CODEC_PROPERTY, COMPRESS_PROPERTY, TYPE_PROPERTY
from tests.cycle.crawldb.test_twins import ROOT, Crawl, Page, prose
from tests.interop.harness import Harness, read_records
from tests.records.samples import LEGACY, SAMPLES
from tests.support.commands import mergedb, mergelinkdb
from tests.support.crawldbs import read_db
from tests.support.golden import GOLDEN, needs_golden
from tests.support.sequencefiles import copy_writable
from tests.support.ties import links_as_set

pytestmark = [pytest.mark.jvm, needs_golden("crawl-small/conf-rich")]

Nutch = tuple[str, Harness]

CRAWLS = {"1.20": GOLDEN / "nutch-1.20", "1.22": GOLDEN / "crawl-small" / "run-default-r2"}
INLINK_LAYOUTS = {"1.20": LAYOUT_PLAIN, "1.22": LAYOUT_METADATA}


GONE = ("crawl.MapWritable", "scoring.webgraph.Loops$Route", "scoring.webgraph.Loops$LoopSet")
"""Classes that files of older Nutch have and these versions lack."""
OLD = tuple({type(value) for value in LEGACY})
"""Those of Nutch before 0.8."""


def _in_nutch(value: Writable) -> bool:
    """Returns whether Nutch can read a value: its LinkNodes write nothing, not even a count, if
    they are empty.
    """
    return not (isinstance(value, OLD) or value.class_name.endswith(GONE)) and value != LinkNodes()


def _bytes(value: object, layout: str) -> bytes:
    out = DataOutput()
    if isinstance(value, Inlink | Inlinks):
        value.write(out, layout)
    else:
        value.write(out)  # type: ignore[attr-defined]
    return out.getvalue()


def test_records_have_nutchs_bytes_and_strings(nutch: Nutch, tmp_path: Path) -> None:
    version, harness = nutch
    layout = INLINK_LAYOUTS[version]
    requests = []
    samples = [value for value in SAMPLES if _in_nutch(value)]
    for number, value in enumerate(samples):
        with SequenceFileWriter(
            tmp_path / f"file-{number}", Text.class_name, value.class_name
        ) as writer:
            writer.append_raw(Text("key").to_bytes(), _bytes(value, layout))
        requests.append(("read", tmp_path / f"file-{number}", tmp_path / f"read-{number}"))
    harness.run(requests)
    for number, value in enumerate(samples):
        ((_, data, _, text),) = read_records(tmp_path / f"read-{number}", header=True)
        if isinstance(value, Inlinks):
            assert links_as_set(data, layout) == links_as_set(_bytes(value, layout), layout)
            assert sorted(text.decode().splitlines()) == sorted(
                value.to_string(layout).splitlines()
            )
            continue
        assert data == _bytes(value, layout), value
        shown = value.to_string(layout) if isinstance(value, Inlink) else str(value)
        if not re.fullmatch(
            r"[\w.$]+@[0-9a-f]+", text.decode()
        ):  # what Java prints of classes without a toString
            assert text.decode() == shown


# What minutch writes, under Nutch's commands


def _rewrite_crawldb(source: Path, target: Path) -> Path:
    """Reads a CrawlDb and writes it again, through columns."""
    old = CrawlDb(source)
    for index in range(len(old.parts())):
        with CrawlDb.part_writer(target / "current", index) as writer:
            for frame in old.scan_part(index):
                writer.write(frame)
    return target


def _rewrite_linkdb(source: Path, target: Path, layout: str) -> Path:
    """Reads a LinkDb and writes it again, through columns."""
    old = LinkDb(source)
    assert old.layout == layout
    for index in range(len(old.parts())):
        with LinkDb.part_writer(target / "current", index, layout) as writer:
            for frame in old.scan_part(index):
                writer.write(LinkSets.of(frame))
    return target


def _rewrite_segment(source: Path, target: Path) -> Path:
    """Reads a segment and writes it again, record by record."""
    old, new = Segment(source), Segment(target)
    target.mkdir(parents=True)
    folders = [folder for folder in LAYOUTS if old.has(folder)]
    with new.writing(folders) as fresh:
        for folder in folders:
            for index, path in enumerate(old.data_files(folder)):
                with (
                    SequenceFileReader(path) as reader,
                    part_writer(fresh, folder, index) as append,
                ):
                    for key, value in reader.records():
                        append(str(key), value)
    return target


def _rewrite_crawl(version: str, target: Path) -> Path:
    crawl = CRAWLS[version]
    _rewrite_crawldb(crawl / "crawl/crawldb", target / "crawldb")
    _rewrite_linkdb(crawl / "crawl/linkdb", target / "linkdb", INLINK_LAYOUTS[version])
    for segment in sorted((crawl / "crawl/segments").iterdir()):
        _rewrite_segment(segment, target / "segments" / segment.name)
    return target


def _copy_crawl(version: str, target: Path) -> Path:
    copy_writable(CRAWLS[version] / "crawl", target)
    return target


def _segments(crawl: Path) -> list[Path]:
    return sorted((crawl / "segments").iterdir())


URL = "http://127.0.0.1:8810/"
WHO = ("ours", "theirs")


class Tool:
    """Makes requests that run a Nutch command with the output below a folder."""

    def __init__(
        self, harness: Harness, out: Path, properties: Mapping[str, str] | None = None
    ) -> None:
        self._out = out
        self._properties = harness.properties({"partition.url.seed": "1", **(properties or {})})
        self._count = 0

    def __call__(self, command: str, *args: str | Path, name: str = "") -> tuple[str | Path, ...]:
        self._count += 1
        output = self._out / (name or f"unnamed-{self._count}")
        return ("tool", output, f"org.apache.nutch.{command}", self._properties, *args)


def _reading(crawl: Path, out: Path, tool: Tool) -> list[tuple[str | Path, ...]]:
    """Requests that read all of a crawl: dumps below `out`."""
    first = _segments(crawl)[0]
    return [
        tool("crawl.CrawlDbReader", crawl / "crawldb", "-dump", out / "crawldb"),
        tool("crawl.CrawlDbReader", crawl / "crawldb", "-url", URL, name="url"),
        tool("crawl.LinkDbReader", crawl / "linkdb", "-dump", out / "linkdb"),
        tool("crawl.LinkDbReader", crawl / "linkdb", "-url", URL, name="links"),
        tool("segment.SegmentReader", "-list", "-dir", crawl / "segments", name="list"),
        tool("segment.SegmentReader", "-dump", first, out / "all"),
        tool(
            "segment.SegmentReader",
            "-dump",
            first,
            out / "content",
            *["-nofetch", "-noparse", "-nogenerate"],
        ),
    ]


def _writing(crawl: Path, tool: Tool) -> list[tuple[str | Path, ...]]:
    """Requests that bring a crawl on."""
    segments = _segments(crawl)
    return [
        tool("crawl.CrawlDb", crawl / "crawldb", *segments, "-force"),
        tool("crawl.LinkDb", crawl / "linkdb", *segments, "-noNormalize", "-noFilter", "-force"),
        tool("crawl.CrawlDbMerger", crawl / "merged", crawl / "crawldb"),
        tool("crawl.DeduplicationJob", crawl / "crawldb", "-group", "host"),
        tool(
            "crawl.Generator",
            crawl / "crawldb",
            crawl / "more",
            "-noFilter",
            "-noNorm",
            "-adddays",
            "10000",
        ),
    ]


def _texts(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith((".", "unnamed"))
    }


@pytest.mark.slow
def test_nutch_reads_a_whole_crawl_that_minutch_wrote(nutch: Nutch, tmp_path: Path) -> None:
    version, harness = nutch
    crawls = {
        "ours": _rewrite_crawl(version, tmp_path / "ours"),
        "theirs": _copy_crawl(version, tmp_path / "theirs"),
    }
    requests = []
    for name, crawl in crawls.items():
        out = tmp_path / f"out-{name}"
        out.mkdir()
        requests += _reading(crawl, out, Tool(harness, out))
    assert set(harness.run(requests)) == {"exit 0"}
    ours, theirs = (_texts(tmp_path / f"out-{name}") for name in crawls)
    for lists in (ours, theirs):  # listed in the order of the file system
        lists["list"] = b"\n".join(sorted(lists["list"].splitlines()))
        lists["all/dump"] = b"\n".join(sorted(lists["all/dump"].splitlines()))
    assert ours == theirs
    assert len(ours) >= 7
    assert b"Status: 2 (db_fetched)" in ours["url"]
    assert URL.encode() in ours["list"] or ours["list"].count(b"\n") == len(
        _segments(crawls["ours"])
    )


def _records_below(directory: Path) -> dict[str, list[tuple[bytes, bytes]]]:
    """The records of each part, but for what carries the time of the run."""
    result = {}
    for path in sorted(directory.rglob("*")):
        if path.name == "data" or (path.name.startswith("part-") and path.is_file()):
            with SequenceFileReader(path) as reader:
                name = "/".join(
                    "*" if part.isdigit() else part for part in path.relative_to(directory).parts
                )
                result[name] = sorted(reader)
    return result


@pytest.mark.parametrize(("kind", "codec"), [("RECORD", "DefaultCodec"), ("BLOCK", "GzipCodec")])
def test_nutch_compresses_as_minutch_does(
    nutch: Nutch, tmp_path: Path, kind: str, codec: str
) -> None:
    """The same kind, codec and records for the same properties; Nutch reads what minutch
    compressed.
    """
    version, harness = nutch
    crawl = CRAWLS[version] / "crawl"
    given = {
        COMPRESS_PROPERTY: "true",
        TYPE_PROPERTY: kind,
        CODEC_PROPERTY: f"org.apache.hadoop.io.compress.{codec}",
    }
    context = JobContext(Configuration.load([], overrides=given))
    assert mergedb.run([str(tmp_path / "ours-db"), str(crawl / "crawldb")], context) == 0
    assert mergelinkdb.run([str(tmp_path / "ours-links"), str(crawl / "linkdb")], context) == 0
    tool = Tool(harness, tmp_path, given)
    requests = [
        tool("crawl.CrawlDbMerger", tmp_path / "theirs-db", crawl / "crawldb"),
        tool("crawl.LinkDbMerger", tmp_path / "theirs-links", crawl / "linkdb"),
        *(
            tool("crawl.CrawlDbReader", tmp_path / f"{who}-db", "-url", URL, name=f"{who}-url")
            for who in WHO
        ),
        *(
            tool("crawl.LinkDbReader", tmp_path / f"{who}-links", "-url", URL, name=f"{who}-to")
            for who in WHO
        ),
    ]
    assert set(harness.run(requests)) == {"exit 0"}
    for name in ("db", "links"):
        ours, theirs = (tmp_path / f"{who}-{name}/current/part-r-00000/data" for who in WHO)
        with SequenceFileReader(ours) as one, SequenceFileReader(theirs) as other:
            assert (
                (one.compression, one.codec)
                == (other.compression, other.codec)
                == (kind, given[CODEC_PROPERTY])
            )
            assert [key for key, _ in one] == [key for key, _ in other]
        with (
            SequenceFileReader(ours.with_name("index")) as one,
            SequenceFileReader(theirs.with_name("index")) as other,
        ):
            assert (one.compression, one.codec) == (other.compression, other.codec)
    assert _records_below(tmp_path / "ours-db") == _records_below(tmp_path / "theirs-db")
    assert (tmp_path / "ours-url").read_bytes() == (tmp_path / "theirs-url").read_bytes()
    assert sorted((tmp_path / "ours-to").read_bytes()) == sorted(
        (tmp_path / "theirs-to").read_bytes()
    )


@pytest.mark.slow
def test_nutch_goes_on_with_a_crawl_that_minutch_wrote(nutch: Nutch, tmp_path: Path) -> None:
    version, harness = nutch
    crawls = {
        "ours": _rewrite_crawl(version, tmp_path / "ours"),
        "theirs": _copy_crawl(version, tmp_path / "theirs"),
    }
    requests = [
        request
        for name, crawl in crawls.items()
        for request in _writing(crawl, Tool(harness, tmp_path / name))
    ]
    assert set(harness.run(requests)) == {"exit 0"}
    for part in ("crawldb", "linkdb", "merged", "more"):
        ours, theirs = (_records_below(crawl / part) for crawl in crawls.values())
        assert list(ours) == list(theirs), part
        if part == "more":  # the time of the run is in the metadata
            assert {k: [key for key, _ in v] for k, v in ours.items()} == {
                k: [key for key, _ in v] for k, v in theirs.items()
            }
        else:
            assert ours == theirs, part
    assert len(list((tmp_path / "ours" / "more").iterdir())) == 1


@pytest.mark.slow
def test_nutch_keeps_the_originals_of_twins(nutch: Nutch, tmp_path: Path) -> None:
    """What dedup writes with db.canonical: Nutch shows it, and carries it on."""
    _, harness = nutch
    crawl = Crawl(tmp_path / "crawl")
    crawl.fetch({"original": Page(prose(1)), "x": Page(prose(1), "original")}, {"x": 9.0})
    crawl.dedup()
    before = read_db(crawl.path / "crawldb")
    tool = Tool(harness, tmp_path)
    requests = [
        tool("crawl.CrawlDbReader", crawl.path / "crawldb", "-url", f"{ROOT}/x", name="url"),
        tool("crawl.DeduplicationJob", crawl.path / "crawldb"),
    ]
    assert set(harness.run(requests)) == {"exit 0"}
    said = (tmp_path / "url").read_text("utf-8")
    assert "db_duplicate" in said
    assert f"{TWIN_KEY}={ROOT}/original" in said
    assert read_db(crawl.path / "crawldb") == before
