"""updatedb: merges the results of segments (fetches, parses, links) into the CrawlDb, and tells
whether a segment has been merged.

Every URL of the CrawlDb and of the segments' crawl_fetch and crawl_parse leaves through one
counter: by the status of its new entry, or by the reason why it has none. `transitions` decides
which. An import that brings a CrawlDb along merges files in the same way.

updatedb brings in a segment as a whole, and an entry's fetch time and interval say when its page
was last fetched. So one page is enough whose entry was last fetched at the very millisecond at
which the segment has it: for a round that was stopped between updatedb and its record. Source:
org.apache.nutch.crawl.CrawlDb.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import polars as pl

from minutch.conf import Configuration
from minutch.cycle.crawldb.partitions import EntryFilter, EntrySources, patch
from minutch.cycle.crawldb.schedule import AbstractFetchSchedule, fetch_schedule
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.crawldb.transitions import UpdateSettings, update
from minutch.cycle.segment.compaction import KnownUrls
from minutch.cycle.segment.store import CRAWL_FETCH, Segment, segments_at
from minutch.errors import StoreError
from minutch.job import Counters, JobContext, Progress
from minutch.records.crawldatum import (
    STATUS_DB_DUPLICATE,
    STATUS_DB_FETCHED,
    STATUS_DB_GONE,
    STATUS_DB_NOTMODIFIED,
    STATUS_DB_REDIR_PERM,
    STATUS_DB_REDIR_TEMP,
    STATUS_FETCH_GONE,
    STATUS_FETCH_NOTMODIFIED,
    STATUS_FETCH_REDIR_PERM,
    STATUS_FETCH_REDIR_TEMP,
    STATUS_FETCH_SUCCESS,
    STATUS_LINKED,
)
from minutch.records.crawldatum_columns import PACKED_SCHEMA
from minutch.urls.hostcolumns import lack_host
from minutch.work.engine import Engine, Task, engine_of
from minutch.work.tables.database import OutputSettings
from minutch.work.tables.frame import concat
from minutch.work.tables.recordfiles import scan, scan_packed
from minutch.work.tables.spans import InputSplit

log = logging.getLogger(__name__)
FETCH_PART: Final = "crawl_fetch"
PARSE_PART: Final = "crawl_parse"
_FETCHED: Final = [
    STATUS_FETCH_SUCCESS,
    STATUS_FETCH_NOTMODIFIED,
    STATUS_FETCH_REDIR_TEMP,
    STATUS_FETCH_REDIR_PERM,
    STATUS_FETCH_GONE,
]
_KNOWN: Final = [
    STATUS_DB_FETCHED, STATUS_DB_NOTMODIFIED, STATUS_DB_DUPLICATE, STATUS_DB_REDIR_TEMP,
    STATUS_DB_REDIR_PERM, STATUS_DB_GONE,
]  # fmt: skip


def merge_files(
    db: CrawlDb,
    files: Iterable[Path],
    settings: UpdateSettings,
    entry_filter: EntryFilter,
    now: int,
    *,
    engine: Engine,
    output: OutputSettings,
    progress: Progress,
) -> Counters:
    """Merges part files of <Text, CrawlDatum>, in their order, into `db`, which is made if there is
    none.

    The caller holds the lock. Returns what became of the URLs. Raises FormatError (damage); the
    CrawlDb is then as before.
    """

    def read(task: Task, piece: InputSplit) -> Iterator[pl.DataFrame]:
        for frame in scan_packed(piece):
            yield entry_filter.apply(_with_hosts(frame), task.counters)
            task.advance(len(frame))

    with (
        EntrySources([db], engine, entry_filter, spill=db.path, packed=True) as old,
        engine.shuffle(
            read, engine.splits(files), PACKED_SCHEMA, progress, spill=db.path
        ) as updates,
    ):
        updated = patch(
            db,
            engine,
            output,
            [*old.sources, updates],
            lambda frames: update(frames[0], frames[1], settings, now),
            progress,
        )
    counters = Counters(updates.counters)
    counters.merge(old.counters)  # complete now that all parts have been read
    counters.merge(updated)
    return counters


def _with_hosts(frame: pl.DataFrame) -> pl.DataFrame:
    """Leaves out links to what names no host, which Nutch's segments have: it can't be fetched."""
    linked = frame["status"] == STATUS_LINKED
    hostless = linked & lack_host(frame["key"]) if linked.any() else linked
    return frame.filter(~hostless) if hostless.any() else frame


@dataclass(frozen=True, slots=True)
class UpdateOptions:
    """The options of updatedb; None: as the configuration says."""

    normalize: bool | None = None
    """Whether the URL normalizers apply (crawldb.url.normalizers)."""
    filtering: bool | None = None
    """Whether the URL filters apply (crawldb.url.filters)."""
    additions: bool | None = None
    """Whether new URLs are added (db.update.additions.allowed)."""
    force: bool = False
    """Whether another process's lock is passed over."""
    of_waiting: bool = False
    """Whether normalizers and filters apply to what was never asked for alone."""


