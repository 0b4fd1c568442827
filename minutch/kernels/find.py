"""Kernels that find the records of a SequenceFile, and the strings in them.

    record   := int length of key and value | int length of key | key | value
    marker   := int -1 | 16 bytes sync
    key      := VInt length | bytes                         (Text)

What they can't make sense of they report by a count that falls short; the caller then reads record by record, which
names the error.
"""

from __future__ import annotations

import numpy as np

from minutch.kernels.memory import compare, int_at, vint_at, word_at
from minutch.kernels.native import I32, I64, U8, U64, Bool, Int, Views, kernel, load32, string_at

MARKER_SIZE = 20


@kernel
def walk(buf: U8, start: Int, end: Int, sync: U8, key_at: I64, key_len: I32, value_at: I64, value_len: I32) -> Int:
    """Find the records with Text keys between two offsets, `end` being that of a marker or the file's end.

    Fills the arrays (key_at: where the URL starts, after its length). Returns how many there are: -1 if the bytes make
    no sense, -2 if the arrays are too short.
    """
    n = 0
    at = start
    while at < end:
        if at + 8 > end:
            return -1
        length = int_at(buf, at)
        if length == -1:
            if at + MARKER_SIZE > end:
                return -1
            for i in range(16):
                if buf[at + 4 + i] != sync[i]:
                    return -1
            at += MARKER_SIZE
            continue
        klen = int_at(buf, at + 4)
        after = at + 8 + length
        if klen < 1 or klen > length or after > end:
            return -1
        size, text = vint_at(buf, at + 8, end)
        if size < 0 or text + size != at + 8 + klen:
            return -1
        if n == len(key_at):
            return -2
        key_at[n] = text
        key_len[n] = size
        value_at[n] = at + 8 + klen
        value_len[n] = length - klen
        n += 1
        at = after
    return n


@kernel
def extent(at: I64, length: I32, least: Int, found: I64) -> None:
    """Where the strings of at least `least` bytes begin and end altogether, and how many they are, into `found`."""
    found[:] = 0
    for i in range(len(at)):
        if length[i] >= least:
            if found[2] == 0 or at[i] < found[0]:
                found[0] = at[i]
            found[1] = max(found[1], at[i] + length[i])
            found[2] += 1


@kernel
def fill_views(buf: U8, at: I64, length: I32, least: Int, base: Int, views: Views, valid: U8) -> None:
    """Views (see columns_arrow) of strings at offsets `at` of `buf`; their buffer, number 0, begins at `base`.

    Strings shorter than `least` are empty; the others set their bit in the bitmap `valid`, where that has room.
    """
    source = np.int64(buf.ctypes.data)
    for i in range(len(at)):
        size = length[i]
        start = at[i]
        if size < least or size == 0:
            views[i, 0] = views[i, 1] = views[i, 2] = views[i, 3] = 0
        elif size > 12:
            views[i, 0] = size
            views[i, 1] = np.uint32(load32(source + start))
            views[i, 2] = 0
            views[i, 3] = np.uint32(start - base)
        else:
            views[i, 0] = size
            views[i, 1] = word_at(buf, start, size)
            views[i, 2] = word_at(buf, start + 4, size - 4)
            views[i, 3] = word_at(buf, start + 8, size - 8)
        if size >= least and len(valid):
            valid[i >> 3] |= np.uint8(1 << (i & 7))


@kernel
def running_sum(length: I32, at: I64) -> Int:
    """The offsets of strings that lie one after the other; returns the offset after the last."""
    total = np.int64(0)
    for i in range(len(length)):
        at[i] = total
        total += length[i]
    return total


@kernel
def vints(buf: U8, values: I32) -> Bool:
    """As many VInts that are not negative as `values` holds; False unless they use up `buf`."""
    at = np.int64(0)
    for i in range(len(values)):
        value, at = vint_at(buf, at, len(buf))
        if value < 0:
            return False
        values[i] = value
    return at == len(buf)


@kernel
def strip_lengths(buf: U8, at: I64, length: I32) -> Bool:
    """Turn the places of serialized Texts into the places of their bytes; False if one is not a Text."""
    for i in range(len(at)):
        size, start = vint_at(buf, at[i], at[i] + length[i])
        if size < 0 or start + size != at[i] + length[i]:
            return False
        at[i] = start
        length[i] = size
    return True


@kernel
def string_places(views: Views, addresses: U64, at: I64, length: I32) -> None:
    """The address and length of each string of a column."""
    for i in range(len(views)):
        at[i] = string_at(views, addresses, i)
        length[i] = views[i, 0]


@kernel
def out_of_order(views: Views, addresses: U64) -> Int:
    """The first string of a column that is less than the one before it, byte by byte; -1 if they ascend."""
    for i in range(1, len(views)):
        a, b = string_at(views, addresses, i - 1), string_at(views, addresses, i)
        if compare(a, np.int64(views[i - 1, 0]), b, np.int64(views[i, 0])) > 0:
            return i
    return -1
