"""A regular expression as a tree, whatever syntax it was written in, and what the tree says before
a match is tried.

That is how long a backtracking engine may take for it, and what a text must hold for it to match at
all.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from minutch.urls.javaregex.charclass import Ranges

_MANY = 100


@dataclass(frozen=True, slots=True)
class Chars:
    """One character out of a set."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Sequence:
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alternation:
    choices: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`most` None is unbounded; `mode` is "" (greedy), "?" (lazy) or "+" (possessive)."""

    item: Node
    least: int
    most: int | None
    mode: str


@dataclass(frozen=True, slots=True)
class RegexGroup:
    """A capturing group."""

    number: int
    item: Node


@dataclass(frozen=True, slots=True)
class Look:
    """Look-around, or an atomic group: `kind` is `=`, `!`, `<=`, `<!` or `>`."""

    kind: str
    item: Node


@dataclass(frozen=True, slots=True)
class Backreference:
    number: int
    ignore_case: bool


@dataclass(frozen=True, slots=True)
class Anchor:
    """`kind`: `A` start of input, `z` its end, `Z` there or before a last line end, `^` `$` at
    lines, `b`, `B`.

    With a `d` behind it only a line feed ends a line.
    """

    kind: str


Node = Chars | Sequence | Alternation | Repeat | RegexGroup | Look | Backreference | Anchor


@dataclass(frozen=True, slots=True)
class Tree:
    """A whole pattern, its number of groups and their names."""

    node: Node
    groups: int
    names: dict[str, int]


def is_tame(tree: Tree) -> bool:
    """Returns whether a backtracking engine needs at most cubic time: two unbounded repetitions,
    none inside another.
    """
    return _count_unbounded(tree.node, nested=False) <= 2


def required_character(tree: Tree) -> tuple[str, int] | None:
    """Returns the character that every match has most of, and its least count; or None."""
    needed = _required(tree.node, {})
    return max(needed.items(), key=lambda item: item[1]) if needed else None


def required_literal(tree: Tree) -> str:
    """Returns the longest text that every match contains, if the pattern spells it out; else ""."""
    items = tree.node.items if isinstance(tree.node, Sequence) else (tree.node,)
    best = run = ""
    for item in items:
        repeat = item if isinstance(item, Repeat) else Repeat(item, 1, 1, "")
        char = _single(repeat.item)
        if char is None:
            run = ""
        else:
            run += char * repeat.least
            best = max(best, run, key=len)
            if repeat.most != repeat.least:
                run = ""
    return best


def _single(node: Node) -> str | None:
    """Returns the one character that a node matches; None if it is anything else."""
    if isinstance(node, Chars) and len(node.ranges) == 1 and node.ranges[0][0] == node.ranges[0][1]:
        return chr(node.ranges[0][0])
    return None


def _count_unbounded(node: Node, *, nested: bool) -> int:
    """Unbounded repetitions in `node`; too many if one is in another, or needs backtracking."""
    if isinstance(node, Backreference):
        return _MANY
    if isinstance(node, Repeat):
        unbounded = node.most is None or node.most >= _MANY
        if unbounded and nested:
            return _MANY
        return unbounded + _count_unbounded(node.item, nested=nested or unbounded)
    return sum(_count_unbounded(part, nested=nested) for part in _parts(node))


def _parts(node: Node) -> tuple[Node, ...]:
    if isinstance(node, RegexGroup | Look):
        return (node.item,)
    if isinstance(node, Sequence):
        return node.items
    return node.choices if isinstance(node, Alternation) else ()


def _required(node: Node, groups: dict[int, Counter[str]]) -> Counter[str]:  # noqa: PLR0911 - one return a case
    """Counts how often each character occurs at least; a back-reference counts as its group."""
    if isinstance(node, Chars):
        char = _single(node)
        return Counter() if char is None else Counter({char: 1})
    if isinstance(node, Backreference):
        return Counter() if node.ignore_case else groups.get(node.number, Counter())
    if isinstance(node, Repeat):
        needed = _required(node.item, groups)
        return Counter({char: count * node.least for char, count in needed.items() if node.least})
    if isinstance(node, RegexGroup):
        groups[node.number] = _required(node.item, groups)
        return groups[node.number]
    if isinstance(node, Sequence):
        total: Counter[str] = Counter()
        for item in node.items:
            total += _required(item, groups)
        return total
    if isinstance(node, Alternation):
        least = _required(node.choices[0], groups)
        for choice in node.choices[1:]:
            least &= _required(choice, groups)
        return least
    return Counter()
