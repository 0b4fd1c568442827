"""Crawls of webs that a test makes up: URL -> what the page says."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import polars as pl

from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.cycle.segment.store import PARSE_DATA, PARSE_TEXT, part_writer
from minutch.hadoop.formats.javaio import encode_text
from minutch.inspect.learn.learning import Learned, learn
from minutch.inspect.learn.rules import LearnedRule
from minutch.inspect.query.crawl import open_crawl
from minutch.job import JobContext
from minutch.records import crawldatum as status
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import Metadata
from minutch.records.parsedata import SUCCESS, ParseData, ParseStatus, ParseText
from tests.support.crawldbs import NOW, write_db

H = "http://www.example.org"
PLUGINS = "urlnormalizer-(regex|basic)|urlfilter-regex"


def words(*seed: object, count: int = 20) -> str:
    """A text that other seeds do not have."""
    letters = random.Random(repr(seed))
    return " ".join("".join(letters.choices("abcdefghij", k=6)) for _ in range(count))


def write_crawl(
    crawl: Path,
    web: Mapping[str, str],
    *,
    gone: Iterable[str] = (),
    title: str = "Title",
) -> Path:
    """The crawl of a web, as its databases and a segment have it."""
    segment = crawl / "segments" / "20270101000000"
    with (
        part_writer(segment, PARSE_DATA, 0) as data,
        part_writer(segment, PARSE_TEXT, 0) as text,
    ):
        for url in sorted(web, key=encode_text):
            data(url, ParseData(ParseStatus(SUCCESS), title, [], Metadata(), Metadata()))
            text(url, ParseText(web[url]))
    states = (web, status.STATUS_DB_FETCHED), (gone, status.STATUS_DB_GONE)
    entries = ((url, CrawlDatum(state, 1, 1.0)) for urls, state in states for url in urls)
    write_db(crawl / "crawldb", entries)
    return crawl


@cache
def context() -> JobContext:
    """A job's context with the plugins of rule files, loaded once."""
    conf = Configuration.load([], overrides={"plugin.includes": PLUGINS}, profile="web")
    return JobContext(conf.freeze(), FakeClock(NOW))


def learned(
    folder: Path, web: Mapping[str, str], *, gone: Iterable[str] = (), title: str = "Title"
) -> Learned:
    """What the crawl of a web teaches."""
    crawl = write_crawl(folder / "crawl", web, gone=gone, title=title)
    return learn(open_crawl(crawl), context=context())


def becomes(rules: Iterable[LearnedRule], url: str) -> str | None:
    """What rules make of a URL, as a row: None if one rejects it."""
    urls = pl.Series([url])
    for rule in rules:
        urls = rule.apply(urls)
    return urls.item()  # type: ignore[no-any-return]
