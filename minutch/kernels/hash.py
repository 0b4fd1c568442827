"""Kernels for Java's and Hadoop's hash codes of strings."""

from __future__ import annotations

import numpy as np

from minutch.kernels.native import (
    I32,
    U32,
    U64,
    Int,
    Views,
    Word,
    inner,
    int8,
    int32,
    int64,
    kernel,
    string_at,
    uint32,
    uint64,
)
from minutch.kernels.primitives import load8, load64

_POWERS_OF_31 = np.array([31**k for k in range(9)], np.uint64)
_BYTES, _PAIRS = uint64(0x00FF00FF00FF00FF), uint64(0x0000FFFF0000FFFF)
"""Every other byte of a word, and every other pair: codes of two and of four bytes are made side by
side.
"""


@inner
def hash_ascii(at: Int, size: Int, value: Word) -> tuple[Word, Int]:
    """Go on with Java's hash code (its low 32 bits count) over a string, eight bytes at a time
    while all are ASCII.

    Returns the code and how many bytes are in it.
    """
    done = int64(0)
    while done + 8 <= size:
        word = load64(at + done)
        if word & uint64(0x8080_8080_8080_8080):
            break
        pairs = (word & _BYTES) * _POWERS_OF_31[1] + ((word >> uint64(8)) & _BYTES)
        fours = (pairs & _PAIRS) * _POWERS_OF_31[2] + ((pairs >> uint64(16)) & _PAIRS)
        value *= _POWERS_OF_31[8]
        value += (fours & uint64(0xFFFF_FFFF)) * _POWERS_OF_31[4] + (fours >> uint64(32))
        done += 8
    return value, done


@kernel
def partitions(views: Views, addresses: U64, parts: Int, out: U32) -> None:
    """The part of each key: (Text.hashCode & 0x7fffffff) % parts."""
    for i in range(len(views)):
        at, size = string_at(views, addresses, i), int64(views[i, 0])
        h, done = hash_ascii(at, size, uint64(1))
        for k in range(done, size):
            h = uint64(31) * h + uint64(int64(int8(load8(at + k))))
        out[i] = (h & uint64(0x7FFF_FFFF)) % uint64(parts)


@inner
def _step(value: Word, byte: Word) -> Word:
    """31 * value + the signed byte; the low 32 bits count."""
    return value * uint64(31) + byte - ((byte & uint64(128)) << uint64(1))


@kernel
def url_hashes(views: Views, addresses: U64, hashes: I32) -> None:
    """The hash of each string as a serialized Text (after its length as a VInt), from the last byte
    to the first.
    """
    for i in range(len(hashes)):
        address, left = string_at(views, addresses, i), int64(views[i, 0])
        value = uint64(1)
        while left >= 8:  # eight bytes at a time while all are ASCII
            word = load64(address + left - 8)
            if word & uint64(0x8080_8080_8080_8080):
                break
            value *= _POWERS_OF_31[8]
            for k in range(8):
                value += (word >> uint64(8 * k) & uint64(0xFF)) * _POWERS_OF_31[k]
            left -= 8
        while left:
            left -= 1
            value = _step(value, load8(address + left))
        size = int64(views[i, 0])
        if size < 128:
            value = _step(value, uint64(size))
        else:
            count = 1 if size < 1 << 8 else 2 if size < 1 << 16 else 3 if size < 1 << 24 else 4
            for number in range(count):
                value = _step(value, uint64((size >> (8 * number)) & 255))
            value = _step(value, uint64((-112 - count) & 255))
        hashes[i] = int32(uint32(value & uint64(0xFFFFFFFF)))
