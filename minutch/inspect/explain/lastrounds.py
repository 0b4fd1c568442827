"""Reports on a crawl's rounds by its segments: unfinished ones, why the last one was short, what
was cut off of pages, slow hosts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import polars as pl

from minutch.conf import Configuration
from minutch.cycle.crawl.rounds import at_work
from minutch.cycle.crawl.screen import outcomes_of
from minutch.cycle.crawldb.schedule import AbstractFetchSchedule
from minutch.cycle.crawldb.updatedb import is_merged
from minutch.cycle.segment.places import Replaces
from minutch.cycle.segment.store import (
    CRAWL_FETCH,
    CRAWL_GENERATE,
    CRAWL_PARSE,
    PARSE_DATA,
    Segment,
)
from minutch.inspect.explain.commandlines import CommandLines
from minutch.inspect.explain.facts import OverviewLine
from minutch.inspect.explain.stores import CrawlStores
from minutch.inspect.explain.timewords import interval
from minutch.inspect.query.pages import PagesTable
from minutch.inspect.query.parses import ParsesTable
from minutch.records.crawldatum import STATUS_LINKED, status_name
from minutch.terminal import agreeing, counted
from minutch.work.tables.recordfiles import scan

MOST: Final = 10
"""Hosts that are listed at most."""
MOST_REASONS: Final = 20
ROUNDS: Final = 5
"""Number of last rounds that statistics are made of."""

_LINKS: Final = "db.max.outlinks.per.page"
_OUTSIDE: Final = "db.ignore.external.links"
_CUT_BY: Final = {
    "length": ("cut off", "http.content.limit"),
    "time": ("cut off in time", "http.time.limit"),
    "disconnect": ("that ended early", "http.partial.truncated"),
}
"""Reasons for which pages are cut off."""
_MOST_BYTES: Final = 1 << 30
"""Bytes of parse data that are looked through for what was cut, newest segments first."""


def fetched_in(segments: Sequence[Segment]) -> list[Segment]:
    """Returns the segments that were fetched, oldest first."""
    return [segment for segment in segments if segment.has(CRAWL_FETCH)]


def unfinished(
    crawl: CrawlStores, schedule: AbstractFetchSchedule, commands: CommandLines
) -> Iterator[OverviewLine]:
    """Yields segments that are not finished, with the command that continues."""
    busy = at_work(crawl.folder)
    for segment in crawl.segments:
        name = segment.name
        if name in busy:
            count = _entries(segment, CRAWL_GENERATE)
            text = f"{_pages_are(count, name)} {busy[name]}"
            yield OverviewLine(count, name, text, commands.on_segment("readseg -list", name))
        elif not segment.has(CRAWL_FETCH):
            if segment.has(CRAWL_GENERATE):
                count = _entries(segment, CRAWL_GENERATE)
                text = f"{_pages_are(count, name)} listed and not fetched"
                yield OverviewLine(count, name, text, commands.on_segment("fetch", name))
        elif not segment.has(CRAWL_PARSE):
            count = _entries(segment, CRAWL_FETCH)
            text = f"fetched {_pages_are(count, name)} not parsed"
            yield OverviewLine(count, name, text, commands.on_segment("parse", name))
    parsed = [segment for segment in fetched_in(crawl.segments) if segment.has(CRAWL_PARSE)]
    if (
        parsed
        and parsed[-1].name not in busy
        and Replaces.of(parsed[-1].path) is None  # what is merged in tiers is in the CrawlDb
        and not is_merged(parsed[-1], crawl.crawldb, schedule)
    ):
        name = parsed[-1].name
        count = _entries(parsed[-1], CRAWL_FETCH)
        text = f"{_pages_are(count, name)}, as it seems, not in the CrawlDb yet"
        yield OverviewLine(count, name, text, commands.update(name))


def _pages_are(count: int, segment: str) -> str:
    return f"{agreeing(count, 'pages')} of segment {segment} {agreeing(count, 'are')}"


def _entries(segment: Segment, folder: str) -> int:
    return sum(len(table) for part in segment.parts(folder) for table in scan(part))


def last_round(
    fetched: Sequence[Segment], proxy: str, commands: CommandLines
) -> Iterator[OverviewLine]:
    """Yields how many pages the last round listed and fetched, and why the others failed."""
    if not fetched:
        return
    last = fetched[-1]
    more = commands.on_segment("readseg -list", last.name)
    if last.has(CRAWL_GENERATE):
        count = _entries(last, CRAWL_GENERATE)
        were = f"{agreeing(count, 'pages')} {agreeing(count, 'were')}"
        yield OverviewLine(count, "listed", f"{were} in the list of segment {last.name}", more)
    outcomes = outcomes_of(last.path, proxy)
    pages = agreeing(outcomes.fetched, "pages")
    text = f"{pages} came; the same as before: {outcomes.unchanged:,}"
    yield OverviewLine(outcomes.fetched, "fetched", text, more)
    if outcomes.redirected:
        query = (
            "select url, redirect_to from pages where redirect_to is not null and segment ="
            " {segment}"
        )
        more = commands.sql(query, segment=last.name)
        text = f"{agreeing(outcomes.redirected, 'redirect')} to other pages"
        yield OverviewLine(outcomes.redirected, "redirected", text, more)
    for (fate, why), count in outcomes.reasons.most_common(MOST_REASONS):
        example = outcomes.examples[fate, why][0]
        yield OverviewLine(count, fate, f"did not come ({fate}): {why}", commands.explain(example))


def cut(
    segments: Sequence[Segment], conf: Configuration, commands: CommandLines
) -> Iterator[OverviewLine]:
    """Yields what limits cut off of the pages of the newest segments, each with its property."""
    parsed = [segment for segment in segments if segment.has(PARSE_DATA)]
    newest = _newest(parsed)
    if not newest:
        return
    within = "" if len(newest) == len(parsed) else f", in the last {len(newest)} segments"

    def line(count: int, name: str, text: str, condition: str) -> OverviewLine:
        said = f"{text}: {name}={conf.get(name)}" if name else text
        more = commands.sql(f"select segment, url from parses where {condition}")
        return OverviewLine(count, name or "in part", f"{said}{within}", more)

    table = ParsesTable(newest).scan()
    links, outside = pl.col("outlinks_cut"), pl.col("outlinks_external")
    most = conf.get_int(_LINKS)
    counts_all = most < 0 or conf.get_boolean("parser.outlinks.count")
    is_full = pl.lit(False) if counts_all else pl.col("outlinks") >= most
    counts = table.select(
        links=links.sum(),
        cut=links.count(),
        full=is_full.sum(),
        outside=outside.sum(),
        left=outside.count(),
    )
    found = counts.collect(engine="streaming").row(0, named=True)
    if count := found["links"]:
        text = f"{agreeing(count, 'links')} of {counted(found['cut'], 'pages')} not kept"
        yield line(count, _LINKS, text, "outlinks_cut is not null")
    if count := found["full"]:
        text = f"{agreeing(count, 'pages')} with as many links as are kept, or more"
        yield line(count, _LINKS, text, f"outlinks >= {most}")
    if count := found["outside"]:
        text = f"{agreeing(count, 'links')} to other sites, of {counted(found['left'], 'pages')}"
        yield line(count, _OUTSIDE, text, "outlinks_external is not null")
    truncated = table.select(value="truncated").drop_nulls().group_by("value").len()
    for reason, count in _most(truncated, "len", "value"):
        text, name = _CUT_BY.get(reason, _CUT_BY["length"])
        yield line(count, name, f"{agreeing(count, 'pages')} {text}", f"truncated = '{reason}'")
    is_part = (pl.col("status") == "success") & pl.col("reason").is_not_null()
    parts = table.filter(is_part).select(value="reason").group_by("value").len()
    for reason, count in _most(parts, "len", "value"):
        text = f"{agreeing(count, 'pages')}: {reason}"
        yield line(count, "", text, "status = 'success' and reason is not null")


def _newest(parsed: Sequence[Segment]) -> list[Segment]:
    """Returns the newest segments, oldest first, up to `_MOST_BYTES`; one at least."""
    found: list[Segment] = []
    size = 0
    for segment in reversed(parsed):
        size += sum(file.stat().st_size for file in segment.data_files(PARSE_DATA))
        if found and size > _MOST_BYTES:
            break
        found.insert(0, segment)
    return found


def slow_hosts(fetched: Sequence[Segment], commands: CommandLines) -> Iterator[OverviewLine]:
    """Yields hosts with the slowest answers in the last rounds, and those with most failures."""
    pages = PagesTable(fetched[-ROUNDS:]).scan()
    times = pages.select("host", "response_ms").drop_nulls()
    took = times.group_by("host").agg(
        pl.len(), mean=pl.col("response_ms").mean(), longest=pl.col("response_ms").max()
    )
    query = "select url, response_ms from pages where host = {host} order by 2 desc limit 20"
    for host, count, mean, longest in _most(took, "mean"):
        text = (
            f"{agreeing(count, 'answers')} of {host} took {mean:,.0f} ms on average,"
            f" {longest:,} ms at most"
        )
        yield OverviewLine(count, host, text, commands.sql(query, host=host))
    failed = (
        pages.filter(pl.col("protocol_status") == "exception").select("host").group_by("host").len()
    )
    query = "select url, reason from pages where host = {host} and protocol_status = 'exception'"
    for host, count in _most(failed, "len"):
        yield OverviewLine(
            count,
            host,
            f"{agreeing(count, 'fetches')} of {host} failed, to be tried again",
            commands.sql(query, host=host),
        )


def _most(rows: pl.LazyFrame, by: str, name: str = "host") -> Iterator[tuple[Any, ...]]:
    return rows.sort(by, name, descending=[True, False]).head(MOST).collect().iter_rows()


def rounds(fetched: Sequence[Segment], commands: CommandLines) -> Iterator[OverviewLine]:
    """Yields how many pages the last rounds fetched, and how long that took."""
    pages = PagesTable(fetched[-ROUNDS:]).scan().select("segment", "fetch_time", "status")
    found = pages.filter(pl.col("status") != status_name(STATUS_LINKED)).group_by("segment")
    table = found.agg(
        pl.len(), first=pl.col("fetch_time").min(), last=pl.col("fetch_time").max()
    ).sort("segment")
    for name, count, first, last in table.collect().iter_rows():
        took = (last - first).total_seconds()
        text = f"{agreeing(count, 'pages')} in segment {name}, within {interval(took)}"
        yield OverviewLine(count, name, text, commands.on_segment("readseg -list", name))
