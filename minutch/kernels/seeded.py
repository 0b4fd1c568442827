"""A hash of strings for the tables of kernels, by a seed: strings that collide can't be made in
advance.

Pages choose URLs, anchors and words. Where the hash is known to them they can choose those that all
fall into one slot, and each further one is compared with all before. `SEED` is drawn anew in each
process; nothing that is written may depend on it, so tables say which strings are equal, and never
in which order they come.
"""

from __future__ import annotations

import secrets
from typing import Final

from minutch.kernels.native import Int, Word, inlined, inner, int64, uint64
from minutch.kernels.primitives import folded_product, load8, load64

SEED: Final = secrets.randbits(63)
"""The seed of all tables of this process, and of those that are copies of it."""
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
    if size >= 8:
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
