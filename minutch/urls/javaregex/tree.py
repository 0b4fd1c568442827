"""A regular expression as a tree, whatever syntax it was written in."""

from __future__ import annotations

from dataclasses import dataclass

from minutch.urls.javaregex.charclass import Ranges


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
class Group:
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
    """`kind`: `A` start of input, `z` its end, `Z` there or before a last line end, `^` `$` at lines, `b`, `B`.

    With a `d` behind it only a line feed ends a line.
    """

    kind: str


Node = Chars | Sequence | Alternation | Repeat | Group | Look | Backreference | Anchor


@dataclass(frozen=True, slots=True)
class Tree:
    """A whole pattern, its number of groups and their names."""

    node: Node
    groups: int
    names: dict[str, int]
