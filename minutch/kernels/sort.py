"""Kernels that order byte strings: a stable sort by URL.

The sort goes over the strings eight bytes at a time. The rows of a range share everything before
its depth; they are sorted by the next eight bytes as one number, and each run of equal numbers
becomes a range at the next depth. So a prefix that many URLs share is looked at once for each of
them, not once for each comparison.

A row on its way is an entry of 24 bytes:  word u64 | address of the string u64 | row u32 | length
of the string u32. Kernels reach the entries by address: arrays that are handed from one function to
another would be counted.
"""

from __future__ import annotations

import numpy as np

from minutch.kernels.memory import (
    byte_swap,
    compare,
    copy_bytes,
    load8,
    load32,
    load64,
    prefetch,
    scratch64,
    store32,
    store64,
)
from minutch.kernels.native import (
    I32,
    I64,
    U8,
    U32,
    U64,
    Int,
    Views,
    Word,
    inlined,
    inner,
    int64,
    kernel,
    string_at,
    uint32,
    uint64,
)

ENTRY = 24
ROOM = 2 * ENTRY + 4  # bytes of memory for each row, and one more, that `sort_entries` needs
# Bytes of a range on the stack: begin, end, depth, whether its words are of that depth.
_RANGE = 32
INLINE = 12  # bytes of the strings that stand in their view
_PLACE, _ROW, _SIZE = 8, 16, 20  # offsets in an entry
_SPREAD_FROM = 256  # entries from which a range is spread over buckets
_INSERTION_TO = 16  # entries up to which a range is sorted by insertion
_COMPARE_TO = 8  # entries up to which strings are compared whole
_AHEAD = 12  # rows whose strings are on their way to the cache


@inner
def word_of(at: Int, size: Int, depth: Int) -> Word:
    """Eight bytes from `depth` of the string at `at` as a number, zeros beyond its end."""
    left = size - depth
    if left >= 8:
        return byte_swap(load64(at + depth))
    word = uint64(0)
    for k in range(left):
        word |= uint64(load8(at + depth + k)) << uint64(56 - 8 * k)
    return word


@inlined
def move(source: Int, target: Int) -> None:
    """Copy an entry."""
    store64(target, int64(load64(source)))
    store64(target + 8, int64(load64(source + 8)))
    store64(target + 16, int64(load64(source + 16)))


@inner
def before(a: Int, b: Int) -> Int:
    """Tell whether entry `a` comes before `b`: by word, then by row, so that the sort is stable."""
    x, y = load64(a), load64(b)
    return x < y or (x == y and load32(a + _ROW) < load32(b + _ROW))


@inner
def swap(a: Int, b: Int) -> None:
    """Exchange two entries."""
    for k in range(0, ENTRY, 8):
        kept = int64(load64(a + k))
        store64(a + k, int64(load64(b + k)))
        store64(b + k, kept)


@kernel
def sort_entries(views: Views, addresses: U64, order: U32, memory: U8) -> Int:
    """Do the same as `sort_order`, in `memory` of ROOM bytes for each row and one more.

    It has the entries, as many to spare, and a stack of ranges that are still to be sorted: they
    share no row, and only those with more than `_COMPARE_TO` are put there. Leaves the entries at
    its front, in order, for `pack_entries`; returns how many bytes their strings have.
    """
    n = len(order)
    total = int64(0)
    entries = int64(memory.ctypes.data)
    spare = entries + (n + 1) * ENTRY  # the last entry of `spare` is a place to put one aside
    for i in range(n):
        entry = entries + i * ENTRY
        store64(entry + _PLACE, string_at(views, addresses, int64(order[i])))
        store32(entry + _ROW, int64(order[i]))
        store32(entry + _SIZE, int64(views[order[i], 0]))
        total += int64(views[order[i], 0])
    aside: Int = spare + n * ENTRY
    offsets = scratch64(257)  # starts of 256 buckets, and the end
    starts = int64(offsets.ctypes.data)
    stack = aside + ENTRY
    top = put_range(stack, entries, entries + n * ENTRY, int64(0), int64(0), aside)
    # Each range is sorted by its eight bytes; what these leave open is pushed again, deeper.
    while top > stack:
        top -= _RANGE
        low: Int = int64(load64(top))
        high: Int = int64(load64(top + 8))
        depth, loaded = int64(load64(top + 16)), int64(load64(top + 24))
        differing: Word = uint64(0)
        for at in range(low, high, ENTRY):
            if not loaded:
                # Strings lie anywhere in memory, so fetch those of the entries to come.
                prefetch(int64(load64(min(at + _AHEAD * ENTRY, high - ENTRY) + _PLACE)) + depth)
                place, length = int64(load64(at + _PLACE)), int64(load32(at + _SIZE))
                store64(at, int64(word_of(place, length, depth)))
            differing |= load64(at) ^ load64(low)
        # A long range: one bucket per value of the first byte that differs. Its words stay valid.
        if differing and high - low >= _SPREAD_FROM * ENTRY:
            shift: Word = uint64(56)
            while (differing >> shift) & uint64(0xFF) == uint64(0):
                shift -= uint64(8)
            spread(low, high, spare, shift, starts)
            for slot in range(starts, starts + 256 * 8, 8):
                first, end = low + int64(load64(slot)), low + int64(load64(slot + 8))
                top = put_range(top, first, end, depth, int64(1), aside)
            continue
        # A short range: by whole words.
        if differing:
            quick_sort(low, high - ENTRY, aside)
        start = low
        # Runs of equal words go on the stack, eight bytes deeper.
        while start < high:
            end = start + ENTRY
            while end < high and load64(end) == load64(start):
                end += ENTRY
            if end - start > ENTRY:
                # Zeros may be padding, or bytes of a longer string.
                rest = ended_first(start, end, depth + 8, spare)
                top = put_range(top, rest, end, depth + 8, int64(0), aside)
            start = end
    for i in range(n):
        order[i] = load32(entries + i * ENTRY + _ROW)
    return total


