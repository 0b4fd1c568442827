"""A segment counts as merged into the CrawlDb from updatedb on."""

from __future__ import annotations

from pathlib import Path

import pytest

from minutch import jobs
from minutch.cycle.crawldb.schedule import fetch_schedule
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.crawldb.updatedb import is_merged
from minutch.cycle.segment.store import Segment
from minutch.records.crawldatum import (
    STATUS_DB_FETCHED,
    STATUS_DB_UNFETCHED,
    STATUS_FETCH_GONE,
    STATUS_FETCH_NOTMODIFIED,
    STATUS_FETCH_REDIR_PERM,
    STATUS_FETCH_RETRY,
    STATUS_FETCH_SUCCESS,
    CrawlDatum,
)
from tests.support.crawldbs import DAY, NOW, context, write_db, write_segment

URL = "http://example.org/"
INTERVAL = 30 * DAY // 1000


def applied(folder: Path) -> bool:
    return is_merged(
        Segment(folder / "segment"), CrawlDb(folder / "db"), fetch_schedule(context().conf)
    )


@pytest.mark.parametrize("schedule", ["DefaultFetchSchedule", "AdaptiveFetchSchedule"])
@pytest.mark.parametrize(
    ("status", "shows"),
    [
        (STATUS_FETCH_SUCCESS, True),
        (STATUS_FETCH_NOTMODIFIED, True),
        (STATUS_FETCH_REDIR_PERM, True),
        (STATUS_FETCH_GONE, True),
        (STATUS_FETCH_RETRY, False),
    ],
)
def test_before_and_after_updatedb(tmp_path: Path, schedule: str, status: int, shows: bool) -> None:
    known = CrawlDatum(STATUS_DB_FETCHED, INTERVAL, 1.0, fetch_time=NOW - DAY, signature=b"s" * 16)
    write_db(
        tmp_path / "db",
        [(URL, known), ("http://other.org/", CrawlDatum(STATUS_DB_UNFETCHED, INTERVAL, 1.0))],
    )
    write_segment(tmp_path / "segment", [(URL, CrawlDatum(status, INTERVAL, 1.0, fetch_time=NOW))])
    assert not applied(tmp_path)
    conf = context({"db.fetch.schedule.class": f"org.apache.nutch.crawl.{schedule}"}).conf
    jobs.run("updatedb", tmp_path / "db", tmp_path / "segment", conf=conf)
    assert applied(tmp_path) is shows


def test_no_crawldb_and_no_pages(tmp_path: Path) -> None:
    write_segment(tmp_path / "segment", [])
    assert not applied(tmp_path)
    write_db(tmp_path / "db", [(URL, CrawlDatum(STATUS_DB_FETCHED, INTERVAL, 1.0, fetch_time=NOW))])
    assert not applied(tmp_path)
