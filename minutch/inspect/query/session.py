"""Answers SQL over the tables of a crawl by DuckDB, reading no more of the files than a statement
needs.

DuckDB tells a table which columns it needs and which conditions all rows must meet; what the table
leaves out is never read. In SQL a status is a text, so that LIKE and functions of texts work on it,
numbers have 64 bits, and times are in UTC. Why not Polars' SQL, which is there anyway:
`minutch/docs/decisions/sql.md`.

A statement can only ask: this DuckDB has no files, network, extensions or variables of Python, its
settings are locked, and its transactions read.
"""

from __future__ import annotations

import ctypes
import json
import operator
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import cache, reduce
from itertools import chain
from math import inf
from pathlib import Path
from typing import Any, Final, TypeVar

import duckdb
import polars as pl
from duckdb._sources.arrow import ArrowScanSource
from duckdb._sources.nodes import Binary, Col, In, Lit, Node, Postfix, Unary
from polars.io.plugins import register_io_source

from minutch.errors import QueryError
from minutch.inspect.query.columns import TIME
from minutch.inspect.query.crawl import CrawlFolder, open_crawl
from minutch.inspect.query.table import Request, Table
from minutch.job import JobContext
from minutch.terminal import visible_line
from minutch.work.tables.parallel import available_memory, cores

T = TypeVar("T")

_SETTINGS: Final[dict[str, str | bool | int | float | list[str]]] = {
    "allow_community_extensions": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "enable_external_access": False,
    "python_enable_replacements": False,
    "temp_directory": "",  # else .tmp of the working directory, which a killed process leaves there
}
_LOCKED: Final = "set global TimeZone = 'UTC'; set lock_configuration = true"
_SETUP: Final = """
create temp macro now() as timestamptz '{0:%Y-%m-%d %H:%M:%S.%f}+00';
create temp macro get_current_timestamp() as timestamptz '{0:%Y-%m-%d %H:%M:%S.%f}+00';
create temp macro current_localtimestamp() as timestamp '{0:%Y-%m-%d %H:%M:%S.%f}';
create temp macro today() as date '{0:%Y-%m-%d}';
create temp macro current_date() as date '{0:%Y-%m-%d}';
create temp macro regexp_like(text, pattern) as regexp_matches(text, pattern);
"""
"""The job's clock in place of the machine's, and the standard's name of a function."""
_ASKS: Final = "SQL here asks questions and does not change the files of the crawl"
_FIRST_WORDS: Final = ("select", "with", "from", "values", "show", "explain", "describe")
_QUESTIONS: Final = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)
_PLAN: Final = "explain_value"
_EACH: Final = 0.2
"""Seconds between two looks for Ctrl-C."""
_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], pl.Expr]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_INTEGERS: Final = ("tinyint", "smallint", "integer", "bigint", "hugeint")
_BEGINNINGS: Final = ("~~", "starts_with", "^@", "prefix")
"""LIKE, and functions that ask how a text begins."""
_BEGINNING: Final = re.compile(r"[ -$&-^`-}]+")
"""What comes before the first % or _ of a pattern; only ASCII has the order of keys."""
_QUOTED: Final = re.compile(r'"(.*?)"')
_NO_TABLE: Final = re.compile(r'Table with name (.*?) does not|Referenced table "(.*?)" not found')
_NO_COLUMN: Final = re.compile(r'Referenced column "(.*?)"|.* not have a column named "(.*?)"')
_NO_FUNCTION: Final = re.compile(r".*Function with name (\S+) does not exist")


def sql(crawl: Path, statement: str, *, context: JobContext) -> pl.LazyFrame:
    """Returns the rows that a statement asks for, as a Polars LazyFrame; times are in UTC.

    Nothing is read before the rows are collected. Raises QueryError, and StoreError if there is no
    crawl.
    """
    return Session(open_crawl(crawl, context.conf), context.clock.now()).query(statement)


def statements(text: str) -> Iterator[str]:
    """Yields the statements of a text, which end in semicolons, without those that are blank."""
    return (piece for piece, is_blank in _pieces(text) if not is_blank)


