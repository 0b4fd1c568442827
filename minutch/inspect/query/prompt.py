"""Runs a prompt for statements, with a history and completion of tables, columns and words of SQL.

A statement ends in a semicolon and may take several lines. On a line of their own `tables` lists
the tables, `columns TABLE` the columns of one, `help` helps, and `quit`, `exit` or the end of the
input ends; with a dot before them, as in other shells, they are the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from minutch.errors import MinutchError
from minutch.inspect.query.session import is_complete, statements
from minutch.inspect.query.table import Table
from minutch.terminal import folded

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
