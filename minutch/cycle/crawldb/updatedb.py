"""updatedb: merges the results of segments (fetches, parses, links) into the CrawlDb.

Every URL of the CrawlDb and of the segments' crawl_fetch and crawl_parse leaves through one
counter: by the status of its new entry, or by the reason why it has none. `transitions` decides
which. Source: org.apache.nutch.crawl.CrawlDb.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from minutch.cycle.crawldb.partitions import EntryFilter
from minutch.cycle.crawldb.segmentfiles import merge_files
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.crawldb.transitions import UpdateSettings
from minutch.cycle.segment.store import Segment, segments_at
from minutch.errors import StoreError
from minutch.job import Counters, JobContext
from minutch.work.engine import engine_of
from minutch.work.tables.database import OutputSettings

log = logging.getLogger(__name__)
FETCH_PART: Final = "crawl_fetch"
PARSE_PART: Final = "crawl_parse"


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
        conf, normalize=options.normalize, filtering=options.filtering
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
    held = segments_at(segments)
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
    """Returns the part files of a segment that an update reads; none, with a warning, if it has no
    crawl_fetch.
    """
    segment.check()
    if not segment.has(FETCH_PART):
        log.warning("CrawlDb update: skipping %s, which has no %s", segment.path, FETCH_PART)
        return []
    found = segment.parts(FETCH_PART)
    if segment.has(PARSE_PART):
        return found + segment.parts(PARSE_PART)
    log.info("CrawlDb update: %s is fetched but not parsed", segment.path)
    return found
