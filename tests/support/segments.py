"""Segments made for a test: a fetch list in Nutch's files, and what a fetch left in them."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from pathlib import Path

from minutch.clock import Clock, SystemClock
from minutch.conf import Configuration
from minutch.cycle.fetch.fetcher import fetch
from minutch.cycle.fetch.settings import FetchOptions
from minutch.cycle.segment.store import CRAWL_GENERATE, Segment, part_writer
from minutch.job import Counters, JobContext
from minutch.records.crawldatum import STATUS_DB_UNFETCHED, CrawlDatum
from minutch.records.protocol import Content

LOOPBACK: Mapping[str, str] = {
    "http.agent.name": "minutch-test",
    "http.filter.ipaddress.include": "loopback",
    "plugin.includes": "protocol-(http|file)|urlnormalizer-pass|scoring-opic",
    "fetcher.server.delay": "0",
    "fetcher.min.crawl.delay": "0",
    "fetcher.exceptions.per.queue.delay": "0",
    "fetcher.max.exceptions.per.queue": "-1",
    "fetcher.threads.start.delay": "0",
    "http.retry.after.max.seconds": "0",
}
"""Properties for fetching from loopback in no time."""


def conf_for(**values: str) -> Configuration:
    """The shipped configuration with LOOPBACK; `http__timeout="5"` sets http.timeout."""
    return (
        Configuration.load([])
        .with_values(LOOPBACK)
        .with_values({name.replace("__", "."): value for name, value in values.items()})
    )


def make_segment(parent: Path, *lists: Iterable[tuple[str, CrawlDatum] | str]) -> Segment:
    """A generated segment, `<parent>/segments/20260101000000`, with these URLs in this order; each
    list is a part.
    """
    segment = Segment(parent / "segments" / "20260101000000")
    for part, entries in enumerate(lists):
        with part_writer(segment.path, CRAWL_GENERATE, part) as append:
            for entry in entries:
                is_url = isinstance(entry, str)
                append(
                    *((entry, CrawlDatum(STATUS_DB_UNFETCHED, 2_592_000, 1.0)) if is_url else entry)
                )
    return segment


def fetch_segment(
    segment: Segment,
    conf: Configuration,
    *,
    clock: Clock | None = None,
    threads: int | None = None,
    parse: bool = False,
) -> Counters:
    """Run the fetch job."""
    context = JobContext(conf, clock or SystemClock(), err=io.StringIO())
    return fetch(segment.path, FetchOptions(threads, parse), context=context)


def fetched(segment: Segment) -> dict[str, list[CrawlDatum]]:
    """crawl_fetch by URL."""
    found: dict[str, list[CrawlDatum]] = {}
    for url, datum in segment.records("crawl_fetch"):
        assert isinstance(datum, CrawlDatum)
        found.setdefault(url, []).append(datum)
    return found


def contents(segment: Segment) -> dict[str, Content]:
    """content by URL."""
    found = {}
    for url, content in segment.records("content"):
        assert isinstance(content, Content)
        found[url] = content
    return found
