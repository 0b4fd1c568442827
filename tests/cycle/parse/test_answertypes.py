"""Types of what workers answer: values that are of them, and values that only look so."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest

from minutch.cycle.parse.answertypes import is_of


class Pair(NamedTuple):
    name: bytes
    numbers: list[int]


@dataclass(slots=True)
class Tree:
    pair: Pair | None = None
    trees: list[Tree] = field(default_factory=list)
    names: dict[str, Any] = field(default_factory=dict)


GOOD = Pair(b"a", [1])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a", str),
        (None, None),
        (None, str | None),
        (5, Any),
        ([], list[str]),
        (["a"], list[str]),
        ({"a": 5}, dict[str, object]),
        ((None, "a"), tuple[str | None, str]),
        (GOOD, Pair),
        (Tree(GOOD, [Tree(), Tree(GOOD)], {"a": 1}), Tree),
    ],
)
def test_values_of_a_type(value: object, expected: Any) -> None:
    assert is_of(value, expected)


CYCLE = Tree()
CYCLE.trees.append(CYCLE)


@dataclass
class Unset:
    """A class whose objects may come without what they should have."""

    name: str

    def __repr__(self) -> str:
        return "unset"


UNSET = object.__new__(Unset)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"a", str),
        (5, None),
        (5, str | None),
        ("a", list[str]),
        (["a", 5], list[str]),
        ({1: "a"}, dict[str, str]),
        (("a",), tuple[str, str]),
        (["a", "b"], tuple[str, str]),
        ((b"a", [1]), Pair),
        (Pair("a", []), Pair),
        (Pair(b"a", [b"1"]), Pair),
        (Tree(5), Tree),
        (Tree(None, [Tree(None, [None])]), Tree),
        (UNSET, Unset),
        (CYCLE, Tree),
    ],
    ids=str,
)
def test_values_that_only_look_so(value: object, expected: Any) -> None:
    assert not is_of(value, expected)
