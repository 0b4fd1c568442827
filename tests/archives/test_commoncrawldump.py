"""commoncrawldump: Nutch's documents of the golden crawl, byte for byte, and archives that outside
readers take.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from minutch.archives import commoncrawldumper
from minutch.archives.commoncrawldumper import (
    CHUNK,
    cbor_document,
    encoded_path,
    page_epoch,
    reversed_key,
)
from minutch.archives.pagefiles import url_md5
from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.cycle.segment.store import CONTENT, part_writer
from minutch.errors import StoreError, UsageError
from minutch.records.metadata import Metadata
from minutch.records.protocol import Content
from minutch.warc.jsontext import gson, pretty
from tests.archives.test_dump import files, make_segment
from tests.archives.test_warc import checked
from tests.support.commands import commoncrawldump as commoncrawldump_command
from tests.support.golden import GOLDEN, needs_golden
from tests.support.nutchruns import NutchRun, context_for

CRAWL = GOLDEN / "crawl-small/run-rich-r2/crawl"
NOW = 1_795_327_014_000

_TIMES = re.compile(rb"179\d{10}")


@pytest.fixture(autouse=True)
def nutchs_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commoncrawldumper, "local_host", lambda: ("vm", "127.0.0.1"))


def run(*words: object, conf: Configuration | None = None, now: int = NOW) -> str:
    context, printed = context_for(conf or Configuration.load([]), clock=FakeClock(now))
    assert commoncrawldump_command.run(list(map(str, words)), context) == 0
    return printed.getvalue()


def replay(case: str, out: Path) -> NutchRun:
    """Run what Nutch ran, on the segments as Nutch writes them now."""
    nutch = NutchRun(f"commoncrawldump/{case}")
    places = {"out": str(out), "segments": str(CRAWL / "segments")}
    run(*(places.get(word, word) for word in nutch.words), conf=nutch.conf())
    return nutch


@needs_golden("commands/commoncrawldump", "crawl-small/run-rich-r2/crawl")
@pytest.mark.parametrize("case", ["plain", "linkdb", "simpledate"])
def test_documents_are_nutchs(case: str, tmp_path: Path) -> None:
    nutch = replay(f"rich-oldnames-{case}", tmp_path / "out")
    ours, theirs = files(tmp_path / "out"), files(nutch.folder / "out")
    assert set(ours) == set(theirs)
    assert not [name for name in theirs if ours[name] != theirs[name]]


@needs_golden("commands/commoncrawldump", "crawl-small/run-rich-r2/crawl")
@pytest.mark.parametrize("case", ["epoch", "options", "reversekey"])
def test_times_apart_documents_are_nutchs(case: str, tmp_path: Path) -> None:
    """These pages have no Date: Nutch takes the time of the run, and minutch that of the fetch."""
    nutch = replay(f"rich-oldnames-{case}", tmp_path / "out")
    ours, theirs = (
        _without_times(files(tmp_path / "out")),
        _without_times(files(nutch.folder / "out")),
    )
    assert theirs <= ours
    assert {name for name, _ in ours} == {name for name, _ in theirs}


def _without_times(found: dict[str, bytes]) -> set[tuple[bytes, bytes]]:
    """Names and contents. A page that was fetched twice has two, if the times in their names
    differ.
    """
    return {(_TIMES.sub(b"TIME", name.encode()), data) for name, data in _without_keys(found)}


def _without_keys(found: dict[str, bytes]) -> Iterator[tuple[str, bytes]]:
    for name, data in found.items():
        yield name, re.sub(rb'("key" : "[^"]*_)\d{13}"', rb'\1TIME"', data)


@needs_golden("commands/commoncrawldump", "crawl-small/run-rich-r2/crawl")
def test_the_archive_has_nutchs_files(tmp_path: Path) -> None:
    nutch = replay("rich-oldnames-gzip", tmp_path / "rich-oldnames-gzip" / "out")
    (archive,) = (tmp_path / "rich-oldnames-gzip/out").iterdir()
    assert re.fullmatch(r"\d{12}\.tar\.gz", archive.name)
    with tarfile.open(archive) as ours:
        names = ours.getnames()
        assert len(names) == len(set(names)) == 75
        assert all(
            re.fullmatch(r"rich-oldnames-gzipout/[0-9a-f]{32}_[^/]*\.cbor", name) for name in names
        )
        first = ours.extractfile(names[0])
        assert first is not None
        assert b'"key" : "pre-http://' in first.read()
    theirs = NutchRun("commoncrawldump/rich-oldnames-plain").folder / "out"
    assert {name[22:54] for name in names} == {path.name[:32] for path in theirs.iterdir()}
    assert nutch.exit == 0


@needs_golden("commands/commoncrawldump", "crawl-small/run-rich-r2/crawl")
@pytest.mark.parametrize("case", ["warc", "warc-size"])
def test_warc_files_have_nutchs_records(case: str, tmp_path: Path) -> None:
    """The same pages and requests; Nutch has one file for each page, with the text of its record
    for a body.
    """
    nutch = replay(f"rich-oldnames-{case}", tmp_path / "out")
    ours = [record for path in sorted((tmp_path / "out").iterdir()) for record in checked(path)]
    theirs = []
    for path in (nutch.folder / "out").iterdir():
        with path.open("rb") as file:
            theirs += [
                (r.rec_type, _target(r), r.rec_headers.get_header("WARC-Date"))
                for r in ArchiveIterator(file)
            ]
    infos = [record for record in ours if record[0] == "warcinfo"]
    assert sorted(record[:3] for record in ours if record not in infos) == sorted(
        r for r in theirs if r[1]
    )
    assert len(infos) == len(list((tmp_path / "out").iterdir()))
    assert (len(infos) > 1) == (case == "warc-size")
    assert b"software: minutch-oracle\r\n" in infos[0][4]


def _target(record: object) -> str | None:
    target = record.rec_headers.get_header("WARC-Target-URI")  # type: ignore[attr-defined]
    return target and target.replace("%3F", "?").replace("%25", "%")


def test_compressed_warc_of_some_types(tmp_path: Path) -> None:
    pages = {"http://a.example/": b"<html><body>a", "http://a.example/x": b"plain"}
    segment = make_segment(tmp_path / "20260101000000", pages)
    out = tmp_path / "out"
    run("-outputDir", out, "-segment", segment.path, "-warc", "-gzip", "-mimetype", "text/plain")
    (path,) = out.iterdir()
    assert path.name == "WEB-20261122055654000-00000.warc.gz"
    assert [record[0:2] for record in checked(path)] == [
        ("warcinfo", None),
        ("resource", "http://a.example/x"),
    ]
    with pytest.raises(StoreError, match="already exists"):
        run("-outputDir", out, "-segment", segment.path, "-warc", "-gzip")


def test_long_strings_come_in_chunks() -> None:
    assert cbor_document("abc") == b"\xd9\xd9\xf7\x63abc"
    assert cbor_document("a" * 24) == b"\xd9\xd9\xf7\x78\x18" + b"a" * 24
    assert cbor_document("a" * 256)[3:6] == b"\x79\x01\x00"
    assert cbor_document("a" * CHUNK)[3] == 0x79
    split = cbor_document("a" * (CHUNK - 1) + "\U0001f600b")
    size = CHUNK - 1
    first = b"\x79" + size.to_bytes(2, "big") + b"a" * size
    assert split == b"\xd9\xd9\xf7\x7f" + first + b"\x65\xf0\x9f\x98\x80b\xff"


def test_json_as_the_libraries_write_it() -> None:
    assert pretty({"a": [], "b": {}, "c": None, "d": ["x", "y"]}) == (
        '{\n  "a" : [ ],\n  "b" : { },\n  "c" : null,\n  "d" : [ "x", "y" ]\n}'
    )
    assert pretty('\x1b"\\/\n\x7fé\udcff') == '"\\u001B\\"\\\\/\\n\x7fé\ufffd"'
    assert (
        gson({"a": "<&>='\u2028\x1b"})
        == '{"a":"\\u003c\\u0026\\u003e\\u003d\\u0027\\u2028\\u001b"}'
    )


def test_keys_and_times() -> None:
    assert (
        encoded_path("http://a.example/x y?a=1+2&é#%")
        == "http://a.example/x%20y%3Fa=1%2B2&%C3%A9%23%25"
    )
    assert reversed_key("http://www.a.example:80/", 5).startswith("example_a_www_")
    assert reversed_key("no url", 5).startswith("_")
    dated = Content(
        metadata=Metadata.of({"Date": "Thu, 01 Jan 1970 00:00:07 GMT", "nutch.fetch.time": "9999"})
    )
    assert page_epoch(dated, 5555) == 7000
    dated.metadata["Date"] = ["yesterday"]
    assert page_epoch(dated, 5555) == 9000
    assert page_epoch(Content(metadata=Metadata.of({"nutch.fetch.time": "x"})), 5555) == 5000


def test_hostile_names_and_broken_text_stay_in_place(tmp_path: Path) -> None:
    urls = [
        "http://../../x",
        "http://a.example/..\\..",
        "http://b\udcff.example/\udcff",
        "no url",
        "http://con/aux",
    ]
    segment = make_segment(tmp_path / "20260101000000", dict.fromkeys(urls, b"\xff\x00"))
    (tmp_path / "box").mkdir()
    for number, flags in enumerate(
        [("-epochFilename",), ("-reverseKey",), ("-gzip", "-epochFilename")]
    ):
        run("-outputDir", tmp_path / "box" / f"out{number}", "-segment", segment.path, *flags)
    assert sorted(path.name for path in (tmp_path / "box").iterdir()) == ["out0", "out1", "out2"]
    assert len(files(tmp_path / "box/out0")) == len(files(tmp_path / "box/out1")) == len(urls)
    (archive,) = (tmp_path / "box/out2").iterdir()
    with tarfile.open(archive) as tar:
        assert len(tar.getnames()) == len(urls)
        assert all(name.startswith("boxout2/") and "/../" not in name for name in tar.getnames())


def test_a_second_archive_gets_another_name(tmp_path: Path) -> None:
    segment = make_segment(tmp_path / "20260101000000", {"http://a.example/": b"x"})
    for _ in range(2):
        run("-outputDir", tmp_path / "out", "-segment", segment.path, "-gzip")
    first, second = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert int(second[:12]) == int(first[:12]) + 1
    with tarfile.open(tmp_path / "out" / second) as archive:
        assert archive.getnames() == [f"{tmp_path.name}out/{url_md5('http://a.example/')}_.html"]


def test_the_segments_parts_may_have_either_name(tmp_path: Path) -> None:
    """Nutch looks for part-NNNNN alone, and finds none of its own."""
    segment = make_segment(tmp_path / "20260101000000", {"http://a.example/": b"x"})
    part = segment.path / CONTENT / "part-r-00000"
    part.rename(part.with_name("part-00007"))
    with part_writer(segment.path, CONTENT, 1) as append:
        append("http://b.example/", Content(url="http://b.example/"))
    run("-outputDir", tmp_path / "out", "-segment", segment.path)
    assert len(files(tmp_path / "out")) == 2


def test_wrong_arguments(tmp_path: Path) -> None:
    segment = make_segment(tmp_path / "20260101000000", {"http://a.example/": b"x"})
    assert run().startswith("usage: CommonCrawlDataDumper")
    with pytest.raises(UsageError, match="warcSize"):
        run("-outputDir", tmp_path, "-segment", segment.path, "-warcSize", "many")
    with pytest.raises(StoreError):
        run(
            "-outputDir", tmp_path / "out", "-segment", segment.path, "-linkdb", tmp_path / "nosuch"
        )
    assert not (tmp_path / "out").exists()