def is_complete(text: str) -> bool:
    """True if the last statement of a text has ended."""
    return list(_pieces(text))[-1][1]


def _pieces(text: str) -> Iterator[tuple[str, bool]]:
    """Yields what lies between the semicolons that end statements, and whether that is blank."""
    data, start, is_blank = text.encode("utf-8", "replace"), 0, True
    for at, kind in duckdb.tokenize(text):
        if kind is duckdb.token_type.operator and data[at : at + 1] == b";":
            yield data[start:at].decode().strip(), is_blank
            start, is_blank = at + 1, True
        elif kind is not duckdb.token_type.comment:
            is_blank = False
    yield data[start:].decode().strip(), is_blank


class Session:
    """The tables of a crawl, or others, in SQL. `now` (ms) is the time that statements see."""

    def __init__(
        self, crawl: CrawlFolder, now: int, tables: Mapping[str, Table] | None = None
    ) -> None:
        self.tables: Mapping[str, Table] = crawl.tables if tables is None else tables
        self._now = datetime.fromtimestamp(now / 1000, UTC)
        self._free: list[_Connection] = []
        self._lent: list[_Connection] = []

    def query(self, statement: str) -> pl.LazyFrame:
        """Returns the rows that a statement asks for, not read yet. Raises QueryError."""
        with self._connection() as connection:
            asked, schema = connection.answer(statement)

        def read(
            with_columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, _: object
        ) -> Iterator[pl.DataFrame]:
            with self._connection() as connection:
                for frame in connection.frames(asked, schema):
                    rows = frame if n_rows is None else frame.head(n_rows)
                    found = rows if predicate is None else rows.filter(predicate)
                    yield found if with_columns is None else found.select(with_columns)
                    if n_rows is not None and (n_rows := n_rows - len(rows)) <= 0:
                        return

        return register_io_source(read, schema=schema)

    @contextmanager
    def _connection(self) -> Iterator[_Connection]:
        """Lends a connection: one is for one answer at a time."""
        connection = self._free.pop() if self._free else _Connection(self.tables, self._now)
        self._lent.append(connection)
        try:
            yield connection
        finally:
            self._lent.remove(connection)
            if connection.is_free:
                self._free.append(connection)
            else:
                connection.interrupt()

    def run(self, call: Callable[[], T], most: float = inf) -> T:
        """Calls what collects rows here in another thread: waiting for DuckDB would miss Ctrl-C.
        Raises QueryError if it takes more than `most` seconds.
        """
        with ThreadPoolExecutor(1) as pool, _heard_by_python():
            waiting, end = pool.submit(call), time.monotonic() + most
            try:
                while not wait([waiting], _EACH).done:
                    # the signal may have reached another thread, which wakes nobody
                    if time.monotonic() > end:
                        raise QueryError(f"the statement took more than {most:g} s")
                return waiting.result()
            except BaseException:
                for connection in list(self._lent):
                    connection.interrupt()
                raise


