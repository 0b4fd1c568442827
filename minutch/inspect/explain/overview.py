"""Builds the overview of a crawl, on columns: what is left to do, what comes next, what is slow,
what grows.

The CrawlDb is gone through once, by generate's own selector (`fetchlist.selector`), and counted
on the way; what is said of segments comes from their own files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import polars as pl

from minutch.conf import Configuration
from minutch.cycle.crawl.rounds import at_work
from minutch.cycle.crawl.screen import outcomes_of
from minutch.cycle.crawldb.schedule import AbstractFetchSchedule
from minutch.cycle.crawldb.updatedb import is_merged
from minutch.cycle.fetchlist import due, select
from minutch.cycle.fetchlist.selector import Selector
from minutch.cycle.segment.places import Replaces
from minutch.cycle.segment.store import (
    CRAWL_FETCH,
    CRAWL_GENERATE,
    CRAWL_PARSE,
    PARSE_DATA,
    Segment,
)
from minutch.inspect.explain.facts import Overview, OverviewLine, interval, seen_from
from minutch.inspect.explain.settings import CommandLines, CrawlStores
from minutch.inspect.explain.visits import MEANINGS
from minutch.inspect.query.pages import PagesTable
from minutch.inspect.query.parses import ParsesTable
from minutch.job import Counters
from minutch.records.crawldatum import (
    STATUS_DB_FETCHED,
    STATUS_DB_UNFETCHED,
    STATUS_LINKED,
    status_name,
)
from minutch.records.crawldatum_columns import CRAWLDB_SCHEMA
from minutch.terminal import agreeing, counted
from minutch.urls.hostcolumns import host_names
from minutch.work.tables.frame import decode_keys, empty
from minutch.work.tables.recordfiles import scan

# Reports on a crawl's rounds by its segments: unfinished ones, why the last one was short, what
# was cut off of pages, slow hosts.

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
MOST: Final = 10
"""Hosts and folders that are listed at most."""
LARGE: Final = 100
"""Number of unfetched pages from which on a folder is listed."""
_MOST_FOLDERS: Final = 1000
"""Folders that are kept of each stretch of the CrawlDb."""
_COMPACT: Final = 500_000
_FOLDER: Final = r"^([a-z]+://[^/]*/(?:[^/?#]*/|[^/?#]*[?]|))"


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
    """Yields what limits have cut off the pages of the newest segments, each with its property."""
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


@dataclass(slots=True)
class _CrawlDbCounts:
    """Counts of the CrawlDb's entries, table by table; `examples` has a URL for each reason."""

    hosts: list[pl.DataFrame] = field(default_factory=list)
    folders: list[pl.DataFrame] = field(default_factory=list)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, frame: pl.DataFrame) -> None:
        """Counts the entries of a table."""
        urls = decode_keys(frame["key"])
        pages = pl.DataFrame({"host": host_names(urls), "status": frame["status"], "url": urls})
        self.hosts.append(pages.group_by("host", "status").len())
        unfetched = pages.filter(pl.col("status") == STATUS_DB_UNFETCHED)
        folders = unfetched.select(folder=pl.col("url").str.extract(_FOLDER)).drop_nulls()
        self.folders.append(folders.group_by("folder").len().top_k(_MOST_FOLDERS, by="len"))
        for tables, keys in ((self.hosts, ("host", "status")), (self.folders, ("folder",))):
            if sum(map(len, tables)) > _COMPACT:
                tables[:] = [_sum(tables, keys)]

    def by(self, *keys: str) -> pl.DataFrame:
        """Returns the counts, `len`, greatest first; ties by name."""
        tables = self.folders if keys == ("folder",) else self.hosts
        return _sum(tables, keys).sort("len", *keys, descending=[True, *[False] * len(keys)])


def _sum(tables: Sequence[pl.DataFrame], keys: Sequence[str]) -> pl.DataFrame:
    return pl.concat(tables).group_by(keys).agg(pl.col("len").sum())


@dataclass(frozen=True, slots=True)
class OverviewSettings:
    """Settings of an overview."""

    arguments: Sequence[str]
    """Arguments of generate, for the commands that show more."""
    crawl_delay: int
    """ms."""
    proxy: str
    conf: Configuration
    """For the limits that cut pages off."""


