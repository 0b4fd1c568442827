"""What a query's condition says of URLs and hosts, so that files need not be read where it can't
hold. Pure: no I/O.

Only what is surely so is said: a condition that is not understood may hold anywhere. The condition
itself is always tested on the rows that are read.

    url    = 'x', in (…), < <= > >=, starts with: ranges of keys. Keys are bytes, URLs what these
           decode to, with U+FFFD for what is no UTF-8: a string with that says nothing. Both are in
           the same order where one side is ASCII
    host   any condition on the host alone: tested on the hosts of stretches that have only one
           = 'x', in (…): words that are in the URLs as bytes
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from io import BytesIO, StringIO
from typing import Any, Final, NamedTuple

import polars as pl

from minutch.work.tables.keyranges import KeyRange

EVERYWHERE: Final = (KeyRange(),)
NOWHERE: Final[tuple[KeyRange, ...]] = ()
_ANY: Final = "\ufffd"
_MOST_RANGES: Final = 1000
_MOST_WORDS: Final = 8
_PLAIN_HOST: Final = re.compile(rb"[A-Za-z0-9._-]+")

Ranges = tuple[KeyRange, ...]


class Where(NamedTuple):
    """Where rows may be that a condition holds for: ranges of URLs that ascend, and a condition on
    hosts alone.
    """

    urls: Ranges = EVERYWHERE
    hosts: pl.Expr | None = None
    words: tuple[bytes, ...] = ()
    """One of these is in every URL that the condition holds for; none: nothing is known."""

    @property
    def is_everywhere(self) -> bool:
        """Whether nothing can be left out."""
        return self.urls == EVERYWHERE and self.hosts is None


def where(condition: pl.Expr | None) -> Where:
    """What a condition says of the columns `url` and `host`."""
    if condition is None:
        return Where()
    with suppress(
        Exception
    ):  # the tree's form is Polars' own affair: whatever does not fit says nothing
        tree = json.loads(condition.meta.serialize(format="json"))
        return Where(_urls(tree), _hosts(tree), _words(tree))
    return Where()


def _hosts(tree: Any) -> pl.Expr | None:
    """Those of the conditions joined by `and` that look at nothing but the host."""
    found = None
    for part in _conjuncts(tree):
        condition = pl.Expr.deserialize(StringIO(json.dumps(part)), format="json")
        if set(condition.meta.root_names()) == {"host"}:
            found = condition if found is None else found & condition
    return found


def _words(tree: Any) -> tuple[bytes, ...]:
    """The hosts that a condition names, where they are spelled as in any URL with them."""
    for part in _conjuncts(tree):
        match part:
            case {
                "BinaryExpr": {
                    "left": {"Column": "host"},
                    "op": "Eq",
                    "right": {"Literal": literal},
                }
            }:
                pass
            case {
                "BinaryExpr": {
                    "left": {"Literal": literal},
                    "op": "Eq",
                    "right": {"Column": "host"},
                }
            }:
                pass
            case {
                "Function": {
                    "input": [{"Column": "host"}, {"Literal": literal}],
                    "function": {"Boolean": what},
                }
            }:
                if "IsIn" not in what:
                    continue
            case _:
                continue
        with suppress(ValueError):
            names = _texts(literal)
            if 0 < len(names) <= _MOST_WORDS and all(map(_PLAIN_HOST.fullmatch, names)):
                return tuple(names)
    return ()


def _conjuncts(tree: Any) -> list[Any]:
    match tree:
        case {"BinaryExpr": {"left": left, "op": "And" | "LogicalAnd", "right": right}}:
            return [*_conjuncts(left), *_conjuncts(right)]
    return [tree]


def _urls(tree: Any) -> Ranges:  # noqa: PLR0911 - one return a case
    match tree:
        case {"BinaryExpr": {"left": left, "op": "And" | "LogicalAnd", "right": right}}:
            return intersection(_urls(left), _urls(right))
        case {"BinaryExpr": {"left": left, "op": "Or" | "LogicalOr", "right": right}}:
            return union([*_urls(left), *_urls(right)])
        case {
            "BinaryExpr": {"left": {"Column": "url"}, "op": str(op), "right": {"Literal": literal}}
        }:
            return _compared(op, literal)
        case {
            "BinaryExpr": {"left": {"Literal": literal}, "op": str(op), "right": {"Column": "url"}}
        }:
            return _compared(_MIRRORED.get(op, ""), literal)
        case {
            "Function": {
                "input": [{"Column": "url"}, {"Literal": literal}],
                "function": {"StringExpr": "StartsWith"},
            }
        }:
            return union([_beginning(text) for text in _texts(literal)])
        case {
            "Function": {
                "input": [{"Column": "url"}, {"Literal": literal}],
                "function": {"Boolean": {"IsIn": _}},
            }
        }:
            return union([_one(text) for text in _texts(literal)])
    return EVERYWHERE


def _compared(op: str, literal: Any) -> Ranges:
    make = _COMPARISONS.get(op)
    texts = _texts(literal)
    if make is None or (op != "Eq" and not all(text.isascii() for text in texts)):
        return EVERYWHERE
    return union([make(text) for text in texts])


def _one(text: bytes) -> KeyRange:
    return KeyRange(text, text + b"\0")


def _beginning(text: bytes) -> KeyRange:
    return KeyRange(text, text[:-1] + bytes((text[-1] + 1,))) if text else KeyRange()


_COMPARISONS: Final[dict[str, Callable[[bytes], KeyRange]]] = {
    "Eq": _one,
    "Lt": lambda text: KeyRange(None, text),
    "LtEq": lambda text: KeyRange(None, text + b"\0"),
    "Gt": lambda text: KeyRange(text, None),
    "GtEq": lambda text: KeyRange(text, None),
}
_MIRRORED: Final = {"Eq": "Eq", "Lt": "Gt", "LtEq": "GtEq", "Gt": "Lt", "GtEq": "LtEq"}


def _texts(literal: Any) -> list[bytes]:
    """The strings of a literal. ValueError where one may stand for other bytes, or there are too
    many.
    """
    match literal:
        case {"Scalar": {"String": str(text)}}:
            found = [text]
        case {"Scalar": {"List": list(data)}}:
            found = pl.read_ipc_stream(BytesIO(bytes(data))).to_series().to_list()
        case _:
            raise ValueError("another kind of literal")
    if len(found) > _MOST_RANGES or not all(
        isinstance(text, str) and _ANY not in text for text in found
    ):
        raise ValueError("strings that are no ranges")
    return [text.encode() for text in found]


def union(ranges: Sequence[KeyRange]) -> Ranges:
    """The ranges in order, those that meet made one."""
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
    """What two unions of ranges have in common, cut where either is cut."""
    found = []
    for a in first:
        for b in second:
            low = max(a.low or b"", b.low or b"") or None
            high = b.high if a.high is None else a.high if b.high is None else min(a.high, b.high)
            if high is None or (low or b"") < high:
                found.append(KeyRange(low, high))
    return tuple(found)