@contextmanager
def _heard_by_python() -> Iterator[None]:
    """Has Python hear Ctrl-C while Polars collects, which keeps it until the next rows come."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or handler is None:
        yield
        return
    libc, of_polars = ctypes.CDLL(None), ctypes.create_string_buffer(1024)
    libc.sigaction(signal.SIGINT, None, of_polars)
    signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        libc.sigaction(signal.SIGINT, of_polars, None)


@cache
def _duckdb() -> duckdb.DuckDBPyConnection:
    """The only DuckDB of this process, in memory, without a table: to register its own functions
    takes it 20 ms, a connection to it a tenth of that, and the bound of memory holds for all.
    """
    memory = f"{available_memory() * 3 // 4}B"
    found = duckdb.connect(config=_SETTINGS | {"memory_limit": memory, "threads": cores()})
    found.execute(_LOCKED)
    return found


class _Connection:
    """Sees the tables and the clock of a session, and nothing of other connections."""

    def __init__(self, tables: Mapping[str, Table], now: datetime) -> None:
        self._tables = tables
        self.is_free = True
        """Whether nothing runs in it."""
        self._failures: list[Exception] = []
        self._duck = _duckdb().cursor()
        self._duck.execute(_SETUP.format(now))
        for name, table in tables.items():
            self._duck.register(name, _Scan(table, self._failures))

    def interrupt(self) -> None:
        """Ends what still runs."""
        self._duck.interrupt()

    def answer(self, statement: str) -> tuple[str, pl.Schema]:
        """Returns the statement that gives the rows of another one in the types of answers, and
        their schema. Raises QueryError.
        """
        with self._told(statement), self._reading():
            asked = self._duck.extract_statements(statement)
            if len(asked) != 1:
                raise QueryError(f"expected one statement, found {len(asked) or 'none'}")
            if asked[0].type not in _QUESTIONS:
                raise QueryError(f"{asked[0].type.name} is not possible: {_ASKS}")
            found = self._duck.sql(statement)
            names, types = found.limit(0).columns, found.types
            nulls = ", ".join(f"null::{_named(kind)}" for kind in types)
            dtypes = pl.DataFrame(self._duck.sql(f"from (select {nulls}) limit 0")).dtypes
            if asked[0].type is duckdb.StatementType.SELECT:
                places = [f"c{at}" for at in range(len(names))]
                made = ", ".join(map(_in_answer, places, types))
                inner = self._bounded(next(statements(statement)))
                statement = f"select {made} from ({inner}\n) as answer({', '.join(places)})"
        kinds = [
            pl.Duration("us") if kind.id == "interval" else TIME if dtype == _MOMENT else dtype
            for kind, dtype in zip(types, dtypes, strict=True)
        ]
        return statement, pl.Schema(zip(names, kinds, strict=True))

    def frames(self, statement: str, schema: pl.Schema) -> Iterator[pl.DataFrame]:
        """Yields the rows of a statement that `answer` has made, some at a time."""
        self._failures.clear()
        with self._told(statement), self._reading():
            rows = pl.scan_arrow_c_stream(self._duck.sql(statement))
            batches = rows.collect_batches(maintain_order=True, engine="streaming")
            for frame in chain(batches, [None]):
                if self._failures:
                    raise self._failures.pop()
                if frame is None:
                    break
                frame.columns = schema.names()
                yield _lines(frame) if _PLAN in schema else frame.cast(schema)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Lets statements read only: EXPLAIN would run those that don't."""
        self.is_free = False
        self._duck.execute("begin transaction read only")
        yield
        self._duck.rollback()
        self.is_free = True

    @contextmanager
    def _told(self, statement: str) -> Iterator[None]:
        """Raises what DuckDB has to say as a QueryError."""
        try:
            yield
        except (duckdb.FatalException, duckdb.InternalException) as exc:
            _duckdb.cache_clear()  # it answers nobody any more
            raise _error(exc, statement, self._tables) from exc
        except (duckdb.Error, pl.exceptions.PolarsError) as exc:
            raise _error(exc, statement, self._tables) from exc

    def _bounded(self, statement: str) -> str:
        """Returns the statement with LIKE 'x%' as two comparisons besides, since tables are told of
        these alone.
        """
        asked = "select json_serialize_sql(?::varchar)"
        tree = json.loads(self._duck.execute(asked, [statement]).fetchall()[0][0])
        bounded = _with_bounds(tree)
        if bounded == tree:
            return statement
        asked = "select json_deserialize_sql(?::json)"
        return str(self._duck.execute(asked, [json.dumps(bounded)]).fetchall()[0][0])


def _lines(plans: pl.DataFrame) -> pl.DataFrame:
    """Returns a row for each line of the plans of EXPLAIN."""
    return plans.with_columns(pl.col(_PLAN).str.split("\n")).explode(_PLAN)


