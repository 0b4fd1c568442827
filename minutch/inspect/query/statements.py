"""Cuts a text into SQL statements and refuses those that do more than ask about tables. Pure: no
I/O.

There is no tokenizer here but the engine's: an SQL expression that Polars is given is tokenized to
its end before anything of it is parsed, and an error of its tokenizer tells what it was in. So a
text is cut, and a function refused, exactly where Polars will see them.

No statement may change anything, and no function may read a file. The clock's functions are
replaced by literals, in UTC as all times are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from difflib import get_close_matches
from enum import Enum
from typing import Final

import polars as pl

from minutch.errors import QueryError

QUESTIONS: Final = ("select", "with", "from", "values", "show", "explain", "describe", "(")
"""First words of the statements that are allowed."""

_WORD: Final = re.compile(r"[^\W\d]\w*|\(")
_READER: Final = re.compile(r"(?<!\w)(?:read|scan)_\w+", re.IGNORECASE)
"""Names of functions that read files."""
_CLOCK: Final = re.compile(
    r"(?<!\w)(?:(current_timestamp|localtimestamp|now)|(current_date|today))(?!\w)", re.IGNORECASE
)
"""Functions of the clock: a moment, or a day."""


class _Place(Enum):
    """The places that a character of a text may be in."""

    CODE = "code"
    NAME = "a quoted name"
    OTHER = "a string or a comment"


def _place(text: str, at: int) -> _Place:
    """Returns the place of a character, at which a token may begin."""
    try:
        pl.sql_expr(f"{text[:at]} '")
    except pl.exceptions.PolarsError as exc:
        error = str(exc)
        if "Unterminated string literal" in error:  # the quote has begun one
            return _Place.CODE
        if "close delimiter" in error:
            return _Place.NAME
    return _Place.OTHER  # the quote has ended a string, or is a comment's


def _is_blank(text: str) -> bool:
    """True if a text has nothing but white space and comments."""
    try:
        return bool(pl.sql_expr(f"1 {text}").meta.eq(pl.lit(1)))
    except pl.exceptions.PolarsError:
        return False


def _pieces(text: str) -> list[str]:
    """Returns what lies between the semicolons that end statements."""
    pieces, start = [], 0
    for semicolon in re.finditer(";", text):
        end = semicolon.start() - start
        if _place(text[start:], end) is _Place.CODE:
            pieces.append(text[start : start + end])
            start = semicolon.end()
    return [*pieces, text[start:]]


def statements(text: str) -> Iterator[str]:
    """Yields the statements of a text, which end in semicolons, without those that are blank."""
    for piece in _pieces(text):
        if not _is_blank(piece):
            yield piece.strip()


def is_complete(text: str) -> bool:
    """True if the last statement of a text has ended."""
    return _is_blank(_pieces(text)[-1])


def allowed(statement: str, now: int) -> str:
    """Returns the statement with the time `now` (ms) instead of the clock.

    Raises QueryError if it is no question, or reads a file.
    """
    if _is_blank(statement):
        raise QueryError("there is no statement")
    words = (match for match in _WORD.finditer(statement) if _is_code(statement, match))
    first = next((match[0].lower() for match in words), "")
    if first and first not in QUESTIONS:
        meant = get_close_matches(first, QUESTIONS, 1) or ["select"]
        raise QueryError(
            f"{first.upper()} is not possible: SQL here asks questions and does not change the"
            " files of the crawl",
            hint=f"did you mean {meant[0].upper()}?",
        )
    for match in _READER.finditer(statement):
        place = _place(statement, match.start())
        end = match.end() + (place is _Place.NAME)  # behind the quotation mark
        if place is not _Place.OTHER and _opening(statement, end):
            raise QueryError(
                f"{match[0].lower()} is not possible: a query reads the tables of the crawl and no"
                " other files"
            )
    return _with_time(statement, datetime.fromtimestamp(now / 1000, UTC))


def _with_time(statement: str, time: datetime) -> str:
    """Returns the statement with literals instead of the clock's functions."""
    moment, day = f"timestamp '{time:%Y-%m-%d %H:%M:%S.%f}'", f"date '{time:%Y-%m-%d}'"
    pieces, start = [], 0
    for match in _CLOCK.finditer(statement):
        opening = _opening(statement, match.end())
        needs_call = match[0].lower() in ("now", "today")
        if (needs_call and not opening) or not _is_code(statement, match):
            continue
        closing = _next_code(statement, ")", opening) if opening else 0
        has_arguments = closing and not _is_blank(statement[opening : closing - 1])
        if opening and (not closing or has_arguments):
            continue
        pieces += [statement[start : match.start()], moment if match[1] else day]
        start = closing or match.end()
    return "".join([*pieces, statement[start:]])


def _is_code(statement: str, match: re.Match[str]) -> bool:
    return _place(statement, match.start()) is _Place.CODE


def _opening(statement: str, at: int) -> int:
    """Returns the place behind the `(` that comes next, or 0 if something else does."""
    end = _next_code(statement, "(", at)
    return end if end and _is_blank(statement[at : end - 1]) else 0


def _next_code(statement: str, sign: str, at: int) -> int:
    """Returns the place behind the next sign that is in no string, name or comment; 0: none."""
    while (at := statement.find(sign, at)) >= 0:
        if _place(statement, at) is _Place.CODE:
            return at + 1
        at += 1
    return 0