class OverviewBuilder:
    """A builder of the overview of a crawl at the time `now` (ms)."""

    def __init__(
        self, crawl: CrawlStores, selector: Selector, settings: OverviewSettings, now: int
    ) -> None:
        self.crawl, self.selector, self.now = crawl, selector, now
        self._settings = settings
        self._commands = CommandLines(crawl.folder, settings.arguments)
        self._counts = _CrawlDbCounts()

    def overview(self) -> Overview:
        """Builds the overview. Raises FormatError (damage)."""
        found = self.selector.find_due(self.crawl.crawldb, self._look)
        statuses = self._counts.by("status")
        dates = [table.next_due for table in found if table.next_due is not None]
        fetched = fetched_in(self.crawl.segments)
        return Overview(
            crawl=str(self.crawl.folder),
            now=self.now,
            urls=int(statuses["len"].sum()),
            segments=len(self.crawl.segments),
            next_due=min(dates, default=None),
            left=(
                *self._by_status(statuses),
                *unfinished(self.crawl, self.selector.schedule, self._commands),
            ),
            next=tuple(self._next(found, min(dates, default=None))),
            last=tuple(last_round(fetched, self._settings.proxy, self._commands)),
            cut=tuple(cut(self.crawl.segments, self._settings.conf, self._commands)),
            slow=tuple(slow_hosts(fetched, self._commands)),
            growing=(
                *rounds(fetched, self._commands),
                *self._growing_hosts(),
                *self._growing_folders(),
            ),
        )

    def _look(self, frame: pl.DataFrame) -> due.Due:
        self._counts.add(frame)
        found = self.selector.due_in(frame, with_others=True)
        for reason, left in found.left_out.items():
            self._counts.examples.setdefault(reason, decode_keys(left["key"].head(1))[0])
        found.left_out.clear()
        return found

    def _by_status(self, statuses: pl.DataFrame) -> Iterator[OverviewLine]:
        for code, count in statuses.select("status", "len").iter_rows():
            name = status_name(code)
            urls, are = agreeing(count, "URLs"), agreeing(count, "are")
            text = f"{urls} {are} {name}: {MEANINGS.get(code, 'a status that Nutch does not know')}"
            yield OverviewLine(count, name, text, self._commands.entries(name))

    # -- the next round ----------------------------------------------------------------------------

    def _next(self, found: Sequence[due.Due], next_due: int | None) -> Iterator[OverviewLine]:
        counters = Counters()
        for table in found:
            counters.merge(table.counters)
        nothing = empty(CRAWLDB_SCHEMA).with_columns(sort=pl.lit(None, pl.Float32))
        tables = [table.entries for table in found] or [nothing]
        chosen = self.selector.selection(tables).choose(tables, counters)
        yield OverviewLine(
            len(chosen),
            select.SELECTED,
            f"{agreeing(len(chosen), 'pages')} would be fetched",
            self._commands.generate(),
        )
        for code, count in _counted(chosen["status"]):
            name = status_name(code)
            text = f"of them {agreeing(count, 'are')} {name}"
            yield OverviewLine(count, name, text, self._commands.entries(name))
        yield from self._next_hosts(host_names(decode_keys(chosen["key"])))
        for reason, text in (due.REASONS | select.REASONS).items():
            if counters.get(reason, 0):
                example = self._counts.examples.get(reason)
                more = (
                    self._commands.generate()
                    if example is None
                    else self._commands.explain(example)
                )
                yield OverviewLine(counters[reason], reason, f"would be left out: {text}", more)
        if next_due is not None and chosen.is_empty():
            text = f"are due; the next one is {seen_from(next_due, self.now)}"
            yield OverviewLine(0, "next_due", text, self._commands.stats())

    def _next_hosts(self, hosts: pl.Series) -> Iterator[OverviewLine]:
        counts = _counted(hosts.drop_nulls())
        delay = self._settings.crawl_delay / 1000
        for host, count in counts[:MOST]:
            lasts = (
                f", {interval(count * delay)} with pauses of {delay:g} s"
                if count > 1 and delay
                else ""
            )
            text = f"of them {agreeing(count, 'are')} on {host}{lasts}"
            yield OverviewLine(count, host, text, self._commands.host(host))
        others = counts[MOST:]
        if others:
            total = sum(count for _, count in others)
            yield OverviewLine(
                total,
                "others",
                f"of them {agreeing(total, 'are')} on {len(others):,} other"
                f" {agreeing(len(others), 'hosts')}",
                self._commands.stats(),
            )

    # -- growing -----------------------------------------------------------------------------------

    def _growing_hosts(self) -> Iterator[OverviewLine]:
        """Yields the hosts with most unfetched pages."""
        counts = self._counts.by("host", "status")
        fetched = dict(
            counts.filter(pl.col("status") == STATUS_DB_FETCHED).select("host", "len").iter_rows()
        )
        waiting = counts.filter(pl.col("status") == STATUS_DB_UNFETCHED).drop_nulls("host")
        for host, count in waiting.select("host", "len").head(MOST).iter_rows():
            had = fetched.get(host, 0)
            text = (
                f"{agreeing(count, 'pages')} of {host} {agreeing(count, 'are')} still unfetched,"
                f" {had:,} {agreeing(had, 'are')} fetched"
            )
            yield OverviewLine(count, host, text, self._commands.host(host))

    def _growing_folders(self) -> Iterator[OverviewLine]:
        """Yields folders and scripts with most unfetched pages: possible crawler traps."""
        for folder, count in self._counts.by("folder").head(MOST).iter_rows():
            if count >= LARGE:
                query = (
                    "select url from crawldb where status = 'db_unfetched' and starts_with(url,"
                    " {folder}) limit 20"
                )
                more = self._commands.sql(query, folder=folder)
                yield OverviewLine(
                    count, folder, f"pages, at least, below {folder} are unfetched", more
                )


def _counted(values: pl.Series) -> list[tuple[Any, int]]:
    """Returns the distinct values with their counts, greatest first; ties in their order."""
    table = (
        values.rename("value")
        .value_counts(name="len")
        .sort("len", "value", descending=[True, False])
    )
    return list(table.iter_rows())
