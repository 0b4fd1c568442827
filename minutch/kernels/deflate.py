"""Kernels for values that are compressed one by one: one inflates them, one compresses short
strings, each to a zlib stream of its own, faster than any library can.

Libraries clear tables of 64 to 128 KB before each stream, which takes longer than compressing a
record of a hundred bytes. Here a stream has one block: with the fixed Huffman codes, or stored
where that is shorter.

    78 01 | 3 bits: final, fixed | codes of literals and matches | 7 bits: end of block | Adler-32
    78 01 | 01 | short size, its complement (little-endian) | bytes                     | Adler-32

Matches are found through a table of places by the hash of four bytes; a running number tells the
places of this string from those of earlier ones, so that nothing has to be cleared. Source: RFC
1950, RFC 1951.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from minutch.kernels.memory import (
    call7,
    compare,
    copy_bytes,
    load8,
    load64,
    scratch64,
    store32,
    store64,
)
from minutch.kernels.native import I32, I64, Int, Slices, Word, inner, int64, kernel, uint64

SHORT: Final = 2048
"""Bytes up to which a string is for this kernel."""
BEFORE: Final = 7
"""Bytes of a stream before a string that is stored: header, block header."""
OVERHEAD: Final = BEFORE + 4
"""Bytes that a stream may be longer than its string: those and the checksum."""

LIBRARY_OVERHEAD: Final = 64
"""Bytes that libdeflate may want beyond a string's."""

_HASH_BITS: Final = 12
_PLACES: Final = (1 << _HASH_BITS) + 1  # the last one is the running number
_MIN_MATCH: Final = 4  # RFC 1951 allows 3, but the hash is of four bytes
_MAX_MATCH: Final = 258  # RFC 1951, 3.2.5
_END_OF_BLOCK_BITS: Final = 7  # symbol 256, seven zeros
_MODULUS: Final = 65521
_ADLER_RUN: Final = 2654  # bytes that can be summed before the modulus is taken, in 31 bits


def _reversed(code: int, bits: int) -> int:
    # Huffman codes are packed with their most significant bit first (RFC 1951, 3.1.1).
    return int(f"{code:0{bits}b}"[::-1], 2)


def _literal_codes() -> tuple[list[int], list[int]]:
    """The fixed codes of 0 to 287 (bits reversed) and how many bits they have."""
    # RFC 1951, 3.2.6: first symbol, the one after the last, bits, code of the first.
    ranges = ((0, 144, 8, 0x30), (144, 256, 9, 0x190), (256, 280, 7, 0), (280, 288, 8, 0xC0))
    codes, sizes = [], []
    for first, last, bits, base in ranges:
        codes += [_reversed(base + symbol - first, bits) for symbol in range(first, last)]
        sizes += [bits] * (last - first)
    return codes, sizes


def _length_codes() -> tuple[list[int], list[int]]:
    """Return, for each match length, the code with its extra bits behind it, and how many bits that
    is.
    """
    codes, sizes = _literal_codes()
    whole, bits = [0] * (_MAX_MATCH + 1), [0] * (_MAX_MATCH + 1)
    length = 3
    # RFC 1951, 3.2.5: from 265 on, every four symbols have one extra bit more.
    for symbol in range(257, 285):
        extra = 0 if symbol < 265 else (symbol - 261) // 4
        for value in range(1 << extra):
            whole[length] = codes[symbol] | value << sizes[symbol]
            bits[length] = sizes[symbol] + extra
            length += 1
    whole[_MAX_MATCH], bits[_MAX_MATCH] = codes[285], sizes[285]  # 258 has a symbol of its own
    return whole, bits


def _distance_codes() -> tuple[list[int], list[int]]:
    """Return, for each distance up to SHORT, the code with its extra bits behind it, and how many
    bits that is.
    """
    whole, bits = [0] * (SHORT + 1), [0] * (SHORT + 1)
    distance, symbol = 1, 0
    while distance <= SHORT:
        extra = 0 if symbol < 4 else symbol // 2 - 1  # from 4 on, one more every two symbols
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


def new_places() -> I64:
    """The table that `deflate_one` works with; it may be used again and again."""
    return np.zeros(_PLACES, np.int64)


class Compressor(NamedTuple):
    """The fields of what makes zlib streams: a table (`new_places`), and libdeflate's compressor
    and function.
    """

    places: I64
    state: Int
    function: Int


@inner
def _checksum(source: Int, size: Int) -> Word:
    """Adler-32."""
    low, high = uint64(1), uint64(0)
    at = int64(0)
    while at < size:
        end = min(size, at + _ADLER_RUN)
        while at + 4 <= end:
            a, b, c, d = (
                load8(source + at),
                load8(source + at + 1),
                load8(source + at + 2),
                load8(source + at + 3),
            )
            # Four steps of `low += byte; high += low` at once.
            high += uint64(4) * low + uint64(4) * a + uint64(3) * b + uint64(2) * c + d
            low += a + b + c + d
            at += 4
        while at < end:
            low += load8(source + at)
            high += low
            at += 1
        low %= uint64(_MODULUS)
        high %= uint64(_MODULUS)
    return high << uint64(16) | low


@inner
def _put_checksum(target: Int, source: Int, size: Int) -> Int:
    """The string's checksum at the address `target`; returns the address after it."""
    value = int64(_checksum(source, size))
    # Big-endian (RFC 1950, 2.2); store32 is little-endian.
    store32(
        target, value >> 24 | (value >> 8 & 0xFF00) | (value & 0xFF00) << 8 | (value & 0xFF) << 24
    )
    return target + 4


