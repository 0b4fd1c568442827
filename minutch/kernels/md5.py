"""A kernel for MD5 of many strings at once (RFC 1321): one string is a chain of steps, so 16 go
side by side.

lanes   24 rows of 16 numbers, one of each string: four of state, four that the state was before, a
block's 16 words tails   what is left of each string behind its whole blocks, padded: 16 times two
blocks
"""

from __future__ import annotations

from typing import Final

import numpy as np

from minutch.kernels.native import I64, U8, U32, Int, inlined, inner, int64, kernel, uint32
from minutch.kernels.primitives import copy_bytes, load32, store8, store32, store64

LANES: Final = 16
BLOCK: Final = 64
ROWS: Final = 24
TAIL: Final = 2 * BLOCK
SIZE: Final = 16
"""Bytes of a digest."""

_SINES: Final = np.array([int(abs(np.sin(i + 1)) * 2**32) for i in range(64)], np.uint32)
_SHIFTS: Final = np.array(
    [
        turn
        for turns in ((7, 12, 17, 22), (5, 9, 14, 20), (4, 11, 16, 23), (6, 10, 15, 21))
        for turn in 4 * turns
    ],
    np.uint32,
)
_START: Final = np.array([0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476], np.uint32)
_ALL: Final = uint32(0xFFFFFFFF)
_BITS: Final = uint32(32)
_OLD: Final = 4 * LANES
_WORDS: Final = 8 * LANES


@inlined
def _choice(x: Int, y: Int, z: Int) -> Int:
    """Bits of `y` where `x` has ones, of `z` elsewhere."""
    return z ^ (x & (y ^ z))


@inlined
def _turned(a: Int, b: Int, mixed: Int, word: Int, i: Int) -> Int:
    """The new number of step `i`."""
    total = uint32(a + mixed + word + _SINES[i])
    return uint32(b + ((total << _SHIFTS[i]) | (total >> uint32(_BITS - _SHIFTS[i]))))


@inner
def _mix(lanes: U32) -> None:
    """Take the block in `lanes` into its state."""
    for lane in range(LANES):
        for row in range(4):
            lanes[_OLD + row * LANES + lane] = lanes[row * LANES + lane]
    for lane in range(LANES):
        a, b = lanes[lane], lanes[LANES + lane]
        c, d = lanes[2 * LANES + lane], lanes[3 * LANES + lane]
        for i in range(16):
            a, b, c, d = (
                d,
                _turned(a, b, _choice(b, c, d), lanes[_WORDS + i * LANES + lane], i),
                b,
                c,
            )
        for i in range(16, 32):
            a, b, c, d = (
                d,
                _turned(a, b, _choice(d, b, c), lanes[_WORDS + (5 * i + 1) % 16 * LANES + lane], i),
                b,
                c,
            )
        for i in range(32, 48):
            a, b, c, d = (
                d,
                _turned(a, b, b ^ c ^ d, lanes[_WORDS + (3 * i + 5) % 16 * LANES + lane], i),
                b,
                c,
            )
        for i in range(48, 64):
            mixed = c ^ (b | (d ^ _ALL))
            a, b, c, d = d, _turned(a, b, mixed, lanes[_WORDS + 7 * i % 16 * LANES + lane], i), b, c
        lanes[lane] = a + lanes[_OLD + lane]
        lanes[LANES + lane] = b + lanes[_OLD + LANES + lane]
        lanes[2 * LANES + lane] = c + lanes[_OLD + 2 * LANES + lane]
        lanes[3 * LANES + lane] = d + lanes[_OLD + 3 * LANES + lane]


@inner
def _put_tail(address: Int, size: Int, tail: Int) -> Int:
    """Write what is left of a string behind its whole blocks, and the padding, to `tail`; how many
    blocks that is.
    """
    for at in range(0, TAIL, 8):
        store64(tail + at, 0)
    rest = size % BLOCK
    copy_bytes(tail, address + size - rest, rest)
    store8(tail + rest, 0x80)
    blocks = 1 if rest < BLOCK - 8 else 2
    store64(tail + blocks * BLOCK - 8, 8 * size)
    return blocks


@kernel
def md5(at: I64, sizes: I64, order: I64, lanes: U32, tails: U8, digests: U8) -> None:
    """The digest of each string (its address and size), back to back in `digests`.

    order   the numbers of the strings; the work is least where strings of like size follow each
    other
    """
    padding, out = int64(tails.ctypes.data), int64(digests.ctypes.data)
    for first in range(0, len(order), LANES):
        used = min(LANES, len(order) - first)
        longest = 0
        for lane in range(LANES):
            for row in range(4):
                lanes[row * LANES + lane] = _START[row]
        for lane in range(used):
            i = order[first + lane]
            longest = max(
                longest, sizes[i] // BLOCK + _put_tail(at[i], sizes[i], padding + lane * TAIL)
            )
        for block in range(longest):
            for lane in range(used):
                i = order[first + lane]
                whole = sizes[i] // BLOCK
                source = at[i] + block * BLOCK
                if block >= whole:
                    source = padding + lane * TAIL + (block - whole) % 2 * BLOCK
                for word in range(16):
                    lanes[_WORDS + word * LANES + lane] = load32(source + 4 * word)
            _mix(lanes)
            for lane in range(used):
                i = order[first + lane]
                if block == (sizes[i] + 8) // BLOCK:
                    for row in range(4):
                        store32(out + i * SIZE + 4 * row, lanes[row * LANES + lane])
