"""generate: makes segments with the lists of pages that are due, best first.

Every entry of the CrawlDb leaves through one counter: selected, or the reason why not. Where
nothing is selected the job says so, with the reasons, and exits with 1. Entries are read partition
by partition; `due` finds those that may be fetched, `select` gives them places, `lists` writes
them.

Source: org.apache.nutch.crawl.Generator.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import polars as pl

from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.fetchlist import due, generatemarks, select
from minutch.cycle.fetchlist.lists import FetchListWriter, stamp
from minutch.cycle.fetchlist.selector import GenerateOptions, Selector
from minutch.cycle.segment.store import Segment
from minutch.hadoop.formats.javahash import date_time_to_string
from minutch.job import Counters, JobContext
from minutch.records.metadata import GENERATE_TIME_KEY
from minutch.terminal import counted
from minutch.work.engine import engine_of
from minutch.work.tables.database import OutputSettings

log = logging.getLogger(__name__)
UPDATE_PROPERTY: Final = "generate.update.crawldb"
_DEFAULTS: Final = GenerateOptions()


@dataclass(slots=True)
class Generated:
    """The segments that were made, and what became of all entries."""

    segments: list[Path] = field(default_factory=list)
    counters: Counters = field(default_factory=Counters)
    next_due: int | None = None
    """When the next page is due (ms), if none is now."""
    added: list[Path] = field(default_factory=list)
    """The parts that were added to the list of a segment (`GenerateOptions.into`)."""

    @property
    def reasons(self) -> list[str]:
        """Why no page was chosen."""
        return list(describe(self.counters))


def generate(
    crawldb: Path,
    segments: Path,
    options: GenerateOptions = _DEFAULTS,
    *,
    context: JobContext,
) -> Generated:
    """Makes segments in the directory `segments` from the entries of `crawldb` that are due.

    The properties `generate.curTime` (what is due) and `_ngt_` (the mark) stand in for the clock.
    With `generate.update.crawldb` the selected entries are marked in the CrawlDb. With a HostDb,
    generate.max.count.expr and generate.fetch.delay.expr hold for the hosts that it knows. Raises
    StoreError (no CrawlDb), LockedError, ExpressionError, FormatError.
    """
    conf = context.conf
    selector = Selector.from_conf(conf, options, context.clock.now())
    time = conf.get_long(GENERATE_TIME_KEY, selector.now)
    engine, output = engine_of(conf), OutputSettings.from_conf(conf)
    db, result = CrawlDb(crawldb), Generated()

    def mark(keys: Iterable[pl.Series], time: int) -> None:
        with context.progress("generate: updating the CrawlDb") as progress:
            generatemarks.mark(db, keys, time, engine=engine, output=output, progress=progress)

    _log_start(options)
    with db.lock(options.force):
        generatemarks.make_up(db, selector.schedule, mark)
        # Nutch draws a seed, so that a host is not always in the same part
        writer = FetchListWriter.from_conf(segments, conf, fetchers=options.fetchers, seed=time)
        with writer.collecting(db.path) as lists:
            with context.progress("generate", db.estimate) as progress:
                chosen, result.next_due = selector.choose(db, engine, result.counters, progress)
                for table in chosen:
                    lists.add(table)
            if not lists.entries:
                _log_why(result)
                return result
            hosts = selector.hosts

            def finished(entries: pl.DataFrame) -> pl.DataFrame:
                entries = stamp(entries, time)
                return entries if hosts is None else hosts.with_delays(entries)

            update = conf.get_boolean(UPDATE_PROPERTY)
            with generatemarks.planned(db, segments, time) if update else nullcontext():
                if options.into is not None:
                    result.added = lists.add_to(Segment(options.into), finished)
                    made = iter([options.into])
                else:
                    made = lists.write(context.clock, finished)
                for segment in made:
                    result.segments.append(segment)
                    log.info("Generator: segment: %s", segment)
                if update:
                    mark(generatemarks.keys_in(map(Segment, result.segments)), time)
    return result


def _log_start(options: GenerateOptions) -> None:
    log.info("Generator: starting")
    log.info("Generator: selecting the best pages that are due")
    log.info("Generator: filtering: %s", str(options.filtering).lower())
    log.info("Generator: normalizing: %s", str(options.normalize).lower())
    if options.top_n != select.NO_LIMIT:
        log.info("Generator: topN: %d", options.top_n)
    if options.expression is not None:
        log.info("Generator: expr: %s", options.expression)
    if options.hostdb is not None:
        log.info("Generator: hostdb: %s", options.hostdb)


def _log_why(result: Generated) -> None:
    log.warning("Generator: 0 records selected for fetching, exiting ...")
    for reason in result.reasons:
        log.warning("Generator: %s", reason)
    if result.next_due is not None:
        due_at = date_time_to_string(result.next_due)
        log.warning("Generator: the next page is due at %s UTC", due_at)


def describe(counters: Mapping[str, int]) -> Iterator[str]:
    """Returns a line for each reason that left out entries; one line where the CrawlDb has none."""
    reasons = due.REASONS | select.REASONS
    lines = [
        f"{counted(counters[name], 'URLs')} {text}"
        for name, text in reasons.items()
        if counters.get(name, 0)
    ]
    return iter(lines or ["the CrawlDb has no entries"])
