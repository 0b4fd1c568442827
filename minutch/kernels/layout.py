"""Kernels over the records of a SequenceFile: find them, lay them out, check and make checksums, inflate and deflate.

    record   := int length of key and value | int length of key | key | value
    marker   := int -1 | 16 bytes sync
    key      := VInt length | bytes                         (Text)

Kernels hold no policy and raise nothing: what they can't make sense of they report by a count that falls short, and the
caller turns to the codec for single records, which knows the right error.
"""

from __future__ import annotations

import numpy as np

from minutch.kernels.native import (
    Array,
    Bool,
    Int,
    call7,
    copy_bytes,
    inlined,
    kernel,
    load8,
    load32,
    load64,
    string_at,
)

MARKER_SIZE = 20
_POWERS_OF_31 = np.array([31**k for k in range(9)], np.uint64)


@inlined
def int_at(buf: Array, at: Int) -> Int:
    """The big-endian int at `at`."""
    return np.int64(
        np.int32(
            (np.uint32(buf[at]) << 24) | (np.uint32(buf[at + 1]) << 16) | (np.uint32(buf[at + 2]) << 8) | buf[at + 3]
        )
    )


@inlined
def put_int(buf: Array, at: Int, value: Int) -> None:
    """Store a big-endian int."""
    buf[at] = value >> 24
    buf[at + 1] = value >> 16
    buf[at + 2] = value >> 8
    buf[at + 3] = value


@kernel
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
def put_vint(buf: Array, at: Int, value: Int) -> Int:
    """Store a VInt that is not negative; returns the offset after it."""
    size = vint_size(value)
    if size == 1:
        buf[at] = value
        return at + 1
    buf[at] = 0x91 - size  # -112 - the number of bytes that follow
    for i in range(1, size):
        buf[at + i] = value >> (8 * (size - 1 - i))
    return at + size


@kernel
def vint_at(buf: Array, at: Int, end: Int) -> tuple[Int, Int]:
    """The VInt at `at` and the offset after it; (-1, at) if it is negative or goes beyond `end`."""
    if at >= end:
        return -1, at
    first = np.int64(np.int8(buf[at]))
    if first >= 0:
        return first, at + 1
    size = -112 - first
    if size < 1 or size > 4 or at + 1 + size > end:
        return -1, at
    value = np.int64(0)
    for i in range(size):
        value = value << 8 | buf[at + 1 + i]
    return (value, at + 1 + size) if value <= 0x7FFF_FFFF else (-1, at)


@kernel
def walk(
    buf: Array, start: Int, end: Int, sync: Array, key_at: Array, key_len: Array, value_at: Array, value_len: Array
) -> Int:
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
def extent(at: Array, length: Array, least: Int) -> tuple[Int, Int, Int]:
    """Where the strings of at least `least` bytes begin and end altogether, and how many they are."""
    low, high, count = np.int64(0), np.int64(0), 0
    for i in range(len(at)):
        if length[i] >= least:
            if count == 0 or at[i] < low:
                low = at[i]
            high = max(high, at[i] + length[i])
            count += 1
    return low, high, count


@kernel
def fill_views(buf: Array, at: Array, length: Array, least: Int, base: Int, views: Array, valid: Array) -> None:
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


@inlined
def word_at(buf: Array, at: Int, size: Int) -> Int:
    """Up to `size` bytes, at most 4, as a little-endian word, padded with zeros."""
    word = np.uint32(0)
    for k in range(min(size, 4)):
        word |= np.uint32(buf[at + k]) << np.uint32(8 * k)
    return word


@kernel
def running_sum(length: Array, at: Array) -> Int:
    """The offsets of strings that lie one after the other; returns the offset after the last."""
    total = np.int64(0)
    for i in range(len(length)):
        at[i] = total
        total += length[i]
    return total


@kernel
def vints(buf: Array, values: Array) -> Bool:
    """As many VInts that are not negative as `values` holds; False unless they use up `buf`."""
    at = np.int64(0)
    for i in range(len(values)):
        value, at = vint_at(buf, at, len(buf))
        if value < 0:
            return False
        values[i] = value
    return at == len(buf)


@kernel
def strip_lengths(buf: Array, at: Array, length: Array) -> Bool:
    """Turn the places of serialized Texts into the places of their bytes; False if one is not a Text."""
    for i in range(len(at)):
        size, start = vint_at(buf, at[i], at[i] + length[i])
        if size < 0 or start + size != at[i] + length[i]:
            return False
        at[i] = start
        length[i] = size
    return True


