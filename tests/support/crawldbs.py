"""Small CrawlDbs and segments for tests."""

import io
from collections.abc import Iterable, Mapping
from pathlib import Path

from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.cycle.crawldb.store import CrawlDb
from minutch.hadoop.formats.writables import MapWritable, Text
from minutch.job import JobContext
from minutch.records import crawldatum_columns
from minutch.records.crawldatum import CrawlDatum
from minutch.work.tables.compression import PLAIN, Compression
from minutch.work.tables.frame import sort_by_key
from minutch.work.tables.recordfiles import CrawlDataWriter
from minutch.work.tables.shuffle import split

NOW = 1_800_000_000_000
DAY = 86_400_000

Entries = Iterable[tuple[str, CrawlDatum]]


def context(settings: Mapping[str, str] | None = None, *, now: int = NOW) -> JobContext:
    """A job's context without any plugins, save those that `settings` name."""
    conf = Configuration.load(
        [], overrides={"plugin.includes": "nutch-extensionpoints", **(settings or {})}
    )
    return JobContext(conf, clock=FakeClock(now), out=io.StringIO(), err=io.StringIO())


def printed(job: JobContext) -> str:
    """Returns what the job printed."""
    assert isinstance(job.out, io.StringIO)
    return job.out.getvalue()


def metadata(**entries: str) -> MapWritable:
    """Metadata of texts."""
    return MapWritable({Text(key): Text(value) for key, value in entries.items()})


def write_db(
    path: Path, entries: Entries, *, parts: int = 1, compression: Compression = PLAIN
) -> CrawlDb:
    """A CrawlDb with these entries."""
    for index, part in enumerate(split(crawldatum_columns.to_frame(entries), parts)):
        with CrawlDb.part_writer(path / "current", index, compression) as writer:
            writer.write(sort_by_key(part))
    return CrawlDb(path)


def read_db(path: Path) -> dict[str, CrawlDatum]:
    """URL -> entry of a whole CrawlDb."""
    db = CrawlDb(path)
    return {
        url: datum
        for part in range(len(db.parts()))
        for url, datum in crawldatum_columns.records(db.read_part(part))
    }


def write_segment(path: Path, fetched: Entries, parsed: Entries | None = None) -> Path:
    """A segment with a crawl_fetch and, if given, a crawl_parse."""
    with CrawlDataWriter(path / "crawl_fetch/part-r-00000", compression="RECORD") as writer:
        writer.write(sort_by_key(crawldatum_columns.to_frame(fetched)))
    if parsed is not None:
        (path / "crawl_parse").mkdir(parents=True)
        with CrawlDataWriter(
            path / "crawl_parse/part-r-00000", mapfile=False, compression="RECORD"
        ) as writer:
            writer.write(crawldatum_columns.to_frame(parsed))
    return path
