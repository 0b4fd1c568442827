"""Decides whether a segment has been merged into the CrawlDb: for a round that was stopped between
updatedb and its record.

updatedb brings in a segment as a whole, and an entry's fetch time and interval say when its page
was last fetched. So one page is enough whose entry was last fetched at the very millisecond at
which the segment has it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import polars as pl

from minutch.conf import Configuration
from minutch.cycle.crawldb.schedule import AbstractFetchSchedule, fetch_schedule
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.segment.compaction import KnownUrls
from minutch.cycle.segment.store import CRAWL_FETCH, Segment
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
)
from minutch.work.tables.frame import concat
from minutch.work.tables.recordfiles import scan

_FETCHED: Final = [
    STATUS_FETCH_SUCCESS,
    STATUS_FETCH_NOTMODIFIED,
    STATUS_FETCH_REDIR_TEMP,
    STATUS_FETCH_REDIR_PERM,
    STATUS_FETCH_GONE,
]
_KNOWN: Final = [
    STATUS_DB_FETCHED,
    STATUS_DB_NOTMODIFIED,
    STATUS_DB_DUPLICATE,
    STATUS_DB_REDIR_TEMP,
    STATUS_DB_REDIR_PERM,
    STATUS_DB_GONE,
]


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
    for index in range(len(db.parts())):
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