@kernel
def inflate(
    buf: Array,
    at: Array,
    length: Array,
    first: Int,
    out: Array,
    out_at: Array,
    out_len: Array,
    decompressor: Int,
    function: Int,
) -> Int:
    """Inflate zlib streams from number `first` on into `out`, one after the other.

    A stream with the bytes of the one before shares its output: the links of a page are often alike. Returns the
    number of the stream for which there was no room, or how many there are; -1 if one is damaged.
    """
    counts = np.zeros(2, np.int64)
    source = np.int64(buf.ctypes.data)
    target = np.int64(out.ctypes.data)
    count_at = np.int64(counts.ctypes.data)
    end = out_at[first - 1] + out_len[first - 1] if first else np.int64(0)
    for i in range(first, len(at)):
        if i and length[i] == length[i - 1]:
            size = np.int64(length[i])
            if compare(source + at[i], size, source + at[i - 1], size) == 0:
                out_at[i], out_len[i] = out_at[i - 1], out_len[i - 1]
                continue
        room = len(out) - end
        code = (
            call7(function, decompressor, source + at[i], length[i], target + end, room, count_at, count_at + 8)
            & 0xFFFF_FFFF
        )
        if code == 3:
            return i
        if code != 0 or counts[0] != length[i]:
            return -1
        out_at[i] = end
        out_len[i] = counts[1]
        end += counts[1]
    return len(at)


@kernel
def first_bad_sum(buf: Array, first: Int, last: Int, size: Int, sums: Array, crc32: Int) -> Int:
    """The first of the chunks `first` to `last` - 1 whose CRC is not the big-endian one in `sums`; -1 if all are."""
    data = np.int64(buf.ctypes.data)
    total = len(buf)
    for i in range(first, last):
        at = i * size
        count = min(size, total - at)
        found = call7(crc32, 0, data + at, count, 0, 0, 0, 0) & 0xFFFF_FFFF
        if found != int_at(sums, 4 * i) & 0xFFFF_FFFF:
            return i
    return -1


@kernel
def make_sums(buf: Array, start: Int, end: Int, size: Int, sums: Array, crc32: Int) -> None:
    """The big-endian CRCs of the chunks of `size` bytes of buf[start:end], the last one may be shorter."""
    data = np.int64(buf.ctypes.data)
    n = 0
    while start < end:
        count = min(size, end - start)
        put_int(sums, 4 * n, call7(crc32, 0, data + start, count, 0, 0, 0, 0) & 0xFFFF_FFFF)
        start += count
        n += 1


@kernel
def out_of_order(views: Array, addresses: Array) -> Int:
    """The first string of a column that is less than the one before it, byte by byte; -1 if they ascend."""
    for i in range(1, len(views)):
        a, b = string_at(views, addresses, i - 1), string_at(views, addresses, i)
        if compare(a, np.int64(views[i - 1, 0]), b, np.int64(views[i, 0])) > 0:
            return i
    return -1


@kernel
def compare(a: Int, a_size: Int, b: Int, b_size: Int) -> Int:
    """Negative, 0 or positive as the bytes at address `a` come before, equal or come after those at `b`."""
    size = min(a_size, b_size)
    at = np.int64(0)
    while at + 8 <= size:
        if load64(a + at) != load64(b + at):
            break
        at += 8
    while at < size:
        x, y = load8(a + at), load8(b + at)
        if x != y:
            return np.int64(x) - np.int64(y)
        at += 1
    return a_size - b_size


@kernel
def string_places(views: Array, addresses: Array, at: Array, length: Array) -> None:
    """The address and length of each string of a column."""
    for i in range(len(views)):
        at[i] = string_at(views, addresses, i)
        length[i] = views[i, 0]


@kernel
def put_in(
    key_at: Array,
    key_len: Array,
    value_at: Array,
    value_len: Array,
    more_key_at: Array,
    more_key_len: Array,
    more_value_at: Array,
    more_value_len: Array,
    instead: Array,
    before: Array,
    out_key_at: Array,
    out_key_len: Array,
    out_value_at: Array,
    out_value_len: Array,
) -> None:
    """Put more records between those of a table: record i before row before[i], which it replaces if instead[i] >= 0.

    `before` ascends; records come as the places of their keys and values, the table's and the result's alike.
    """
    row, n = np.int64(0), np.int64(0)
    for i in range(len(before) + 1):
        end = before[i] if i < len(before) else len(key_at)
        while row < end:
            out_key_at[n], out_key_len[n] = key_at[row], key_len[row]
            out_value_at[n], out_value_len[n] = value_at[row], value_len[row]
            n += 1
            row += 1
        if i < len(before):
            out_key_at[n], out_key_len[n] = more_key_at[i], more_key_len[i]
            out_value_at[n], out_value_len[n] = more_value_at[i], more_value_len[i]
            n += 1
            if instead[i] >= 0:
                row += 1


