"""Crawls of a few pages, whose texts a test says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from minutch.cycle.segment.store import CRAWL_FETCH, PARSE_DATA, PARSE_TEXT, part_writer
from minutch.hadoop.formats.writables import MapWritable, Text
from minutch.records import protocol
from minutch.records.crawldatum import STATUS_DB_FETCHED, STATUS_FETCH_SUCCESS, CrawlDatum
from minutch.records.metadata import Metadata
from minutch.records.parsedata import SUCCESS, ParseData, ParseStatus, ParseText
from minutch.records.protocol import ProtocolStatus
from tests.support.crawldbs import NOW, write_db

HOST = "https://www.example.org/"


def add_segment(
    crawl: Path,
    name: str,
    texts: Mapping[str, str | None],
    meta: Mapping[str, str | list[str]] | None = None,
) -> None:
    """A segment with these pages: path -> text, None for one that could not be parsed."""
    segment = crawl / "segments" / name
    with (
        part_writer(segment, CRAWL_FETCH, 0) as fetched,
        part_writer(segment, PARSE_DATA, 0) as data,
        part_writer(segment, PARSE_TEXT, 0) as text,
    ):
        for path, words in sorted(texts.items()):
            url = HOST + path
            datum = CrawlDatum(STATUS_FETCH_SUCCESS, 0, 1.0, fetch_time=NOW + int(name[-2:]))
            datum.metadata = MapWritable({Text("_pst_"): ProtocolStatus(protocol.SUCCESS)})
            fetched(url, datum)
            status = ParseStatus.failed(200, "no") if words is None else ParseStatus(SUCCESS)
            content = Metadata.of({"nutch.content.digest": "0a1b"})
            data(url, ParseData(status, f"Title {path}", [], content, Metadata.of(meta or {})))
            text(url, ParseText(words or ""))


def add_crawldb(crawl: Path, *paths: str) -> None:
    """A CrawlDb that knows these pages."""
    write_db(
        crawl / "crawldb", ((HOST + path, CrawlDatum(STATUS_DB_FETCHED, 1, 1.0)) for path in paths)
    )
