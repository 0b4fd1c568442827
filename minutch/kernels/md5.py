"""MD5 of many byte strings at once: LANES of them go through the same steps side by side, which the
compiler makes vector instructions of; a string alone has to wait for each of its steps.

Source: RFC 1321.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from minutch.kernels.memory import load8, load32
from minutch.kernels.native import (
    I64,
    U8,
    U32,
    I64Rows,
    Int,
    U8Rows,
    inlined,
    inner,
    int64,
    kernel,
    uint32,
)

LANES: Final = 16
ADDRESS, BLOCKS, TAIL, TAIL_BLOCKS, STRING, LANE_ROW = range(6)
"""Columns of `lanes`: where the next block of a string is, and how many are left; the same of its
end, which is padded; its number, -1 if the lane is done.
"""
_BLOCK: Final = 64
_BEGIN = np.array([0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476], np.uint32)


@inlined
def _step(a: Int, b: Int, f: Int, word: Int, constant: Int, by: Int) -> Int:
    t = uint32(a + f + word + uint32(constant))
    return uint32(b + uint32(uint32(t << uint32(by)) | uint32(t >> uint32(32 - by))))


@inlined
def _f(b: Int, c: Int, d: Int) -> Int:
    return uint32(d ^ (b & (c ^ d)))


@inlined
def _g(b: Int, c: Int, d: Int) -> Int:
    return uint32(c ^ (d & (b ^ c)))


@inlined
def _h(b: Int, c: Int, d: Int) -> Int:
    return uint32(b ^ c ^ d)


@inlined
def _i(b: Int, c: Int, d: Int) -> Int:
    return uint32(c ^ (b | (d ^ uint32(0xFFFFFFFF))))


@inner
def _add_blocks(words: U32, state: U32) -> None:
    """Add a block of each lane: word k of lane n stands at k * LANES + n, in `state` as well."""
    for n in range(LANES):
        a, b = uint32(state[n]), uint32(state[LANES + n])
        c, d = uint32(state[2 * LANES + n]), uint32(state[3 * LANES + n])
        a = _step(a, b, _f(b, c, d), uint32(words[0 * LANES + n]), 0xD76AA478, 7)
        d = _step(d, a, _f(a, b, c), uint32(words[1 * LANES + n]), 0xE8C7B756, 12)
        c = _step(c, d, _f(d, a, b), uint32(words[2 * LANES + n]), 0x242070DB, 17)
        b = _step(b, c, _f(c, d, a), uint32(words[3 * LANES + n]), 0xC1BDCEEE, 22)
        a = _step(a, b, _f(b, c, d), uint32(words[4 * LANES + n]), 0xF57C0FAF, 7)
        d = _step(d, a, _f(a, b, c), uint32(words[5 * LANES + n]), 0x4787C62A, 12)
        c = _step(c, d, _f(d, a, b), uint32(words[6 * LANES + n]), 0xA8304613, 17)
        b = _step(b, c, _f(c, d, a), uint32(words[7 * LANES + n]), 0xFD469501, 22)
        a = _step(a, b, _f(b, c, d), uint32(words[8 * LANES + n]), 0x698098D8, 7)
        d = _step(d, a, _f(a, b, c), uint32(words[9 * LANES + n]), 0x8B44F7AF, 12)
        c = _step(c, d, _f(d, a, b), uint32(words[10 * LANES + n]), 0xFFFF5BB1, 17)
        b = _step(b, c, _f(c, d, a), uint32(words[11 * LANES + n]), 0x895CD7BE, 22)
        a = _step(a, b, _f(b, c, d), uint32(words[12 * LANES + n]), 0x6B901122, 7)
        d = _step(d, a, _f(a, b, c), uint32(words[13 * LANES + n]), 0xFD987193, 12)
        c = _step(c, d, _f(d, a, b), uint32(words[14 * LANES + n]), 0xA679438E, 17)
        b = _step(b, c, _f(c, d, a), uint32(words[15 * LANES + n]), 0x49B40821, 22)
        a = _step(a, b, _g(b, c, d), uint32(words[1 * LANES + n]), 0xF61E2562, 5)
        d = _step(d, a, _g(a, b, c), uint32(words[6 * LANES + n]), 0xC040B340, 9)
        c = _step(c, d, _g(d, a, b), uint32(words[11 * LANES + n]), 0x265E5A51, 14)
        b = _step(b, c, _g(c, d, a), uint32(words[0 * LANES + n]), 0xE9B6C7AA, 20)
        a = _step(a, b, _g(b, c, d), uint32(words[5 * LANES + n]), 0xD62F105D, 5)
        d = _step(d, a, _g(a, b, c), uint32(words[10 * LANES + n]), 0x02441453, 9)
        c = _step(c, d, _g(d, a, b), uint32(words[15 * LANES + n]), 0xD8A1E681, 14)
        b = _step(b, c, _g(c, d, a), uint32(words[4 * LANES + n]), 0xE7D3FBC8, 20)
        a = _step(a, b, _g(b, c, d), uint32(words[9 * LANES + n]), 0x21E1CDE6, 5)
        d = _step(d, a, _g(a, b, c), uint32(words[14 * LANES + n]), 0xC33707D6, 9)
        c = _step(c, d, _g(d, a, b), uint32(words[3 * LANES + n]), 0xF4D50D87, 14)
        b = _step(b, c, _g(c, d, a), uint32(words[8 * LANES + n]), 0x455A14ED, 20)
        a = _step(a, b, _g(b, c, d), uint32(words[13 * LANES + n]), 0xA9E3E905, 5)
        d = _step(d, a, _g(a, b, c), uint32(words[2 * LANES + n]), 0xFCEFA3F8, 9)
        c = _step(c, d, _g(d, a, b), uint32(words[7 * LANES + n]), 0x676F02D9, 14)
        b = _step(b, c, _g(c, d, a), uint32(words[12 * LANES + n]), 0x8D2A4C8A, 20)
        a = _step(a, b, _h(b, c, d), uint32(words[5 * LANES + n]), 0xFFFA3942, 4)
        d = _step(d, a, _h(a, b, c), uint32(words[8 * LANES + n]), 0x8771F681, 11)
        c = _step(c, d, _h(d, a, b), uint32(words[11 * LANES + n]), 0x6D9D6122, 16)
        b = _step(b, c, _h(c, d, a), uint32(words[14 * LANES + n]), 0xFDE5380C, 23)
        a = _step(a, b, _h(b, c, d), uint32(words[1 * LANES + n]), 0xA4BEEA44, 4)
        d = _step(d, a, _h(a, b, c), uint32(words[4 * LANES + n]), 0x4BDECFA9, 11)
        c = _step(c, d, _h(d, a, b), uint32(words[7 * LANES + n]), 0xF6BB4B60, 16)
        b = _step(b, c, _h(c, d, a), uint32(words[10 * LANES + n]), 0xBEBFBC70, 23)
        a = _step(a, b, _h(b, c, d), uint32(words[13 * LANES + n]), 0x289B7EC6, 4)
        d = _step(d, a, _h(a, b, c), uint32(words[0 * LANES + n]), 0xEAA127FA, 11)
        c = _step(c, d, _h(d, a, b), uint32(words[3 * LANES + n]), 0xD4EF3085, 16)
        b = _step(b, c, _h(c, d, a), uint32(words[6 * LANES + n]), 0x04881D05, 23)
        a = _step(a, b, _h(b, c, d), uint32(words[9 * LANES + n]), 0xD9D4D039, 4)
        d = _step(d, a, _h(a, b, c), uint32(words[12 * LANES + n]), 0xE6DB99E5, 11)
        c = _step(c, d, _h(d, a, b), uint32(words[15 * LANES + n]), 0x1FA27CF8, 16)
        b = _step(b, c, _h(c, d, a), uint32(words[2 * LANES + n]), 0xC4AC5665, 23)
        a = _step(a, b, _i(b, c, d), uint32(words[0 * LANES + n]), 0xF4292244, 6)
        d = _step(d, a, _i(a, b, c), uint32(words[7 * LANES + n]), 0x432AFF97, 10)
        c = _step(c, d, _i(d, a, b), uint32(words[14 * LANES + n]), 0xAB9423A7, 15)
        b = _step(b, c, _i(c, d, a), uint32(words[5 * LANES + n]), 0xFC93A039, 21)
        a = _step(a, b, _i(b, c, d), uint32(words[12 * LANES + n]), 0x655B59C3, 6)
        d = _step(d, a, _i(a, b, c), uint32(words[3 * LANES + n]), 0x8F0CCC92, 10)
        c = _step(c, d, _i(d, a, b), uint32(words[10 * LANES + n]), 0xFFEFF47D, 15)
        b = _step(b, c, _i(c, d, a), uint32(words[1 * LANES + n]), 0x85845DD1, 21)
        a = _step(a, b, _i(b, c, d), uint32(words[8 * LANES + n]), 0x6FA87E4F, 6)
        d = _step(d, a, _i(a, b, c), uint32(words[15 * LANES + n]), 0xFE2CE6E0, 10)
        c = _step(c, d, _i(d, a, b), uint32(words[6 * LANES + n]), 0xA3014314, 15)
        b = _step(b, c, _i(c, d, a), uint32(words[13 * LANES + n]), 0x4E0811A1, 21)
        a = _step(a, b, _i(b, c, d), uint32(words[4 * LANES + n]), 0xF7537E82, 6)
        d = _step(d, a, _i(a, b, c), uint32(words[11 * LANES + n]), 0xBD3AF235, 10)
        c = _step(c, d, _i(d, a, b), uint32(words[2 * LANES + n]), 0x2AD7D2BB, 15)
        b = _step(b, c, _i(c, d, a), uint32(words[9 * LANES + n]), 0xEB86D391, 21)
        state[n] = uint32(state[n] + a)
        state[LANES + n] = uint32(state[LANES + n] + b)
        state[2 * LANES + n] = uint32(state[2 * LANES + n] + c)
        state[3 * LANES + n] = uint32(state[3 * LANES + n] + d)


@inner
def _begin(row: I64, n: Int, string: Int, start: Int, size: Int, tails: U8, state: U32) -> None:
    """Give a string to a lane, with its end in `tails`."""
    row[STRING], row[ADDRESS], row[BLOCKS] = string, start, size // _BLOCK
    left = size % _BLOCK
    row[TAIL_BLOCKS] = 1 if left < _BLOCK - 8 else 2
    tail, end = 2 * _BLOCK * n, row[TAIL_BLOCKS] * _BLOCK
    row[TAIL] = tails.ctypes.data + tail
    for i in range(end):
        tails[tail + i] = 0
    for i in range(left):
        tails[tail + i] = load8(start + size - left + i)
    tails[tail + left] = 0x80
    for i in range(8):
        tails[tail + end - 8 + i] = (size * 8 >> 8 * i) & 0xFF
    for k in range(4):
        state[k * LANES + n] = _BEGIN[k]


@kernel
def digests(
    starts: I64, sizes: I64, out: U8Rows, words: U32, state: U32, tails: U8, lanes: I64Rows
) -> None:
    """Write the MD5 of each string, by its address and size, to a row of `out`.

    Room: 16 * LANES words, 4 * LANES of state, 128 * LANES bytes of tails, LANES lanes.
    """
    following = int64(0)
    lanes[:, STRING] = -1
    while True:
        busy = 0
        for n in range(LANES):
            row = lanes[n]
            if row[STRING] >= 0 and row[BLOCKS] == 0 and row[TAIL_BLOCKS] == 0:
                for k in range(4):
                    for i in range(4):
                        out[row[STRING], 4 * k + i] = (int64(state[k * LANES + n]) >> 8 * i) & 0xFF
                row[STRING] = -1
            if row[STRING] < 0:
                if following == starts.size:
                    continue
                _begin(row, n, following, starts[following], sizes[following], tails, state)
                following += 1
            busy += 1
            if row[BLOCKS] > 0:
                block = row[ADDRESS]
                row[ADDRESS] += _BLOCK
                row[BLOCKS] -= 1
            else:
                block = row[TAIL]
                row[TAIL] += _BLOCK
                row[TAIL_BLOCKS] -= 1
            for k in range(16):
                words[k * LANES + n] = load32(block + 4 * k)
        if busy == 0:
            return
        _add_blocks(words, state)
