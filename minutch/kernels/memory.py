"""Memory by its address, for other kernels: the primitives (loads, stores, calls of C functions,
room on the stack), big-endian integers, Hadoop's VInts, strings compared.

Compiled, a primitive is a few machine instructions (`intrinsics`). The bodies here are what the
interpreted mode runs.
"""

from __future__ import annotations

import ctypes
import sys

import numpy as np

from minutch.kernels.native import (
    I32,
    I64,
    U8,
    Int,
    Word,
    inlined,
    inner,
    int8,
    int64,
    primitive,
    uint32,
    uint64,
)

_U64 = (1 << 64) - 1
_WORD = ctypes.c_int64
_FUNCTION = ctypes.CFUNCTYPE(_WORD, *7 * [_WORD])


@primitive
def call7(function: Int, a: Int, b: Int, c: Int, d: Int, e: Int, f: Int, g: Int) -> Int:
    """Call the C function at an address with seven integers or addresses; it may take fewer.
    Returns 64 bits.
    """
    return int(_FUNCTION(int(function))(*map(int, (a, b, c, d, e, f, g))))


@primitive
def copy_bytes(target: Int, source: Int, size: Int) -> None:
    """memcpy by addresses."""
    ctypes.memmove(int(target), int(source), int(size))


@primitive
def prefetch(address: Int) -> None:
    """Ask for the cache line at an address, which may be any; it is needed soon."""


@primitive
def folded_product(a: Word, b: Word) -> Word:
    """Both halves of the 128-bit product of two uint64, combined by exclusive or: a uint64."""
    product = int(a) * int(b)
    return uint64((product ^ product >> 64) & _U64)


@primitive
def load8(address: Int) -> Word:
    """The byte at an address, as uint64."""
    return uint64(ctypes.c_uint8.from_address(int(address)).value)


@primitive
def load32(address: Int) -> Word:
    """The little-endian 32-bit word at any address, as uint64."""
    return uint64(_number(address, 4))


@primitive
def load64(address: Int) -> Word:
    """The little-endian 64-bit word at any address, as uint64."""
    return uint64(_number(address, 8))


@primitive
def load_int(address: Int) -> Int:
    """The big-endian 32-bit integer at any address, signed."""
    return int.from_bytes(ctypes.string_at(int(address), 4), "big", signed=True)


@primitive
def load_long(address: Int) -> Int:
    """The big-endian 64-bit integer at any address, signed."""
    return int.from_bytes(ctypes.string_at(int(address), 8), "big", signed=True)


@primitive
def store8(address: Int, value: Int | Word) -> None:
    """Store the low byte of an integer at an address."""
    _store(address, value, 1)


@primitive
def store32(address: Int, value: Int | Word) -> None:
    """Store the low 32 bits of an integer, little-endian, at any address."""
    _store(address, value, 4)


@primitive
def store64(address: Int, value: Int | Word) -> None:
    """Store an integer, little-endian, at any address."""
    _store(address, value, 8)


@primitive
def equal_of_16(address: Int, byte: Int) -> Word:
    """A bit for each of the 16 bytes at an address that is this one; the lowest for the first."""
    data = ctypes.string_at(int(address), 16)
    return uint64(sum(1 << place for place, own in enumerate(data) if own == byte))


@primitive
def least_of_16(address: Int, byte: Int) -> Word:
    """The same of those that are this one or more."""
    data = ctypes.string_at(int(address), 16)
    return uint64(sum(1 << place for place, own in enumerate(data) if own >= byte))


@primitive
def trailing_zeros(word: Word) -> Int:
    """The place of the lowest bit that is set; there has to be one."""
    return (int(word) & -int(word)).bit_length() - 1


@primitive
def scratch32(size: Int) -> I32:
    """Zeros on the stack, which go with the kernel that asks for them; `size` is a constant."""
    return np.zeros(int(size), np.int32)


@primitive
def scratch64(size: Int) -> I64:
    """Zeros of 64 bits each, otherwise as `scratch32`."""
    return np.zeros(int(size), np.int64)


def _number(address: Int, size: int) -> int:
    return int.from_bytes(ctypes.string_at(int(address), size), sys.byteorder)


def _store(address: Int, value: Int | Word, size: int) -> None:
    data = (int(value) & ((1 << 8 * size) - 1)).to_bytes(size, sys.byteorder)
    ctypes.memmove(int(address), data, size)


_LINE = 64


@inlined
def prefetch_all(address: Int, size: Int) -> None:
    """Ask for all cache lines of so many bytes, or nearly all."""
    for at in range(0, size, _LINE):
        prefetch(address + at)


# The top bit of each byte: none is set in ASCII.
HIGH_BITS = uint64(0x8080808080808080)


@inlined
def first_marked(word: Word) -> Int:
    """The number of the first byte in memory of which a word has the high bit; there has
    to be one.
    """
    return trailing_zeros(word) >> 3


@inlined
def next_byte(start: Int, end: Int, byte: Int) -> Int:
    """The address from `start` on where a byte comes next; `end` if it does not before that."""
    while start + 16 <= end:
        found = equal_of_16(start, byte)
        if found != 0:
            return start + trailing_zeros(found)
        start += 16
    while start < end and load8(start) != byte:
        start += 1
    return start


@inlined
def far_next_byte(start: Int, end: Int, byte: Int) -> Int:
    """The same of a byte that is rare, of 64 at a time."""
    while start + 64 <= end:
        found = equal_of_16(start, byte) | equal_of_16(start + 16, byte)
        if found | equal_of_16(start + 32, byte) | equal_of_16(start + 48, byte) != 0:
            break
        start += 64
    return next_byte(start, end, byte)


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
    if size < 1 or size > 4 or at + 1 + size > end:  # negative, or longer than an int
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
    # Swap neighbouring bytes, then pairs, then halves.
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
    if size >= 8:  # the tail by the last eight bytes, overlapping what is equal
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
