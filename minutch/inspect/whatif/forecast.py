"""whatif: compares a crawl's configuration with a proposed one, over all that is known.

The CrawlDb is gone through once for both, and once more for each next fetch list; the links are
where rules for URLs differ. Memory is that of a table, of a hash for each URL, of hosts, and of the
pages of a list.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from minutch.conf import Configuration
from minutch.conf.properties import shown
from minutch.cycle.crawl.steps import CrawlOptions
from minutch.cycle.crawldb.schedule import DefaultFetchSchedule, fetch_schedule
from minutch.cycle.fetch.frontier.hostmemory import FILE_NAME, BusyHosts
from minutch.cycle.fetchlist.hostlimits import DELAY_PROPERTY
from minutch.cycle.fetchlist.selector import GenerateOptions
from minutch.cycle.parse.outlinks import OutlinkRules
from minutch.cycle.segment.store import PARSE_DATA
from minutch.inspect.explain.overview import cut
from minutch.inspect.explain.settings import CommandLines, CrawlStores
from minutch.inspect.query.crawl import open_crawl
from minutch.inspect.query.table import Request
from minutch.inspect.whatif.outlook import OutlookBuilder, PastFetches, size_of
from minutch.inspect.whatif.prospects import SettingChange, WhatIf
from minutch.inspect.whatif.shifts import ConfiguredRules, ShiftFinder
from minutch.job import JobContext
from minutch.plugin.urlrules import rule_sources
from minutch.processwide import command_line
from minutch.records.crawldatum import STORED
from minutch.terminal import counted
from minutch.work.tables.recordfiles import scan

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
