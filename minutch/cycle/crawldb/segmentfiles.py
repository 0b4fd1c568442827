"""Files of segments merged into a CrawlDb: what updatedb does, and an import that brings a CrawlDb
along.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import polars as pl

from minutch.cycle.crawldb.partitions import Entries, EntryFilter, patch
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.crawldb.transitions import UpdateSettings, update
from minutch.job import Counters, JobContext
from minutch.records.crawldatum.table import PACKED_SCHEMA
from minutch.work.engine import Task, engine_of
from minutch.work.tables.packed import scan_packed
from minutch.work.tables.spans import FileOrSplit


def merge_files(
    db: CrawlDb,
    files: Iterable[Path],
    context: JobContext,
    settings: UpdateSettings,
    entry_filter: EntryFilter,
    *,
    now: int,
) -> Counters:
    """Merge part files of <Text, CrawlDatum>, in their order, into `db`, which is made if there is
    none.

    The caller holds the lock. Returns what became of the URLs. Raises FormatError (damage); the
    CrawlDb is then as before.
    """
    conf = context.conf
    engine = engine_of(conf)

    def read(task: Task, place: FileOrSplit) -> Iterator[pl.DataFrame]:
        for frame in scan_packed(place):
            yield entry_filter.apply(frame, task.counters)
            task.advance(len(frame))

    with (
        Entries([db], conf, entry_filter, spill=db.path, packed=True) as old,
        context.progress("updatedb") as progress,
        engine.shuffle(
            read, engine.splits(files), PACKED_SCHEMA, conf, progress, spill=db.path
        ) as updates,
    ):
        updated = patch(
            db,
            conf,
            [*old.sources, updates],
            lambda frames: update(frames[0], frames[1], settings, now),
            progress,
        )
    counters = Counters(updates.counters)
    counters.merge(old.counters)
    counters.merge(updated)
    return counters
