"""Closing a segment: sorted, whole or not at all, with the memory of one run."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest

from minutch.conf import Configuration
from minutch.cycle.fetch.ledger import Outcome
from minutch.cycle.fetch.results import closing
from minutch.cycle.fetch.results.closing import close_segment, stored_codec
from minutch.cycle.fetch.results.fetchlog import FetchLog, Frame, Part
from minutch.cycle.parse.outlinks import KeptLinks
from minutch.cycle.parse.pageparser import ParsedPage
from minutch.cycle.parse.pagerecords import DocumentPacker
from minutch.cycle.parse.partwriters import REPEATED, PartSettings
from minutch.cycle.segment.store import Segment
from minutch.errors import FormatError, StoreError
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.plugin.chains import ScoringFilters
from minutch.plugin.points import Parse
from minutch.records.crawldatum import STATUS_FETCH_SUCCESS, STATUS_LINKED, CrawlDatum
from minutch.records.metadata import Metadata
from minutch.records.parsedata import SUCCESS, ParseData, ParseStatus
from minutch.records.protocol import Content
from minutch.work.tables.compression import TYPE_PROPERTY, compression_type
from tests.support.pages import configuration

CONF = Configuration()
BOTH = (Part.FETCH, Part.CONTENT)


def page(url: str, number: int) -> Frame:
    frame = Frame(Outcome.FETCHED, [url])
    frame.add(Part.FETCH, url, CrawlDatum(STATUS_FETCH_SUCCESS, number).to_bytes())
    frame.add(
        Part.CONTENT, url, Content(url, url, b"page %d " % number * 100, "text/html").to_bytes()
    )
    return frame


def segment_with_logs(
    tmp_path: Path, conf: Configuration, *logs: list[Frame]
) -> tuple[Segment, list[Path]]:
    work = tmp_path / "20260101000000" / "_fetch"
    work.mkdir(parents=True)
    paths = []
    for number, frames in enumerate(logs):
        paths.append(work / f"log-{number}")
        with contextlib.closing(FetchLog(paths[-1], stored_codec(compression_type(conf)))) as log:
            for frame in frames:
                log.append(frame)
    return Segment(work.parent), paths


@pytest.mark.parametrize("compression", ["RECORD", "BLOCK", "NONE"])
@pytest.mark.parametrize("limit", [1, 7, 1000])
def test_parts_are_sorted_and_whole(tmp_path: Path, compression: str, limit: int) -> None:
    conf = CONF.with_values({TYPE_PROPERTY: compression})
    urls = [f"http://h{n % 7}/{n}" for n in range(50)]
    random.Random(3).shuffle(urls)
    frames = [page(url, n) for n, url in enumerate(urls)]
    segment, logs = segment_with_logs(tmp_path, conf, frames[:20], frames[20:])
    close_segment(segment, logs, BOTH, PartSettings.from_conf(conf), 50, limit=limit)
    found = list(segment.records("crawl_fetch"))
    assert [url for url, _ in found] == sorted(urls)
    assert {url: datum.fetch_interval for url, datum in found} == {
        url: n for n, url in enumerate(urls)
    }  # type: ignore[attr-defined]
    assert [url for url, _ in segment.records("content")] == sorted(urls)
    assert segment.get("content", urls[0])[0].content == b"page 0 " * 100  # type: ignore[attr-defined]
    with SequenceFileReader(segment.data_files("content")[0]) as reader:
        assert reader.compression == compression


def test_equal_keys_stay_in_order(tmp_path: Path) -> None:
    frames = [page("http://a/", n) for n in range(5)]
    segment, logs = segment_with_logs(tmp_path, CONF, frames)
    close_segment(segment, logs, BOTH, PartSettings.from_conf(CONF), 5, limit=2)
    assert [d.fetch_interval for d in segment.get("crawl_fetch", "http://a/")] == [0, 1, 2, 3, 4]  # type: ignore[attr-defined]


def parsed_page(form: PartSettings, url: str, *links: int, inside: str = "") -> bytes:
    """A page with links, and maybe a document inside it, as a worker packs it."""
    conf = configuration()
    packer = DocumentPacker(conf, ScoringFilters(conf), form)
    documents = []
    for name in filter(None, (url, inside)):
        data = ParseData(ParseStatus(SUCCESS), f"{name} in {url}", [], Metadata(), Metadata())
        targets = [(f"http://z/{n}", CrawlDatum(STATUS_LINKED, n)) for n in links]
        (document,) = packer.pack(
            [(name, Parse(f"text of {name}", data), KeptLinks([]), 0, name != url)]
        )
        (crawl,) = packer.crawl_records([[(name, CrawlDatum(65)), *targets]])
        documents.append(document._replace(crawl=crawl))
    return ParsedPage(["success"] * len(documents), documents).to_bytes()


@pytest.mark.parametrize("compression", ["RECORD", "BLOCK", "NONE"])
@pytest.mark.parametrize("parts", ["1", "2"])
def test_parts_of_a_parse_are_those_of_the_parse_job(
    tmp_path: Path, compression: str, parts: str
) -> None:
    """Of a URL's documents the first counts, those found inside others come in at their places; a
    page's records for crawl_parse stay together, in its part (ParseOutputFormat, ParseSegment's
    reducer).
    """
    conf = CONF.with_values({TYPE_PROPERTY: compression, "mapreduce.job.reduces": parts})
    form = PartSettings.from_conf(conf)
    frames = []
    for url, value in (
        ("http://b/", parsed_page(form, "http://b/", 2, 1, inside="http://aa/")),
        ("http://a/", parsed_page(form, "http://a/", 2, 1)),
        ("http://a/", parsed_page(form, "http://a/", 3)),
        ("http://c/", ParsedPage(["skipped_truncated"]).to_bytes()),
    ):
        frame = Frame(Outcome.FETCHED, [url])
        frame.add(Part.FETCH, url, CrawlDatum(STATUS_FETCH_SUCCESS).to_bytes())
        frame.add(Part.PARSE, url, value)
        frames.append(frame)
    segment, logs = segment_with_logs(tmp_path, conf, frames)
    counters = close_segment(segment, logs, (Part.FETCH, Part.PARSE), form, 4)
    assert counters == {"pages": 4, "success": 4, "skipped_truncated": 1, REPEATED: 1}
    found = {url: data.title for url, data in segment.records("parse_data")}  # type: ignore[attr-defined]
    assert found == {
        "http://a/": "http://a/ in http://a/",
        "http://aa/": "http://aa/ in http://b/",
        "http://b/": "http://b/ in http://b/",
    }
    assert {url for url, _ in segment.records("parse_text")} == found.keys()
    assert (
        len(segment.data_files("parse_data"))
        == len(segment.data_files("crawl_parse"))
        == int(parts)
    )
    crawl = [url for url, _ in segment.records("crawl_parse")]
    assert len(crawl) == 9
    for url in found:
        at = crawl.index(url)
        assert crawl[at : at + 3] == [url, "http://z/2", "http://z/1"]


def test_a_parse_that_is_not_whole_is_an_error() -> None:
    whole = parsed_page(PartSettings(), "http://a/", 1, inside="http://b/")
    found = ParsedPage.from_bytes(whole)
    assert found.is_usable and [document.is_extra for document in found.documents] == [False, True]
    assert found.to_bytes() == whole
    cut = [whole[:end] for end in range(len(whole))]
    for broken in (*cut, whole + b"\0", b"\xff" * len(whole), b"\x92\x91\xa1\xff\x90"):
        with pytest.raises(FormatError, match="broken parse of a page"):
            ParsedPage.from_bytes(broken)


def test_an_empty_fetch_leaves_empty_parts(tmp_path: Path) -> None:
    segment, logs = segment_with_logs(tmp_path, CONF, [])
    close_segment(segment, logs, BOTH, PartSettings.from_conf(CONF), 0)
    assert list(segment.records("crawl_fetch")) == []
    assert segment.has("content")


def test_a_broken_closing_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    segment, logs = segment_with_logs(tmp_path, CONF, [page("http://a/", 1)])
    whole = closing._write_part

    def fails_at_the_end(path: Path, *rest: object) -> None:
        if path.parent.name == "crawl_fetch":
            raise OSError(28, "No space left on device")
        whole(path, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(closing, "_write_part", fails_at_the_end)
    with pytest.raises(StoreError, match="No space left on device"):
        close_segment(segment, logs, BOTH, PartSettings.from_conf(CONF), 1)
    assert not segment.has("crawl_fetch") and not segment.has("content")
    monkeypatch.undo()
    close_segment(segment, logs, BOTH, PartSettings.from_conf(CONF), 1)
    assert len(list(segment.records("crawl_fetch"))) == 1
    assert sorted(path.name for path in segment.path.iterdir()) == [
        "_fetch",
        "content",
        "crawl_fetch",
    ]


def test_a_damaged_log_is_an_error(tmp_path: Path) -> None:
    segment, logs = segment_with_logs(tmp_path, CONF, [page(f"http://a/{n}", n) for n in range(3)])
    data = bytearray(logs[0].read_bytes())
    data[60] ^= 1
    logs[0].write_bytes(data)
    with pytest.raises(FormatError, match="1 URLs are missing in the fetch log"):
        close_segment(segment, logs, BOTH, PartSettings.from_conf(CONF), 3)
    assert not segment.has("crawl_fetch")
