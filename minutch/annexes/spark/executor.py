"""Runs the functions of a job in Spark's executors, so that a task can be repeated.

Between the two halves of a shuffle travel entries, tables as Arrow IPC, never rows:

    (part, shuffle, piece, number) -> table    the rows of a piece for a partition, `number` in
                                               their order
    (0, shuffle, piece, LAST) -> counts        what the function has counted of the piece, and how
                                               many rows it gave; or the error that it has raised

Spark delivers each of them once, however often a task had to be run; so counts are never added
twice. An error of minutch's own is the same at every attempt: it is handed on as a result. All
others end the attempt, and Spark tries again. Part files are written into a folder of the attempt,
of which the driver takes over one for each partition.
"""

from __future__ import annotations

import io
import logging
import os
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, TypeVar

import numpy as np
import polars as pl

from minutch import log as logs
from minutch import processwide
from minutch.annexes.spark.session import NAME, Packed
from minutch.errors import MinutchError
from minutch.hadoop.formats.batch import string_column
from minutch.job import Counters, set_up_process
from minutch.processwide import StoreSettings
from minutch.work.engine.interface import (
    Partition,
    ReadRows,
    Reduce,
    Regroup,
    SelectionRules,
    ShuffledPart,
    Source,
    Task,
    Write,
)
from minutch.work.engine.selection import select_rows, window_rows
from minutch.work.tables import parallel
from minutch.work.tables.install import SPILL, work_folder
from minutch.work.tables.shuffle import Shuffle, split

LAST: Final = -1
"""The number of the entry with the counts of a piece."""
ENTRY: Final = 32 << 20
"""Bytes of rows, for all partitions together, that become entries at a time."""
ATTEMPTS: Final = "_temporary"
"""The folder of the attempts, as Hadoop's FileOutputCommitter calls it."""

Key = tuple[int, int, int, int]
ShuffleEntry = tuple[Key, bytes]
T = TypeVar("T")
R = TypeVar("R")
RANK: Final = "key"
"""The column by which rows are sorted on their way: ranks as bytes."""
URL: Final = "url"
"""The name of `key` until then."""


class TaskResult(NamedTuple):
    """The result of a piece or a partition, or the error that ends the job."""

    result: Any
    counters: list[Counters]
    """Counts of the function, then of each source."""
    done: int
    """Records, for progress."""
    attempt: str = ""
    """The folder with the part files."""
    error: Exception | None = None


@dataclass(frozen=True)
class WorkerSetup:
    """The settings that a worker process of an executor needs first."""

    level: int
    cores: int
    """Cores of a task."""
    conf: Packed
    files: StoreSettings
    """Settings of file systems."""
    folder: Path
    """The driver's working directory, for relative paths, if it is on this machine."""


@lru_cache(maxsize=1)
def _set_up(setup: WorkerSetup) -> None:
    """Makes this process what the driver is: log, public suffixes; once."""
    here = _local_folder()
    if setup.folder.is_dir():
        os.chdir(setup.folder)
    jars = (*setup.files.jars, str(here / "*"))  # Spark brings those of spark.jars
    set_up_process(setup.conf.load(_home()))
    stores = replace(setup.files, jars=jars, scratch=str(here))
    processwide.change(stores=stores, cores=setup.cores)
    logs.configure(sys.stderr, level=setup.level)
    logging.getLogger("py4j").setLevel(logging.ERROR)


@lru_cache(maxsize=16)
def _loaded(packed: Packed) -> Any:
    """Returns a function and what belongs to it; kept: plugins are built once in a process."""
    return packed.load(_home())


@dataclass(frozen=True)
class _Wrapped:
    """A function as it is sent to executors: a call sets the process up first."""

    setup: WorkerSetup
    packed: Packed

    def load(self) -> Any:
        _set_up(self.setup)
        return _loaded(self.packed)


