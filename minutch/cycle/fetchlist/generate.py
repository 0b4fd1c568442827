"""generate: makes segments with the lists of pages that are due, best first; and freegen, one of a
list of URLs, without a CrawlDb: to fetch pages once, or to try something out.

Every entry of the CrawlDb leaves through one counter: selected, or the reason why not. Where
nothing is selected the job says so, with the reasons, and exits with 1. Entries are read partition
by partition; `due` finds those that may be fetched, `select` gives them places, `lists` writes
them.

freegen's list is in text files with a URL per line; blank lines and comments (`#`) are skipped.
Entries have the default interval and the score that the scoring filters give to a seed.

Source: org.apache.nutch.crawl.Generator, org.apache.nutch.tools.FreeGenerator.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import polars as pl

from minutch.cycle.crawldb.scoring import injected_scores
from minutch.cycle.crawldb.seeds import read_seeds, seed_files
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.fetchlist import due, select
from minutch.cycle.fetchlist import lists as fetchlists
from minutch.cycle.fetchlist.lists import FetchListWriter, stamp
from minutch.cycle.fetchlist.selector import GenerateOptions, Selector
from minutch.cycle.segment.store import Segment
from minutch.hadoop.formats.javahash import date_time_to_string
from minutch.job import Counters, JobContext
from minutch.plugin.chains import SCOPE_INJECT, ScoringFilters
from minutch.plugin.urlrules import UrlRules
from minutch.records.crawldatum_columns import CRAWLDB_SCHEMA
from minutch.records.metadata import GENERATE_TIME_KEY
from minutch.terminal import counted
from minutch.work.engine import engine_of
from minutch.work.tables.database import OutputSettings
from minutch.work.tables.frame import encode_keys

log = logging.getLogger(__name__)
UPDATE_PROPERTY: Final = "generate.update.crawldb"
_DEFAULTS: Final = GenerateOptions()
REPEATED: Final = "repeated URLs"
SELECTED: Final = "URLs in the fetch list"


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
        """Returns why no page was chosen."""
        return list(describe(self.counters))


def generate(
    crawldb: Path, segments: Path, options: GenerateOptions = _DEFAULTS, *, context: JobContext
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
            fetchlists.mark(db, keys, time, engine=engine, output=output, progress=progress)

    _log_start(options)
    with db.lock(options.force):
        # Before the selection: what a run that was killed has listed must not be listed twice.
        fetchlists.make_up(db, selector.schedule, mark)
        # Nutch draws a seed, so that a host is not always in the same part
        writer = FetchListWriter.from_conf(segments, conf, fetchers=options.fetchers, seed=time)
        with writer.collecting(db.path) as lists:
            with context.progress("generate", db.estimate) as progress:
                chosen, result.next_due = selector.choose(db, engine, result.counters, progress)
                for table in chosen:
                    lists.add(table)
            if not lists.entries:
                log.warning("Generator: 0 records selected for fetching, exiting ...")
                for reason in result.reasons:
                    log.warning("Generator: %s", reason)
                if result.next_due is not None:
                    due_at = date_time_to_string(result.next_due)
                    log.warning("Generator: the next page is due at %s UTC", due_at)
                return result
            hosts = selector.hosts

            def finished(entries: pl.DataFrame) -> pl.DataFrame:
                entries = stamp(entries, time)
                return entries if hosts is None else hosts.with_delays(entries)

            update = conf.get_boolean(UPDATE_PROPERTY)
            # From the first segment until the marks are there.
            with fetchlists.planned(db, segments, time) if update else nullcontext():
                if options.into is not None:
                    result.added = lists.add_to(Segment(options.into), finished)
                    made = iter([options.into])
                else:
                    made = lists.write(context.clock, finished)
                for segment in made:
                    result.segments.append(segment)
                    log.info("Generator: segment: %s", segment)
                if update:
                    # From the lists as they were written: what is selected is not held in memory.
                    mark(fetchlists.keys_in(map(Segment, result.segments)), time)
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


def describe(counters: Mapping[str, int]) -> Iterator[str]:
    """Returns a line for each reason that left out entries; one line where the CrawlDb has none."""
    reasons = due.REASONS | select.REASONS
    lines = [
        f"{counted(counters[name], 'URLs')} {text}"
        for name, text in reasons.items()
        if counters.get(name, 0)
    ]
    return iter(lines or ["the CrawlDb has no entries"])


@dataclass(frozen=True, slots=True)
class FreegenOptions:
    """The options of freegen."""

    normalize: bool = False
    """Whether the URL normalizers apply."""
    filtering: bool = False
    """Whether the URL filters apply."""
    fetchers: int | None = None
    """Parts of the fetch list, where it is not one process that fetches."""


def freegen(
    urls: Path, segments: Path, options: FreegenOptions = FreegenOptions(), *, context: JobContext
) -> tuple[Path, Counters]:
    """Makes a segment in `segments` from the URLs in the files of `urls`. Raises StoreError."""
    conf, counters = context.conf, Counters()
    log.info("FreeGenerator: starting")
    rules = UrlRules(
        conf,
        normalize=options.normalize,
        filtering=options.filtering,
        scope=SCOPE_INJECT,
        keep_on_error=False,
    )
    columns = []
    with context.progress("freegen") as progress:
        for path in seed_files(urls):
            for lines in read_seeds(path):
                columns.append(rules.apply(lines["url"], counters).drop_nulls())
                progress.advance(len(lines))
    found = pl.concat(columns) if columns else pl.Series(dtype=pl.String)
    distinct = found.unique(maintain_order=True)
    counters.add(REPEATED, len(found) - len(distinct))
    interval = conf.get_int("db.fetch.interval.default")
    entries = _entries(distinct, interval, context.clock.now())
    entries = injected_scores(entries, ScoringFilters(conf), counters)
    counters.add(SELECTED, len(entries))
    writer = FetchListWriter.from_conf(segments, conf, fetchers=options.fetchers, seed=None)
    with writer.collecting(segments) as lists:
        lists.add(entries.with_columns(segment=1))
        (segment,) = lists.write(context.clock)
    return segment, counters


def _entries(urls: pl.Series, interval: int, now: int) -> pl.DataFrame:
    """Returns new entries of CRAWLDB_SCHEMA: no status, due now."""
    values = {
        "status": 0,
        "fetch_time": now,
        "modified_time": 0,
        "retries": 0,
        "fetch_interval": interval,
        "score": 0.0,
    }
    constants = [
        pl.lit(values.get(name), dtype).alias(name)
        for name, dtype in CRAWLDB_SCHEMA.items()
        if name != "key"
    ]
    return pl.DataFrame({"key": encode_keys(urls)}).with_columns(constants)
