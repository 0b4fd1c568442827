"""Builds the overview of a crawl, on columns: what is left to do, what comes next, what is slow,
what grows.

The CrawlDb is gone through once, by generate's own selector (`fetchlist.selector`), and counted
on the way; what is said of segments comes from `lastrounds`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import polars as pl

from minutch.conf import Configuration
from minutch.cycle.fetchlist import due, select
from minutch.cycle.fetchlist.selector import Selector
from minutch.inspect.explain.commandlines import CommandLines
from minutch.inspect.explain.entrywords import MEANINGS
from minutch.inspect.explain.facts import Overview, OverviewLine
from minutch.inspect.explain.lastrounds import (
    cut,
    fetched_in,
    last_round,
    rounds,
    slow_hosts,
    unfinished,
)
from minutch.inspect.explain.stores import CrawlStores
from minutch.inspect.explain.timewords import interval, seen_from
from minutch.job import Counters
from minutch.records.crawldatum import STATUS_DB_FETCHED, STATUS_DB_UNFETCHED, status_name
from minutch.records.crawldatum_columns import CRAWLDB_SCHEMA
from minutch.terminal import agreeing
from minutch.urls.hostcolumns import host_names
from minutch.work.tables.frame import decode_keys, empty

MOST: Final = 10
"""Hosts and folders that are listed at most."""
LARGE: Final = 100
"""Number of unfetched pages from which on a folder is listed."""
_MOST_FOLDERS: Final = 1000
"""Folders that are kept of each stretch of the CrawlDb."""
_COMPACT: Final = 500_000
_FOLDER: Final = r"^([a-z]+://[^/]*/(?:[^/?#]*/|[^/?#]*[?]|))"


@dataclass(slots=True)
class _CrawlDbCounts:
    """Counts of the CrawlDb's entries, added up table by table; `examples` has a URL for each
    reason to leave one out.
    """

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
        self,
        crawl: CrawlStores,
        selector: Selector,
        settings: OverviewSettings,
        now: int,
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
