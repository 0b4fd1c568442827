"""Has SQL reckon with integers of 128 bits, and give 64. Pure: no I/O.

Polars reckons in the type of a column, function or literal, and wraps without a word where a result
does not fit. So the integers of tables have 128 bits here, as do literals that something is
reckoned with, integers that functions return, and what is cast to an integer. The integers of a
result have 64 bits; one that does not fit is an error. What this can't see: a step beyond 128 bits
(a product of three integers of 62 bits), and literals that meet only each other by the name of a
subquery's column, which keep 32 bits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import polars as pl
import polars.selectors as cs

from minutch.inspect.query.statements import closing, in_code, opening

_WIDE: Final = "::hugeint"
_INTEGER: Final = r"u?(?:tiny|small|medium|big|huge)?int(?:eger|\d+)?(?:\s+unsigned)?"
_LITERAL: Final = re.compile(r"(?<![\w.$])\d+(?![\w.])")
_BEFORE_OPERAND: Final = re.compile(
    r"(?:[+%/]|(?<!\()\*|[\w)\]\"']\s*-|(?<!\w)(?:then|else))\s*$", re.IGNORECASE
)
_AFTER_OPERAND: Final = re.compile(r"\s*(?!--|/\*)[-+*/%]")
_CALL: Final = re.compile(
    r"(?<![\w.])(?:(?:try_|safe_)?cast|(?:char_|character_|octet_|bit_|array_)?length|bit_count"
    r"|extract|date_part|year|quarter|month|week|day|dayof(?:week|month|year)"
    r"|hour|minute|second)(?!\w)",
    re.IGNORECASE,
)
"""Functions that return integers of fewer bits, and casts."""
_POSITION: Final = re.compile(r"(?<![\w.])(?:strpos|position)(?=\s*\()", re.IGNORECASE)
_COMMA: Final = re.compile(",")
_IN: Final = re.compile(r"(?<!\w)in(?!\w)")
_CAST_TO: Final = re.compile(rf"(?<!\w)as\s+{_INTEGER}\s*\)$", re.IGNORECASE)
_CAST: Final = re.compile(rf"::\s*{_INTEGER}(?!\w)", re.IGNORECASE)


def tabled(table: pl.LazyFrame) -> pl.LazyFrame:
    """Returns a table with the numbers that statements reckon with."""
    return table.with_columns(cs.integer().cast(pl.Int128), cs.float().cast(pl.Float64))


def widened(statement: str) -> str:
    """Returns the statement with its own integers made wide."""
    statement = _with_positions(statement)
    pieces, start = [], 0
    for at, added in sorted(_added(statement), key=lambda one: one[0]):
        pieces += [statement[start:at], added]
        start = at
    return "".join([*pieces, statement[start:]])


def _with_positions(statement: str) -> str:
    """Returns the statement with strpos and position in other words: Polars counts bytes, takes the
    text that is sought for a regular expression, and gives 0 for null.
    """
    done = 0
    while call := next(in_code(statement[done:], _POSITION), None):
        start, opened = done + call.start(), opening(statement, done + call.end())
        closed = closing(statement, opened) if opened else 0
        done = opened or done + call.end()
        between = _IN if call[0].lower() == "position" else _COMMA
        arguments = _parted(statement[opened : closed - 1], between) if closed else []
        if len(arguments) == 2:
            sought, text = arguments if between is _IN else reversed(arguments)
            before = f"length(split_part({text}, {sought}, 1))"
            words = (
                f"(case when length({sought}) = 0 then 1 + 0 * length({text})"
                f" when {before} = length({text}) then 0 else {before} + 1 end)"
            )
            statement = statement[:start] + words + statement[closed:]
            done = start  # the arguments may have such calls themselves
    return statement


def _parted(text: str, between: re.Pattern[str]) -> list[str]:
    """Returns the parts of a list of arguments."""
    parts, start, depth = [], 0, 0
    for sign in in_code(text, re.compile(rf"[()]|{between.pattern}", re.IGNORECASE)):
        depth += (sign[0] == "(") - (sign[0] == ")")
        if not depth and sign[0] not in "()":
            parts.append(text[start : sign.start()].strip())
            start = sign.end()
    return [*parts, text[start:].strip()]


def _added(statement: str) -> Iterator[tuple[int, str]]:
    """Yields what is put in, and before which places."""
    for literal in in_code(statement, _LITERAL):
        before = statement[max(0, literal.start() - 80) : literal.start()]
        if _BEFORE_OPERAND.search(before) or _AFTER_OPERAND.match(statement, literal.end()):
            yield literal.end(), _WIDE
    for cast in in_code(statement, _CAST):
        yield cast.end(), _WIDE
    for call in in_code(statement, _CALL):
        opened = opening(statement, call.end())
        closed = closing(statement, opened) if opened else 0
        if not closed:
            continue
        if not call[0].lower().endswith("cast"):
            yield call.start(), "("
            yield closed, f"+0{_WIDE})"  # which leaves a fraction of seconds as it is
        elif _CAST_TO.search(statement[opened:closed]):
            yield closed, _WIDE


def answered(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Returns rows with all numbers of 64 bits."""
    schema = rows.collect_schema()
    kinds = {name: _of_64_bits(dtype) for name, dtype in schema.items()}
    return rows.cast({name: kind for name, kind in kinds.items() if kind != schema[name]})


def _of_64_bits(dtype: pl.DataType) -> pl.DataType:
    if dtype.is_integer():
        return pl.Int64()
    if dtype.is_float():
        return pl.Float64()
    if isinstance(dtype, pl.List):
        return pl.List(_of_64_bits(pl.Null() if dtype.inner is None else dtype.inner))  # type: ignore[arg-type]
    if isinstance(dtype, pl.Struct):
        return pl.Struct({field.name: _of_64_bits(field.dtype) for field in dtype.fields})  # type: ignore[arg-type]
    return dtype
