"""Hashes of strings: Java's and Hadoop's hash codes, and one for the tables of kernels by a seed:
strings that collide can't be made in advance.

Pages choose URLs, anchors and words. Where the hash is known to them they can choose those that all
fall into one slot, and each further one is compared with all before. `SEED` is drawn anew in each
process; nothing that is written may depend on it, so tables say which strings are equal, and never
in which order they come.
"""

from __future__ import annotations

import secrets
from typing import Final

import numpy as np

from minutch.kernels.memory import folded_product, load8, load64
from minutch.kernels.native import (
    I32,
    U32,
    U64,
    Int,
    Views,
    Word,
    inlined,
    inner,
    int8,
    int32,
    int64,
    kernel,
    string_at,
    uint32,
    uint64,
)

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
        if word & uint64(0x8080_8080_8080_8080):  # negative in Java
            return value, done
        value = value * _POWERS_OF_31[8] + _hash_of_eight(word)
        done += 8
    left = size - done
    if done and left:
        # The last eight bytes, those that are in the code already as zeros, which add nothing.
        word = load64(at + size - 8) >> uint64(64 - 8 * left) << uint64(64 - 8 * left)
        if word & uint64(0x8080_8080_8080_8080):
            return value, done
        value = value * _POWERS_OF_31[left] + _hash_of_eight(word)
        done = size
    return value, done


@inlined
def _hash_of_eight(word: Word) -> Word:
    """Java's hash code, beginning with 0, of the ASCII bytes of a word."""
    pairs = (word & _BYTES) * _POWERS_OF_31[1] + ((word >> uint64(8)) & _BYTES)
    fours = (pairs & _PAIRS) * _POWERS_OF_31[2] + ((pairs >> uint64(16)) & _PAIRS)
    code: Word = (fours & uint64(0xFFFF_FFFF)) * _POWERS_OF_31[4] + (fours >> uint64(32))
    return code


@inner
def part_of(at: Int, size: Int, parts: Int) -> Word:
    """The part of a key: (Text.hashCode & 0x7fffffff) % parts."""
    h, done = hash_ascii(at, size, uint64(1))  # WritableComparator.hashBytes begins with 1
    for k in range(done, size):
        h = uint64(31) * h + uint64(int64(int8(load8(at + k))))  # Java's bytes are signed
    return (h & uint64(0x7FFF_FFFF)) % uint64(parts)


@kernel
def partitions(views: Views, addresses: U64, parts: Int, out: U32) -> None:
    """The part of each key."""
    for i in range(len(views)):
        out[i] = part_of(string_at(views, addresses, i), int64(views[i, 0]), parts)


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
        # Generator.HashComparator: from the end, so that the order hardly correlates with hosts.
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


SEED: Final = secrets.randbits(63)
"""The seed of all tables of this process, and of those that are copies of it."""
# Two of the secrets of wyhash.
_ODD: Final = uint64(0x8BB8_4B93_962E_ACC9)
_OTHER: Final = uint64(0x2D35_8DCC_AA6C_78A5)
_BYTE: Final = uint64(8)


@inner
def string_hash(at: Int, size: Int, seed: Int) -> Word:
    """The hash of the string at an address.

    Two words go into each product of 128 bits, both mixed with what only the seed tells, so that
    neither factor can be made zero, or equal to that of another string, by one who does not know
    it.
    """
    secret = folded_product(uint64(seed) ^ _OTHER, _ODD)
    state = uint64(seed) ^ uint64(size)
    done = int64(0)
    while done + 16 < size:
        state = folded_product(load64(at + done) ^ secret, load64(at + done + 8) ^ state)
        done += 16
    first, last = uint64(0), uint64(0)
    if size >= 8:  # the last 16, overlapping what was read: no loop over a tail
        first, last = load64(at + max(size - 16, 0)), load64(at + size - 8)
    else:
        for i in range(size):
            first = (first << _BYTE) | load8(at + i)
    state = folded_product(first ^ secret, last ^ state)
    return folded_product(state ^ _ODD, secret ^ _OTHER)


@inlined
def word_hash(word: Word, seed: Int) -> Word:
    """The hash of a word."""
    return folded_product(word ^ uint64(seed), folded_product(uint64(seed) ^ _OTHER, _ODD))
