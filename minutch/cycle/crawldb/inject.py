"""inject: puts seed URLs into the CrawlDb.

    in the CrawlDb   in the seeds   what is written
    yes              no             the old entry
    no               yes            a new one, db_unfetched, due now
    yes              yes            the old entry; with -update also the seed's metadata, and its
                                    score and interval if they are not the defaults; with
                                    -overwrite the new one

Of a URL that is in the seeds more than once the last line counts (files by name, lines in their
order). Where a CrawlDb has two entries of one URL, the last one counts. Every seed leaves through
one counter. Source: org.apache.nutch.crawl.Injector.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from minutch.cycle.crawldb import scoring
from minutch.cycle.crawldb.matching import last, last_of_key, match, put_rows
from minutch.cycle.crawldb.partitions import (
    PURGE_GONE_PROPERTY,
    PURGED_GONE,
    EntryFilter,
    EntrySources,
    rewrite,
)
from minutch.cycle.crawldb.seeds import (
    Defaults,
    SeedText,
    new_entries,
    seed_files,
    seed_texts,
    seeds_in,
)
from minutch.cycle.crawldb.store import CrawlDb
from minutch.job import Counters, JobContext
from minutch.plugin.chains import SCOPE_INJECT
from minutch.plugin.urlrules import FILTERED, MALFORMED, UrlRules
from minutch.records import rawmap
from minutch.records.crawldatum import STATUS_DB_UNFETCHED
from minutch.records.crawldatum_columns import CRAWLDB_SCHEMA
from minutch.work.engine import Task, engine_of
from minutch.work.tables.database import OutputSettings
from minutch.work.tables.parallel import ordered

log = logging.getLogger(__name__)
REJECTED: Final = "seeds rejected"
DUPLICATES: Final = "seeds given more than once"
MERGED: Final = "seeds already in the CrawlDb"
NEW: Final = "seeds new"
_REPORTED: Final = 10  # rejected lines of a file that are named in the log
PURGED_BY_FILTER: Final = "entries rejected by filters"


@dataclass(frozen=True, slots=True)
class InjectOptions:
    """The options of inject."""

    overwrite: bool = False
    """Whether a seed replaces the entry of its URL."""
    update: bool = False
    """Whether a seed's metadata, score and interval go into the entry of its URL."""
    normalize: bool = True
    """Whether the URL normalizers apply."""
    filtering: bool = True
    """Whether the URL filters apply."""
    filter_normalize_all: bool = False
    """Whether normalizers and filters apply to the CrawlDb's entries, too."""


def inject(
    crawldb: Path, url_dir: Path, options: InjectOptions = InjectOptions(), *, context: JobContext
) -> Counters:
    """Injects the seeds of `url_dir` into the CrawlDb at `crawldb`, which is made if there is none.

    Returns what became of the seeds and entries. Raises StoreError (no seeds), LockedError,
    FormatError (damage); the CrawlDb is then as before.
    """
    conf = context.conf
    log.info("Injector: starting")
    log.info("Injector: crawlDb: %s", crawldb)
    log.info("Injector: urlDir: %s", url_dir)
    log.info("Injector: overwrite: %s", str(options.overwrite).lower())
    log.info("Injector: update: %s", str(options.update).lower())
    files = seed_files(url_dir)  # before the lock: the list may be missing
    now = conf.get_long("injector.current.time", context.clock.now())
    db, defaults = CrawlDb(crawldb), Defaults.from_conf(conf, now=now)
    rules = UrlRules(
        conf,
        normalize=options.normalize,
        filtering=options.filtering,
        scope=SCOPE_INJECT,
        keep_on_error=False,
    )
    entry_filter = EntryFilter(
        rules if options.filter_normalize_all else None,
        purges_gone=conf.get_boolean(PURGE_GONE_PROPERTY),
    )
    engine, output = engine_of(conf), OutputSettings.from_conf(conf)

    def read(task: Task, path: Path) -> Iterator[pl.DataFrame]:
        for frame in _read(path, rules, defaults, task.counters):
            yield frame
            task.advance(len(frame))

    with (
        db.lock(),
        EntrySources([db], engine, entry_filter, spill=crawldb) as old,
        context.progress("inject") as progress,
        engine.shuffle(read, files, CRAWLDB_SCHEMA, progress, spill=crawldb) as seeds,
    ):
        written = rewrite(
            db,
            engine,
            output,
            [*old.sources, seeds],
            lambda frames: add_seeds(
                frames[0], frames[1], defaults, overwrite=options.overwrite, update=options.update
            ),
            progress,
        )
    counters = Counters(seeds.counters)
    _summarize(counters, written, seeds.rows, old.counters)
    # in Nutch's words
    unique = counters[NEW] + counters[MERGED]
    log.info("Injector: Total urls rejected by filters: %d", counters[REJECTED])
    log.info(
        "Injector: Total urls injected after normalization and filtering: %d (unique URLs: %d)",
        counters["seeds"] - counters[REJECTED],
        unique,
    )
    log.info("Injector: Total urls injected but already in CrawlDb: %d", counters[MERGED])
    log.info("Injector: Total new urls injected: %d", counters[NEW])
    if options.filter_normalize_all:
        log.info(
            "Injector: Total urls removed from CrawlDb by filters: %d",
            counters.get(PURGED_BY_FILTER, 0),
        )
    if entry_filter.purges_gone:
        log.info(
            "Injector: Total urls with status gone removed from CrawlDb (%s): %d",
            PURGE_GONE_PROPERTY,
            counters.get(PURGED_GONE, 0),
        )
    log.info("Injector: finished")
    return counters


