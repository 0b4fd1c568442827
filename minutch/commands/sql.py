"""`minutch sql`: answers questions about a crawl in SQL from its files; without a statement, at a
prompt with a history and completion of tables, columns and words of SQL.

At the prompt a statement ends in a semicolon and may take several lines. On a line of their own
`tables` lists the tables, `columns TABLE` the columns of one, `help` helps, and `quit`, `exit` or
the end of the input ends; with a dot before them, as in other shells, they are the same.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

import polars as pl

from minutch.commands.arguments import Arguments
from minutch.errors import MinutchError
from minutch.inspect.query.crawl import open_crawl
from minutch.inspect.query.exports import write_parquet
from minutch.inspect.query.results import MOST, csv_lines, first_rows, json_lines, text_table
from minutch.inspect.query.session import Session, is_complete, statements
from minutch.inspect.query.table import Table
from minutch.job import JobContext
from minutch.terminal import counted, folded


def run(arguments: Arguments, context: JobContext) -> int:
    """Runs the command. Exit code 0."""
    if sum(bool(arguments[name]) for name in ("-csv", "-json", "-parquet")) > 1:
        arguments.fail("one of -csv, -json and -parquet")
    session = Session(open_crawl(arguments["crawl"], context.conf), context.clock.now())
    asked = arguments["statement"]
    answer = Answers(
        session,
        context,
        "csv" if arguments["-csv"] else "json" if arguments["-json"] else "",
        arguments["-parquet"],
    )
    if asked is not None:
        # All are taken apart before the first runs.
        for statement in list(statements(asked)) or arguments.fail("the statement is empty"):
            answer(statement)
    elif context.stdin.isatty():
        with line_editing(completions(session.tables)):
            converse(input, session.tables, answer, context.print, partial(print, file=context.err))
    else:
        for statement in statements(context.stdin.read()):
            answer(statement)
    return 0


class Answers:
    """A printer of answers: as a table of text, as csv or json (`form`), or into a `file`."""

    def __init__(self, session: Session, context: JobContext, form: str, file: Path | None) -> None:
        self._session, self._context, self._form = session, context, form
        self._file = file

    def __call__(self, statement: str) -> None:
        """Prints or writes the rows of a statement. Raises QueryError, StoreError, FormatError."""
        rows = self._session.query(statement)
        if self._file is not None:
            count = self._session.run(partial(write_parquet, rows, self._file))
            self._context.print(f"{counted(count, 'rows')} in {self._file}")
        else:
            self._session.run(partial(self._print_all if self._form else self._print_table, rows))

    def _print_all(self, rows: pl.LazyFrame) -> None:
        frames = _batches(rows)
        lines = (
            csv_lines(frames, rows.collect_schema()) if self._form == "csv" else json_lines(frames)
        )
        for text in lines:
            self._context.print(text, end="")

    def _print_table(self, rows: pl.LazyFrame) -> None:
        """Prints all rows, or in a terminal the first ones, cut to its width."""
        terminal = self._context.out.isatty()
        if not terminal:
            # All rows: widths of columns need them. Who pipes a large answer takes -csv or -json.
            frame = rows.collect(engine="streaming")
        else:
            # One more than are shown tells whether there are others; the rest is never made.
            frame = first_rows(_batches(rows), rows.collect_schema(), MOST + 1)
        for line in text_table(
            frame.head(MOST) if terminal else frame,
            shutil.get_terminal_size().columns if terminal else None,
        ):
            self._context.print(line)
        if terminal and len(frame) > MOST:
            self._context.print(f"the first {MOST:,} rows; -csv and -json give all")


def _batches(rows: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    return iter(rows.collect_batches(maintain_order=True, engine="streaming"))


WIDTH: Final = 80
HISTORY: Final = ".cache/minutch/sql-history"
"""Below the home directory."""
_LONGEST_HISTORY: Final = 1000
_WORDS: Final = (
    "select, from, where, group by, order by, having, limit, join, left join, on, as, and, or, not,"
    " in, like, is null, between, case, when, then, else, end, distinct, desc, count(*), count(,"
    " sum(, avg(, min(, max(, median(, date_trunc(, cast(, with, union all"
)
_COMMANDS: Final = ("tables", "columns", "help", "quit", "exit")
_COMMAND: Final = re.compile(rf"\s*\.?({'|'.join(_COMMANDS)})(?:\s+(\w+))?\s*;?\s*", re.IGNORECASE)
_BANNER: Final = """The tables are {}
A statement ends in a semicolon; `help` shows more, `quit` ends."""
_HELP: Final = """A statement ends in a semicolon, and may take several lines:
    select status, count(*) from crawldb group by status;
