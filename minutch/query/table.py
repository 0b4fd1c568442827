"""A table of a crawl: rows with typed columns, read from Nutch's files when they are asked for, and only then.

    table.scan()          a Polars LazyFrame: what a query does not need is not read
    table.to_arrow()      a pyarrow.Table       } need the extra `tables`
    table.to_pandas()     a pandas.DataFrame    }
    len(table)            the number of rows

A table is read in pieces, each a stretch of its files; a piece becomes a `Rows`, of which each column is made by a
function of its own. Columns that nobody asked for are never made.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import polars as pl
from polars.io.plugins import register_io_source

from minutch.errors import MinutchError

if TYPE_CHECKING:
    import pandas
    import pyarrow

INSTALL = "install the extra: python -m pip install 'minutch[tables]'"


class Column(NamedTuple):
    """A column: its type, and how it is made of the rows of a piece."""

    dtype: pl.DataType
    make: Callable[[Any], pl.Series]


class Table(ABC):
    """A table of a crawl. `columns` has what it consists of, in order."""

    name: ClassVar[str]
    """As which SQL knows it."""
    columns: ClassVar[Mapping[str, Column]]

    @property
    def schema(self) -> pl.Schema:
        """Names and types of the columns."""
        return pl.Schema({name: column.dtype for name, column in self.columns.items()})

    @abstractmethod
    def frames(self, columns: Collection[str]) -> Iterator[pl.DataFrame]:
        """The rows, some at a time, with (at least) these columns. Raises StoreError, FormatError."""

    def make(self, rows: Any, columns: Collection[str]) -> pl.DataFrame:
        """The columns that are wanted, made of the rows of a piece."""
        return pl.DataFrame([self.columns[name].make(rows).alias(name) for name in self.columns if name in columns])

    def scan(self) -> pl.LazyFrame:
        """The table as a Polars LazyFrame."""
        return register_io_source(self._read, schema=self.schema, is_pure=True, explain_name=self.name)

    def _read(
        self, with_columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        wanted = list(self.columns) if with_columns is None else with_columns
        needed = {*wanted, *(predicate.meta.root_names() if predicate is not None else ())}
        # a table without columns has no rows: for a count, any column will do
        for frame in self.frames(needed or {next(iter(self.columns))}):
            found = frame if predicate is None else frame.filter(predicate)
            found = found.select(wanted) if wanted else found
            if n_rows is None:
                yield found
                continue
            yield found.head(n_rows)
            n_rows -= len(found)
            if n_rows <= 0:
                return

    def __len__(self) -> int:
        return int(self.scan().select(pl.len()).collect(engine="streaming").item())

    def to_arrow(self) -> pyarrow.Table:
        """The whole table in memory, for pyarrow."""
        _require("pyarrow")
        return self.scan().collect(engine="streaming").to_arrow()

    def to_pandas(self) -> pandas.DataFrame:
        """The whole table in memory, for pandas."""
        _require("pyarrow")
        _require("pandas")
        return self.scan().collect(engine="streaming").to_pandas()


def _require(package: str) -> None:
    try:
        __import__(package)
    except ImportError as exc:
        raise MinutchError(f"{package} is not installed", hint=INSTALL) from exc
