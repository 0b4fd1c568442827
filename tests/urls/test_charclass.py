"""Sets of characters as ranges, against sets as sets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.urls.javaregex import charclass
from minutch.urls.javaregex.charclass import Ranges

small_sets = st.sets(st.integers(0, 40)).map(
    lambda codes: charclass.ranges((code, code) for code in codes)
)


def codes(ranges: Ranges) -> set[int]:
    return {code for low, high in ranges for code in range(low, min(high, 100) + 1)}


@given(small_sets, small_sets)
def test_algebra(one: Ranges, other: Ranges) -> None:
    assert codes(charclass.union(one, other)) == codes(one) | codes(other)
    assert codes(charclass.intersect(one, other)) == codes(one) & codes(other)
    assert codes(charclass.negate(one)) == set(range(101)) - codes(one)
    assert charclass.negate(charclass.negate(one)) == one


def test_case() -> None:
    assert charclass.ignore_ascii_case(charclass.of("aZ1\u00e9")) == charclass.of("aAzZ1\u00e9")
    assert charclass.ignore_case(charclass.of("\u00e9")) == charclass.of("\u00e9\u00c9")
    assert charclass.ignore_case(charclass.ANY_CHARACTER) == charclass.ANY_CHARACTER


def test_properties() -> None:
    assert charclass.property_class("Alpha") == ((0x41, 0x5A), (0x61, 0x7A))
    assert (0xE0, 0xF6) in charclass.property_class("Ll") or any(
        low <= 0xE9 <= high for low, high in charclass.property_class("Ll")
    )
    assert charclass.intersect(charclass.unicode_class("d"), ((0x660, 0x669),)) == ((0x660, 0x669),)
    with pytest.raises(ValueError, match="Foo"):
        charclass.property_class("Foo")