ROW, USED, POSITION, LAST_SYNC, COUNT, INDEX_DUE, INDEX_POSITION, INDEXED, DESCENT = range(9)
"""Fields of the state of `lay_out`."""


@kernel
def lay_out(
    out: Array,
    state: Array,
    marker: Array,
    sync_interval: Int,
    index_interval: Int,
    key_at: Array,
    key_len: Array,
    value_at: Array,
    value_len: Array,
    index_row: Array,
    index_position: Array,
) -> None:
    """Write records with Text keys into `out` as far as there is room, markers where they are due.

    Records come by the addresses and lengths of their keys and values. Goes on at row state[ROW] and byte state[USED]
    of `out`, which stands at state[POSITION] of the file. If index_interval > 0 (a MapFile), fills in the rows and
    positions that the index gets, and stops at a row whose key is less than the one before: state[DESCENT].
    """
    row, used = state[ROW], state[USED]
    shift = state[POSITION] - used
    last_sync, count, due = state[LAST_SYNC], state[COUNT], state[INDEX_DUE]
    last_indexed, indexed = state[INDEX_POSITION], state[INDEXED]
    target = np.int64(out.ctypes.data)
    room = np.int64(len(out)) - MARKER_SIZE
    while row < len(key_at):
        key, key_size = key_at[row], np.int64(key_len[row])
        value, value_size = value_at[row], np.int64(value_len[row])
        prefix = vint_size(key_size)
        if used + 8 + prefix + key_size + value_size > room:
            break
        if index_interval and row and compare(key_at[row - 1], np.int64(key_len[row - 1]), key, key_size) > 0:
            state[DESCENT] = row
            break
        position = used + shift
        if index_interval and count >= due and position > last_indexed:
            index_row[indexed] = row
            index_position[indexed] = position
            indexed += 1
            due = count + index_interval
            last_indexed = position
        if position >= last_sync + sync_interval:
            for i in range(MARKER_SIZE):
                out[used + i] = marker[i]
            used += MARKER_SIZE
            last_sync = used + shift
        put_int(out, used, prefix + key_size + value_size)
        put_int(out, used + 4, prefix + key_size)
        used = put_vint(out, used + 8, key_size)
        copy_bytes(target + used, key, key_size)
        used += key_size
        copy_bytes(target + used, value, value_size)
        used += value_size
        count += 1
        row += 1
    state[ROW], state[USED], state[POSITION] = row, used, used + shift
    state[LAST_SYNC], state[COUNT], state[INDEX_DUE] = last_sync, count, due
    state[INDEX_POSITION], state[INDEXED] = last_indexed, indexed


@kernel
def hash_ascii(at: Int, size: Int, value: Int) -> tuple[Int, Int]:
    """Go on with Java's hash code (its low 32 bits count) over a string, eight bytes at a time while all are ASCII.

    Returns the code and how many bytes are in it.
    """
    done = np.int64(0)
    while done + 8 <= size:
        word = load64(at + done)
        if word & np.uint64(0x8080_8080_8080_8080):
            break
        value *= _POWERS_OF_31[8]
        for k in range(8):
            value += (word >> np.uint64(8 * k) & np.uint64(0xFF)) * _POWERS_OF_31[7 - k]
        done += 8
    return value, done


@kernel
def partitions(views: Array, addresses: Array, parts: Int, out: Array) -> None:
    """The part of each key: (Text.hashCode & 0x7fffffff) % parts."""
    for i in range(len(views)):
        at, size = string_at(views, addresses, i), np.int64(views[i, 0])
        h, done = hash_ascii(at, size, np.uint64(1))
        for k in range(done, size):
            h = np.uint64(31) * h + np.uint64(np.int64(np.int8(load8(at + k))))
        out[i] = (h & np.uint64(0x7FFF_FFFF)) % np.uint64(parts)
