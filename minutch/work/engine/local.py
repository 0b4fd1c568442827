"""The engine of one machine: this process and its threads.

Kernels and Polars let go of Python's lock, and reading decodes on all cores by itself: pieces are
read one after the other, partitions are worked on side by side. What is written in order needs no
tables: they are loaded where rows are shuffled, for a process that has not loaded them can be
forked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from minutch.job import Counters, Progress
from minutch.paths import is_local
from minutch.work.engine.interface import (
    Partition,
    ReadRows,
    Reduce,
    Regroup,
    RowTurns,
    Selected,
    SelectionRules,
    Shuffled,
    ShuffledPart,
    Source,
    StreamFunction,
    TableNumber,
    Task,
    Write,
)
from minutch.work.tables.parallel import for_each, ordered, workers

if TYPE_CHECKING:
    import polars as pl

    from minutch.work.tables.shuffle import Shuffle
    from minutch.work.tables.spans import InputSplit


_SHARE: Final = 4
"""Share of the memory (1/4) for the rows of a selection."""
_TOGETHER: Final = 200_000
"""Selected rows that are handed on at a time."""
_ROW: Final = 150
"""Bytes of memory per row, about; its strings are in files."""

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class _Rows:
    """A shuffle as a source."""

    shuffle: Shuffle
    counters: Counters = field(default_factory=Counters)

    @property
    def rows(self) -> int:
        return self.shuffle.rows

    def open(self, part: int) -> Partition:
        return ShuffledPart(self.shuffle, part)


class LocalEngine:
    """The engine of one machine; see `Engine`."""

    host = None
    tasks = 1

    def __init__(self, parts: int, memory: int) -> None:
        self.parts, self.memory = parts, memory

    def cancel(self) -> None:
        """Does nothing: everything runs in this process."""

    def splits(self, paths: Iterable[Path]) -> list[InputSplit]:
        """Returns whole files: each is read by all cores. Those that are far away are not asked for
        their sizes.
        """
        from minutch.work.tables.database import data_file
        from minutch.work.tables.spannedfile import SPAN_SIZE
        from minutch.work.tables.spans import CombineFileSplit, combined

        sized = (
            (path, data_file(path).stat().st_size if is_local(path) else SPAN_SIZE)
            for path in paths
        )
        return [
            CombineFileSplit.of(files) if len(files) > 1 else files[0][0]
            for files in combined(sized, SPAN_SIZE)
        ]

    def map(
        self,
        function: Callable[[Task, T], R],
        pieces: Sequence[T],
        counters: Counters,
        progress: Progress,
    ) -> Iterator[R]:
        """Calls the function on one piece after the other."""
        task = Task(advance=progress.advance, counters=counters)
        # One after the other: reading a piece uses all cores by itself.
        return (function(task, piece) for piece in pieces)

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
        """Shuffles in memory, and on disk where that does not suffice."""
        from minutch.work.tables.shuffle import Shuffle

        task = Task() if progress is None else Task(advance=progress.advance)
        with Shuffle(self.parts, schema, budget=self.memory // share, spill=spill) as shuffle:
            for piece in pieces:
                for frame in read(task, piece):
                    shuffle.add(frame)
            yield _Rows(shuffle, task.counters)

    def regroup(
        self, function: Regroup, source: Shuffled, schema: pl.Schema, *, spill: Path, share: int = 2
    ) -> AbstractContextManager[Shuffled]:
        """Regroups one partition after the other."""

        def read(task: Task, part: int) -> Iterable[pl.DataFrame]:
            return function(task, source.open(part))

        parts = range(self.parts)
        return self.shuffle(read, parts, schema, None, spill=spill, share=share)

    def local_source(self, rows: Shuffle) -> Source:
        """Returns the shuffle as a source."""
        return _Rows(rows)

    def reduce(
        self,
        function: Reduce[R],
        sources: Sequence[Source],
        parts: int,
        folder: Path,
        counters: Counters,
        progress: Progress | None,
    ) -> list[R]:
        """Reduces partitions in parallel; where there are few, each uses all cores."""
        threads = 1 if parts >= workers() else 0  # partitions side by side fill the cores

        def work(part: int) -> tuple[R, list[Counters]]:
            task = Task(folder, part=part, threads=threads)
            if progress is not None:
                task.advance = progress.advance
            partitions = [source.open(part) for source in sources]
            result = function(task, partitions)
            return result, [task.counters, *(partition.counters for partition in partitions)]

        results = for_each(work, range(parts))
        for _, counted in results:
            # Merged here, by one thread: counters have no locks.
            for total, own in zip(
                [counters, *(source.counters for source in sources)], counted, strict=True
            ):
                total.merge(own)
        return [result for result, _ in results]

    def stream(self, make: Callable[[], StreamFunction[T, R]], items: Iterable[T]) -> Iterator[R]:
        """Runs in threads, or in processes where plugins work document by document."""
        function = make()
        if function.is_columnar:
            return ordered(function, items)
        from minutch.work.engine.pool import mapped

        return mapped(make, items)

    def select(
        self,
        find: ReadRows[T],
        pieces: Sequence[T],
        rules: SelectionRules,
        schema: pl.Schema,
        counters: Counters,
        progress: Progress,
    ) -> Selected:
        """Selects from one window of the best rows after the other; for each the pieces are read in
        parallel.

        The first has what is likely to be wanted, or all rows if there is memory for them; the
        others all that there is memory for: each takes another reading. Rows whose places do not
        depend on others are given theirs as they come.
        """
        from minutch.work.engine.selection import LAST, RankWindow, select_rows, window_rows

        if rules.is_open:
            return Selected(_all(find, pieces, rules, counters, progress), 0)
        if (turns := rules.turns(self.memory)) is not None:
            return Selected(_by_turns(find, pieces, turns, counters, progress), 0)
        likely, room = window_rows(rules.limit), self.memory // _SHARE // _ROW
        most = max(likely, room)

        def windows(window: RankWindow) -> Iterator[list[pl.DataFrame]]:
            yield window.tables()
            while window.last < LAST:
                # Another reading of the input: nothing is counted twice.
                window = RankWindow(window.last + 1, most, 2 * most, rules.ranks_in)
                _enter(window, find, pieces, Counters(), None)
                yield window.tables()

        first = RankWindow(0, likely, 2 * most, rules.ranks_in)
        total = _enter(first, find, pieces, counters, progress)  # the reading that counts
        selected = select_rows(rules, range(rules.groups), windows(first), counters, total)
        return Selected(selected.rows.iter_slices(_TOGETHER), total - selected.seen)

    def write(
        self,
        function: Write[R],
        parts: int,
        folder: Path,
        counters: Counters,
        progress: Progress | None,
    ) -> list[R]:
        """Writes all partitions in one call, in this thread."""
        task = Task(folder, counters=counters, spill=folder.parent)
        if progress is not None:
            task.advance = progress.advance
        return [function(task, range(parts))]


class _Window(Protocol):
    def add(self, place: TableNumber, table: pl.DataFrame) -> None: ...


def _enter(
    window: _Window,
    find: ReadRows[T],
    pieces: Sequence[T],
    counters: Counters,
    progress: Progress | None,
) -> int:
    """Adds the tables of all pieces, which are read side by side; returns the number of rows."""

    def enter(numbered: tuple[int, T]) -> tuple[int, Counters]:
        task = Task() if progress is None else Task(advance=progress.advance)
        number, piece = numbered
        rows = 0
        for at, table in enumerate(find(task, piece)):
            window.add((number, at), table)
            rows += len(table)
        return rows, task.counters

    entered = for_each(enter, enumerate(pieces))
    for _, counted in entered:
        counters.merge(counted)
    return sum(rows for rows, _ in entered)


def _by_turns(
    find: ReadRows[T],
    pieces: Sequence[T],
    turns: RowTurns,
    counters: Counters,
    progress: Progress,
) -> Iterator[pl.DataFrame]:
    """Yields the rows that get a place, where they compete with those of their owner alone."""
    from minutch.kernels.clibrary import give_back_large

    give_back_large()  # glibc kept a third of the job's peak, from one reading to the next
    _enter(turns, find, pieces, counters, progress)
    while True:
        turns.close(counters)
        for number, piece in enumerate(pieces):
            for at, table in enumerate(find(Task(), piece)):
                yield turns.choose((number, at), table)
        if (rest := turns.rest()) is not None:
            yield rest
        if not turns.go_on(counters):
            return
        # Counted in the first reading already.
        _enter(turns, find, pieces, Counters(), None)


def _all(
    find: ReadRows[T],
    pieces: Sequence[T],
    rules: SelectionRules,
    counters: Counters,
    progress: Progress,
) -> Iterator[pl.DataFrame]:
    """Yields the rows that get a place, where that depends on no others."""
    task, selection = Task(advance=progress.advance, counters=counters), None
    for piece in pieces:
        for table in find(task, piece):
            # Made by the first table, which has the schema.
            selection = selection or rules.selection([table], range(rules.groups))
            yield selection.choose([table], counters, len(table))
