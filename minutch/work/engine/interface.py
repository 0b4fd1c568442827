"""The verbs that jobs ask of an engine, and the arguments of their functions.

A job is a few verbs, and does not know what runs them:

    map       a function of a piece of the input (a part file, or a stretch of one); its results, in
              input order
    shuffle   a function of a piece of the input that gives rows, which come together in partitions
              as Hadoop's do
    reduce    a function of a partition: it is given the rows of it from each source, and writes its
              part files
    stream    a function of an item; its results, in order, as they come: not all have to be there
              at a time
    select    a function of a piece of the input that gives rows, of which the best get places by
              the rules of a selection
    write     a function of some partitions, as many as the engine likes: it finds its input itself,
              in files that are in order already, and writes their part files

Every function is given a `Task`: where its files belong, and what it counts. It changes nothing
else, so that it may run anywhere, and again where it was lost. What is counted is added up once for
each piece and partition, whoever ran it how often; and the order of equals is that of the input,
whoever was first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from minutch.job import Counters, Progress

if TYPE_CHECKING:
    import polars as pl

    from minutch.work.engine.selection import Ranks
    from minutch.work.tables.frame import Rows
    from minutch.work.tables.shuffle import Shuffle
    from minutch.work.tables.spans import InputSplit

T = TypeVar("T")
R = TypeVar("R")
T_contra = TypeVar("T_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)


def _nobody_looks(count: int) -> None:
    """Progress that is not shown."""


@dataclass
class Task:
    """The arguments of a function of a piece or a partition."""

    folder: Path = Path()
    """Folder for its part files."""
    advance: Callable[[int], None] = _nobody_looks
    """Takes the number of records that are done."""
    counters: Counters = field(default_factory=Counters)
    part: int = 0
    """The number of the partition."""
    threads: int = 0
    """Threads that it may use (0 = one per core)."""
    spill: Path = Path()
    """Folder for rows that do not fit into memory (`Engine.write`)."""


class Partition(Protocol):
    """The rows of one partition from one source."""

    @property
    def counters(self) -> Counters:
        """Counts of the rows left out while reading."""

    def sorted(self) -> Iterator[pl.DataFrame]:
        """Yields the rows in frames sorted by key (at least one frame); see `tables.merge` for
        streams.
        """

    def grouped(self) -> Iterator[pl.DataFrame]:
        """Yields the rows in frames; all rows of a key are in one, in the order of the input."""

    def ordered(self) -> Iterator[tuple[pl.DataFrame, Rows]]:
        """Yields the rows in frames not sorted, each with the numbers of its rows by key."""


class Source(Protocol):
    """Rows in partitions: what was shuffled, or the parts of a database as they are."""

    @property
    def counters(self) -> Counters:
        """Counts of the rows left out; complete when all partitions have been read."""

    def open(self, part: int) -> Partition:
        """Returns the rows of a partition; nothing is read yet."""


class Shuffled(Source, Protocol):
    """The rows of a shuffle. Its counters are known at once."""

    @property
    def rows(self) -> int:
        """Number of rows."""


@dataclass(frozen=True)
class ShuffledPart:
    """A partition that was shuffled in this process."""

    shuffle: Shuffle
    part: int
    counters: Counters = field(default_factory=Counters)

    def sorted(self) -> Iterator[pl.DataFrame]:
        """See `Shuffle.sorted`."""
        return self.shuffle.sorted(self.part)

    def grouped(self) -> Iterator[pl.DataFrame]:
        """See `Shuffle.grouped`."""
        return self.shuffle.grouped(self.part)

    def ordered(self) -> Iterator[tuple[pl.DataFrame, Rows]]:
        """See `Shuffle.ordered`."""
        return self.shuffle.ordered(self.part)


ReadRows = Callable[[Task, T], Iterable["pl.DataFrame"]]
"""A function of a piece of the input that gives rows: tables with a `key`."""
Regroup = Callable[[Task, Partition], Iterable["pl.DataFrame"]]
"""A function of a partition that gives rows."""
Reduce = Callable[[Task, Sequence[Partition]], R]
"""A function of a partition: of its rows from each source."""


class StreamFunction(Protocol[T_contra, R_co]):
    """A function of an item, which a process makes once for many of them."""

    @property
    def is_columnar(self) -> bool:
        """True if it releases Python's lock, so that threads run in parallel."""

    def __call__(self, item: T_contra, /) -> R_co:
        """Returns the result for an item."""


class Selection(Protocol):
    """Gives places to rows, which come best first, some at a time."""

    @property
    def is_full(self) -> bool:
        """True if no further row can get a place."""

    def choose(
        self, tables: Sequence[pl.DataFrame], counters: Counters, total: int
    ) -> pl.DataFrame:
        """Returns the rows of all `tables` that get a place, and counts each of the others. There
        are `total` in all.
        """


TableNumber = tuple[int, int]
"""Position of a table in the input: piece, and number in the piece."""


