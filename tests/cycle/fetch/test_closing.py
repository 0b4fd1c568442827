"""Closing a segment: sorted, whole or not at all, with the memory of one run."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from minutch.conf import Configuration
from minutch.cycle.fetch.ledger import Outcome
from minutch.cycle.fetch.results import closing
from minutch.cycle.fetch.results.closing import close_segment, stored_codec
from minutch.cycle.fetch.results.fetchlog import FetchLog, Frame, Part
from minutch.cycle.parse.packing import DocumentPacker
from minutch.cycle.segment.store import Segment
from minutch.errors import FormatError, StoreError
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.records.content import Content
from minutch.records.crawldatum import STATUS_FETCH_SUCCESS, STATUS_LINKED, CrawlDatum
from minutch.work.tables.compression import TYPE_PROPERTY, compression_type

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
        with FetchLog(paths[-1], stored_codec(compression_type(conf))) as log:
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
    close_segment(segment, logs, BOTH, compression_type(conf), 50, limit=limit)
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
    close_segment(segment, logs, BOTH, compression_type(CONF), 5, limit=2)
    assert [d.fetch_interval for d in segment.get("crawl_fetch", "http://a/")] == [0, 1, 2, 3, 4]  # type: ignore[attr-defined]


@pytest.mark.parametrize("compression", ["RECORD", "BLOCK", "NONE"])
def test_crawl_parse_keeps_the_records_of_a_page_together(tmp_path: Path, compression: str) -> None:
    conf = CONF.with_values({TYPE_PROPERTY: compression})
    frames = []
    for url in ("http://b/", "http://a/"):
        frame = Frame(Outcome.FETCHED, [url])
        frame.add(Part.FETCH, url, CrawlDatum(STATUS_FETCH_SUCCESS).to_bytes())
        links = [(f"http://z/{n}", CrawlDatum(STATUS_LINKED, n)) for n in (2, 1)]
        records = DocumentPacker.compressing(compression_type(conf)).crawl_records(
            [(url, CrawlDatum(65)), *links]
        )
        frame.add(Part.CRAWL_PARSE, url, records)
        frames.append(frame)
    segment, logs = segment_with_logs(tmp_path, conf, frames)
    close_segment(segment, logs, (Part.FETCH, Part.CRAWL_PARSE), compression_type(conf), 2)
    assert [url for url, _ in segment.records("crawl_parse")] == [
        "http://a/",
        "http://z/2",
        "http://z/1",
        "http://b/",
        "http://z/2",
        "http://z/1",
    ]


def test_an_empty_fetch_leaves_empty_parts(tmp_path: Path) -> None:
    segment, logs = segment_with_logs(tmp_path, CONF, [])
    close_segment(segment, logs, BOTH, compression_type(CONF), 0)
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
        close_segment(segment, logs, BOTH, compression_type(CONF), 1)
    assert not segment.has("crawl_fetch") and not segment.has("content")
    monkeypatch.undo()
    close_segment(segment, logs, BOTH, compression_type(CONF), 1)
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
        close_segment(segment, logs, BOTH, compression_type(CONF), 3)
    assert not segment.has("crawl_fetch")