@dataclass(frozen=True)
class MapTask(_Wrapped):
    """Runs the function of `Engine.map` on the pieces of a Spark partition."""

    def __call__(self, pieces: Iterator[tuple[int, Any]]) -> Iterator[tuple[int, bytes]]:
        function: Callable[[Task, Any], Any] = self.load()
        for number, piece in pieces:
            yield number, pickle.dumps(self._outcome(function, piece))

    def _outcome(self, function: Callable[[Task, Any], Any], piece: Any) -> TaskResult:
        done = _RecordCount()
        task = Task(advance=done)
        try:
            return TaskResult(function(task, piece), [task.counters], done.count)
        except MinutchError as error:
            return TaskResult(None, [], 0, error=error)


@lru_cache(maxsize=2)
def _made(packed: Packed) -> Any:
    """Calls a function that was sent, once in a process, and keeps its result."""
    return _loaded(packed)()


@dataclass(frozen=True)
class StreamTask(_Wrapped):
    """Runs the function of `Engine.stream` on the items of a Spark partition."""

    def load(self) -> Any:
        _set_up(self.setup)
        return _made(self.packed)

    def __call__(self, items: Iterator[tuple[int, Any]]) -> Iterator[tuple[int, bytes]]:
        for number, item in items:
            try:
                outcome = TaskResult(self.load()(item), [], 0)
            except MinutchError as error:
                outcome = TaskResult(None, [], 0, error=error)
            yield number, pickle.dumps(outcome)


@dataclass(frozen=True)
class ShuffleTask(_Wrapped):
    """Runs the function of `Engine.shuffle`: pieces in, entries out."""

    shuffle: int
    parts: int

    def __call__(self, pieces: Iterator[tuple[int, Any]]) -> Iterator[ShuffleEntry]:
        read: ReadRows[Any] = self.load()
        for number, piece in pieces:
            yield from self.entries(read, number, piece)

    def entries(self, read: ReadRows[Any], number: int, piece: Any) -> Iterator[ShuffleEntry]:
        """Yields the entries of a piece."""
        done = _RecordCount()
        task, found, entries = Task(advance=done), _RecordCount(), 0
        try:
            for table in _joined(self.prepared(found.counted(read(task, piece)))):
                for part, own in enumerate(self.shares(table)):
                    if len(own):
                        yield (part, self.shuffle, number, entries), packed_table(own)
                entries += 1
            outcome = TaskResult(found.count, [task.counters], done.count)
        except MinutchError as error:
            outcome = TaskResult(None, [], 0, error=error)
        yield (0, self.shuffle, number, LAST), pickle.dumps(outcome)

    def prepared(self, tables: Iterable[pl.DataFrame]) -> Iterable[pl.DataFrame]:
        """Returns tables as they are sent."""
        return tables

    def shares(self, table: pl.DataFrame) -> list[pl.DataFrame]:
        """Returns a table's rows for each partition."""
        return split(table, self.parts)


@dataclass(frozen=True)
class RankTask(ShuffleTask):
    """Sends rows up to the rank `last` to their groups, to be sorted by rank for a selection."""

    last: int

    def load(self) -> Any:
        function, _ = super().load()
        return function

    @property
    def _rules(self) -> SelectionRules:
        rules: SelectionRules = super().load()[1]
        return rules

    def prepared(self, tables: Iterable[pl.DataFrame]) -> Iterable[pl.DataFrame]:
        """Adds the ranks."""
        rules = self._rules
        for table in tables:
            found = rules.ranks_in(table)
            within = found <= np.uint64(self.last)
            ranked = table.filter(pl.Series(within))
            ranks = np.frombuffer(found[within].astype(">u8").tobytes(), np.uint8)
            places, sizes = np.arange(0, len(ranks), 8), np.full(len(ranked), 8, np.int32)
            rank = string_column(RANK, ranks, places, sizes)
            yield ranked.select(rank, pl.col("key").alias(URL), pl.exclude("key"))

    def shares(self, table: pl.DataFrame) -> list[pl.DataFrame]:
        """Splits a table by the groups of the selection."""
        if self.parts == 1:
            return [table]
        part = self._rules.groups_of(table.drop(RANK).rename({URL: "key"}))
        return [table.filter(part == number) for number in range(self.parts)]