@inner
def put_range(top: Int, low: Int, high: Int, depth: Int, loaded: Int, aside: Int) -> Int:
    """Put a range on the stack, of which it is the new top, or sort it at once if it is short;
    returns the top.
    """
    if high - low > _COMPARE_TO * ENTRY:
        store64(top, low)
        store64(top + 8, high)
        store64(top + 16, depth)
        store64(top + 24, loaded)
        return top + _RANGE
    if high - low > ENTRY:
        compare_sort(low, high, depth, aside)
    return top


@inner
def compare_sort(low: Int, high: Int, depth: Int, aside: Int) -> None:
    """Sort a short range by comparing the strings from `depth` on."""
    for at in range(low + ENTRY, high, ENTRY):
        move(at, aside)
        place, size = int64(load64(at + _PLACE)) + depth, int64(load32(at + _SIZE)) - depth
        to = at
        while to > low:
            other = int64(load64(to - ENTRY + _PLACE)) + depth
            if compare(other, int64(load32(to - ENTRY + _SIZE)) - depth, place, size) <= 0:
                break
            move(to - ENTRY, to)
            to -= ENTRY
        move(aside, to)


@inner
def ended_first(start: Int, end: Int, depth: Int, spare: Int) -> Int:
    """Move the strings that end at `depth` or before to the front, shorter ones first; returns
    where the others begin.

    All have the same bytes before `depth`, zeros where they have ended: so the shorter is the
    smaller. Those that end more than eight bytes before were set apart at an earlier depth.
    """
    at = start
    while at < end and int64(load32(at + _SIZE)) > depth:
        at += ENTRY
    if at == end:
        return start
    for other in range(start, end, ENTRY):
        move(other, spare + (other - start))
    length = end - start
    to = start
    for size in range(depth - 8, depth + 1):
        for other in range(spare, spare + length, ENTRY):
            if int64(load32(other + _SIZE)) == size:
                move(other, to)
                to += ENTRY
    rest = to
    for other in range(spare, spare + length, ENTRY):
        if int64(load32(other + _SIZE)) > depth:
            move(other, to)
            to += ENTRY
    return rest


@inner
def spread(low: Int, high: Int, spare: Int, shift: Word, starts: Int) -> None:
    """Spread a range over 256 buckets by the byte of the words at `shift`, in their order.

    Leaves the offset of each bucket from `low`, and the whole length, in 257 integers at `starts`.
    """
    for slot in range(starts, starts + 257 * 8, 8):
        store64(slot, 0)
    for at in range(low, high, ENTRY):
        slot = starts + 8 * int64((load64(at) >> shift) & uint64(0xFF))
        store64(slot, int64(load64(slot)) + ENTRY)
    total = int64(0)  # counts become offsets
    for slot in range(starts, starts + 257 * 8, 8):
        size = int64(load64(slot))
        store64(slot, total)
        total += size
    # In their order, which keeps the sort stable.
    for at in range(low, high, ENTRY):
        slot = starts + 8 * int64((load64(at) >> shift) & uint64(0xFF))
        to = int64(load64(slot))
        move(at, spare + to)
        store64(slot, to + ENTRY)
    # Each bucket's end is the next one's beginning.
    for slot in range(starts + 256 * 8, starts, -8):
        store64(slot, int64(load64(slot - 8)))
    store64(starts, 0)
    copy_bytes(low, spare, high - low)


