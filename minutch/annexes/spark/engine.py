"""The engine of many machines: Apache Spark brings the pieces and partitions to its executors.

    map       a Spark task for each piece
    shuffle   the same, then Spark's own shuffle of the entries of `executor`, by Hadoop's partition
              of their rows
    reduce    a Spark task for each partition, to which its entries of all shuffles come
    stream    some items at a time, a Spark task for each
    select    as shuffle, of the best rows as a sample says, sorted by rank; then a Spark task for
              each rules
    write     a Spark task for each partition

A shuffle runs as soon as it is asked for: its counts are taken from partition 0, to which they were
sent, and Spark keeps the rest until the reduce. Part files are committed as Hadoop does it: tasks
write into folders of their attempts, and when all partitions are done the driver renames the part
files of one attempt for each. Source: org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter
(algorithm 1).
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count, islice
from pathlib import Path
from typing import Any, Final, TypeVar

import polars as pl

from minutch.annexes.spark.executor import (
    ATTEMPTS,
    LAST,
    RANK,
    URL,
    MapTask,
    RankTask,
    ReduceTask,
    RegroupTask,
    SelectTask,
    ShuffledSource,
    ShuffleTask,
    StreamTask,
    TaskResult,
    WorkerSetup,
    WriteTask,
    packed_table,
    part_of,
)
from minutch.annexes.spark.session import CORES, Packed, context_of, run
from minutch.conf import Configuration
from minutch.errors import MinutchError
from minutch.job import Counters, Progress
from minutch.paths import store_settings
from minutch.work.engine.interface import (
    Partition,
    ReadRows,
    Reduce,
    Regroup,
    Selected,
    SelectionRules,
    Shuffled,
    Source,
    StreamFunction,
    Task,
    Write,
)
from minutch.work.engine.selection import LAST as LAST_RANK
from minutch.work.engine.selection import SelectedRows, SketchRanks, rank_of, sampled, window_rows
from minutch.work.tables.database import data_file
from minutch.work.tables.install import remove
from minutch.work.tables.parallel import memory_budget, number_of_parts, workers
from minutch.work.tables.shuffle import Shuffle
from minutch.work.tables.spannedfile import SPAN_SIZE
from minutch.work.tables.spans import CombineFileSplit, FileSplit, InputSplit, combined

SPLIT_PROPERTY: Final = "mapreduce.input.fileinputformat.split.maxsize"
SPLIT_SIZE: Final = 128 << 20
"""Bytes of a piece, as large as a block of HDFS, where the property says nothing."""
JARS: Final = "spark.executor.extraClassPath"
HOST: Final = "spark.driver.host"

MORE: Final = 8
"""Factor by which more rows compete in a selection that has to begin again."""
AHEAD: Final = 2
"""Items of a stream for each core that are worked on at a time."""

T = TypeVar("T")
R = TypeVar("R")

_numbers = count()


@dataclass(frozen=True)
class _Rows:
    """The rows of a shuffle that Spark holds."""

    number: int
    schema: pl.Schema
    entries: Any
    rows: int
    """Number of rows found; in a selection not all of them travel."""
    counters: Counters = field(default_factory=Counters)

    @property
    def travelling(self) -> ShuffledSource:
        """The name of the shuffle in tasks."""
        return ShuffledSource(self.number, self.schema)

    def open(self, part: int) -> Partition:
        """Fails: only executors have the rows."""
        raise MinutchError(f"partition {part} of a shuffle is asked for outside of Spark's tasks")


class SparkEngine:
    """The engine of many machines; see `Engine`."""

    def __init__(self, context: Any, conf: Configuration) -> None:
        self._context = context
        self._split_size = conf.get_long(SPLIT_PROPERTY, SPLIT_SIZE)
        cores = int(context.getConf().get(CORES, "1"))
        jars = conf.get(JARS, "").split(":")
        files = replace(store_settings(conf), jars=tuple(filter(None, jars)))
        self._setup = WorkerSetup(
            logging.getLogger().getEffectiveLevel(),
            cores,
            Packed.of(conf),
            files,
            Path().absolute(),
        )
        self.parts, self.memory = number_of_parts(conf), memory_budget(conf)
        self._budget = self.memory // (2 * workers())

    @classmethod
    def of(cls, conf: Configuration) -> SparkEngine:
        """Starts the engine on the cluster that `spark.master` names. Raises ConfigError where
        PySpark or Java is missing.
        """
        return cls(context_of(conf), conf)

    @property
    def host(self) -> str | None:
        """The driver's name for executors."""
        return str(self._context.getConf().get(HOST))

    @property
    def tasks(self) -> int:
        """One for each core of the executors that have registered."""
        return int(self._context.defaultParallelism)

    def cancel(self) -> None:
        """Cancels all jobs of this process."""
        self._context.cancelAllJobs()

    def splits(self, paths: Iterable[Path]) -> list[InputSplit]:
        """Returns stretches of the files, several for each core, or several small files."""
        sizes = [(path, data_file(path).stat().st_size) for path in paths]
        fair = sum(size for _, size in sizes) // (2 * self.tasks)
        size = max(1, min(self._split_size, max(SPAN_SIZE, fair)))
        found: list[InputSplit] = []
        for files in combined(sizes, size):
            [(path, end), *more] = files
            if more:
                found.append(CombineFileSplit.of(files))
            else:
                starts = range(0, max(end, 1), size)
                found += [FileSplit(path, start, start + size) for start in starts]
        return found

    def map(
        self,
        function: Callable[[Task, T], R],
        pieces: Sequence[T],
        counters: Counters,
        progress: Progress,
    ) -> Iterator[R]:
        """Yields the results; all of them come to the driver."""
        for outcome in self._mapped(function, pieces):
            counters.merge(outcome.counters[0])
            progress.advance(outcome.done)
            yield outcome.result

    def _mapped(
        self, function: Callable[[Task, T], Any], pieces: Sequence[T]
    ) -> Iterator[TaskResult]:
        if pieces:
            tasks = self._pieces(pieces).mapPartitions(MapTask(self._setup, Packed.of(function)))
            yield from _outcomes(run(self._context, tasks.collect))

    @contextmanager
    def shuffle(
        self,
        read: ReadRows[T],
        pieces: Sequence[T],
        schema: pl.Schema,
        progress: Progress | None,
        *,
        spill: Path,
        share: int = 2,
    ) -> Iterator[Shuffled]:
        """Shuffles on Spark; rows that do not fit into memory go to the executors' own disks."""
        task = ShuffleTask(self._setup, Packed.of(read), next(_numbers), self.parts)
        yield self._partitioned(self._pieces(pieces).mapPartitions(task), task, schema, progress)

    @contextmanager
    def regroup(
        self, function: Regroup, source: Shuffled, schema: pl.Schema, *, spill: Path, share: int = 2
    ) -> Iterator[Shuffled]:
        """Feeds one of Spark's shuffles into the next."""
        assert isinstance(source, _Rows), "all shuffles of a job are of one engine"
        packed = Packed.of((function, source.travelling, self._budget))
        task = RegroupTask(self._setup, packed, next(_numbers), self.parts)
        yield self._partitioned(source.entries.mapPartitionsWithIndex(task), task, schema, None)

    def _partitioned(
        self, made: Any, task: ShuffleTask, schema: pl.Schema, progress: Progress | None
    ) -> _Rows:
        """Sends entries to their partitions at once; Spark holds them."""
        entries = made.partitionBy(task.parts, part_of)
        found = run(self._context, lambda: self._context.runJob(entries, _counts, [0]))
        rows, counters = 0, Counters()
        for outcome in _outcomes(found):
            rows += outcome.result
            counters.merge(outcome.counters[0])
            if progress is not None:
                progress.advance(outcome.done)
        return _Rows(task.shuffle, schema, entries, rows, counters)

    def local_source(self, rows: Shuffle) -> Source:
        """Sends the rows to the executors from here."""
        number = next(_numbers)
        tables = ((part, table) for part in range(rows.parts) for table in rows.sorted(part))
        entries = [
            ((part, number, at, 0), packed_table(table)) for at, (part, table) in enumerate(tables)
        ]
        partitioned = self._context.parallelize(entries, rows.parts).partitionBy(
            rows.parts, part_of
        )
        return _Rows(number, rows.schema, partitioned, rows.rows)

    def reduce(
        self,
        function: Reduce[R],
        sources: Sequence[Source],
        parts: int,
        folder: Path,
        counters: Counters,
        progress: Progress | None,
    ) -> list[R]:
        """Reduces on Spark; a partition's part files are those of the attempt whose result came."""
        shuffled = [source for source in sources if isinstance(source, _Rows)]
        travelling = [
            source.travelling if isinstance(source, _Rows) else source for source in sources
        ]
        task: ReduceTask[R] = ReduceTask(
            self._setup, Packed.of((function, travelling, self._budget)), folder
        )
        entries = self._together(shuffled, parts).mapPartitionsWithIndex(task)
        totals = [counters, *(source.counters for source in sources)]
        return self._written(entries, folder, totals, progress)

    def stream(self, make: Callable[[], StreamFunction[T, R]], items: Iterable[T]) -> Iterator[R]:
        """Works on some items for each core at a time; the next are begun as results are taken."""
        task, left = StreamTask(self._setup, Packed.of(make)), iter(items)
        size = AHEAD * self.tasks

        def results(some: list[T]) -> list[tuple[int, bytes]]:
            found: list[tuple[int, bytes]] = run(
                self._context, self._pieces(some).mapPartitions(task).collect
            )
            return found

        with ThreadPoolExecutor(1) as thread:
            try:
                running: Future[list[tuple[int, bytes]]] | None = None
                while some := list(islice(left, size)):
                    following = thread.submit(results, some)
                    if running is not None:
                        yield from (outcome.result for outcome in _outcomes(running.result()))
                    running = following
                if running is not None:
                    yield from (outcome.result for outcome in _outcomes(running.result()))
            except BaseException:
                self._context.cancelAllJobs()
                raise

    def select(
        self,
        find: ReadRows[T],
        pieces: Sequence[T],
        rules: SelectionRules,
        schema: pl.Schema,
        counters: Counters,
        progress: Progress,
    ) -> Selected:
        """Selects in a task for each group, to which its rows come, sorted by rank.

        Where places are limited, a sample says up to which rank rows are likely to be wanted, so
        that of many only these travel; if they do not do, it begins again with more of them.
        """

        def enter(last: int, progress: Progress | None) -> _Rows:
            task = RankTask(
                self._setup, Packed.of((find, rules)), next(_numbers), rules.groups, last
            )
            columns = {RANK: pl.Binary()} | {
                URL if name == "key" else name: kind for name, kind in schema.items()
            }
            return self._partitioned(
                self._pieces(pieces).mapPartitions(task), task, pl.Schema(columns), progress
            )

        samples, share = sampled(pieces) if rules.limit is not None else ([], 0.0)
        sketches = [outcome.result for outcome in self._mapped(SketchRanks(find, rules), samples)]
        room = window_rows(rules.limit)
        last = rank_of(sketches, room * share)
        rows = enter(last, progress)
        counters.merge(rows.counters)
        while True:
            counted = Counters()
            selected = self._selected(rules, rows, counted)
            if selected.is_full or last == LAST_RANK:
                counters.merge(counted)
                return Selected([selected.rows], rows.rows - selected.seen)
            room *= MORE
            last = rank_of(sketches, room * share)
            rows = enter(last, None)

    def _selected(self, rules: SelectionRules, rows: _Rows, counters: Counters) -> SelectedRows:
        """Selects among the rows of all groups."""
        task = SelectTask(self._setup, Packed.of((rules, rows.travelling, self._budget)), rows.rows)
        outcomes = list(
            _outcomes(run(self._context, rows.entries.mapPartitionsWithIndex(task).collect))
        )
        for outcome in outcomes:
            counters.merge(outcome.counters[0])
        tables, seen, full = zip(*(outcome.result for outcome in outcomes), strict=True)
        return SelectedRows(pl.concat(tables), sum(seen), all(full))

    def write(
        self,
        function: Write[R],
        parts: int,
        folder: Path,
        counters: Counters,
        progress: Progress | None,
    ) -> list[R]:
        """Writes in a task for each partition."""
        task = WriteTask(self._setup, Packed.of(function), folder)
        made = self._context.parallelize(range(parts), parts).mapPartitions(task)
        return self._written(made, folder, [counters], progress)

    def _written(
        self, made: Any, folder: Path, totals: list[Counters], progress: Progress | None
    ) -> list[Any]:
        """Returns the results of tasks that write, whose files are taken over: all, or none."""
        attempts = folder / ATTEMPTS
        attempts.mkdir()
        try:
            outcomes = list(_outcomes(run(self._context, made.collect)))
            for outcome in outcomes:
                _take_over(attempts / outcome.attempt, folder)
        finally:
            remove(attempts)
        for outcome in outcomes:
            if progress is not None:
                progress.advance(outcome.done)
            for total, own in zip(totals, outcome.counters, strict=True):
                total.merge(own)
        return [outcome.result for outcome in outcomes]

    def _pieces(self, pieces: Sequence[Any]) -> Any:
        return self._context.parallelize(list(enumerate(pieces)), max(1, len(pieces)))

    def _together(self, shuffled: Sequence[_Rows], parts: int) -> Any:
        """Returns the entries of all shuffles, partition by partition."""
        if not shuffled:
            return self._context.parallelize([], parts)
        if len(shuffled) == 1:
            return shuffled[0].entries
        return self._context.union([source.entries for source in shuffled])


def _counts(entries: Iterator[Any]) -> list[tuple[int, bytes]]:
    """Picks the entries of partition 0 with the counts of pieces."""
    return [(key[2], value) for key, value in entries if key[3] == LAST]


def _outcomes(found: Iterable[tuple[int, bytes]]) -> Iterator[TaskResult]:
    """Yields outcomes in the order of pieces or partitions. Raises the first error."""
    outcomes = [pickle.loads(packed) for _, packed in sorted(found)]
    for outcome in outcomes:
        if outcome.error is not None:
            raise outcome.error
    yield from outcomes


def _take_over(attempt: Path, folder: Path) -> None:
    """Renames what an attempt has written into the folder of the job."""
    for path in attempt.iterdir():
        target = folder / path.name
        if path.is_dir() and target.is_dir():
            _take_over(path, target)
        else:
            path.rename(target)
