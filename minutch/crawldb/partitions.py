"""The entries of CrawlDbs, partition by partition, on their way through a job; and the new CrawlDb that comes of it.

A job is a function of one partition. Where a CrawlDb has as many partitions as the job makes
(mapreduce.job.reduces), partition i is read from part i as it lies there, sorted. Otherwise, or where normalizing
changes the URLs, all entries are partitioned and sorted anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

import polars as pl

from minutch.conf import Configuration
from minutch.crawldb.filtering import EntryFilter
from minutch.crawldb.store import CrawlDb
from minutch.crawldb.ties import Gathering, Source
from minutch.formats.javahash import partition
from minutch.formats.javaio import DataInput
from minutch.formats.sequencefile import SequenceFileReader
from minutch.job import Counters
from minutch.tables.frame import CRAWLDB_SCHEMA, PACKED_SCHEMA, empty
from minutch.tables.merge import aligned
from minutch.tables.packed import Patched
from minutch.tables.parallel import for_each, memory_budget, ordered, workers
from minutch.tables.shuffle import Shuffle
from minutch.tables.spans import data_file
from minutch.tables.writer import TableWriter

if TYPE_CHECKING:
    from minutch.job import Progress

_SMALL = 16 << 20  # bytes of CrawlDbs that may be few enough entries to follow Hadoop's order
_SAMPLE = 64  # keys of a part that are looked at

T = TypeVar("T", pl.DataFrame, Patched)
Step = Callable[[tuple[pl.DataFrame, ...]], tuple[T, Counters]]
"""What a job does with the rows of a range of keys, one table per source: the new entries, and what happened."""


def number_of_parts(conf: Configuration) -> int:
    """How many partitions a job makes: mapreduce.job.reduces."""
    return max(1, conf.get_int("mapreduce.job.reduces", 1))


class Entries:
    """The entries of some CrawlDbs as sorted streams, one or more per partition; `packed` or not. A context manager.

    `counters` collects what `entry_filter` does, when the streams have been read. Where `ties` says so of all entries,
    and they are few, equal keys come in Hadoop's order.
    """

    def __init__(
        self,
        dbs: Sequence[CrawlDb],
        conf: Configuration,
        entry_filter: EntryFilter,
        ties: Callable[[pl.DataFrame], bool] | None = None,
        *,
        packed: bool = False,
    ) -> None:
        self.counters = Counters()
        self.parts = number_of_parts(conf)
        self._dbs = dbs
        self._conf = conf
        self._filter = entry_filter
        self._ties = ties
        self._schema = PACKED_SCHEMA if packed else CRAWLDB_SCHEMA
        self._scan = CrawlDb.scan_packed if packed else CrawlDb.scan_part
        self._shuffle: Shuffle | None = None
        self._stack = ExitStack()
        self._lock = Lock()

    def __enter__(self) -> Self:
        follow = self._ties is not None and self._size() < _SMALL
        if follow or self._filter.rules.normalizes or not all(map(self._is_partitioned, self._dbs)):
            shuffle = Shuffle(
                self.parts, self._schema, budget=memory_budget(self._conf), spill=self._dbs[0].path.parent
            )
            self._shuffle = self._stack.enter_context(shuffle)
            self._gather(shuffle, self._ties if follow else None)
        return self

    def _size(self) -> int:
        return sum(file_size(part) for db in self._dbs for part in db.parts())

    def _gather(self, shuffle: Shuffle, ties: Callable[[pl.DataFrame], bool] | None) -> None:
        gathering = Gathering(shuffle)
        for db in self._dbs:
            for index, part in enumerate(db.parts()):
                gathering.begin(file_size(part))
                for frame in self._filtered(self._scan(db, index)):
                    gathering.add(frame)
        gathering.finish(ties or (lambda _: False), list, self.parts)

    def sources(self) -> list[Source]:
        """The entries of each part file, all in memory."""
        found = []
        for db in self._dbs:
            for index, part in enumerate(db.parts()):
                found.append(Source(file_size(part)))
                found[-1].frames += [self._filter.apply(frame, Counters()) for frame in self._scan(db, index)]
        return found

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def streams(self, part: int) -> list[Iterator[pl.DataFrame]]:
        """The streams of a partition; of equal keys those of the first CrawlDb come first."""
        if self._shuffle is not None:
            return [self._shuffle.sorted(part)]
        return [self._filtered(self._scan(db, part)) if db.parts() else iter([empty(self._schema)]) for db in self._dbs]

    def _filtered(self, frames: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        for frame in frames:
            counters = Counters()
            yield self._filter.apply(frame, counters)
            with self._lock:
                self.counters.merge(counters)

    def _is_partitioned(self, db: CrawlDb) -> bool:
        """Whether the parts of `db` are this job's partitions; each is judged by its first keys."""
        paths = db.parts()
        return not paths or (len(paths) == self.parts and all(map(self._belongs, paths, range(self.parts))))

    def _belongs(self, path: Path, part: int) -> bool:
        if self.parts == 1:
            return True
        with SequenceFileReader(data_file(path)) as reader:
            keys = [DataInput(key).read_text_bytes() for key, _ in islice(reader, _SAMPLE)]
        return all(partition(key, self.parts) == part for key in keys)


def file_size(part: Path) -> int:
    """The bytes of a part's records: of its file, or of a MapFile's `data`."""
    return data_file(part).stat().st_size


Sources = Callable[[int], Sequence[Iterable[pl.DataFrame]]]
"""The sorted streams of a partition."""


def rewrite(
    db: CrawlDb, conf: Configuration, sources: Sources, step: Step[pl.DataFrame], progress: Progress
) -> Counters:
    """Replace `db` by what `step` makes of the sorted `sources` of each partition. The caller holds the lock.

    The old CrawlDb stays as `old` unless db.preserve.backup is false. On an error nothing has changed.
    """
    return _replace(db, conf, sources, step, progress, db.part_writer)


def patch(db: CrawlDb, conf: Configuration, sources: Sources, step: Step[Patched], progress: Progress) -> Counters:
    """As `rewrite`, where `step` puts rows into packed tables: what it leaves alone is copied."""
    return _replace(db, conf, sources, step, progress, db.patched_writer)


def _replace(
    db: CrawlDb,
    conf: Configuration,
    sources: Sources,
    step: Step[T],
    progress: Progress,
    open_writer: Callable[[Path, int], TableWriter[T]],
) -> Counters:
    parts = number_of_parts(conf)
    threads = 1 if parts >= workers() else 0
    progress.expect(db.estimate)
    with db.replacement(keep_old=conf.get_boolean("db.preserve.backup", True)) as directory:

        def write_part(part: int) -> Counters:
            counters = Counters()
            with open_writer(directory, part) as writer:
                for frame, counted in ordered(step, aligned(*sources(part)), threads):
                    writer.write(frame)
                    counters.merge(counted)
                    progress.advance(len(frame))
            return counters

        total = Counters()
        for counted in for_each(write_part, range(parts)):
            total.merge(counted)
    return total