class RowTurns(Protocol):
    """Gives places to rows of a limited number for each owner, in readings of the input: all tables
    are added, and come again to be chosen from.
    """

    def add(self, place: TableNumber, table: pl.DataFrame) -> None:
        """Takes in a table; threads may do so side by side."""

    def close(self, counters: Counters) -> None:
        """Decides, when all tables were added."""

    def choose(self, place: TableNumber, table: pl.DataFrame) -> pl.DataFrame:
        """Returns the rows of a table that have a place, but for those of `rest`."""

    def rest(self) -> pl.DataFrame | None:
        """Returns rows that could be decided on only now that all tables came again."""

    def go_on(self, counters: Counters) -> bool:
        """Begins again, with tables to be added, for further owners; False if there are none, when
        all rows are counted.
        """


class SelectionRules(Protocol):
    """The rules by which rows compete for places: together, or in groups with their own."""

    @property
    def groups(self) -> int:
        """Number of groups, each of which has places of its own."""

    @property
    def is_open(self) -> bool:
        """True if no row's place depends on others: they come in any order, some at a time."""

    @property
    def limit(self) -> int | None:
        """Number of rows that may get a place, in all groups; None where it is all of them."""

    def ranks_in(self, table: pl.DataFrame) -> Ranks:
        """Returns the rank of each row: lower ones come first."""

    def turns(self, memory: int) -> RowTurns | None:
        """Returns what decides, within so many bytes, where rows compete with those of the same
        owner alone; None where they do with others.
        """

    def groups_of(self, table: pl.DataFrame) -> pl.Series:
        """Returns the group of each row (its number, from 0)."""

    def selection(self, tables: Sequence[pl.DataFrame], parts: range) -> Selection:
        """Starts the selection of some of the groups, of which `tables` have the first rows."""


class Selected(NamedTuple):
    """The result of a selection."""

    tables: Iterable[pl.DataFrame]
    """Rows with a place, in no order; looked for, and counted, as they are taken, once."""
    left: int
    """Number of rows not looked at, as no places were left."""


Write = Callable[[Task, range], R]
"""A function of some partitions, given by their numbers."""


class Engine(Protocol):
    """Runs the functions of jobs. What they raise ends the job, as if it had been raised here."""

    parts: int
    """Number of partitions that a job writes."""
    memory: int
    """Bytes that the tables of a job may take together in this process."""

    @property
    def host(self) -> str | None:
        """The name by which functions elsewhere reach this machine; None if they run in here."""

    @property
    def tasks(self) -> int:
        """Number of functions that run at the same time, each in a process of its own."""

    def cancel(self) -> None:
        """Ends all functions that run elsewhere; waiting callers get MinutchError. A signal's
        handler may call it.
        """

    def splits(self, paths: Iterable[Path]) -> list[InputSplit]:
        """Part files as pieces for `map` and `shuffle`, in order; small ones together."""

    def map(
        self,
        function: Callable[[Task, T], R],
        pieces: Sequence[T],
        counters: Counters,
        progress: Progress,
    ) -> Iterator[R]:
        """Returns the results of `function` on each piece, in order."""

    def shuffle(
        self,
        read: ReadRows[T],
        pieces: Sequence[T],
        schema: pl.Schema,
        progress: Progress | None,
        *,
        spill: Path,
        share: int = 2,
    ) -> AbstractContextManager[Shuffled]:
        """Returns the rows that `read` gives of each piece, in as many partitions as the job makes.

        What does not fit into 1/`share` of the memory goes to a folder in `spill`. At the end it is
        gone.
        """

    def regroup(
        self, function: Regroup, source: Shuffled, schema: pl.Schema, *, spill: Path, share: int = 2
    ) -> AbstractContextManager[Shuffled]:
        """Returns the rows that `function` gives of each partition, in partitions by their own
        keys; see `shuffle`.
        """

    def local_source(self, rows: Shuffle) -> Source:
        """Returns rows that this process has put into a shuffle itself."""

    def reduce(
        self,
        function: Reduce[R],
        sources: Sequence[Source],
        parts: int,
        folder: Path,
        counters: Counters,
        progress: Progress | None,
    ) -> list[R]:
        """Returns the results of `function` by partition; then all their files are in `folder`."""

    def stream(self, make: Callable[[], StreamFunction[T, R]], items: Iterable[T]) -> Iterator[R]:
        """Returns the results of `make()` on each item, in order. Items are taken as they are
        needed, in this thread.
        """

    def select(
        self,
        find: ReadRows[T],
        pieces: Sequence[T],
        rules: SelectionRules,
        schema: pl.Schema,
        counters: Counters,
        progress: Progress,
    ) -> Selected:
        """Selects rows among those (of `schema`) that `find` gives of each piece."""

    def write(
        self,
        function: Write[R],
        parts: int,
        folder: Path,
        counters: Counters,
        progress: Progress | None,
    ) -> list[R]:
        """Returns the results of `function` for all partitions, in order; then all their files are
        in `folder`.

        The files are the same whichever partitions go together: it saves to do many of them in one
        go.
        """