class _Injected(NamedTuple):
    """A piece of a seed file as entries."""

    entries: pl.DataFrame
    rejected: pl.DataFrame  # the seeds that normalizers or filters reject
    counters: Counters


def _read(
    path: Path, rules: UrlRules, defaults: Defaults, counters: Counters
) -> Iterator[pl.DataFrame]:
    """Yields a file's seeds as entries. Rejected lines are counted, the first of them logged."""

    def injected(text: SeedText) -> _Injected:
        lines, counted = seeds_in(text), Counters()
        urls = rules.apply(lines["url"], counted)
        passes = urls.is_not_null()
        if passes.all():  # nothing to copy
            accepted, rejected = lines.with_columns(url=urls), lines.clear()
        else:
            accepted, rejected = lines.with_columns(url=urls).filter(passes), lines.filter(~passes)
        entries = scoring.injected_scores(
            new_entries(accepted, defaults, path), defaults.scoring, counted
        )
        return _Injected(entries, rejected, counted)

    log.info("Injecting seed URL file %s", path)
    count = 0
    for piece in ordered(injected, seed_texts(path)):
        counters.merge(piece.counters)
        for number, url in (
            piece.rejected.select("line", "url").head(max(0, _REPORTED - count)).iter_rows()
        ):
            log.warning("%s:%d: rejected: %s (%s)", path, number, url, rules.why_rejected(url))
        count += len(piece.rejected)
        yield piece.entries
    if count > _REPORTED:
        log.warning("%s: and %d more rejected", path, count - _REPORTED)


def add_seeds(
    old: pl.DataFrame, seeds: pl.DataFrame, defaults: Defaults, *, overwrite: bool, update: bool
) -> tuple[pl.DataFrame, Counters]:
    """Returns the entries with the seeds added; tables are sorted by key
    (Injector.InjectReducer).
    """
    old, counters = last_of_key(old), Counters()
    found = match(seeds["key"], old["key"])
    rows = last(np.arange(len(seeds)), found.group)  # the last line of each URL
    counters.add(DUPLICATES, len(seeds) - len(rows))
    if not len(rows):
        return old, counters
    unique = (seeds if len(rows) == len(seeds) else seeds[rows]).with_columns(
        status=pl.lit(STATUS_DB_UNFETCHED, pl.UInt8)
    )
    known = found.at >= 0
    counters.add(MERGED, int(known.sum()))
    counters.add(NEW, int((~known).sum()))
    if overwrite or not known.any():
        return put_rows(old, found.at, found.before, unique), counters
    if update:
        old = _updated(old, pl.Series(found.at[known]), unique.filter(known), defaults)
    return put_rows(old, found.at[~known], found.before[~known], unique.filter(~known)), counters


def _updated(
    old: pl.DataFrame, at: pl.Series, seeds: pl.DataFrame, defaults: Defaults
) -> pl.DataFrame:
    """Returns the entries, those at rows `at` updated from their seeds."""
    before = old.select(pl.col("score", "fetch_interval", "metadata").gather(at))
    metadata = [
        rawmap.merge(own, seed)
        for own, seed in zip(before["metadata"], seeds["metadata"], strict=True)
    ]
    # InjectReducer: only values that are not the default.
    own_score = seeds["score"] != defaults.score
    own_interval = seeds["fetch_interval"] != defaults.interval
    return old.with_columns(
        score=old["score"].scatter(at, seeds["score"].zip_with(own_score, before["score"])),
        fetch_interval=old["fetch_interval"].scatter(
            at, seeds["fetch_interval"].zip_with(own_interval, before["fetch_interval"])
        ),
        metadata=old["metadata"].scatter(at, pl.Series(metadata, dtype=pl.Binary)),
    )


def _summarize(counters: Counters, merged: Counters, injected: int, entries: Counters) -> None:
    """Gives the job's counters their names and order."""
    rejected = counters.pop(FILTERED, 0) + counters.pop(MALFORMED, 0)
    counters.add(REJECTED, rejected)
    for name in (NEW, MERGED, DUPLICATES):
        counters.add(name, merged.get(name, 0))
    counters.add("seeds", rejected + injected)
    if PURGED_GONE in entries:
        counters.add(PURGED_GONE, entries[PURGED_GONE])
    if FILTERED in entries or MALFORMED in entries:
        counters.add(PURGED_BY_FILTER, entries.get(FILTERED, 0) + entries.get(MALFORMED, 0))
