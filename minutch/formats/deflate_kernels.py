"""A kernel that compresses short strings, each to a zlib stream of its own, faster than any library can.

Libraries clear tables of 64 to 128 KB before each stream, which takes longer than compressing a record of a hundred
bytes. Here a stream has one block: with the fixed Huffman codes, or stored where that is shorter.

    78 01 | 3 bits: final, fixed | codes of literals and matches | 7 bits: end of block | Adler-32
    78 01 | 01 | short size, its complement (little-endian) | bytes                     | Adler-32

Matches are found through a table of places by the hash of four bytes; a running number tells the places of this string
from those of earlier ones, so that nothing has to be cleared.
Source: RFC 1950, RFC 1951.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from minutch.formats.columns_native import Array, Int, call7, copy_bytes, kernel, load8, load64, store64

SHORT: Final = 2048
"""Bytes up to which a string is for this kernel."""
OVERHEAD: Final = 11
"""Bytes that a stream may be longer than its string: header, block header, checksum."""

_HASH_BITS: Final = 12
_MIN_MATCH: Final = 4
_MAX_MATCH: Final = 258
_END_OF_BLOCK_BITS: Final = 7
_MODULUS: Final = 65521
_ADLER_RUN: Final = 2654  # bytes that can be summed before the modulus is taken, in 31 bits


def _reversed(code: int, bits: int) -> int:
    return int(f"{code:0{bits}b}"[::-1], 2)


def _literal_codes() -> tuple[list[int], list[int]]:
    """The fixed codes of 0 to 287 (bits reversed) and how many bits they have."""
    ranges = ((0, 144, 8, 0x30), (144, 256, 9, 0x190), (256, 280, 7, 0), (280, 288, 8, 0xC0))
    codes, sizes = [], []
    for first, last, bits, base in ranges:
        codes += [_reversed(base + symbol - first, bits) for symbol in range(first, last)]
        sizes += [bits] * (last - first)
    return codes, sizes


def _length_codes() -> tuple[list[int], list[int]]:
    """For each match length: the code with its extra bits behind it, and how many bits that is."""
    codes, sizes = _literal_codes()
    whole, bits = [0] * (_MAX_MATCH + 1), [0] * (_MAX_MATCH + 1)
    length = 3
    for symbol in range(257, 285):
        extra = 0 if symbol < 265 else (symbol - 261) // 4
        for value in range(1 << extra):
            whole[length] = codes[symbol] | value << sizes[symbol]
            bits[length] = sizes[symbol] + extra
            length += 1
    whole[_MAX_MATCH], bits[_MAX_MATCH] = codes[285], sizes[285]
    return whole, bits


def _distance_codes() -> tuple[list[int], list[int]]:
    """For each distance up to SHORT: the code with its extra bits behind it, and how many bits that is."""
    whole, bits = [0] * (SHORT + 1), [0] * (SHORT + 1)
    distance, symbol = 1, 0
    while distance <= SHORT:
        extra = 0 if symbol < 4 else symbol // 2 - 1
        for value in range(1 << extra):
            if distance <= SHORT:
                whole[distance] = _reversed(symbol, 5) | value << 5
                bits[distance] = 5 + extra
            distance += 1
        symbol += 1
    return whole, bits


def _table(values: list[int]) -> npt.NDArray[np.uint64]:
    return np.array(values, dtype=np.uint64)


_LITERAL, _LITERAL_BITS = map(_table, _literal_codes())
_LENGTH, _LENGTH_BITS = map(_table, _length_codes())
_DISTANCE, _DISTANCE_BITS = map(_table, _distance_codes())


@kernel
def new_places() -> Array:
    """The table that `deflate_short` works with; it may be used again and again."""
    return np.zeros((1 << _HASH_BITS) + 1, np.int64)


@kernel
def _checksum(source: Int, size: Int) -> Int:
    """Adler-32."""
    low, high = np.uint64(1), np.uint64(0)
    at = np.int64(0)
    while at < size:
        end = min(size, at + _ADLER_RUN)
        while at + 4 <= end:
            a, b, c, d = (load8(source + at), load8(source + at + 1), load8(source + at + 2), load8(source + at + 3))
            high += np.uint64(4) * low + np.uint64(4) * a + np.uint64(3) * b + np.uint64(2) * c + d
            low += a + b + c + d
            at += 4
        while at < end:
            low += load8(source + at)
            high += low
            at += 1
        low %= np.uint64(_MODULUS)
        high %= np.uint64(_MODULUS)
    return high << np.uint64(16) | low


@kernel
def _put_checksum(out: Array, at: Int, value: Int) -> Int:
    out[at] = value >> np.uint64(24)
    out[at + 1] = value >> np.uint64(16) & np.uint64(255)
    out[at + 2] = value >> np.uint64(8) & np.uint64(255)
    out[at + 3] = value & np.uint64(255)
    return at + 4


@kernel
def _stored(source: Int, size: Int, out: Array, at: Int) -> Int:
    """The block and checksum of a string that is not compressed; returns the place after them."""
    out[at] = 1
    out[at + 1] = size & 255
    out[at + 2] = size >> 8
    out[at + 3] = ~size & 255
    out[at + 4] = (~size >> 8) & 255
    copy_bytes(np.int64(out.ctypes.data) + at + 5, source, size)
    return _put_checksum(out, at + 5 + size, _checksum(source, size))


@kernel
def _compressed(source: Int, size: Int, out: Array, at: Int, places: Array) -> Int:
    """The same, compressed; -1 if it would be longer than stored."""
    base = places[-1]  # places of this string are counted from here
    places[-1] = base + size + 1
    limit = at + 5 + size
    target = np.int64(out.ctypes.data)
    word, used = np.uint64(3), np.uint64(3)
    position = np.int64(0)
    while position < size:
        if at + 8 > limit:
            return np.int64(-1)
        length = np.int64(0)
        distance = np.int64(0)
        if position + 8 <= size:
            four = load64(source + position) & np.uint64(0xFFFFFFFF)
            slot = np.int64((four * np.uint64(0x9E3779B1) & np.uint64(0xFFFFFFFF)) >> np.uint64(32 - _HASH_BITS))
            other = places[slot] - base - 1
            places[slot] = base + 1 + position
            if other >= 0 and load64(source + other) & np.uint64(0xFFFFFFFF) == four:
                distance = position - other
                longest = min(size - position, np.int64(_MAX_MATCH))
                length = np.int64(_MIN_MATCH)
                while length < longest and load8(source + other + length) == load8(source + position + length):
                    length += 1
        if length:
            word |= _LENGTH[length] << used
            used += _LENGTH_BITS[length]
            word |= _DISTANCE[distance] << used
            used += _DISTANCE_BITS[distance]
            position += length
        else:
            byte = load8(source + position)
            word |= _LITERAL[byte] << used
            used += _LITERAL_BITS[byte]
            position += 1
        store64(target + at, np.int64(word))
        at += np.int64(used >> np.uint64(3))
        word >>= used & np.uint64(56)
        used &= np.uint64(7)
    used += np.uint64(_END_OF_BLOCK_BITS)  # the code of the end is zeros
    while np.int64(used) > 0:
        out[at] = word & np.uint64(255)
        at += 1
        word >>= np.uint64(8)
        used = used - np.uint64(8) if used > 8 else np.uint64(0)
    if at >= limit:
        return np.int64(-1)
    return _put_checksum(out, at, _checksum(source, size))


@kernel
def deflate_short(source: Int, size: Int, out: Array, at: Int, places: Array) -> Int:
    """Write the string of `size` (at most SHORT) bytes at `source` to `out` from `at`; returns the stream's length."""
    out[at] = 0x78
    out[at + 1] = 0x01
    end = _compressed(source, size, out, at + 2, places)
    if end < 0:
        end = _stored(source, size, out, at + 2)
    return end - at


@kernel
def deflate(
    buf: Array, at: Array, length: Array, out: Array, out_at: Array, out_len: Array, compressor: Int, function: Int
) -> None:
    """Each string as a zlib stream, one after the other in `out`, which has room for all; long ones by libdeflate."""
    source = np.int64(buf.ctypes.data)
    target = np.int64(out.ctypes.data)
    places = new_places()
    end = np.int64(0)
    for i in range(len(at)):
        if length[i] <= SHORT:
            size = deflate_short(source + at[i], np.int64(length[i]), out, end, places)
        else:
            size = call7(function, compressor, source + at[i], length[i], target + end, len(out) - end, 0, 0)
        out_at[i] = end
        out_len[i] = size
        end += size
