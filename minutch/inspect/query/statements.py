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
_EXPLAINING: Final = ("explain", "analyze", "verbose")
"""Words before a statement, which the engine runs nevertheless if it changes something."""

_WORD: Final = re.compile(r"(?<!\w)[^\W\d]\w*|\(")
_READER: Final = re.compile(r"(?<!\w)(?:read|scan)_\w+", re.IGNORECASE)
"""Names of functions that read files."""
_CLOCK: Final = re.compile(
    r"(?<!\w)(?:(current_timestamp|localtimestamp|now)|(current_date|today))(?!\w)", re.IGNORECASE
)
"""Functions of the clock: a moment, or a day."""
_BEGINNING: Final = re.compile(r"[(),;]")
"""Signs behind which a text is tokenized anew, so that long statements take no square of time."""


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


def is_blank(text: str) -> bool:
    """True if a text has nothing but white space and comments."""
    try:
        return bool(pl.sql_expr(f"1 {text}").meta.eq(pl.lit(1)))
    except pl.exceptions.PolarsError:
        return False


def _placed(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[re.Match[str], _Place]]:
    """Yields where a pattern is found, and in which place that is."""
    start = 0
    for sign in re.finditer(f"{_BEGINNING.pattern}|(?={pattern.pattern})", text, pattern.flags):
        place = _place(text[start:], sign.start() - start)
        if found := pattern.match(text, sign.start()):
            yield found, place
        if sign[0] and place is _Place.CODE:
            start = sign.end()


def in_code(text: str, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """Yields where a pattern is found outside of strings, comments and quoted names."""
    return (match for match, place in _placed(text, pattern) if place is _Place.CODE)


def _pieces(text: str) -> list[str]:
    """Returns what lies between the semicolons that end statements."""
    ends = [match.start() for match in in_code(text, re.compile(";"))]
    return [text[a + 1 : b] for a, b in zip([-1, *ends], [*ends, len(text)], strict=True)]


def statements(text: str) -> Iterator[str]:
    """Yields the statements of a text, which end in semicolons, without those that are blank."""
    for piece in _pieces(text):
        if not is_blank(piece):
            yield piece.strip()


def is_complete(text: str) -> bool:
    """True if the last statement of a text has ended."""
    return is_blank(_pieces(text)[-1])


def allowed(statement: str, now: int) -> str:
    """Returns the statement with the time `now` (ms) instead of the clock.

    Raises QueryError if it is no question, or reads a file.
    """
    if is_blank(statement):
        raise QueryError("there is no statement")
    words = (match[0].lower() for match in in_code(statement, _WORD))
    first = next((word for word in words if word not in _EXPLAINING), "")
    if first and first not in QUESTIONS:
        meant = get_close_matches(first, QUESTIONS, 1) or ["select"]
        raise QueryError(
            f"{first.upper()} is not possible: SQL here asks questions and does not change the"
            " files of the crawl",
            hint=f"did you mean {meant[0].upper()}?",
        )
    for match, place in _placed(statement, _READER):
        end = match.end() + (place is _Place.NAME)  # behind the quotation mark
        if place is not _Place.OTHER and opening(statement, end):
            raise QueryError(
                f"{match[0].lower()} is not possible: a query reads the tables of the crawl and no"
                " other files"
            )
    return _with_time(statement, datetime.fromtimestamp(now / 1000, UTC))


def _with_time(statement: str, time: datetime) -> str:
    """Returns the statement with literals instead of the clock's functions."""
    moment, day = f"timestamp '{time:%Y-%m-%d %H:%M:%S.%f}'", f"date '{time:%Y-%m-%d}'"
    pieces, start = [], 0
    for match in in_code(statement, _CLOCK):
        opened = opening(statement, match.end())
        needs_call = match[0].lower() in ("now", "today")
        if needs_call and not opened:
            continue
        closed = closing(statement, opened) if opened else 0
        has_arguments = closed and not is_blank(statement[opened : closed - 1])
        if opened and (not closed or has_arguments):
            continue
        pieces += [statement[start : match.start()], moment if match[1] else day]
        start = closed or match.end()
    return "".join([*pieces, statement[start:]])


def opening(statement: str, at: int) -> int:
    """Returns the place behind the `(` that comes next after a token, or 0 if something else
    does.
    """
    found = next(in_code(statement[at:], re.compile(r"\(")), None)
    return at + found.end() if found and is_blank(statement[at : at + found.start()]) else 0


def closing(statement: str, at: int) -> int:
    """Returns the place behind the `)` of the parenthesis that has begun before `at`; 0: none."""
    depth = 1
    for sign in in_code(statement[at:], re.compile(r"[()]")):
        depth += 1 if sign[0] == "(" else -1
        if not depth:
            return at + sign.end()
    return 0