@inner
def finish_stored(target: Int, size: Int) -> Int:
    """Make the `size` (below 65,536) bytes at `target + BEFORE` a stream from `target` on; returns
    its length.
    """
    store32(target, int64(0x010178) | (size & 0xFF) << 24)  # zlib's header; the one block, stored
    store32(target + 3, size | (~size & 0xFFFF) << 16)  # LEN, NLEN
    return _put_checksum(target + BEFORE + size, target + BEFORE, size) - target


@inner
def _compressed(source: Int, size: Int, target: Int, places: I64) -> Int:
    """The string compressed to `target`; returns the length, -1 if that would be more than
    stored.
    """
    base = places[-1]  # places of this string are counted from here
    places[-1] = base + size + 1
    store32(target, int64(0x0178))  # CMF, FLG (RFC 1950, 2.2)
    at = target + 2
    limit = target + 7 + size  # where the checksum of a stored stream would begin
    word, used = uint64(3), uint64(3)  # BFINAL = 1, BTYPE = 01: one block, fixed codes
    position = int64(0)
    while position < size:
        if at + 8 > limit:  # the store below writes eight bytes
            return int64(-1)
        length = int64(0)
        distance = int64(0)
        if position + 8 <= size:  # load64 reads eight bytes
            four = load64(source + position) & uint64(0xFFFFFFFF)
            # Multiplication by 2³² / golden ratio: its upper bits depend on all four bytes.
            slot = int64(
                (four * uint64(0x9E3779B1) & uint64(0xFFFFFFFF)) >> uint64(32 - _HASH_BITS)
            )
            other = places[slot] - base - 1  # negative: left by an earlier string
            places[slot] = base + 1 + position
            # Slots are shared, so the bytes decide.
            if other >= 0 and load64(source + other) & uint64(0xFFFFFFFF) == four:
                distance = position - other
                longest = min(size - position, int64(_MAX_MATCH))
                length = int64(_MIN_MATCH)
                while length < longest and load8(source + other + length) == load8(
                    source + position + length
                ):
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
        # At most 7 + 13 + 14 bits are pending: whole bytes are final, the rest is stored again
        # with what follows.
        store64(at, int64(word))
        at += int64(used >> uint64(3))
        word >>= used & uint64(56)
        used &= uint64(7)
    end = at + (int64(used) + _END_OF_BLOCK_BITS + 7 >> 3)  # the code of the end is zeros
    if end >= limit:
        return int64(-1)
    store32(at, int64(word))
    return _put_checksum(end, source, size) - target


@inner
def deflate_one(source: Int, size: Int, target: Int, room: Int, compressor: Compressor) -> Int:
    """Write the string of `size` bytes at `source` to `target`, of which `room` bytes are free; the
    stream's length.

    Strings up to SHORT bytes need room for OVERHEAD more, longer ones are for libdeflate.
    """
    if size > SHORT:
        return call7(compressor.function, compressor.state, source, size, target, room, 0, 0)
    length = _compressed(source, size, target, compressor.places)
    if length < 0:
        copy_bytes(target + BEFORE, source, size)
        length = finish_stored(target, size)
    return length


@kernel
def deflate(at: I64, length: I32, streams: Slices, compressor: Compressor) -> None:
    """Each string, by its address, as a zlib stream, one after the other in `streams`, which has
    room for all.

    Long ones are for libdeflate; the places of the streams are filled in.
    """
    out, out_at, out_len = streams
    target = int64(out.ctypes.data)
    end = int64(0)
    for i in range(len(at)):
        size = int64(length[i])
        out_at[i] = end
        out_len[i] = deflate_one(at[i], size, target + end, len(out) - end, compressor)
        end += out_len[i]


class Decompressor(NamedTuple):
    """The fields of what unpacks zlib streams: libdeflate's decompressor and function."""

    state: Int
    function: Int


@kernel
def inflate(streams: Slices, first: Int, strings: Slices, decompressor: Decompressor) -> Int:
    """Inflate zlib streams from number `first` on into `strings`, one after the other.

    A stream with the bytes of the one before shares its output: the links of a page are often
    alike. Returns the number of the stream for which there was no room, or how many there are; -1
    if one is damaged.
    """
    buf, at, length = streams
    out, out_at, out_len = strings
    counts = scratch64(2)
    source = int64(buf.ctypes.data)
    target = int64(out.ctypes.data)
    count_at = int64(counts.ctypes.data)
    end = out_at[first - 1] + out_len[first - 1] if first else int64(0)
    for i in range(first, len(at)):
        if i and length[i] == length[i - 1]:
            size = int64(length[i])
            if compare(source + at[i], size, source + at[i - 1], size) == 0:
                out_at[i], out_len[i] = out_at[i - 1], out_len[i - 1]
                continue
        room = len(out) - end
        # The function returns a C int: the upper half of the register is undefined.
        code = (
            call7(
                decompressor.function,
                decompressor.state,
                source + at[i],
                length[i],
                target + end,
                room,
                count_at,
                count_at + 8,
            )
            & 0xFFFF_FFFF
        )
        if code == 3:  # LIBDEFLATE_INSUFFICIENT_SPACE
            return i
        if code != 0 or counts[0] != length[i]:  # the latter: bytes follow the stream
            return -1
        out_at[i] = end
        out_len[i] = counts[1]
        end += counts[1]
    return len(at)
