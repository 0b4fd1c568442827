"""Numbers and strings in memory, for other kernels: big-endian integers, Hadoop's VInts, strings
compared.
"""

from __future__ import annotations

from minutch.kernels.native import U8, Int, Word, inlined, inner, int8, int64, uint32, uint64
from minutch.kernels.primitives import load8, load64, load_int, load_long

HIGH_BITS = uint64(0x8080808080808080)
_PLACES = uint64(0x0001020304050607)


@inlined
def first_marked(word: Word) -> Int:
    """The number of the first byte in memory of which a word has the high bit; there has
    to be one.
    """
    lowest = word & (~word + uint64(1))
    return int64((lowest >> uint64(7)) * _PLACES >> uint64(56))


@inlined
def int_at(buf: U8, at: Int) -> Int:
    """The big-endian int at `at`."""
    return load_int(int64(buf.ctypes.data) + at)


@inlined
def long_at(buf: U8, at: Int) -> Int:
    """The big-endian long at `at`."""
    return load_long(int64(buf.ctypes.data) + at)


@inlined
def put_int(buf: U8, at: Int, value: Int) -> None:
    """Store a big-endian int."""
    buf[at] = value >> 24
    buf[at + 1] = value >> 16
    buf[at + 2] = value >> 8
    buf[at + 3] = value


@inner
def vint_size(value: Int) -> Int:
    """Bytes of a VInt that is not negative."""
    if value <= 127:
        return 1
    if value <= 0xFF:
        return 2
    if value <= 0xFFFF:
        return 3
    return 4 if value <= 0xFF_FFFF else 5


@inlined
def put_vint(buf: U8, at: Int, value: Int) -> Int:
    """Store a VInt that is not negative; returns the offset after it."""
    size = vint_size(value)
    if size == 1:
        buf[at] = value
        return at + 1
    buf[at] = 0x91 - size  # -112 - the number of bytes that follow
    for i in range(1, size):
        buf[at + i] = value >> (8 * (size - 1 - i))
    return at + size


@inner
def vint_at(buf: U8, at: Int, end: Int) -> tuple[Int, Int]:
    """The VInt at `at` and the offset after it; (-1, at) if it is negative or goes beyond `end`."""
    if at >= end:
        return -1, at
    first = int64(int8(buf[at]))
    if first >= 0:
        return first, at + 1
    size = -112 - first
    if size < 1 or size > 4 or at + 1 + size > end:
        return -1, at
    value = int64(0)
    for i in range(size):
        value = value << 8 | buf[at + 1 + i]
    return (value, at + 1 + size) if value <= 0x7FFF_FFFF else (-1, at)


@inlined
def word_at(buf: U8, at: Int, size: Int) -> Int:
    """Up to `size` bytes, at most 4, as a little-endian word, padded with zeros."""
    word = uint32(0)
    for k in range(min(size, 4)):
        word |= uint32(buf[at + k]) << uint32(8 * k)
    return word


@inlined
def byte_swap(value: Word) -> Word:
    """A little-endian word as a number whose order is that of its bytes."""
    bytes_, pairs = uint64(0x00FF00FF00FF00FF), uint64(0x0000FFFF0000FFFF)
    value = (value & bytes_) << uint64(8) | (value >> uint64(8)) & bytes_
    value = (value & pairs) << uint64(16) | (value >> uint64(16)) & pairs
    return value << uint64(32) | value >> uint64(32)


@inner
def compare(a: Int, a_size: Int, b: Int, b_size: Int) -> Int:
    """Negative, 0 or positive as the bytes at address `a` come before, equal or come after those at
    `b`.
    """
    size = min(a_size, b_size)
    at = int64(0)
    while at + 8 <= size:
        x, y = load64(a + at), load64(b + at)
        if x != y:
            return 1 if byte_swap(x) > byte_swap(y) else -1
        at += 8
    if size >= 8:
        x, y = load64(a + size - 8), load64(b + size - 8)
        if x != y:
            return 1 if byte_swap(x) > byte_swap(y) else -1
        return a_size - b_size
    while at < size:
        x, y = load8(a + at), load8(b + at)
        if x != y:
            return int64(x) - int64(y)
        at += 1
    return a_size - b_size
