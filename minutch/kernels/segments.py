"""Kernel of the rule against loops in URLs."""

from __future__ import annotations

from minutch.kernels.memory import compare
from minutch.kernels.native import (
    U64,
    Bool,
    Flags,
    Int,
    Views,
    Word,
    inner,
    int64,
    kernel,
    string_at,
    uint64,
)
from minutch.kernels.primitives import load8, load64

_SLASH = ord("/")


@kernel
def find_loops(views: Views, addresses: U64, loops: Flags) -> None:
    """Tell whether in each string a, x, a, y, a follow each other as whole segments, none of them
    empty.
    """
    for i in range(len(loops)):
        at = string_at(views, addresses, i)
        loops[i] = has_loop(at, at + int64(views[i, 0]))


@inner
def has_loop(at: Int, end: Int) -> Bool:
    """The same for the string between two addresses."""
    start = next_slash(at, end) + 1
    last_start, last_size = (
        start,
        int64(0),
    )  # the segment before, the one before that, and one more
    before_start, before_size, first_size = start, int64(0), int64(0)
    last_comes_back = before_comes_back = (
        False  # whether they are equal to the segments two places before them
    )
    at = next_slash(start, end)
    while at < end:
        size = at - start
        comes_back = (
            size > 0 and size == before_size and compare(start, size, before_start, size) == 0
        )
        if comes_back and before_comes_back and last_size and first_size:
            return True
        first_size = before_size
        before_start, before_size, before_comes_back = last_start, last_size, last_comes_back
        last_start, last_size, last_comes_back = start, size, comes_back
        start = at + 1
        at = next_slash(start, end)
    return False


@inner
def next_slash(at: Int, end: Int) -> Int:
    """The address of the next slash, at least `end` if there is none."""
    ones, high = uint64(0x0101_0101_0101_0101), uint64(0x8080_8080_8080_8080)
    while at + 8 <= end:
        word: Word = load64(at) ^ (ones * uint64(_SLASH))  # a slash is a zero byte
        zeros = (word - ones) & ~word & high
        if zeros:
            below = (zeros & (~zeros + uint64(1))) - uint64(1)  # ones up to the first of them
            return at - 1 + int64((below & ones) * ones >> uint64(56))
        at += 8
    while at < end and load8(at) != _SLASH:
        at += 1
    return at
