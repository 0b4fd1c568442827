"""Reads the entries of CrawlDbs, partition by partition, and writes the CrawlDb that a job makes.

A job is a function of one partition, which an engine runs (`minutch.engine`). Where a CrawlDb has
as many partitions as the job makes (mapreduce.job.reduces), partition i is read from part i as it
is, sorted. Otherwise, or where normalizing changes the URLs, all entries are partitioned and sorted
first. Either way entries with equal keys keep the order of the input: CrawlDbs in the order given,
parts by number, records as they stand.

Entries that are gone or orphaned are purged where db.update.purge.404 or db.update.purge.orphans
say so; then URL normalizers and filters apply. A plugin that fails on a URL (a bug, not a verdict)
never removes an entry. Source: org.apache.nutch.crawl.CrawlDbFilter, CrawlDb.createJob.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self, TypeVar

import polars as pl

from minutch.conf import Configuration
from minutch.cycle.crawldb.store import CrawlDb
from minutch.job import Counters
from minutch.plugin.chains import SCOPE_CRAWLDB
from minutch.plugin.urlrules import UrlRules
from minutch.records.crawldatum import STATUS_DB_GONE, STATUS_DB_ORPHAN, STATUS_DB_UNFETCHED
from minutch.records.crawldatum_columns import CRAWLDB_SCHEMA, PACKED_SCHEMA
from minutch.work.engine import Engine, Partition, Source, Task
from minutch.work.engine.selection import StoredParts
from minutch.work.tables.compression import Compression
from minutch.work.tables.database import OutputSettings, is_partitioned
from minutch.work.tables.frame import aligned, decode_keys, encode_keys
from minutch.work.tables.parallel import ordered
from minutch.work.tables.recordfiles import Patched, scan, scan_packed
from minutch.work.tables.spans import InputSplit
from minutch.work.tables.writer import TableWriter

if TYPE_CHECKING:
    from minutch.job import Progress

FILTER_PROPERTY: Final = "crawldb.url.filters"
NORMALIZE_PROPERTY: Final = "crawldb.url.normalizers"
PURGE_GONE_PROPERTY: Final = "db.update.purge.404"
PURGE_ORPHANS_PROPERTY: Final = "db.update.purge.orphans"

PURGED_GONE: Final = "gone entries removed"
PURGED_ORPHANS: Final = "orphaned entries removed"

_STEP_ROWS: Final = 1 << 17
"""Rows of a step, at least: each takes 15 ms beside its rows, and two sources of tables of so many
rows, cut where either has a border, would make as many steps of half the rows.
"""

T = TypeVar("T", pl.DataFrame, Patched)
RangeFunction = Callable[[tuple[pl.DataFrame, ...]], tuple[T, Counters]]
"""A job's function of the rows of a range of keys, a table per source: entries and counts."""


class EntryFilter:
    """Decides which entries pass through a job, and as which URL; by default all, unchanged."""

    def __init__(
        self,
        rules: UrlRules | None = None,
        *,
        purges_gone: bool = False,
        purges_orphans: bool = False,
        of_waiting: bool = False,
    ) -> None:
        """With `of_waiting`, rules apply to what was never asked for alone."""
        self._of_waiting = of_waiting
        self._purged: dict[int, str] = {}
        if purges_gone:
            self._purged[STATUS_DB_GONE] = PURGED_GONE
        if purges_orphans:
            self._purged[STATUS_DB_ORPHAN] = PURGED_ORPHANS
        self._rules = rules

    @classmethod
    def from_conf(
        cls,
        conf: Configuration,
        *,
        normalize: bool | None = None,
        filtering: bool | None = None,
        of_waiting: bool = False,
    ) -> EntryFilter:
        """Reads `db.update.purge.*`; for None `crawldb.url.normalizers`, `crawldb.url.filters`."""
        if normalize is None:
            normalize = conf.get_boolean(NORMALIZE_PROPERTY)
        if filtering is None:
            filtering = conf.get_boolean(FILTER_PROPERTY)
        return cls(
            UrlRules(
                conf,
                normalize=normalize,
                filtering=filtering,
                scope=SCOPE_CRAWLDB,
                keep_on_error=True,
            ),
            purges_gone=conf.get_boolean(PURGE_GONE_PROPERTY),
            purges_orphans=conf.get_boolean(PURGE_ORPHANS_PROPERTY),
            of_waiting=of_waiting,
        )

    @property
    def normalizes(self) -> bool:
        """True if URLs may change."""
        return self._rules is not None and self._rules.normalizes

    @property
    def filters(self) -> bool:
        """True if URL filters apply."""
        return self._rules is not None and self._rules.filters

    @property
    def purges_gone(self) -> bool:
        """True if entries of pages that are gone are removed."""
        return STATUS_DB_GONE in self._purged

    def apply(self, frame: pl.DataFrame, counters: Counters) -> pl.DataFrame:
        """Returns the entries that pass, in order, under their normal URLs; counts the others."""
        for status, reason in self._purged.items():
            before = len(frame)
            frame = frame.filter(pl.col("status") != status)
            counters.add(reason, before - len(frame))
        if self._rules is None or self._rules.is_neutral:
            return frame
        if not self._of_waiting:
            return self._ruled(frame, counters)
        waits = frame["status"] == STATUS_DB_UNFETCHED
        if not waits.any():
            return frame
        return pl.concat([frame.filter(~waits), self._ruled(frame.filter(waits), counters)])

    def _ruled(self, frame: pl.DataFrame, counters: Counters) -> pl.DataFrame:
        assert self._rules is not None
        urls = self._rules.apply(decode_keys(frame["key"]), counters)
        keys = encode_keys(urls) if self.normalizes else frame["key"]
        return frame.with_columns(key=keys).filter(urls.is_not_null())

    def reasons(self, frame: pl.DataFrame) -> pl.Series:
        """Names for each of some entries that do not pass the rule, or the property, that drops
        it.
        """
        purges = {
            STATUS_DB_GONE: PURGE_GONE_PROPERTY,
            STATUS_DB_ORPHAN: PURGE_ORPHANS_PROPERTY,
        }
        purged = {status: purges[status] for status in self._purged}
        found = frame["status"].replace_strict(purged, default=None, return_dtype=pl.String)
        others = found.is_null().arg_true()
        if self._rules is None or not len(others):
            return found
        return found.scatter(others, self._rules.reasons(decode_keys(frame["key"].gather(others))))


