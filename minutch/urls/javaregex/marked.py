"""Converts a Java pattern, which is found somewhere in a text, to a strict pattern for
`derivative`, which matches the whole text between two marks.

    ^a|b$   START a anything | anything b END

An anchor becomes a mark, which is no character of a text. Where a pattern can't be said exactly
(`\\b`, possessive repetitions) the strict one matches more. Of texts with line ends nothing is
said: anchors have more meanings there.
"""

from __future__ import annotations

from typing import Final

from minutch.urls.javaregex import charclass
from minutch.urls.javaregex.derivative import Pattern
from minutch.urls.javaregex.tree import (
    Alternation,
    Anchor,
    Backreference,
    Chars,
    Group,
    Look,
    Node,
    Repeat,
    Sequence,
    Tree,
)

START: Final = charclass.LAST + 1
END: Final = charclass.LAST + 2
"""The marks, as codes of characters."""
ANYTHING: Final = Repeat(Chars(charclass.ANY_CHARACTER), 0, None, "")
"""Marks too: `derivative` takes it for the complement of nothing."""
NOTHING: Final = Chars(())

_EMPTY: Final = Sequence(())
_START, _END = (Chars(((mark, mark),)) for mark in (START, END))


class _Unsaid(Exception):
    """The node has no strict pattern."""


def whole(pattern: Pattern) -> Pattern:
    """Returns the texts that a strict pattern matches from end to end."""
    return Sequence((_START, pattern, _END))  # type: ignore[arg-type]  # any pattern may stand in it


def found_in(tree: Tree) -> tuple[Pattern, bool] | None:
    """Returns the texts that a pattern is found in, and whether it is exactly these, not less; None
    if that can't be said.
    """
    try:
        strict, is_exact = _strict(tree.node, head=True, tail=True)
    except _Unsaid:
        return None
    return Sequence((ANYTHING, strict, ANYTHING)), is_exact


def _strict(node: Node, *, head: bool, tail: bool) -> tuple[Node, bool]:  # noqa: PLR0911 - one return a case
    """Returns a node without what is not strict; `head` and `tail` say that nothing stands before
    or behind it.
    """
    if isinstance(node, Chars):
        return node, True
    if isinstance(node, Group):
        return _strict(node.item, head=head, tail=tail)
    if isinstance(node, Sequence):
        last = len(node.items) - 1
        parts = [
            _strict(item, head=head and i == 0, tail=tail and i == last)
            for i, item in enumerate(node.items)
        ]
        return Sequence(tuple(part for part, _ in parts)), all(exact for _, exact in parts)
    if isinstance(node, Alternation):
        parts = [_strict(choice, head=head, tail=tail) for choice in node.choices]
        return Alternation(tuple(part for part, _ in parts)), all(exact for _, exact in parts)
    if isinstance(node, Repeat):
        item, exact = _strict(node.item, head=False, tail=False)
        return Repeat(item, node.least, node.most, ""), exact and node.mode != "+"
    if isinstance(node, Anchor):
        return _mark(node.kind, head=head, tail=tail)
    if isinstance(node, Look):
        return _look(node, head=head, tail=tail)
    assert isinstance(node, Backreference)
    raise _Unsaid


def _mark(kind: str, *, head: bool, tail: bool) -> tuple[Node, bool]:
    if kind[0] in "bB":
        return _EMPTY, False
    if kind[0] in "A^" and head:
        return _START, True
    if kind[0] in "zZ$" and tail:
        return _END, True
    raise _Unsaid


def _look(node: Look, *, head: bool, tail: bool) -> tuple[Node, bool]:
    """Returns an atomic group, or a single character that must not stand before the match."""
    if node.kind == ">":
        return _strict(node.item, head=head, tail=tail)[0], False
    if node.kind == "<!" and head and isinstance(node.item, Chars):
        return Alternation((_START, Chars(charclass.negate(node.item.ranges)))), True
    raise _Unsaid