tables             the tables, and their columns
columns TABLE      the columns of a table, and their types
help               this text
quit               ends, as Ctrl-D does
The page docs/sql has the meaning of each column, and examples."""


def completions(tables: Mapping[str, Table]) -> list[str]:
    """Returns all words that can be completed."""
    columns = {name for table in tables.values() for name in table.schema}
    return sorted({*_WORDS.split(", "), *_COMMANDS, *tables, *columns})


def converse(
    lines: Callable[[str], str],
    tables: Mapping[str, Table],
    answer: Callable[[str], None],
    show: Callable[[str], None],
    complain: Callable[[str], None],
) -> None:
    """Asks for lines until there are no more and answers each statement. An error ends the
    statement, not the session.

    `lines(prompt)` returns the next line; EOFError ends the session, KeyboardInterrupt drops an
    unfinished statement. `show` prints a line, `complain` a line that is no data.
    """
    complain(_BANNER.format(folded(f"{', '.join(tables)}.", WIDTH, 15)))
    text = ""
    while True:
        try:
            text += lines("...> " if text else "sql> ") + "\n"
            command = _COMMAND.fullmatch(text)
            if command is not None:
                text = ""
                if command[1].lower() in ("quit", "exit"):
                    return
                _run_command(command[1].lower(), command[2], tables, answer, show)
            elif not text.strip():
                text = ""
            elif is_complete(text):
                complete, text = text, ""
                for statement in statements(complete):
                    answer(statement)
        except EOFError:
            return
        except KeyboardInterrupt:
            text = ""
            show("")
        except MinutchError as exc:
            text = ""
            _complain(exc, complain)


def _complain(error: MinutchError, complain: Callable[[str], None]) -> None:
    complain(f"error: {folded(str(error), WIDTH, 7)}")
    if error.hint:
        complain(f"hint: {folded(error.hint, WIDTH, 6)}")


def _run_command(
    command: str,
    name: str | None,
    tables: Mapping[str, Table],
    answer: Callable[[str], None],
    show: Callable[[str], None],
) -> None:
    if command == "tables":
        for table in tables.values():
            show(f"{table.name:<12}{folded(', '.join(table.schema), WIDTH, 12)}")
    elif command == "columns" and name is not None:
        answer(f'select column_name as "column", column_type as type from (describe {name})')
    else:
        show(_HELP)


@contextmanager
def line_editing(words: Iterable[str]) -> Iterator[None]:
    """Edits lines with readline, if Python has it: history and completion."""
    try:
        import readline
    except ImportError:
        yield
        return
    known = list(words)

    def complete(text: str, number: int) -> str | None:
        found = [word for word in known if word.startswith(text.lower())]
        return found[number] if number < len(found) else None

    history = _history()
    readline.set_completer(complete)
    readline.set_completer_delims(" \t\n,()=<>;")
    readline.parse_and_bind(
        # macOS and some builds of Python have libedit under the name of readline.
        "bind ^I rl_complete" if "libedit" in (readline.__doc__ or "") else "tab: complete"
    )
    if history is not None:
        with suppress(OSError):
            readline.read_history_file(history)
    try:
        yield
    finally:
        readline.set_completer(None)
        if history is not None:
            with suppress(OSError):
                history.parent.mkdir(parents=True, exist_ok=True)
                readline.set_history_length(_LONGEST_HISTORY)
                readline.write_history_file(history)


def _history() -> Path | None:
    try:
        return Path.home() / HISTORY
    except RuntimeError:  # there is no home
        return None
