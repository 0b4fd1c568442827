"""Writes rows for people and programs: as a table of text, as CSV, as JSON lines."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from datetime import date, datetime, timedelta
from typing import Any, Final

import polars as pl

from minutch import strictjson
from minutch.terminal import visible_line

MOST: Final = 1000
"""Rows of a table that are shown in a terminal."""
_NARROWEST: Final = 8
_GAP: Final = "  "
_ROWS_AT_A_TIME: Final = 10_000
_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]")


def text_table(frame: pl.DataFrame, width: int | None) -> Iterator[str]:
    """Yields a table's lines: names, a rule, rows. Cells are cut to fit into `width`, if any."""
    numeric = [dtype.is_numeric() for dtype in frame.dtypes]
    head = [visible_line(name) for name in frame.columns]
    rows = [[_shown(value) for value in row] for row in frame.iter_rows()]
    widths = [max(map(_columns_of, column)) for column in zip(head, *rows, strict=True)]
    if width is not None:
        widths = _fitted(widths, width - len(_GAP) * (len(widths) - 1))
    for cells in (head, ["-" * size for size in widths], *rows):
        line = [
            _cell(cell, size, right)
            for cell, size, right in zip(cells, widths, numeric, strict=True)
        ]
        yield _GAP.join(line).rstrip()


def _fitted(widths: list[int], room: int) -> list[int]:
    """Returns the widths, the widest ones reduced until all fit into `room`."""
    widths = list(widths)
    while sum(widths) > room and max(widths) > _NARROWEST:
        widest = max(widths)
        below = max([size for size in widths if size < widest], default=_NARROWEST)
        most = [place for place, size in enumerate(widths) if size == widest]
        # Rounded up: what is left over would need another turn of the loop.
        share = -(-(sum(widths) - room) // len(most))
        for place in most:
            widths[place] = max(_NARROWEST, below if widest - share < below else widest - share)
    return widths


def _cell(text: str, size: int, right: bool) -> str:
    columns = _columns_of(text)
    if columns > size:
        text = _cut(text, size - 1) + "…"
        columns = _columns_of(text)
    space = " " * (size - columns)
    return space + text if right else text + space


def _cut(text: str, size: int) -> str:
    """Returns the longest beginning that takes at most so many columns."""
    columns = 0
    for place, char in enumerate(text):
        columns += _columns_of(char)
        if columns > size:
            return text[:place]
    return text


def _columns_of(text: str) -> int:
    """Returns the number of a terminal's columns that a text takes."""
    if text.isascii():
        return len(text)
    others = _NOT_ASCII.findall(text)
    # UAX #11: wide and fullwidth characters take two cells, combining ones none.
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in others)
    return len(text) + wide - sum(unicodedata.combining(char) > 0 for char in others)


def _shown(value: object) -> str:  # noqa: PLR0911 - one return a case
    """Returns a value for people, on one line."""
    match value:
        case None:
            return "null"
        case str():
            return visible_line(value)
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value:.6g}"
        case datetime():
            return value.isoformat(" ", "seconds")
        case list() | dict():
            return visible_line(strictjson.dumps(value, ensure_ascii=False, default=_json))
    return visible_line(str(value))


def _json(value: object) -> Any:
    """Returns the form of a value that JSON has no type for."""
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes):
        return value.hex()
    return str(value)


def csv_lines(frames: Iterable[pl.DataFrame], head: Iterable[str]) -> Iterator[str]:
    """Yields names, then rows as CSV (RFC 4180, with line feeds); lists and maps as JSON."""
    # By the writer of the rows, so that names are quoted by the same rule.
    yield pl.DataFrame(schema=dict.fromkeys(head, pl.String())).write_csv()
    for frame in _slices(frames):
        nested = [name for name, dtype in frame.schema.items() if dtype.is_nested()]
        flat = [
            pl.Series(
                name,
                [
                    strictjson.dumps(value, ensure_ascii=False, default=_json)
                    for value in frame[name].to_list()
                ],
            )
            for name in nested
        ]
        yield frame.with_columns(flat).write_csv(include_header=False)


def json_lines(frames: Iterable[pl.DataFrame]) -> Iterator[str]:
    """Yields each row as an object of JSON on a line."""
    for part in _slices(frames):
        for row in part.iter_rows(named=True):
            yield strictjson.dumps(row, ensure_ascii=False, default=_json) + "\n"


def _slices(frames: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    return (part for frame in frames for part in frame.iter_slices(_ROWS_AT_A_TIME))


def first_rows(frames: Iterator[pl.DataFrame], schema: pl.Schema, most: int) -> pl.DataFrame:
    """Returns the first `most` rows, in one table."""
    found = [pl.DataFrame(schema=schema)]
    for frame in frames:
        found.append(frame.head(most))
        most -= len(found[-1])
        if most <= 0:
            break
    return pl.concat(found)
