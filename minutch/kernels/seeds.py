"""Kernel that finds the seeds among the lines of a text. Imported only where there is much of
it.
"""

from __future__ import annotations

from minutch.kernels.native import I32, I64, U8, U64, Int, Word, inner, int64, kernel, uint64
from minutch.kernels.primitives import load8, load64

_BLANK, _COMMENT, _TAB, _LINE_FEED = 32, ord("#"), 9, 10


@inner
def next_control(at: Int, end: Int) -> Int:
    """The address of the first byte below 32 between two addresses; `end` if there is none."""
    ones, high = uint64(0x0101_0101_0101_0101), uint64(0x8080_8080_8080_8080)
    while at + 8 <= end:
        word: Word = load64(at)
        if (word - ones * uint64(32)) & ~word & high:
            break
        at += 8
    while at < end and load8(at) >= 32:
        at += 1
    return at


@inner
def trimmed(start: Int, end: Int) -> tuple[Int, Int]:
    """The addresses without the blanks (all bytes up to the space) at both ends."""
    while start < end and load8(start) <= _BLANK:
        start += 1
    while start < end and load8(end - 1) <= _BLANK:
        end -= 1
    return start, end


@kernel
def find_seeds(
    text: U8, number: Int, line: U64, url_at: I64, url_len: I32, extra_at: I64, extra_len: I32
) -> Int:
    """Find where URLs, and what stands after the first tab (length -1: no tab), lie in `text`, the
    lines of which end in LF.

    `number` is that of the first line. Arrays have room for all lines; returns how many of them
    hold a seed.
    """
    base = int64(text.ctypes.data)
    end = base + len(text)
    start, count = base, 0
    while start < end:
        tab = int64(0)
        at = next_control(start, end)
        while at < end and load8(at) != _LINE_FEED:
            if not tab and load8(at) == _TAB:
                tab = at
            at = next_control(at + 1, end)
        first, last = trimmed(start, tab or at)
        if first < last and load8(first) != _COMMENT:
            line[count] = number
            url_at[count] = first - base
            url_len[count] = last - first
            extra_at[count] = 0
            extra_len[count] = -1
            if tab:
                first, last = trimmed(tab + 1, at)
                extra_at[count] = first - base
                extra_len[count] = last - first
            count += 1
        number += 1
        start = at + 1
    return count
