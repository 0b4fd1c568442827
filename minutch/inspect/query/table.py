"""A table of a crawl: rows with typed columns, read from Nutch's files when they are asked for.

    table.scan()          a Polars LazyFrame: what a query does not need is not read
    table.to_arrow()      a pyarrow.Table       } need the extra `tables`
    table.to_pandas()     a pandas.DataFrame    }
    len(table)            the number of rows
    for row in table      rows as dictionaries
    table[url]            the row of a URL, where there can be only one; `get`, `in` as with a
                          dictionary

A table is read in pieces, each a stretch of its files; a piece becomes a `Rows`, of which each
column is made by a function of its own. Columns that nobody asked for are never made.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

import polars as pl
from polars.io.plugins import register_io_source

from minutch.errors import MinutchError
from minutch.inspect.query.predicates import Pruning, pruning_of

if TYPE_CHECKING:
    import pandas
    import pyarrow

T = TypeVar("T")

INSTALL = "install the extra: python -m pip install 'minutch[tables]'"


class SqlColumn(NamedTuple):
    """A column: its type, and the function that makes it from the rows of a piece."""

    dtype: pl.DataType
    make: Callable[[Any], pl.Series]


class once(Generic[T]):
    """A property that is computed once for each object: cached_property without the lock that
    Python 3.11 has in it.

    That lock is one for all objects of a class, which would let the threads that make tables wait
    for each other.
    """

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __get__(self, owner: Any, kind: type | None = None) -> T:
        value = owner.__dict__[self._make.__name__] = self._make(owner)
        return value


def part_file(number: int) -> str:
    """Returns the name of a partition that has no other."""
    return f"part-{number:05d}"


class Request(NamedTuple):
    """A request to a table: columns of the rows that a condition holds for."""

    columns: tuple[str, ...]
    condition: pl.Expr | None = None

    @property
    def tested(self) -> list[str]:
        """The columns that the condition looks at."""
        return (
            [] if self.condition is None else list(dict.fromkeys(self.condition.meta.root_names()))
        )

    @property
    def needed(self) -> set[str]:
        """The columns that are wanted or looked at."""
        return {*self.columns, *self.tested}

    @property
    def pruning(self) -> Pruning:
        """The URLs and hosts that the condition can hold for."""
        return pruning_of(self.condition)


class Table(ABC):
    """A table of a crawl. `columns` are its columns, in order."""

    name: str
    """The name in SQL."""
    columns: ClassVar[Mapping[str, SqlColumn]]
    cheapest: ClassVar[str] = "url"
    """The column that is made when rows are only counted."""
    is_derived: ClassVar[bool] = False
    """True if all of it is in other tables."""
    key: ClassVar[str] = ""
    """The column by whose values rows are found: `table[value]`; none if they may repeat."""

    @property
    def schema(self) -> pl.Schema:
        """Names and types of the columns."""
        return pl.Schema({name: column.dtype for name, column in self.columns.items()})

    @abstractmethod
    def frames(self, request: Request) -> Iterator[pl.DataFrame]:
        """Yields the requested rows, some at a time (see `make`). StoreError, FormatError."""

    def partitions(self) -> Mapping[str, Table]:
        """Returns the tables that this one consists of, by names for files; itself if whole."""
        return {part_file(0): self}

    def make(self, rows: Any, request: Request) -> pl.DataFrame:
        """Makes the requested rows of a piece: first the columns of the condition, then the others
        where it holds.

        `rows` has `filter(mask)`.
        """
        if request.condition is None:
            return pl.DataFrame(self._columns(rows, request.columns))
        # A text or a digest costs the inflating of its folder: only where the condition holds.
        made = {column.name: column for column in self._columns(rows, request.tested)}
        mask = (
            pl.DataFrame(list(made.values())).select(request.condition.fill_null(False)).to_series()
        )
        if not mask.any():
            return pl.DataFrame(schema={name: self.columns[name].dtype for name in request.columns})
        if not mask.all():
            made = {name: column.filter(mask) for name, column in made.items()}
            rows = rows.filter(mask)
        others = self._columns(rows, [name for name in request.columns if name not in made])
        made |= {column.name: column for column in others}
        return pl.DataFrame([made[name] for name in request.columns])

    def _columns(self, rows: Any, names: Sequence[str]) -> list[pl.Series]:
        return [self.columns[name].make(rows).alias(name) for name in names]

    def scan(self) -> pl.LazyFrame:
        """Returns the table as a Polars LazyFrame."""
        # Pure: two scans of a table in one query are one reading.
        return register_io_source(
            self._read, schema=self.schema, is_pure=True, explain_name=self.name
        )

    def _read(
        self,
        with_columns: list[str] | None,
        predicate: pl.Expr | None,
        n_rows: int | None,
        batch_size: int | None,
    ) -> Iterator[pl.DataFrame]:
        wanted = tuple(self.columns if with_columns is None else with_columns)
        # a table without columns has no rows: for a count, any column will do
        request = Request(wanted or (self.cheapest,), predicate)
        if n_rows is None:
            return self.frames(request)
        return self._first(request, n_rows)

    def _first(self, request: Request, count: int) -> Iterator[pl.DataFrame]:
        """Yields those of the first `count` rows that fit the condition: `head`, then `filter`."""
        # Polars pushes a limit below the condition only where it means the rows before it.
        for frame in self.frames(Request(tuple(request.needed))):
            found = frame.head(count)
            yield (found if request.condition is None else found.filter(request.condition)).select(
                request.columns
            )
            count -= len(found)
            if count <= 0:
                return

    def __len__(self) -> int:
        return int(self.scan().select(pl.len()).collect(engine="streaming").item())

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yields the rows, each a dictionary of its columns."""
        for frame in self.frames(Request(tuple(self.columns))):
            yield from frame.iter_rows(named=True)

    def get(self, key: str) -> dict[str, Any] | None:
        """Returns the row with this URL (or host), or None. TypeError if several may have it."""
        if not self.key:
            raise TypeError(
                f"rows of {self.name} are found by scan().filter(…): several may have the same URL"
            )
        for frame in self.frames(Request(tuple(self.columns), pl.col(self.key) == key)):
            for row in frame.iter_rows(named=True):
                return row
        return None

    def __getitem__(self, key: str) -> dict[str, Any]:
        row = self.get(key)
        if row is None:
            raise KeyError(key)
        return row

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self.get(key) is not None

    def to_arrow(self) -> pyarrow.Table:
        """Returns the whole table, for pyarrow."""
        _require("pyarrow")
        return self.scan().collect(engine="streaming").to_arrow()

    def to_pandas(self) -> pandas.DataFrame:
        """Returns the whole table, for pandas."""
        _require("pyarrow")
        _require("pandas")
        return self.scan().collect(engine="streaming").to_pandas()


def _require(package: str) -> None:
    try:
        __import__(package)
    except ImportError as exc:
        raise MinutchError(f"{package} is not installed", hint=INSTALL) from exc