def _with_bounds(node: Any) -> Any:
    """Returns a tree of DuckDB's parser with comparisons beside what asks how a column begins."""
    if isinstance(node, list):
        return [_with_bounds(one) for one in node]
    if not isinstance(node, dict):
        return node
    made = {name: _with_bounds(value) for name, value in node.items()}
    if made.get("class") != "FUNCTION" or made["function_name"] not in _BEGINNINGS:
        return made
    column, pattern = (one["expression"] for one in made["arguments"])
    text = pattern.get("literal", {}).get("text", "")
    found = _BEGINNING.match(text) if made["function_name"] == "~~" else re.match(r"[ -}]+", text)
    if column["class"] != "COLUMN_REF" or pattern["class"] != "CONSTANT" or found is None:
        return made

    def compared(name: str, bound: str) -> Any:
        value = pattern | {"literal": {"kind": "STRING", "text": bound}}
        return {"class": "COMPARISON", "type": name, "alias": "", "left": column, "right": value}

    least = compared("COMPARE_GREATERTHANOREQUALTO", found[0])
    below = compared("COMPARE_LESSTHAN", found[0][:-1] + chr(ord(found[0][-1]) + 1))
    both = {"class": "CONJUNCTION", "type": "CONJUNCTION_AND", "alias": made["alias"]}
    return both | {"children": [made | {"alias": ""}, least, below]}


_MOMENT: Final = pl.Datetime("us", "UTC")


def _in_tables(dtype: pl.DataType) -> pl.DataType:
    """Returns the type that a column has in SQL."""
    if isinstance(dtype, pl.Enum):
        return pl.String()
    if dtype.is_integer():
        return pl.Int64()
    if dtype.is_float():
        return pl.Float64()
    return _MOMENT if isinstance(dtype, pl.Datetime) else dtype


def _in_answer(column: str, kind: Any) -> str:
    """Returns a column in its type of answers; Polars has no INTERVAL but durations."""
    return f"epoch_us({column})" if kind.id == "interval" else f"cast({column} as {_named(kind)})"


def _named(kind: Any) -> str:  # noqa: PLR0911 - one return a case
    """Returns the type of answers that values of a type get, as SQL."""
    match kind.id:
        case "decimal" | "float" | "double":
            return "double"
        case "list" | "array":
            return f"{_named(kind.children[0][1])}[]"
        case "struct":
            fields = (
                f'"{name.replace(chr(34), chr(34) * 2)}" {_named(one)}'
                for name, one in kind.children
            )
            return f"struct({', '.join(fields)})"
        case "map":
            return f"map({_named(kind.children[0][1])}, {_named(kind.children[1][1])})"
        case "boolean" | "blob" | "date" | "time" as name:
            return str(name)
        case str(name) if name.removeprefix("u") in _INTEGERS:
            return "bigint"
        case str(name) if name.startswith("timestamp"):
            return "timestamptz"
    return "varchar"


