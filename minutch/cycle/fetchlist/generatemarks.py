"""Marks entries of the CrawlDb that are in a fetch list (generate.update.crawldb), so that the next
run leaves them out.

    <crawldb>/.generated := JSON {"segments": their folder, seen from the CrawlDb, "time": ms}

Segments come first and their marks after: pages that are marked and in no list would wait for days
(crawl.gen.delay). The file is there in between. Where a run was stopped then, the next one makes
the marks before it selects.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import polars as pl

from minutch import strictjson
from minutch.cycle.crawldb.mergedsegments import is_merged
from minutch.cycle.crawldb.partitions import EntryFilter, EntrySources, rewrite
from minutch.cycle.crawldb.schedule import AbstractFetchSchedule
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.fetchlist.lists import stamp
from minutch.cycle.segment.store import CRAWL_FETCH, CRAWL_GENERATE, Segment, segments_in
from minutch.errors import StoreError
from minutch.hadoop.formats.writables import LongWritable, MapWritable, Text
from minutch.job import Counters, Progress
from minutch.records.metadata import GENERATE_TIME_KEY
from minutch.terminal import counted
from minutch.work.engine import Engine
from minutch.work.tables.database import OutputSettings
from minutch.work.tables.install import sync_path
from minutch.work.tables.recordfiles import scan
from minutch.work.tables.shuffle import Shuffle

log = logging.getLogger(__name__)

RECORD: Final = ".generated"


def mark(
    db: CrawlDb,
    selected: Iterable[pl.Series],
    time: int,
    *,
    engine: Engine,
    output: OutputSettings,
    progress: Progress,
) -> None:
    """Puts `_ngt_` (`time`, ms) into the CrawlDb's entries of the selected URLs. The caller holds
    the lock.
    """

    def step(frames: tuple[pl.DataFrame, ...]) -> tuple[pl.DataFrame, Counters]:
        entries, marked = frames
        mask = entries["key"].is_in(marked["key"].implode())
        stamped = stamp(entries.filter(mask), time)
        rows = mask.arg_true()
        metadata = (
            entries["metadata"].clone().scatter(rows, stamped["metadata"])
            if len(rows)
            else entries["metadata"]
        )
        return entries.with_columns(metadata=metadata), Counters()

    schema, budget = pl.Schema({"key": pl.Binary()}), engine.memory // 4
    with (
        EntrySources([db], engine, EntryFilter(), spill=db.path) as old,
        Shuffle(engine.parts, schema, budget=budget, spill=db.path) as keys,
    ):
        for some in selected:
            keys.add(some.to_frame("key"))
        sources = [*old.sources, engine.local_source(keys)]
        rewrite(db, engine, output, sources, step, progress)


@contextmanager
def planned(db: CrawlDb, segments: Path, time: int) -> Iterator[None]:
    """Keeps the record while the block writes segments to `segments` and marks what is in them."""
    record = db.path / RECORD
    plan(db, segments, time)
    try:
        yield
    except BaseException:
        if not _lists(segments, time):  # nothing that would have to be marked
            record.unlink(missing_ok=True)
        raise
    record.unlink()


def plan(db: CrawlDb, segments: Path, time: int) -> None:
    """Writes the record; it is on disk, whole, when this returns."""
    record = db.path / RECORD
    fresh = record.with_name(f"{RECORD}.new")
    try:
        folder = os.path.relpath(str(segments), str(db.path))
        with fresh.open("w", encoding="utf-8") as stream:
            json.dump({"segments": folder, "time": time}, stream)
            stream.flush()
            os.fsync(stream.fileno())
        fresh.replace(record)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    sync_path(db.path)


def make_up(
    db: CrawlDb, schedule: AbstractFetchSchedule, mark: Callable[[Iterable[pl.Series], int], None]
) -> None:
    """Marks the entries of a run that was stopped before it did; the caller holds the lock. Raises
    StoreError.
    """
    record = db.path / RECORD
    record.with_name(f"{RECORD}.new").unlink(missing_ok=True)
    if not record.exists():
        return
    folder, time = _read(record)
    lists = [
        segment for segment in _lists(db.path / folder, time) if not _is_over(segment, db, schedule)
    ]
    if lists:
        log.info(
            "Generator: marking the pages of %s, which a run that was stopped has left",
            counted(len(lists), "segments"),
        )
        mark(keys_in(lists), time)
    record.unlink()


def keys_in(lists: Iterable[Segment]) -> Iterator[pl.Series]:
    """Yields the keys of the entries in the fetch lists of some segments."""
    return (table["key"] for segment in lists for table in _entries(segment))


def _read(record: Path) -> tuple[str, int]:
    try:
        data = strictjson.loads(record.read_text(encoding="utf-8"))
        return str(data["segments"]), int(data["time"])
    except (ValueError, KeyError, TypeError) as exc:
        raise StoreError(
            f"{record}: expected JSON with segments and time, found something else ({exc}): remove"
            " the file, and fetch the newest segments before you generate others"
        ) from exc


def _lists(folder: Path, time: int) -> list[Segment]:
    """Returns the segments in a folder that were generated at `time`."""
    found = segments_in(folder) if folder.is_dir() else []
    return [
        segment for segment in found if segment.has(CRAWL_GENERATE) and _time_of(segment) == time
    ]


def _time_of(segment: Segment) -> int | None:
    """Returns the time a segment was generated, by the mark of its first entry."""
    for table in _entries(segment):
        if len(table) and table["metadata"][0] is not None:
            mark = MapWritable.from_bytes(table["metadata"][0]).get(Text(GENERATE_TIME_KEY))
            return mark.value if isinstance(mark, LongWritable) else None
    return None


def _entries(segment: Segment) -> Iterator[pl.DataFrame]:
    return (table for part in segment.data_files(CRAWL_GENERATE) for table in scan(part))


def _is_over(segment: Segment, db: CrawlDb, schedule: AbstractFetchSchedule) -> bool:
    """Returns True if the results of a segment are in the CrawlDb."""
    return segment.has(CRAWL_FETCH) and is_merged(segment, db, schedule)
