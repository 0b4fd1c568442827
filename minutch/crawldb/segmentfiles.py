"""Files of segments merged into a CrawlDb: what updatedb does, and an import that brings a CrawlDb along."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from minutch.crawldb.partitions import Entries, EntryFilter, patch
from minutch.crawldb.store import CrawlDb
from minutch.crawldb.transitions import UpdateSettings, update
from minutch.job import Counters, JobContext
from minutch.tables.frame import PACKED_SCHEMA
from minutch.tables.packed import scan_packed
from minutch.tables.parallel import memory_budget, number_of_parts
from minutch.tables.shuffle import Shuffle


def merge_files(
    db: CrawlDb,
    files: Iterable[Path],
    context: JobContext,
    settings: UpdateSettings,
    entry_filter: EntryFilter,
    *,
    now: int,
) -> Counters:
    """Merge part files of <Text, CrawlDatum>, in their order, into `db`, which is made if there is none.

    The caller holds the lock. Returns what became of the URLs. Raises FormatError (damage); the CrawlDb is then as
    before.
    """
    conf = context.conf
    with (
        Entries([db], conf, entry_filter, spill=db.path, packed=True) as old,
        Shuffle(number_of_parts(conf), PACKED_SCHEMA, budget=memory_budget(conf) // 2, spill=db.path) as updates,
        context.progress("updatedb") as progress,
    ):
        counters = Counters()
        for path in files:
            for frame in scan_packed(path):
                updates.add(entry_filter.apply(frame, counters))
                progress.advance(len(frame))
        updated = patch(
            db,
            conf,
            lambda part: [*old.streams(part), updates.sorted(part)],
            lambda frames: update(frames[0], frames[1], settings, now),
            progress,
        )
    counters.merge(old.counters)
    counters.merge(updated)
    return counters