class _Scan(ArrowScanSource):
    """A table as DuckDB reads it: the columns and conditions that it asks for."""

    schema_is_stable = True

    def __init__(self, table: Table, failures: list[Exception]) -> None:
        super().__init__(table)
        self._failures = failures
        self._kinds = {name: _in_tables(dtype) for name, dtype in table.schema.items()}

    def __arrow_c_schema__(self) -> object:
        return pl.Schema(self._kinds).__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.stream(None, ())[0]

    def accepts(self, predicate: Node) -> bool:
        """Returns whether `stream` leaves out the rows that a condition does not hold for."""
        return self._condition(predicate) is not None

    def stream(self, columns: Sequence[int] | None, filters: Sequence[Node]) -> tuple[object, bool]:
        """Returns the rows that conditions hold for, as an Arrow stream, and whether it has just
        the columns of these numbers.
        """
        names = list(self._kinds)
        kinds = {
            name: self._kinds[name]
            for name in (map(names.__getitem__, columns or ()) if columns else names)
        }
        conditions = [found for one in filters if (found := self._condition(one)) is not None]
        request = Request(tuple(kinds), reduce(operator.and_, conditions) if conditions else None)

        def read(*_: object) -> Iterator[pl.DataFrame]:
            try:
                for frame in self.obj.frames(request):
                    yield frame.cast(kinds)
            except Exception as exc:  # noqa: BLE001 - DuckDB 2.0 crashes where a stream fails
                self._failures.append(exc)

        rows = register_io_source(read, schema=pl.Schema(kinds))
        batches = rows.collect_batches(maintain_order=True, engine="streaming")
        return batches.__arrow_c_stream__(), bool(columns)

    def _condition(self, node: Node) -> pl.Expr | None:  # noqa: PLR0911 - one return a case
        """Returns a condition as Polars has it; None for one that is left to DuckDB."""
        match node:
            case Binary(op="AND" | "OR" as op, left=left, right=right):
                a, b = self._condition(left), self._condition(right)
                if a is None or b is None:
                    return None
                return a & b if op == "AND" else a | b
            case Unary(op="NOT", operand=operand):
                found = self._condition(operand)
                return None if found is None else ~found
            case Postfix(op=op, operand=Col(parts=(name,))):
                return pl.col(name).is_null() if op == "IS NULL" else pl.col(name).is_not_null()
            case Binary(op=op, left=Col(parts=(name,)), right=Lit(value=value)):
                return _COMPARISONS[op](self._column(name), value)
            case In(operand=Col(parts=(name,)), values=values):
                return self._column(name).is_in(
                    [one.value for one in values if isinstance(one, Lit)]
                )
        return None

    def _column(self, name: str) -> pl.Expr:
        """Returns a column whose values compare with those of conditions."""
        kind = self._kinds[name]
        if kind == _MOMENT:
            return pl.col(name).dt.epoch("us")
        return pl.col(name) if kind == self.obj.schema[name] else pl.col(name).cast(kind)


def _error(exc: Exception, statement: str, tables: Mapping[str, Table]) -> QueryError:
    """Returns what DuckDB says of a statement in a sentence, with what may have been meant."""
    text = str(exc).partition(" Error: ")[2] or str(exc)
    if found := _NO_TABLE.match(text):
        name = found[1] or found[2]
        return QueryError(f"there is no table {name}", hint=_meant(name, list(tables), "tables"))
    if found := _NO_COLUMN.match(text):
        name = found[1] or found[2]
        return QueryError(
            f"there is no column {name}", hint=_columns_meant(name, statement, tables)
        )
    if found := _NO_FUNCTION.match(text):
        close = get_close_matches(found[1], _QUOTED.findall(text), 1, 0.7)
        return QueryError(f"there is no function {found[1]}", hint=_or(close))
    if isinstance(exc, duckdb.PermissionException):
        return QueryError("a statement reads the tables of the crawl and no other files")
    if isinstance(exc, duckdb.TransactionException):
        return QueryError(f"that is not possible: {_ASKS}")
    first = statement.split(maxsplit=1)[0] if isinstance(exc, duckdb.ParserException) else ""
    close = get_close_matches(first.lower(), _FIRST_WORDS, 1)
    hint = _or([close[0].upper()]) if close and close[0] != first.lower() else ""
    return QueryError(visible_line(text.partition("\n")[0]), hint=hint)


def _columns_meant(name: str, statement: str, tables: Mapping[str, Table]) -> str:
    """Returns a hint for a column that is not in the tables that a statement names."""
    data = statement.encode("utf-8", "replace")
    words = {re.match(rb'"?(\w*)', data[at:])[1].decode() for at, _ in duckdb.tokenize(statement)}  # type: ignore[index]
    named = [table for table in tables.values() if table.name in words]
    if named:
        return _meant(name, list({one: None for table in named for one in table.schema}), "columns")
    known = {one for table in tables.values() for one in table.schema}
    found = [
        f"`select {one} from {table.name}`"
        for one in get_close_matches(name.lower(), known, 1, 0.6)
        for table in tables.values()
        if one in table.schema
    ]
    return f"from which table? {' or '.join(found) or ', '.join(tables)}"


def _meant(name: str, known: list[str], what: str) -> str:
    close = get_close_matches(name.lower(), known, 3, 0.6)
    return _or(close) or f"the {what} are {', '.join(known)}"


def _or(names: list[str]) -> str:
    return f"did you mean {' or '.join(names)}?" if names else ""
