"""generate: make segments with the lists of pages that are due, best first.

Every entry of the CrawlDb leaves through one counter: selected, or the reason why not. Where
nothing is selected the job says so, with the reasons, and exits with 1. Entries are read partition
by partition; `due` finds those that may be fetched, `select` gives them places, `lists` writes
them.

Source: org.apache.nutch.crawl.Generator.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.fetchlist import due, generatemarks, select
from minutch.cycle.fetchlist.lists import FetchListWriter, address_of, number_of_lists, stamp
from minutch.cycle.fetchlist.selector import GenerateOptions, Selector
from minutch.hadoop.formats.javahash import date_to_string
from minutch.hadoop.stores import as_path
from minutch.job import Counters, JobContext
from minutch.records.metadata import GENERATE_TIME_KEY

log = logging.getLogger(__name__)
UPDATE_PROPERTY: Final = "generate.update.crawldb"


@dataclass(slots=True)
class Generated:
    """The segments that were made, and what became of all entries."""

    segments: list[Path] = field(default_factory=list)
    counters: Counters = field(default_factory=Counters)


def generate(
    crawldb: Path,
    segments: Path,
    context: JobContext,
    *,
    top_n: int = select.NO_LIMIT,
    add_days: int = 0,
    filtering: bool = True,
    normalize: bool = True,
    force: bool = False,
    max_segments: int = 1,
    expression: str | None = None,
    fetchers: int | None = None,
    hostdb: str | Path | None = None,
) -> Generated:
    """Make up to `max_segments` segments in the directory `segments` from the entries of `crawldb`
    that are due.

    The properties `generate.curTime` (what is due) and `_ngt_` (the mark) stand in for the clock.
    With `generate.update.crawldb` the selected entries are marked in the CrawlDb. With a `hostdb`,
    generate.max.count.expr and generate.fetch.delay.expr hold for the hosts that it knows. Raises
    StoreError (no CrawlDb), LockedError, ExpressionError, FormatError.
    """
    conf = context.conf
    database = None if hostdb is None else as_path(hostdb)
    options = GenerateOptions(
        top_n, add_days, filtering, normalize, max_segments, expression, database
    )
    selector = Selector(conf, options, context.clock.now())
    time = conf.get_long(GENERATE_TIME_KEY, selector.now)
    db = CrawlDb(crawldb)
    _log_start(filtering, normalize, top_n, expression, hostdb)
    result = Generated()
    with db.lock(force):
        generatemarks.make_up(db, conf, context)
        with context.progress("generate", db.estimate) as progress:
            chosen, next_due = selector.choose(db, result.counters, progress)
        hosts = selector.hosts
        if chosen.is_empty():
            _log_why(result.counters, next_due)
            return result
        # Nutch draws a seed, so that a host is not always in the same part
        writer = FetchListWriter(
            segments, number_of_lists(conf, fetchers), conf, address_of, seed=time
        )
        update = conf.get_boolean(UPDATE_PROPERTY, False)
        with generatemarks.planned(db, segments, time) if update else nullcontext():
            for number in range(1, max_segments + 1):
                is_here = chosen["segment"] == number
                entries = chosen if is_here.all() else chosen.filter(is_here)
                if len(entries):
                    entries = stamp(entries, time)
                    entries = entries if hosts is None else hosts.with_delays(entries)
                    result.segments.append(writer.write(entries, context.clock))
                    log.info("Generator: segment: %s", result.segments[-1])
            if update:
                generatemarks.mark(db, conf, chosen["key"], time, context)
    return result


def _log_start(
    filtering: bool, normalize: bool, top_n: int, expression: str | None, hostdb: str | Path | None
) -> None:
    log.info("Generator: starting")
    log.info("Generator: selecting the best pages that are due")
    log.info("Generator: filtering: %s", str(filtering).lower())
    log.info("Generator: normalizing: %s", str(normalize).lower())
    if top_n != select.NO_LIMIT:
        log.info("Generator: topN: %d", top_n)
    if expression is not None:
        log.info("Generator: expr: %s", expression)
    if hostdb is not None:
        log.info("Generator: hostdb: %s", hostdb)


def _log_why(counters: Counters, next_due: int | None) -> None:
    log.warning("Generator: 0 records selected for fetching, exiting ...")
    for reason in describe(counters):
        log.warning("Generator: %s", reason)
    if next_due is not None:
        log.warning("Generator: the next page is due at %s", date_to_string(next_due))


def describe(counters: Mapping[str, int]) -> Iterator[str]:
    """A line for each reason that left out entries; one line where the CrawlDb has none."""
    reasons = due.REASONS | select.REASONS
    lines = [
        f"{counters[name]:,} {text}" for name, text in reasons.items() if counters.get(name, 0)
    ]
    return iter(lines or ["the CrawlDb has no entries"])
