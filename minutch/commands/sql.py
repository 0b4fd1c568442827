"""`minutch sql`: answers questions about a crawl in SQL from its files."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import polars as pl

from minutch.commands.arguments import Arguments
from minutch.inspect.query.crawl import open_crawl
from minutch.inspect.query.exports import write_parquet
from minutch.inspect.query.prompt import completions, converse, line_editing
from minutch.inspect.query.results import MOST, csv_lines, first_rows, json_lines, text_table
from minutch.inspect.query.session import Session, statements
from minutch.job import JobContext
from minutch.terminal import counted


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
            frame = rows.collect(engine="streaming")
        else:
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