@dataclass(frozen=True)
class SelectTask(_Wrapped):
    """A selection: the rows of a group in, of `total` in all; the selected ones out."""

    total: int

    def __call__(self, part: int, entries: Iterator[Any]) -> Iterator[tuple[int, bytes]]:
        rules: SelectionRules
        source: ShuffledSource
        rules, source, budget = self.load()
        counters = Counters()
        try:
            with _opened(part, entries, [source], budget) as (partition,):
                windows = (
                    [table] for table in _windows(partition.sorted(), window_rows(rules.limit))
                )
                selected = select_rows(rules, range(part, part + 1), windows, counters, self.total)
                outcome = TaskResult(selected, [counters], 0)
        except MinutchError as error:
            outcome = TaskResult(None, [], 0, error=error)
        yield part, pickle.dumps(outcome)


def _windows(tables: Iterator[pl.DataFrame], room: int) -> Iterator[pl.DataFrame]:
    """Yields tables of a group as the rules know them, of about `room` rows; at least one."""
    held: list[pl.DataFrame] = []
    for table in tables:
        held.append(table.drop(RANK).rename({URL: "key"}))
        if sum(map(len, held)) >= room:
            yield pl.concat(held)
            held = []
    if held:
        yield pl.concat(held)


def _joined(tables: Any) -> Iterator[pl.DataFrame]:
    """Yields tables put together until they are worth an entry for each partition."""
    held: list[pl.DataFrame] = []
    size = 0
    for table in tables:
        held.append(table)
        size += int(table.estimated_size())
        if size >= ENTRY:
            yield pl.concat(held)
            held, size = [], 0
    if held:
        yield pl.concat(held)


def packed_table(table: pl.DataFrame) -> bytes:
    """Returns a table as Arrow IPC."""
    out = io.BytesIO()
    table.write_ipc(out, compression="lz4")
    return out.getvalue()


def part_of(key: Key) -> int:
    """Returns the partition of an entry; one function, so that Spark sees shuffles agree."""
    return key[0]


@dataclass(frozen=True)
class ShuffledSource:
    """Stands for the rows of a shuffle in what is sent to a `ReduceTask`."""

    number: int
    schema: pl.Schema


@dataclass(frozen=True)
class RegroupTask(ShuffleTask):
    """Runs the function of `Engine.regroup`: one shuffle's partition in, another's entries out."""

    def __call__(self, part: int, entries: Iterator[Any]) -> Iterator[ShuffleEntry]:  # type: ignore[override]
        function: Regroup
        source: ShuffledSource
        function, source, budget = self.load()
        with _opened(part, entries, [source], budget) as (partition,):
            yield from self.entries(function, part, partition)


@dataclass(frozen=True)
class ReduceTask(_Wrapped, Generic[R]):
    """Runs the function of `Engine.reduce` on a partition: the entries of all shuffles in, its
    outcome out.
    """

    folder: Path

    def __call__(self, part: int, entries: Iterator[Any]) -> Iterator[tuple[int, bytes]]:
        yield part, pickle.dumps(self._outcome(part, entries))

    def _outcome(self, part: int, entries: Iterator[Any]) -> TaskResult:
        function: Reduce[R]
        sources: Sequence[Source | ShuffledSource]
        function, sources, budget = self.load()
        attempt = _attempt_folder(self.folder)
        done = _RecordCount()
        task = Task(attempt, done, part=part, threads=parallel.workers())
        with _opened(part, entries, sources, budget) as partitions:
            try:
                result = function(task, partitions)
            except MinutchError as error:
                return TaskResult(None, [], 0, error=error)
            counters = [task.counters, *(partition.counters for partition in partitions)]
            return TaskResult(result, counters, done.count, attempt.name)


