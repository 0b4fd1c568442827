"""Sets of characters as ranges, against sets as sets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.urls.javaregex import tree
from minutch.urls.javaregex.tree import Ranges

small_sets = st.sets(st.integers(0, 40)).map(
    lambda codes: tree.ranges((code, code) for code in codes)
)


def codes(ranges: Ranges) -> set[int]:
    return {code for low, high in ranges for code in range(low, min(high, 100) + 1)}


@given(small_sets, small_sets)
def test_algebra(one: Ranges, other: Ranges) -> None:
    assert codes(tree.union(one, other)) == codes(one) | codes(other)
    assert codes(tree.intersect(one, other)) == codes(one) & codes(other)
    assert codes(tree.negate(one)) == set(range(101)) - codes(one)
    assert tree.negate(tree.negate(one)) == one


def test_case() -> None:
    assert tree.ignore_ascii_case(tree.of("aZ1\u00e9")) == tree.of("aAzZ1\u00e9")
    assert tree.ignore_case(tree.of("\u00e9")) == tree.of("\u00e9\u00c9")
    assert tree.ignore_case(tree.ANY_CHARACTER) == tree.ANY_CHARACTER


def test_properties() -> None:
    assert tree.property_class("Alpha") == ((0x41, 0x5A), (0x61, 0x7A))
    assert (0xE0, 0xF6) in tree.property_class("Ll") or any(
        low <= 0xE9 <= high for low, high in tree.property_class("Ll")
    )
    assert tree.intersect(tree.unicode_class("d"), ((0x660, 0x669),)) == ((0x660, 0x669),)
    with pytest.raises(ValueError, match="Foo"):
        tree.property_class("Foo")
