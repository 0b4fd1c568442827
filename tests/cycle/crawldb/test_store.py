"""The CrawlDb: golden ones read whole and by URL, and written again byte for byte."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from minutch.cycle.crawldb.store import CrawlDb
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.records.crawldatum import CrawlDatum
from minutch.records.crawldatum_columns import CRAWLDB_SCHEMA, records
from minutch.work.tables.database import part_name
from minutch.work.tables.recordfiles import CRAWL_DATUM, CrawlDataWriter
from tests.support.examples import few
from tests.support.golden import GOLDEN, HAS_ALL, needs_golden

CRAWLDBS = sorted(
    (
        path.parent
        for path in GOLDEN.rglob("current")
        if (data := next(path.glob("part*/data"), None))
        and CRAWL_DATUM.encode() in data.read_bytes()[:120]
    ),
    key=lambda path: sum(file.stat().st_size for file in path.glob("current/*/data")),
)
"""The smallest first."""


@needs_golden
def test_there_are_golden_crawldbs() -> None:
    assert len(CRAWLDBS) > (50 if HAS_ALL else 10)


@pytest.mark.parametrize("path", few(CRAWLDBS, 20), ids=lambda path: str(path.relative_to(GOLDEN)))
def test_golden_crawldbs(path: Path, tmp_path: Path) -> None:
    db = CrawlDb(path)
    for number, part in enumerate(db.parts()):
        frame = db.read_part(number)
        with SequenceFileReader(part / "data") as reader:
            expected = [
                (str(key), CrawlDatum.from_bytes(value.to_bytes()))
                for key, value in reader.records()
            ]
            sync, same_writer = reader.sync, reader.position < 100_000 and reader.version == 6
        assert frame.schema == CRAWLDB_SCHEMA
        assert list(records(frame)) == expected
        for url, datum in expected[:: max(1, len(expected) // 5)]:
            assert db.get(url) == datum
        assert db.get("http://not.there.example/") is None
        with CrawlDataWriter(tmp_path / part_name(number), sync=sync) as writer:
            writer.write(frame)
        if same_writer and "testresources" not in str(path):
            assert (tmp_path / part_name(number) / "data").read_bytes() == (
                part / "data"
            ).read_bytes()


def frame_of(*urls: bytes) -> pl.DataFrame:
    """Entries with the given keys."""
    return pl.DataFrame(
        [(url, 1, 5, 0, 0, 100, 1.0, None, None) for url in urls],
        schema=CRAWLDB_SCHEMA,
        orient="row",
    )


def test_replacing_keeps_a_backup(tmp_path: Path) -> None:
    db = CrawlDb(tmp_path / "crawldb")
    for url in (b"http://a/", b"http://b/"):
        with db.lock(), db.replacement(keep_old=True) as new, db.part_writer(new, 0) as writer:
            writer.write(frame_of(url))
    assert db.get("http://b/") is not None and db.get("http://a/") is None
    with CrawlDbOld(db) as old:
        assert old.get("http://a/") is not None


class CrawlDbOld:
    """The backup, seen as a CrawlDb of its own."""

    def __init__(self, db: CrawlDb) -> None:
        self._from, self._to = db.path / "old", db.path.parent / "backup" / "current"

    def __enter__(self) -> CrawlDb:
        self._to.parent.mkdir()
        self._from.rename(self._to)
        return CrawlDb(self._to.parent)

    def __exit__(self, *_: object) -> None:
        self._to.rename(self._from)


def test_a_look_up_does_not_depend_on_where_the_url_lies(tmp_path: Path) -> None:
    db = CrawlDb(tmp_path)
    urls = [b"http://host%d.example/" % i for i in range(20)]
    with db.lock(), db.replacement(keep_old=True) as new:
        for part in range(4):  # not by hash: as a merge by other rules may have left them
            with db.part_writer(new, part) as writer:
                writer.write(frame_of(*sorted(urls[part::4])))
    assert all(db.get(url.decode()) is not None for url in urls)
    assert db.get("http://host20.example/") is None