@dataclass(frozen=True)
class WriteTask(_Wrapped):
    """Runs the function of `Engine.write` on the partitions of a Spark partition, one by one."""

    folder: Path

    def __call__(self, parts: Iterator[int]) -> Iterator[tuple[int, bytes]]:
        function: Write[Any] = self.load()
        for part in parts:
            yield part, pickle.dumps(self._outcome(function, part))

    def _outcome(self, function: Write[Any], part: int) -> TaskResult:
        attempt = _attempt_folder(self.folder)
        done = _RecordCount()
        task = Task(attempt, done, part=part, threads=parallel.workers(), spill=_local_folder())
        try:
            result = function(task, range(part, part + 1))
        except MinutchError as error:
            return TaskResult(None, [], 0, error=error)
        return TaskResult(result, [task.counters], done.count, attempt.name)


@contextmanager
def _opened(
    part: int, entries: Iterator[Any], sources: Sequence[Source | ShuffledSource], budget: int
) -> Iterator[list[Partition]]:
    """Yields the rows of a partition from each source."""
    with ExitStack() as stack:
        spill = stack.enter_context(work_folder(_local_folder(), SPILL))
        inbox = stack.enter_context(_Inbox(spill / "entries"))
        inbox.take(entries)
        yield [
            stack.enter_context(inbox.shuffled(source, budget, spill))
            if isinstance(source, ShuffledSource)
            else source.open(part)
            for source in sources
        ]


class _Inbox:
    """The entries of a partition, on disk until all have come: Spark gives them in no order."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w+b")
        self._places: dict[int, list[tuple[int, int, int, int]]] = {}

    def take(self, entries: Iterator[Any]) -> None:
        """Writes the entries to disk and notes their places, (piece, number, offset, size), for
        each shuffle.
        """
        for (_, shuffle, piece, number), value in entries:
            if number != LAST:
                place = (piece, number, self._file.tell(), len(value))
                self._places.setdefault(shuffle, []).append(place)
                self._file.write(value)

    def shuffled(self, source: ShuffledSource, budget: int, spill: Path) -> _OpenPart:
        """Returns the rows of a shuffle in the order of the input, sorted as they are asked for."""
        shuffle = Shuffle(1, source.schema, budget=budget, spill=spill)
        for _, _, offset, size in sorted(self._places.get(source.number, ())):
            self._file.seek(offset)
            shuffle.add(pl.read_ipc(io.BytesIO(self._file.read(size))))
        return _OpenPart(shuffle)

    def __enter__(self) -> _Inbox:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


class _OpenPart(ShuffledPart):
    """A partition whose spilled rows go away at the end."""

    def __init__(self, shuffle: Shuffle) -> None:
        super().__init__(shuffle, 0)

    def __enter__(self) -> _OpenPart:
        self.shuffle.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.shuffle.__exit__(None, None, None)


@dataclass
class _RecordCount:
    """Counts records, for progress, which the driver shows."""

    count: int = field(default=0)

    def __call__(self, count: int = 1) -> None:
        self.count += count

    def counted(self, tables: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        """Yields the tables and counts their rows."""
        for table in tables:
            self.count += len(table)
            yield table


def _attempt_folder(folder: Path) -> Path:
    """Returns a new folder for the part files of this attempt. The one above is gone when the job
    is over: no late writer.
    """
    from pyspark import TaskContext

    context: Any = TaskContext.get()
    attempt = folder / ATTEMPTS / f"{context.stageId()}-{context.taskAttemptId()}"
    attempt.mkdir()
    return attempt


@lru_cache(maxsize=1)
def _local_folder() -> Path:
    """Returns a folder of this executor's on its own disk; found before it goes elsewhere."""
    from pyspark import SparkFiles

    return Path(SparkFiles.getRootDirectory()).absolute()


def _home() -> Path:
    """Returns the folder of the archive, if one was sent."""
    return _local_folder() / NAME