@inner
def quick_sort(low: Int, high: Int, aside: Int) -> None:
    """Sort a range, entry `high` included, by word and row."""
    while high - low > _INSERTION_TO * ENTRY:
        # Median of three: sorted input must not take quadratic time.
        middle = low + (high - low) // ENTRY // 2 * ENTRY
        if before(middle, low):
            swap(middle, low)
        if before(high, low):
            swap(high, low)
        if before(high, middle):
            swap(high, middle)
        word: Word = load64(middle)
        # The tie-breaker: no two entries are equal.
        row: Word = load32(middle + _ROW)
        i, j = low, high
        while i <= j:
            while load64(i) < word or (load64(i) == word and load32(i + _ROW) < row):
                i += ENTRY
            while load64(j) > word or (load64(j) == word and load32(j + _ROW) > row):
                j -= ENTRY
            if i <= j:
                swap(i, j)
                i += ENTRY
                j -= ENTRY
        # Recurse into the shorter side, loop over the longer: the stack stays below log n.
        if j - low < high - i:
            quick_sort(low, j, aside)
            low = i
        else:
            quick_sort(i, high, aside)
            high = j
    # What remains is short.
    for at in range(low + ENTRY, high + ENTRY, ENTRY):
        if before(at, at - ENTRY):
            move(at, aside)
            to = at
            while to > low and before(aside, to - ENTRY):
                move(to - ENTRY, to)
                to -= ENTRY
            move(aside, to)


def sort_order(views: Views, addresses: U64, order: U32) -> None:
    """Put the rows in `order` (uint32) into ascending order of their strings; equal ones come by
    row.
    """
    sort_entries(views, addresses, order, np.empty((len(order) + 1) * ROOM, np.uint8))


@kernel
def pack_entries(memory: U8, out: U8, views: Views) -> None:
    """Fill `views` (see `arrow`) with the strings of sorted entries, the longer ones copied into
    `out`.

    They lie there one after the other. A string that is the one before it shares its place.
    """
    entries, target, view = (
        int64(memory.ctypes.data),
        int64(out.ctypes.data),
        int64(views.ctypes.data),
    )
    n = len(views)
    start, end, last_size = int64(0), int64(0), int64(-1)
    for i in range(n):
        # Its first 128 bytes.
        ahead = int64(load64(entries + min(i + _AHEAD, n - 1) * ENTRY + _PLACE))
        prefetch(ahead)
        prefetch(ahead + 64)
        place, size = (
            int64(load64(entries + i * ENTRY + _PLACE)),
            int64(load32(entries + i * ENTRY + _SIZE)),
        )
        views[i, 0] = size
        if size <= INLINE:
            views[i, 1] = views[i, 2] = views[i, 3] = 0
            copy_bytes(view + 16 * i + 4, place, size)
            continue
        if size != last_size or compare(target + start, size, place, size) != 0:
            copy_bytes(target + end, place, size)
            start, last_size = end, size
            end += size
        # A long view begins with the first four bytes.
        views[i, 1] = uint32(load32(place))
        views[i, 2] = 0  # the only buffer
        views[i, 3] = uint32(start)


@kernel
def pack(views: Views, addresses: U64, order: U32, out: U8, at: I64, length: I32) -> Int:
    """Copy the strings of the rows in `order` into `out`, one after the other; returns the bytes
    used.

    Fills their offsets and lengths. A string that is the one before it shares its place.
    """
    target = int64(out.ctypes.data)
    end = int64(0)
    n = len(order)
    for i in range(n):
        # The view first: it says where the string is.
        if i + 2 * _AHEAD < n:
            prefetch(int64(views.ctypes.data) + 16 * int64(order[i + 2 * _AHEAD]))
        if i + _AHEAD < n:
            ahead = string_at(views, addresses, int64(order[i + _AHEAD]))
            prefetch(ahead)
            prefetch(ahead + 64)
        row = int64(order[i])
        size = int64(views[row, 0])
        place = string_at(views, addresses, row)
        length[i] = size
        if (
            i
            and size == int64(length[i - 1])
            and compare(target + at[i - 1], size, place, size) == 0
        ):
            at[i] = at[i - 1]
            continue
        at[i] = end
        copy_bytes(target + end, place, size)
        end += size
    return end
