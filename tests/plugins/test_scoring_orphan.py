"""scoring-orphan: pages without links are marked after a time, in rows and in columns alike."""

from __future__ import annotations

from pathlib import Path
from random import Random

import polars as pl
import pytest

from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.cycle.crawldb.updatedb import updatedb
from minutch.hadoop.formats.writables import IntWritable, MapWritable, Text
from minutch.records.crawldatum import (
    STATUS_DB_FETCHED,
    STATUS_DB_GONE,
    STATUS_DB_ORPHAN,
    STATUS_DB_UNFETCHED,
    STATUS_FETCH_SUCCESS,
    STATUS_LINKED,
    CrawlDatum,
)
from minutch.records.crawldatum_columns import to_frame
from minutch.work.tables.recordfiles import pack
from plugins.scoring_orphan.orphan import LAST_LINKED, OrphanScoringFilter
from tests.support.crawldbs import context, read_db, write_db, write_segment

DAY = 86400
NOW = 1_700_000_000
"""Seconds since the epoch."""


def scoring(**days: int) -> OrphanScoringFilter:
    values = {f"scoring.orphan.mark.{name}.after": str(count * DAY) for name, count in days.items()}
    conf = Configuration().with_values(values)
    conf.clock = FakeClock(NOW * 1000)
    return OrphanScoringFilter(conf, {})


def page(days: float | None, status: int = STATUS_DB_FETCHED, **more: str) -> CrawlDatum:
    """A page that a link was seen to so many days ago."""
    metadata = MapWritable({Text(name): Text(value) for name, value in more.items()})
    if days is not None:
        metadata[LAST_LINKED] = IntWritable(int(NOW - days * DAY))
    return CrawlDatum(status=status, metadata=metadata)


@pytest.mark.parametrize(
    ("days", "status"),
    [
        (None, STATUS_DB_FETCHED),
        (30, STATUS_DB_FETCHED),
        (30.1, STATUS_DB_GONE),
        (40, STATUS_DB_GONE),
        (40.1, STATUS_DB_ORPHAN),
        (-5, STATUS_DB_FETCHED),
    ],
)
def test_status_by_time(days: float | None, status: int) -> None:
    datum = page(days)
    scoring().orphaned_score("", datum)
    assert datum.status == status


@pytest.mark.parametrize("turn", [2**31, 2**32, 3 * 2**31])
def test_seconds_go_around_in_32_bits(turn: int) -> None:
    """The first time on 2038-01-19; ages stay right, in rows and in columns."""
    for days, status in (
        (1, STATUS_DB_FETCHED),
        (35, STATUS_DB_GONE),
        (45, STATUS_DB_ORPHAN),
    ):
        then, now = scoring(), scoring()
        then.clock = FakeClock((turn + 5 * DAY - days * DAY) * 1000)
        now.clock = FakeClock((turn + 5 * DAY) * 1000)
        linked = page(None)
        then.update_db_score("", None, linked, [page(None)])
        frame = to_frame([("http://a/", linked)])
        now.orphaned_score("", linked)
        assert linked.status == status
        assert now.orphaned_score_columns(frame)["status"].to_list() == [status]


def test_a_link_is_remembered() -> None:
    datum = page(50)
    scoring().update_db_score("", None, datum, [CrawlDatum()])
    assert (datum.status, datum.metadata[LAST_LINKED]) == (STATUS_DB_FETCHED, IntWritable(NOW))
    scoring().update_db_score("", None, datum, [])
    assert datum.status == STATUS_DB_FETCHED


def test_times_are_configured(caplog: pytest.LogCaptureFixture) -> None:
    datum = page(3)
    scoring(gone=2, orphan=9).orphaned_score("", datum)
    assert datum.status == STATUS_DB_GONE
    datum = page(3)
    scoring(gone=9, orphan=2).orphaned_score("", datum)
    assert datum.status == STATUS_DB_ORPHAN
    assert "never marked as gone" in caplog.text


def some_page(random: Random) -> CrawlDatum:
    days = random.choice([None, 1, 29, 30, 31, 39, 41, 4000])
    more = random.choice(
        [{}, {"_pst_": "success(1)"}, {"_orphan_x": "1", "a": "_orphan_", "é" * 9: "z"}]
    )
    datum = page(days, random.choice([STATUS_DB_FETCHED, STATUS_DB_UNFETCHED]), **more)
    if random.random() < 0.1:
        datum.metadata[LAST_LINKED] = Text("12")  # whatever wrote that
    return datum


def test_columns_do_what_rows_do() -> None:
    random = Random(5)
    pages = [(f"http://a/{i}", some_page(random)) for i in range(400)]
    linked = sorted(random.choices(range(400), k=200))
    frame = to_frame(pages)
    inlinks = pack(
        to_frame((pages[row][0], CrawlDatum(STATUS_LINKED)) for row in linked)
    ).with_columns(row=pl.Series(linked, dtype=pl.UInt32))
    columns = scoring()
    updated = columns.update_db_score_columns(frame, frame.clear(len(frame)), inlinks)
    orphaned = columns.orphaned_score_columns(frame)
    for row, (url, datum) in enumerate(pages):
        alone = CrawlDatum(status=datum.status, metadata=datum.metadata.copy())
        columns.orphaned_score(url, alone)
        assert orphaned["status"][row] == alone.status
        columns.update_db_score(url, None, datum, [CrawlDatum()] * linked.count(row))
    assert updated.equals(to_frame(pages))
    assert orphaned.drop("status").equals(frame.drop("status"))


def test_updatedb_marks_and_purges(tmp_path: Path) -> None:
    db = write_db(
        tmp_path / "db",
        [
            ("http://a/", page(None)),
            ("http://a/gone", page(35)),
            ("http://a/linked", page(50)),
            ("http://a/orphan", page(50)),
        ],
    )
    segment = write_segment(
        tmp_path / "seg",
        [("http://a/", CrawlDatum(STATUS_FETCH_SUCCESS, fetch_time=NOW * 1000))],
        [
            ("http://a/linked", CrawlDatum(STATUS_LINKED)),
            ("http://a/new", CrawlDatum(STATUS_LINKED)),
        ],
    )
    settings = {
        "plugin.includes": "nutch-extensionpoints|scoring-orphan",
        "db.update.purge.orphans": "true",
    }
    updatedb(db.path, [segment], context=context(settings, now=NOW * 1000))
    found = read_db(db.path)
    assert {url: datum.status for url, datum in found.items()} == {
        "http://a/": STATUS_DB_FETCHED,
        "http://a/gone": STATUS_DB_GONE,
        "http://a/linked": STATUS_DB_FETCHED,
        "http://a/new": STATUS_DB_UNFETCHED,
        "http://a/orphan": STATUS_DB_ORPHAN,
    }
    assert found["http://a/new"].metadata == {LAST_LINKED: IntWritable(NOW)}
    updatedb(db.path, [], context=context(settings, now=NOW * 1000))
    assert "http://a/orphan" not in read_db(db.path)