def updatedb(
    crawldb: Path,
    segments: Sequence[Path],
    options: UpdateOptions = UpdateOptions(),
    *,
    context: JobContext,
) -> Counters:
    """Merges `segments` into the CrawlDb at `crawldb`, which is made if there is none.

    Returns what became of the URLs. Raises LockedError, StoreError (nothing to read at all),
    FormatError (damage); the CrawlDb is then as before.
    """
    conf = context.conf
    entry_filter = EntryFilter.from_conf(
        conf,
        normalize=options.normalize,
        filtering=options.filtering,
        of_waiting=options.of_waiting,
    )
    settings = UpdateSettings.from_conf(conf)
    if options.additions is not None:
        settings = replace(settings, additions=options.additions)
    log.info("CrawlDb update: starting")
    log.info("CrawlDb update: db: %s", crawldb)
    log.info("CrawlDb update: segments: %s", [str(segment) for segment in segments])
    log.info("CrawlDb update: additions allowed: %s", str(settings.additions).lower())
    log.info("CrawlDb update: URL normalizing: %s", str(entry_filter.normalizes).lower())
    log.info("CrawlDb update: URL filtering: %s", str(entry_filter.filters).lower())
    log.info("CrawlDb update: 404 purging: %s", str(entry_filter.purges_gone).lower())
    db, now = CrawlDb(crawldb), context.clock.now()
    held = segments_at(dict.fromkeys(segments))  # one that is named twice counts once
    inputs = [path for segment in held for path in _inputs(segment)]
    if not inputs and not db.exists():
        raise StoreError(
            f"nothing to update: no CrawlDb in {crawldb}, and no segment with {FETCH_PART}"
        )
    engine, output = engine_of(conf), OutputSettings.from_conf(conf)
    with db.lock(options.force), context.progress("updatedb") as progress:
        counters = merge_files(
            db, inputs, settings, entry_filter, now, engine=engine, output=output, progress=progress
        )
    log.info("CrawlDb update: finished")
    return counters


def _inputs(segment: Segment) -> list[Path]:
    """Returns the part files of a segment for an update; none, and a warning, if not fetched."""
    segment.check()
    if not segment.has(FETCH_PART):
        log.warning("CrawlDb update: skipping %s, which has no %s", segment.path, FETCH_PART)
        return []
    found = segment.parts(FETCH_PART)
    if segment.has(PARSE_PART):
        return found + segment.parts(PARSE_PART)  # as CrawlDb.update adds them
    log.info("CrawlDb update: %s is fetched but not parsed", segment.path)
    return found


def is_merged(
    segment: Segment, db: CrawlDb, schedule: AbstractFetchSchedule, *, or_later: bool = False
) -> bool:
    """Returns True if updatedb of `segment` is done, or with `or_later` that of one with later
    fetches of its pages; False, too, where no page shows it.
    """
    if not db.exists():
        return False
    tables = [table for part in segment.parts(CRAWL_FETCH) for table in scan(part)]
    fetched = (
        concat(tables).filter(pl.col("status").is_in(_FETCHED)).select("key", fetched="fetch_time")
    )
    for index in range(len(db.parts())):  # the first page that shows it ends the search
        for table in db.scan_part(index):
            known = table.filter(pl.col("status").is_in(_KNOWN)).join(fetched, on="key")
            last = schedule.calculate_last_fetch_time_columns(known)
            if len(known) and (
                (last == known["fetched"]).any() or (or_later and (last > known["fetched"]).any())
            ):
                return True
    return False


def known_urls(crawldb: Path, conf: Configuration) -> KnownUrls | None:
    """Returns what compaction asks of a CrawlDb; None if there is none."""
    db, schedule = CrawlDb(crawldb), fetch_schedule(conf)
    if not db.exists():
        return None
    return KnownUrls(
        db.parts(),
        schedule.calculate_last_fetch_time_columns,
        lambda segment: is_merged(segment, db, schedule, or_later=True),
    )
