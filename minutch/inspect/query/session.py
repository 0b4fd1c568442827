"""Answers SQL over the tables of a crawl by Polars, reading no more of the files than a statement
needs.

In SQL a status is a text, so that LIKE and functions of texts work on it, a time has no zone: it is
in UTC, and numbers have 64 bits (see `integers`). Polars was chosen over DuckDB by measurement:
both wait for the files to be decoded, but Polars takes the rows as they come, where DuckDB holds
all of them first, and minutch needs Polars anyway.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Final

import polars as pl
import polars.selectors as cs

from minutch.errors import QueryError
from minutch.inspect.query.crawl import Crawl, open_crawl
from minutch.inspect.query.integers import answered, tabled, widened
from minutch.inspect.query.statements import allowed
from minutch.inspect.query.table import Table
from minutch.job import JobContext

_TABLE: Final = re.compile(
    r"(?:relation|no table or struct column named) '(.*?)' (?:was not )?found"
)
_COLUMN: Final = re.compile(r"^(?:unable to find column|no column named) [\"'](.*?)[\"']")
_FUNCTION: Final = re.compile(r"unsupported function '(.*?)'")
_READ: Final = re.compile(r"\b(?:from|join)\s+\"?(\w+)", re.IGNORECASE)
_DESCRIBE: Final = re.compile(r"\s*describe\s+(?:table\s+)?(\w+)\s*", re.IGNORECASE)
_PLACE: Final = re.compile(r"^sql parser error: ")


def sql(crawl: Path, statement: str, *, context: JobContext) -> pl.LazyFrame:
    """Returns the rows that a statement asks for, as a Polars LazyFrame; times are in UTC.

    Nothing is read before the rows are collected. Raises QueryError, and StoreError if there is no
    crawl.
    """
    return in_utc(Session(open_crawl(crawl), context.clock.now()).query(statement))


class Session:
    """The tables of one crawl, or others in their place, in SQL. `now` (ms) is the time that
    statements see.
    """

    def __init__(self, crawl: Crawl, now: int, tables: Mapping[str, Table] | None = None) -> None:
        self.tables: Mapping[str, Table] = crawl.tables if tables is None else tables
        self._now = now
        self._context = pl.SQLContext(
            {name: plain(table.scan()) for name, table in self.tables.items()}
        )

    def query(self, statement: str) -> pl.LazyFrame:
        """Returns the rows that a statement asks for, not read yet. Raises QueryError."""
        described = _DESCRIBE.fullmatch(statement)
        if described:
            return self._columns(described[1])
        asked = allowed(statement, self._now)
        try:
            return answered(self._context.execute(widened(asked)))
        except pl.exceptions.PolarsError as exc:
            raise self.error(self._told_of(asked) or exc, statement) from exc

    def _told_of(self, statement: str) -> Exception | None:
        """Returns what is wrong with a statement as it was written; None if nothing is."""
        try:
            self._context.execute(statement).collect_schema()
        except pl.exceptions.PolarsError as exc:
            return exc
        return None

    def _columns(self, name: str) -> pl.LazyFrame:
        """Returns the columns of a table, and their types."""
        if name not in self.tables:
            raise QueryError(
                f"there is no table {name}", hint=_meant(name, list(self.tables), "tables")
            )
        schema = answered(plain(self.tables[name].scan())).collect_schema()
        return pl.LazyFrame(
            {"column": schema.names(), "type": [str(dtype) for dtype in schema.dtypes()]}
        )

    def error(self, exc: Exception, statement: str) -> QueryError:
        """Returns Polars' error about a statement in a sentence, with what may have been meant."""
        text = str(exc).partition("\n")[0].strip()
        named = [self.tables[name] for name in _READ.findall(statement) if name in self.tables]
        if match := _TABLE.search(text):
            return QueryError(
                f"there is no table {match[1]}", hint=_meant(match[1], list(self.tables), "tables")
            )
        if match := _FUNCTION.search(text):
            return QueryError(f"there is no function {match[1]}")
        if match := _COLUMN.search(text):
            hint = self._columns_meant(match[1], named)
            return QueryError(f"there is no column {match[1]}", hint=hint)
        return QueryError(_PLACE.sub("", text) or type(exc).__name__)

    def _columns_meant(self, name: str, named: Sequence[Table]) -> str:
        """Returns a hint for a column that is not in the tables that a statement names."""
        if named:
            return _meant(
                name, list({one: None for table in named for one in table.schema}), "columns"
            )
        known = {one for table in self.tables.values() for one in table.schema}
        close = get_close_matches(name.lower(), known, 1, 0.6)
        found = [
            f"`select {one} from {table.name}`"
            for one in close
            for table in self.tables.values()
            if one in table.schema
        ]
        return f"from which table? {' or '.join(found) or ', '.join(self.tables)}"


def plain(table: pl.LazyFrame) -> pl.LazyFrame:
    """Returns the table as SQL has it: enumerations as texts, times without a zone, in UTC, wide
    numbers.
    """
    schema = table.collect_schema()
    times = [name for name, dtype in schema.items() if isinstance(dtype, pl.Datetime)]
    return tabled(
        table.with_columns(cs.enum().cast(pl.String), pl.col(times).dt.replace_time_zone(None))
    )


def in_utc(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Returns rows for other programs: times with their zone again."""
    return rows.with_columns(cs.datetime(time_zone=None).dt.replace_time_zone("UTC"))


def _meant(name: str, known: list[str], what: str) -> str:
    close = get_close_matches(name.lower(), known, 3, 0.6)
    return f"did you mean {' or '.join(close)}?" if close else f"the {what} are {', '.join(known)}"