Scan = Callable[[InputSplit], Iterator[pl.DataFrame]]


class EntrySources:
    """The entries of some CrawlDbs as sources of a job, `packed` or not. A context manager.

    What does not fit into memory goes to a folder in `spill`.
    """

    def __init__(
        self,
        dbs: Sequence[CrawlDb],
        engine: Engine,
        entry_filter: EntryFilter,
        *,
        spill: Path,
        packed: bool = False,
    ) -> None:
        self.sources: list[Source] = []
        """Sorted rows: one source per CrawlDb in the order given, or one of all."""
        self._dbs = dbs
        self._spill = spill
        self._engine = engine
        self._filter = entry_filter
        self._schema = PACKED_SCHEMA if packed else CRAWLDB_SCHEMA
        self._scan: Scan = scan_packed if packed else scan
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            # Under a new URL an entry belongs elsewhere.
            if self._filter.normalizes or not all(
                is_partitioned(db, self._engine.parts) for db in self._dbs
            ):
                self.sources = [stack.enter_context(self._shuffled())]
            else:
                read = partial(_entries, self._scan, self._filter)
                self.sources = [StoredParts(db.parts(), read, self._schema) for db in self._dbs]
            self._stack = stack.pop_all()  # only when all have been opened
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def counters(self) -> Counters:
        """Counts of the entries that the filter removed; complete when all has been read."""
        total = Counters()
        for source in self.sources:
            total.merge(source.counters)
        return total

    def _shuffled(self) -> AbstractContextManager[Source]:
        scan_entries, entry_filter, engine = self._scan, self._filter, self._engine

        def read(task: Task, piece: InputSplit) -> Iterator[pl.DataFrame]:
            return _entries(scan_entries, entry_filter, piece, task.counters)

        pieces = engine.splits(path for db in self._dbs for path in db.parts())
        return engine.shuffle(read, pieces, self._schema, None, spill=self._spill, share=2)


def _entries(
    scan: Scan, entry_filter: EntryFilter, piece: InputSplit, counters: Counters
) -> Iterator[pl.DataFrame]:
    """Yields the entries of a part file that pass, in its order."""
    return (entry_filter.apply(frame, counters) for frame in scan(piece))


def rewrite(
    db: CrawlDb,
    engine: Engine,
    output: OutputSettings,
    sources: Sequence[Source],
    step: RangeFunction[pl.DataFrame],
    progress: Progress,
) -> Counters:
    """Replaces `db` by the results of `step` on the rows of each partition, of all `sources`. The
    caller holds the lock.

    The old CrawlDb stays as `old` unless db.preserve.backup is false. On an error nothing has
    changed.
    """
    return _replace(db, engine, output, sources, step, progress, db.part_writer)


def patch(
    db: CrawlDb,
    engine: Engine,
    output: OutputSettings,
    sources: Sequence[Source],
    step: RangeFunction[Patched],
    progress: Progress,
) -> Counters:
    """Does the same as `rewrite` for a `step` that changes rows of packed tables: all other
    records are copied.
    """
    return _replace(db, engine, output, sources, step, progress, db.patched_writer)


def _replace(
    db: CrawlDb,
    engine: Engine,
    output: OutputSettings,
    sources: Sequence[Source],
    step: RangeFunction[T],
    progress: Progress,
    open_writer: Callable[[Path, int, Compression], TableWriter[T]],
) -> Counters:
    counters = Counters()
    progress.expect(db.estimate)  # looks at indexes, if progress is shown

    def write_part(task: Task, partitions: Sequence[Partition]) -> None:
        streams = aligned(*(partition.sorted() for partition in partitions), least=_STEP_ROWS)
        with open_writer(task.folder, task.part, output.compression) as writer:
            # Ranges side by side, written in order.
            for frame, counted in ordered(step, streams, task.threads):
                writer.write(frame)
                task.counters.merge(counted)
                task.advance(len(frame))

    with db.replacement(keep_old=output.keep_old) as directory:
        engine.reduce(write_part, sources, engine.parts, directory, counters, progress)
    return counters
