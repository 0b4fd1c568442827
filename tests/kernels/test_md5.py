"""MD5 of many strings at once is hashlib's of each."""

from __future__ import annotations

from hashlib import md5

from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.cycle.parse.signature import md5s
from tests.support.examples import examples

_SIZES = st.sampled_from([0, 1, 54, 55, 56, 57, 63, 64, 65, 119, 120, 127, 128, 129]) | st.integers(
    0, 300
)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(_SIZES, max_size=40), st.integers(0, 255))
def test_md5s(sizes: list[int], first: int) -> None:
    strings = [
        bytes((first + 7 * k + number) & 0xFF for k in range(size))
        for number, size in enumerate(sizes)
    ]
    assert md5s(strings) == [md5(string, usedforsecurity=False).digest() for string in strings]


def test_a_large_one_among_small_ones() -> None:
    strings = [b"x" * 5000, *(bytes([number]) * 70 for number in range(20))]
    assert md5s(strings) == [md5(string, usedforsecurity=False).digest() for string in strings]
