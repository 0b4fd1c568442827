"""What is left to do in a crawl, what comes next, why the last round was short, what is slow, what
grows: on columns.

The CrawlDb is gone through once, by generate's own choice (`fetchlist.selector`), and counted
on the way; what is said of segments comes from `lastrounds`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import polars as pl

from minutch.conf import Configuration
from minutch.cycle.fetch.settings import QueueSettings
from minutch.cycle.fetchlist import due, select
from minutch.cycle.fetchlist.selector import Selector
from minutch.inspect.explain.about import Crawl
from minutch.inspect.explain.commands import Commands
from minutch.inspect.explain.entries import MEANINGS
from minutch.inspect.explain.facts import Line, Overview
from minutch.inspect.explain.lastrounds import (
    fetched_in,
    last_round,
    rounds,
    slow_hosts,
    unfinished,
)
from minutch.inspect.explain.times import interval, seen_from
from minutch.job import Counters
from minutch.records.crawldatum import STATUS_DB_FETCHED, STATUS_DB_UNFETCHED, status_name
from minutch.records.crawldatum.table import CRAWLDB_SCHEMA
from minutch.urls.hostcolumns import hosts_of
from minutch.work.tables.frame import decode_keys, empty

MOST: Final = 10
"""Hosts and folders that are listed at most."""
LARGE: Final = 100
"""From how many unfetched pages on a folder is worth a line."""
_MOST_FOLDERS: Final = 1000
"""Folders that are kept of each stretch of the CrawlDb."""
_COMPACT: Final = 500_000
_FOLDER: Final = r"^([a-z]+://[^/]*/(?:[^/?#]*/|[^/?#]*[?]|))"


@dataclass(slots=True)
class _Tallies:
    """Counts over the CrawlDb, added up table by table; `examples` has a URL for each reason to
    leave one out.
    """

    hosts: list[pl.DataFrame] = field(default_factory=list)
    folders: list[pl.DataFrame] = field(default_factory=list)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, frame: pl.DataFrame) -> None:
        """Count the entries of a table."""
        urls = decode_keys(frame["key"])
        pages = pl.DataFrame({"host": hosts_of(urls), "status": frame["status"], "url": urls})
        self.hosts.append(pages.group_by("host", "status").len())
        unfetched = pages.filter(pl.col("status") == STATUS_DB_UNFETCHED)
        folders = unfetched.select(folder=pl.col("url").str.extract(_FOLDER)).drop_nulls()
        self.folders.append(folders.group_by("folder").len().top_k(_MOST_FOLDERS, by="len"))
        for tables, keys in ((self.hosts, ("host", "status")), (self.folders, ("folder",))):
            if sum(map(len, tables)) > _COMPACT:
                tables[:] = [_sum(tables, keys)]

    def by(self, *keys: str) -> pl.DataFrame:
        """The counts, `len`, most first; ties by name."""
        tables = self.folders if keys == ("folder",) else self.hosts
        return _sum(tables, keys).sort("len", *keys, descending=[True, *[False] * len(keys)])


def _sum(tables: Sequence[pl.DataFrame], keys: Sequence[str]) -> pl.DataFrame:
    return pl.concat(tables).group_by(keys).agg(pl.col("len").sum())


class Overseer:
    """Looks a crawl over. `now` in ms; `arguments` are generate's options, for the commands that
    show more.
    """

    def __init__(
        self,
        crawl: Crawl,
        conf: Configuration,
        choice: Selector,
        arguments: Sequence[str],
        now: int,
    ) -> None:
        self.crawl, self.conf, self.choice, self.now = crawl, conf, choice, now
        self._commands = Commands(crawl.folder, arguments)
        self._tallies = _Tallies()

    def overview(self) -> Overview:
        """All of it. Raises FormatError (damage)."""
        found = self.choice.find_due(self.crawl.crawldb, self._look)
        statuses = self._tallies.by("status")
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
                *unfinished(self.crawl, self.choice.schedule, self._commands),
            ),
            next=tuple(self._next(found, min(dates, default=None))),
            last=tuple(last_round(fetched, self.conf, self._commands)),
            slow=tuple(slow_hosts(fetched, self._commands)),
            growing=(
                *rounds(fetched, self._commands),
                *self._growing_hosts(),
                *self._growing_folders(),
            ),
        )

    def _look(self, frame: pl.DataFrame) -> due.Due:
        self._tallies.add(frame)
        found = self.choice.due_in(frame, with_others=True)
        for reason, left in found.left_out.items():
            self._tallies.examples.setdefault(reason, decode_keys(left["key"].head(1))[0])
        found.left_out.clear()
        return found

    def _by_status(self, statuses: pl.DataFrame) -> Iterator[Line]:
        for code, count in statuses.select("status", "len").iter_rows():
            name = status_name(code)
            text = f"URLs are {name}: {MEANINGS.get(code, 'a status that Nutch does not know')}"
            yield Line(count, name, text, self._commands.entries(name))

    # -- the next round ----------------------------------------------------------------------------

    def _next(self, found: Sequence[due.Due], next_due: int | None) -> Iterator[Line]:
        counters = Counters()
        for table in found:
            counters.merge(table.counters)
        nothing = empty(CRAWLDB_SCHEMA).with_columns(sort=pl.lit(None, pl.Float32))
        tables = [table.entries for table in found] or [nothing]
        chosen = self.choice.selection(tables).choose(tables, counters)
        yield Line(
            len(chosen), select.SELECTED, "pages would be fetched", self._commands.generate()
        )
        for code, count in _counted(chosen["status"]):
            name = status_name(code)
            yield Line(count, name, f"of them are {name}", self._commands.entries(name))
        yield from self._next_hosts(hosts_of(decode_keys(chosen["key"])))
        for reason, text in (due.REASONS | select.REASONS).items():
            if counters.get(reason, 0):
                example = self._tallies.examples.get(reason)
                more = (
                    self._commands.generate()
                    if example is None
                    else self._commands.explain(example)
                )
                yield Line(counters[reason], reason, f"would be left out: {text}", more)
        if next_due is not None and chosen.is_empty():
            text = f"are due; the next one is {seen_from(next_due, self.now)}"
            yield Line(0, "next_due", text, self._commands.stats())

    def _next_hosts(self, hosts: pl.Series) -> Iterator[Line]:
        counts = _counted(hosts.drop_nulls())
        delay = QueueSettings.from_conf(self.conf, self.now).crawl_delay / 1000
        for host, count in counts[:MOST]:
            lasts = (
                f", {interval(count * delay)} with pauses of {delay:g} s"
                if count > 1 and delay
                else ""
            )
            yield Line(count, host, f"of them are on {host}{lasts}", self._commands.host(host))
        others = counts[MOST:]
        if others:
            total = sum(count for _, count in others)
            yield Line(
                total,
                "others",
                f"of them are on {len(others):,} other hosts",
                self._commands.stats(),
            )

    # -- growing -----------------------------------------------------------------------------------

    def _growing_hosts(self) -> Iterator[Line]:
        """Hosts with most pages that are still to be fetched."""
        counts = self._tallies.by("host", "status")
        fetched = dict(
            counts.filter(pl.col("status") == STATUS_DB_FETCHED).select("host", "len").iter_rows()
        )
        waiting = counts.filter(pl.col("status") == STATUS_DB_UNFETCHED).drop_nulls("host")
        for host, count in waiting.select("host", "len").head(MOST).iter_rows():
            text = f"pages of {host} are still unfetched, {fetched.get(host, 0):,} are fetched"
            yield Line(count, host, text, self._commands.host(host))

    def _growing_folders(self) -> Iterator[Line]:
        """Folders and scripts with most unfetched pages: where a crawl may be caught."""
        for folder, count in self._tallies.by("folder").head(MOST).iter_rows():
            if count >= LARGE:
                query = (
                    "select url from crawldb where status = 'db_unfetched' and starts_with(url,"
                    " {folder}) limit 20"
                )
                more = self._commands.sql(query, folder=folder)
                yield Line(count, folder, f"pages, at least, below {folder} are unfetched", more)


def _counted(values: pl.Series) -> list[tuple[Any, int]]:
    """The distinct values with their counts, most first; ties in their order."""
    table = (
        values.rename("value")
        .value_counts(name="len")
        .sort("len", "value", descending=[True, False])
    )
    return list(table.iter_rows())
