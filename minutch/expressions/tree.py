"""The tree of an expression: built by the parser, walked by the evaluators."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant: number, string, true, false or null (None)."""

    value: int | float | str | bool | None


@dataclass(frozen=True, slots=True)
class Reference:
    """A variable, `path` being the names between the dots; how many of them name the variable
    depends on the values.
    """

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Member:
    """`target.name` or `target[name]` of something that is not a plain variable."""

    target: Node
    key: Node
    safe: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """`target.method(arguments)`; `safe` (`?.`) gives null where the target is null."""

    target: Node
    method: str
    arguments: tuple[Node, ...]
    safe: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """A variable, member or call in brackets, which `?:` and `??` beside it no longer protect from
    being unknown.
    """

    inner: Node


@dataclass(frozen=True, slots=True)
class Listing:
    """`[a, b, ...]`."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Unary:
    """`operator operand`: - + ! ~ size empty."""

    operator: str
    operand: Node


@dataclass(frozen=True, slots=True)
class Binary:
    """`left operator right`: arithmetic, bits, comparisons."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Logical:
    """`a && b && ...` or `a || b || ...`: the value of the term that decides."""

    operator: str
    terms: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Conditional:
    """`condition ? yes : no`; `?:` and `??` have no `yes`, the condition's own value stands for it.

    `on_null` (`??`) asks whether the condition is null, the others whether it is true.
    """

    condition: Node
    yes: Node | None
    no: Node
    on_null: bool = False


@dataclass(frozen=True, slots=True)
class If:
    """`if (condition) yes else no`, statements; null where there is no `no`."""

    condition: Node
    yes: Node
    no: Node | None


@dataclass(frozen=True, slots=True)
class Return:
    """`return value`: ends the script."""

    value: Node


@dataclass(frozen=True, slots=True)
class Block:
    """`{ statement; ... }`, or a script of several: the value of the last one."""

    statements: tuple[Node, ...]


Node = (
    Literal
    | Reference
    | Member
    | Call
    | Group
    | Listing
    | Unary
    | Binary
    | Logical
    | Conditional
    | If
    | Return
    | Block
)
