"""Finds in a query's condition which URLs and hosts it can hold for, so that other parts of files
are not read. Pure: no I/O.

A condition is a Polars expression. It is read by Polars' public means alone: an expression is taken
for `a == b` if the one built from its inputs by `==` is equal to it. Conditions of any other form
may hold anywhere. The condition itself is always tested on the rows that are read.

    url    = 'x', in (…), < <= > >=, starts with: ranges of keys. Keys are bytes, URLs what these
           decode to, with U+FFFD for what is no UTF-8: a string with that says nothing. Both are in
           the same order where one side is ASCII
    host   any condition on the host alone: tested on the hosts of stretches that have only one
           = 'x', in (…): words that are in the URLs as bytes
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Final, NamedTuple

import polars as pl

from minutch.work.tables.keyranges import KeyRange

EVERYWHERE: Final = (KeyRange(),)
_REPLACEMENT: Final = "\ufffd"
_MOST_RANGES: Final = 1000
_MOST_WORDS: Final = 8
_PLAIN_HOST: Final = re.compile(rb"[A-Za-z0-9._-]+")

Ranges = tuple[KeyRange, ...]
Combine = Callable[[pl.Expr, pl.Expr], pl.Expr]


class Pruning(NamedTuple):
    """The rows that a condition can hold for: ascending ranges of URLs, a condition on hosts."""

    urls: Ranges = EVERYWHERE
    hosts: pl.Expr | None = None
    words: tuple[bytes, ...] = ()
    """Each URL that the condition holds for contains one of these; none: nothing is known."""

    @property
    def keeps_everything(self) -> bool:
        """True if the whole table has to be read."""
        return self.urls == EVERYWHERE and self.hosts is None


def pruning_of(condition: pl.Expr | None) -> Pruning:
    """Returns what a condition says of the columns `url` and `host`."""
    if condition is None:
        return Pruning()
    conjuncts = _operands(condition, operator.and_)
    by_host = [part for part in conjuncts if set(part.meta.root_names()) == {"host"}]
    return Pruning(
        _urls(condition),
        reduce(operator.and_, by_host) if by_host else None,
        next(filter(None, map(_words, by_host)), ()),
    )


def _operands(expression: pl.Expr, combine: Combine) -> list[pl.Expr]:
    """Returns the operands of a chain of one operator: a, b and c of `a & b & c`."""
    found, waiting = [], [expression]
    while waiting:
        first = waiting.pop()
        inputs = first.meta.pop()
        if len(inputs) == 2 and combine(inputs[1], inputs[0]).meta.eq(first):
            waiting += inputs
        else:
            found.append(first)
    return found


def _urls(condition: pl.Expr) -> Ranges:
    """Returns the ranges of URLs that a condition can hold for."""
    conjuncts = _operands(condition, operator.and_)
    if len(conjuncts) > 1:
        # One that says nothing of URLs leaves what the others say.
        return reduce(intersection, map(_urls, conjuncts))
    alternatives = _operands(condition, operator.or_)
    if len(alternatives) > 1:
        # One that says nothing of URLs makes it everywhere.
        return union([found for part in alternatives for found in _urls(part)])
    compared = _comparison(condition, "url")
    if compared is None:
        return EVERYWHERE
    name, texts = compared
    # U+FFFD sorts elsewhere than the bytes that it stands for.
    if name in _BY_ORDER and not all(text.isascii() for text in texts):
        return EVERYWHERE
    return union([_RANGES[name](text) for text in texts])


def _words(condition: pl.Expr) -> tuple[bytes, ...]:
    """Returns the hosts that a condition names, if they are spelled as in every URL with them."""
    name, texts = _comparison(condition, "host") or ("", [])
    # A host in other letters or escapes has several spellings in URLs.
    is_plain = 0 < len(texts) <= _MOST_WORDS and all(map(_PLAIN_HOST.fullmatch, texts))
    return tuple(texts) if name in ("==", "in") and is_plain else ()


def _comparison(condition: pl.Expr, column: str) -> tuple[str, list[bytes]] | None:
    """Returns the operator (a key of `_RANGES`) and the texts that a column is compared with.

    None if the condition is none of that kind, or a text may stand for several keys.
    """
    inputs = condition.meta.pop()
    if len(inputs) != 2:
        return None
    # meta.pop gives the last operand first.
    if inputs[0].meta.is_column():
        inputs = inputs[::-1]
    value, compared = inputs
    if not compared.meta.is_column() or compared.meta.output_name() != column:
        return None
    if not value.meta.is_literal(allow_aliasing=True):
        return None
    for name, build in _COMPARISONS:
        if build(compared, value).meta.eq(condition):
            texts = _texts(value, several=name == "in")
            return None if texts is None else (name, texts)
    return None


def _texts(literal: pl.Expr, *, several: bool) -> list[bytes] | None:
    """Returns the strings of a literal; None if one may stand for other bytes, or for too many."""
    values = pl.select(literal).to_series()
    if several and values.dtype == pl.List(pl.String) and len(values) == 1:
        values = values[0]
    if values.dtype != pl.String or values.null_count() or len(values) > _MOST_RANGES:
        return None
    if len(values) != 1 and not several:
        return None  # each row is compared with a value of its own
    texts: list[str] = values.to_list()
    return None if any(_REPLACEMENT in text for text in texts) else [*map(str.encode, texts)]


_COMPARISONS: Final[tuple[tuple[str, Combine], ...]] = (
    ("==", lambda column, value: column == value),
    ("==", lambda column, value: value == column),
    ("<", lambda column, value: column < value),
    ("<", lambda column, value: value > column),
    ("<=", lambda column, value: column <= value),
    ("<=", lambda column, value: value >= column),
    (">", lambda column, value: column > value),
    (">", lambda column, value: value < column),
    (">=", lambda column, value: column >= value),
    (">=", lambda column, value: value <= column),
    ("starts with", lambda column, value: column.str.starts_with(value)),
    ("in", lambda column, value: column.is_in(value)),
)
"""Each form that is understood, and how it is built of a column and a value."""


def _one(text: bytes) -> KeyRange:
    return KeyRange(text, text + b"\0")


def _beginning(text: bytes) -> KeyRange:
    return KeyRange(text, text[:-1] + bytes((text[-1] + 1,))) if text else KeyRange()


_BY_ORDER: Final = ("<", "<=", ">", ">=")
_RANGES: Final[dict[str, Callable[[bytes], KeyRange]]] = {
    "==": _one,
    "in": _one,
    "starts with": _beginning,
    "<": lambda text: KeyRange(None, text),
    "<=": lambda text: KeyRange(None, text + b"\0"),
    # Ranges may have too much: the condition is tested on all rows that are read.
    ">": lambda text: KeyRange(text, None),
    ">=": lambda text: KeyRange(text, None),
}
"""Operator -> the keys that it holds for, those of other texts included where that is simpler."""


def union(ranges: Sequence[KeyRange]) -> Ranges:
    """Returns the ranges in order, with those that meet joined."""
    found: list[KeyRange] = []
    for low, high in sorted(ranges, key=lambda one: one.low or b""):
        before = found[-1] if found else None
        if before is not None and (before.high is None or (low or b"") <= before.high):
            ends = None if before.high is None or high is None else max(before.high, high)
            found[-1] = KeyRange(before.low, ends)
        else:
            found.append(KeyRange(low, high))
    return tuple(found)


def intersection(first: Ranges, second: Ranges) -> Ranges:
    """Returns what two unions of ranges have in common, cut where either is cut."""
    found = []
    for a in first:
        for b in second:
            low = max(a.low or b"", b.low or b"") or None
            high = b.high if a.high is None else a.high if b.high is None else min(a.high, b.high)
            if high is None or (low or b"") < high:
                found.append(KeyRange(low, high))
    return tuple(found)
