"""whatif: compares a crawl's configuration with a proposed one, over all that is known.

The CrawlDb is gone through once for both, and once more for each next fetch list; the links are
where rules for URLs differ. Memory is that of a table, of a hash (8 bytes) for each URL, of URLs
that may be gained, of hosts, and of the pages of a list.

An entry is removed if updatedb drops it (crawldb.url.filters, db.update.purge.*). Left out is a
known URL to which no link is kept any more: the rules for links reject it, or all links to it that
are known are out of scope (db.ignore.*); its entry stays. A URL is renamed if the normalizers make
another one of it. Gained is what known links lead to under a name that the CrawlDb lacks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from minutch.conf import Configuration
from minutch.conf.properties import shown
from minutch.cycle.crawl.steps import CrawlOptions
from minutch.cycle.crawldb.partitions import EntryFilter
from minutch.cycle.crawldb.schedule import DefaultFetchSchedule, fetch_schedule
from minutch.cycle.fetch.frontier.hostmemory import FILE_NAME, BusyHosts
from minutch.cycle.fetchlist.hostlimits import DELAY_PROPERTY
from minutch.cycle.fetchlist.selector import GenerateOptions
from minutch.cycle.parse.outlinks import OutlinkRules
from minutch.cycle.segment.store import PARSE_DATA
from minutch.inspect.explain.overview import cut
from minutch.inspect.explain.settings import CommandLines, CrawlStores
from minutch.inspect.query.columns import Ids, SortedIds
from minutch.inspect.query.crawl import open_crawl
from minutch.inspect.query.table import Request
from minutch.inspect.whatif.outlook import OutlookBuilder, PastFetches, size_of
from minutch.inspect.whatif.prospects import RuleShare, SettingChange, UrlShift, WhatIf
from minutch.job import Counters, JobContext
from minutch.plugin.chains import SCOPE_OUTLINK
from minutch.plugin.urlrules import UrlRules, UrlTally, rule_sources
from minutch.processwide import command_line
from minutch.records.crawldatum import STORED
from minutch.terminal import counted
from minutch.work.tables.frame import decode_keys
from minutch.work.tables.recordfiles import scan

_MOST: Final = 5
"""Rules and hosts that are named."""
_COMPACT: Final = 1_000_000
"""Links that are kept before those to the same URL become one."""

RENAMED: Final = "renamed"
REMOVED: Final = "removed"
LEFT_OUT: Final = "left out"
GAINED: Final = "gained"


class ConfiguredRules:
    """What one configuration does to entries and links."""

    def __init__(self, conf: Configuration) -> None:
        self.entries = EntryFilter.from_conf(conf)
        self.scope = OutlinkRules(conf)
        self.links = UrlRules(
            conf,
            normalize=conf.get_boolean("parse.normalize.urls"),
            filtering=conf.get_boolean("parse.filter.urls"),
            scope=SCOPE_OUTLINK,
            keep_on_error=False,
        )
        # An entry stays though links to it are rejected, and is fetched unless the fetcher filters.
        self.asks_rejected = not conf.get_boolean("fetcher.filter.urls")

    def forms(self, urls: pl.Series) -> pl.Series:
        """Returns URLs as links to them would be kept; null where they would not."""
        return self.links.apply(urls, Counters())


class ShiftFinder:
    """Finds the shifts from one configuration to another, or from having no rules, by a walk
    through the links (`add_links`), and one through the CrawlDb (`add_entries`).
    """

    def __init__(self, before: ConfiguredRules | None, after: ConfiguredRules) -> None:
        self._before, self._after = before, after
        self._kinds = {kind: UrlTally() for kind in (REMOVED, LEFT_OUT, RENAMED, GAINED)}
        self._scopes: list[pl.DataFrame] = []
        self._candidates: list[pl.DataFrame] = []
        self._known: list[Ids] = []
        self._unlinked = SortedIds(np.zeros(0, np.uint64))

    @property
    def needs_links(self) -> bool:
        """True if links can say more than entries do."""
        return self._before is not None or bool(self._after.scope.scope)

    # -- links -------------------------------------------------------------------------------------

    def add_links(self, tables: Iterable[pl.DataFrame]) -> None:
        """Goes through the links: `url`, `from_url` (String)."""
        before, after, rows = self._before, self._after, 0
        for table in tables:
            pages, urls = table["from_url"], table["url"]
            passes = after.scope.in_scope(pages, urls)
            passed = passes | True if before is None else before.scope.in_scope(pages, urls)
            # 10 bytes for a URL, not its letters: links are many times the URLs.
            some = pl.DataFrame({"id": urls.hash(), "before": passed, "after": passes})
            self._scopes.append(some.group_by("id").agg(pl.col("before", "after").any()))
            if before is not None:
                self._add_candidates(before, table.with_columns(before=passed, after=passes))
            rows += len(self._scopes[-1])
            if rows > _COMPACT:
                self._scopes, rows = [self._joined()], 0
        if self._scopes:
            lost = self._joined().filter(pl.col("before") & ~pl.col("after"))
            self._unlinked = SortedIds(lost["id"].sort().to_numpy())

    def _joined(self) -> pl.DataFrame:
        return pl.concat(self._scopes).group_by("id").agg(pl.col("before", "after").any())

    def _add_candidates(self, before: ConfiguredRules, links: pl.DataFrame) -> None:
        """Keeps what links lead to now and did not before."""
        urls = links.group_by("url").agg(pl.col("before", "after").any())
        urls = urls.filter("after")
        urls = urls.with_columns(form=self._after.forms(urls["url"])).drop_nulls("form")
        was = before.forms(urls["url"])
        same = ((was == urls["form"]) & urls["before"]).fill_null(False)
        new = urls.filter(~same).with_columns(was=was.filter(~same))
        reason = pl.when("before").then("why").otherwise(pl.lit(before.scope.scope))
        rejected = new.filter(pl.col("was").is_null() & pl.col("before"))
        why = pl.DataFrame({"url": rejected["url"], "why": before.links.reasons(rejected["url"])})
        moved = new.filter(pl.col("was").is_not_null() & pl.col("before"))
        renamers = self._after.links.renamers(moved["url"]).fill_null("normalizers")
        why = pl.concat([why, pl.DataFrame({"url": moved["url"], "why": renamers})])
        new = new.join(why, on="url", how="left").select("form", reason=reason)
        self._candidates.append(new.unique("form"))

    # -- entries -----------------------------------------------------------------------------------

    def add_entries(self, frame: pl.DataFrame) -> None:
        """Goes through a table of the CrawlDb."""
        urls, before, after = decode_keys(frame["key"]), self._before, self._after
        ids = urls.hash().to_numpy()
        self._known.append(ids)
        rows = frame.select("key", "status").with_row_index("row")
        kept = after.entries.apply(rows, Counters())["row"].to_numpy()
        removed = np.ones(len(rows), bool)
        removed[kept] = False
        # What was to be removed already is no change.
        if before is not None and removed.any():
            gone = rows.filter(pl.Series(removed))
            still = before.entries.apply(gone, Counters())["row"].to_numpy()
            removed[np.setdiff1d(gone["row"].to_numpy(), still)] = False
        forms = after.forms(urls)
        left = forms.is_null().to_numpy() & ~removed
        moved = (forms != urls).fill_null(False).to_numpy() & ~removed
        if before is not None:
            for mask, was_so in ((left, pl.Series.is_null), (moved, None)):
                at = np.flatnonzero(mask)
                was = before.forms(urls.gather(at))
                same = was.is_null() if was_so else (was == forms.gather(at)).fill_null(False)
                mask[at[same.to_numpy()]] = False
        unlinked = self._unlinked.places_of(ids)[1] & ~removed & ~left
        self._count(REMOVED, frame, urls, removed)
        self._count(LEFT_OUT, frame, urls, left)
        self._count(LEFT_OUT, frame, urls, unlinked, after.scope.scope)
        self._count(RENAMED, frame, urls, moved)

    def _count(
        self,
        kind: str,
        frame: pl.DataFrame,
        urls: pl.Series,
        mask: np.ndarray[tuple[int], np.dtype[np.bool_]],
        reason: str = "",
    ) -> None:
        if not mask.any():
            return
        mine, some = urls.filter(pl.Series(mask)), frame.filter(pl.Series(mask))
        reasons: pl.Series | str = reason
        if not reason:
            links = self._after.links
            asked = {LEFT_OUT: links.reasons, RENAMED: links.renamers}
            ask = asked.get(kind)
            reasons = self._after.entries.reasons(some) if ask is None else ask(mine)
        self._kinds[kind].add(mine, reasons, some["status"].is_in(STORED))

    # -- results -----------------------------------------------------------------------------------

    def shifts(self) -> tuple[UrlShift, ...]:
        """Returns all of them, those without URLs included."""
        if self._candidates:
            new = pl.concat(self._candidates).unique("form", keep="first", maintain_order=True)
            # At the end: only then it is known which names the CrawlDb lacks.
            known = np.sort(np.concatenate([np.zeros(0, np.uint64), *self._known]))
            is_known = SortedIds(known).places_of(new["form"].hash().to_numpy())[1]
            new = new.filter(pl.Series(~is_known))
            self._kinds[GAINED].add(new["form"], new["reason"])
        after = self._after
        left = "their entries stay and are fetched, but no link to them is kept any more"
        if not after.asks_rejected:
            left = "their entries stay, what the filters reject is not asked for, no link is kept"
        renamed = "their entries stay as well: links will lead to the new URLs, as to new pages"
        if after.entries.normalizes:
            renamed = "updatedb renames their entries (crawldb.url.normalizers)"
        fates = {
            REMOVED: "the next updatedb, after the next fetch, drops their entries; an index that"
            " is made anew lacks them",
            LEFT_OUT: left,
            RENAMED: renamed,
            GAINED: "known links lead to them, and the CrawlDb has no such entry",
        }
        return tuple(_shift(kind, fates[kind], tally) for kind, tally in self._kinds.items())


def _shift(kind: str, fate: str, tally: UrlTally) -> UrlShift:
    rules, hosts = (
        tuple(
            RuleShare(name, count, stored, tuple(urls))
            for name, count, stored, urls in tally.by(column)[:_MOST]
        )
        for column in ("reason", "host")
    )
    return UrlShift(kind, fate, tally.count, tally.stored, rules, hosts)


INTERVAL = "db.fetch.interval.default"


def whatif(
    crawl: Path,
    before: Configuration,
    after: Configuration,
    options: GenerateOptions | None = None,
    *,
    context: JobContext,
) -> WhatIf:
    """Says what `after` would make of the crawl in a folder, and `before` makes of it.

    Nothing is written, no host is asked. The round is one of `minutch crawl` with its defaults but
    for `options`, its generate's. Raises StoreError without a CrawlDb, FormatError, ConfigError.
    """
    stores, now, usual = CrawlStores(crawl), context.clock.now(), CrawlOptions()
    options = options or GenerateOptions(top_n=usual.size, filtering=False)
    if (stores.state / FILE_NAME).is_file():
        with BusyHosts(stores.state, read_only=True) as busy:
            options = replace(options, busy_hosts=busy.busy_hosts(now))
    # As a crawl sets it: its lists have so many parts.
    tasks = {"mapreduce.job.reduces": str(usual.tasks)}
    before, after = (conf.with_values(tasks).freeze() for conf in (before, after))
    changes = tuple(_changes(before, after))
    compares = not changes or rule_sources(before) != rule_sources(after)
    past = PastFetches.of(stores.segments)
    both = [OutlookBuilder(stores, conf, options, past, context) for conf in (before, after)]
    finder = (
        ShiftFinder(ConfiguredRules(before) if changes else None, ConfiguredRules(after))
        if compares
        else None
    )
    has_links = stores.linkdb.exists() or any(one.has(PARSE_DATA) for one in stores.segments)
    if finder is not None and finder.needs_links and has_links:
        finder.add_links(open_crawl(crawl).links.frames(Request(("url", "from_url"))))
    urls = stored = 0
    for builder in both:
        builder.prepare()
    with context.progress("whatif", stores.crawldb.estimate) as progress:
        for frame in (frame for part in stores.crawldb.require_parts() for frame in scan(part)):
            urls, stored = urls + len(frame), stored + int(frame["status"].is_in(STORED).sum())
            for builder in both:
                builder.add(frame)
            if finder is not None:
                finder.add_entries(frame)
            progress.advance(len(frame))
    outlooks = [builder.outlook() for builder in both]
    return WhatIf(
        crawl=str(crawl),
        now=now,
        changes=changes,
        rules_compared=compares,
        urls=urls,
        stored=stored,
        segment_bytes=sum(map(size_of, stores.segments)),
        bytes_a_page=past.page_bytes,
        shifts=() if finder is None else finder.shifts(),
        before=outlooks[0],
        after=outlooks[1],
        notes=tuple(_notes(stores, before, after)),
        unknown=tuple(_unknown(stores, before, after, both[1], past, compares=compares)),
    )


def _changes(before: Configuration, after: Configuration) -> Iterator[SettingChange]:
    for name in sorted({*before, *after}):
        if before.raw(name) != after.raw(name):
            was, will_be = (
                None if (value := conf.get(name)) is None else shown(name, value)
                for conf in (before, after)
            )
            yield SettingChange(name, was, will_be)
    files = [
        {k: v for k, v in rule_sources(c).items() if "." in k and k not in c}
        for c in (before, after)
    ]
    for name in sorted({*files[0], *files[1]}):
        if name not in before and name not in after and files[0].get(name) != files[1].get(name):
            yield SettingChange(name, files[0].get(name), files[1].get(name), is_file=True)


def _unknown(
    crawl: CrawlStores,
    before: Configuration,
    after: Configuration,
    builder: OutlookBuilder,
    past: PastFetches,
    *,
    compares: bool,
) -> Iterator[str]:
    yield "pages that nobody has seen yet: each page that comes may bring new links"
    if past.mean:
        yield (
            f"how hosts will answer: {past.mean:.2g} s was the mean of the last rounds; failures"
            " are tried again, redirects are asked for as well"
        )
    else:
        yield "how hosts will answer: nothing is stored of it, so answers are taken to need no time"
    yield "how many pages will not have changed: a 304 is a request, and takes next to no disk"
    if count := len(builder.without_robots):
        names = ", ".join(sorted(builder.without_robots)[:3])
        yield (
            f"the robots.txt of {counted(count, 'hosts')}, such as {names}: it may ask for longer"
            " pauses, and is a request more"
        )
    if (after.get_trimmed(DELAY_PROPERTY) or "") and builder.uses_hostdb:
        yield f"the pauses that {DELAY_PROPERTY} gives hosts"
    if builder.guesses_queues:
        yield "addresses: fetcher.queue.mode is byIP, and each host is taken to have its own"
    if compares:
        yield (
            "links that were left out when pages were parsed are kept nowhere: to gain them, pages"
            " have to be parsed again"
        )
        for line in cut(crawl.segments, before, CommandLines(crawl.folder)):
            if "links" in line.name:
                yield f"  {line.count:,} {line.text}"


def _notes(crawl: CrawlStores, before: Configuration, after: Configuration) -> Iterator[str]:
    """Yields what people take for granted of settings that differ, and is not so."""
    scopes = [OutlinkRules(conf).scope for conf in (before, after)]
    if scopes[1] and scopes[0] != scopes[1]:
        yield (
            f"{scopes[1]} is about links: hosts that the CrawlDb has are still fetched;"
            " URL filters with crawldb.url.filters=true remove them"
        )
    is_default = type(fetch_schedule(after)) is DefaultFetchSchedule
    if is_default and before.get(INTERVAL) != after.get(INTERVAL):
        yield f"{INTERVAL} is for URLs that are new: those that are known keep their intervals"
    if not is_default:
        yield (
            "requests a day are by the intervals after one more fetch:"
            f" `{command_line(f'simulate {crawl.folder}')}` goes on for months"
        )
