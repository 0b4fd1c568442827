"""Merges files of segments into a CrawlDb: for updatedb, and for an import that brings a CrawlDb
along.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import polars as pl

from minutch.cycle.crawldb.partitions import EntryFilter, EntrySources, patch
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.crawldb.transitions import UpdateSettings, update
from minutch.job import Counters, Progress
from minutch.records.crawldatum import STATUS_LINKED
from minutch.records.crawldatum_columns import PACKED_SCHEMA
from minutch.urls.hostcolumns import lack_host
from minutch.work.engine import Engine, Task
from minutch.work.tables.database import OutputSettings
from minutch.work.tables.recordfiles import scan_packed
from minutch.work.tables.spans import InputSplit


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
    counters.merge(old.counters)
    counters.merge(updated)
    return counters


def _with_hosts(frame: pl.DataFrame) -> pl.DataFrame:
    """Leaves out links to what names no host, which Nutch's segments have: it can't be fetched."""
    linked = frame["status"] == STATUS_LINKED
    hostless = linked & lack_host(frame["key"]) if linked.any() else linked
    return frame.filter(~hostless) if hostless.any() else frame
