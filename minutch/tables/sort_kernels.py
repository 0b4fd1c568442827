"""Kernels that order byte strings: a stable sort by URL, and the places where sorted columns meet.

The sort goes over the strings eight bytes at a time. The rows of a range share everything before its depth; they are
sorted by the next eight bytes as one number, and each run of equal numbers becomes a range at the next depth. So a
prefix that many URLs share is looked at once for each of them, not once for each comparison.
"""

from __future__ import annotations

import numpy as np

from minutch.formats.columns_kernels import compare
from minutch.formats.columns_native import Array, Int, copy_bytes, kernel, load8, load64, string_at

_RADIX_FROM = 2048
_INSERTION_TO = 24
_COMPARE_TO = 8


@kernel
def byte_swap(value: Int) -> Int:
    """A little-endian word as a number whose order is that of its bytes."""
    bytes_, pairs = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0000FFFF0000FFFF)
    value = (value & bytes_) << np.uint64(8) | (value >> np.uint64(8)) & bytes_
    value = (value & pairs) << np.uint64(16) | (value >> np.uint64(16)) & pairs
    return value << np.uint64(32) | value >> np.uint64(32)


@kernel
def word_of(at: Int, size: Int, depth: Int) -> Int:
    """Eight bytes from `depth` of the string at `at` as a number, zeros beyond its end."""
    left = size - depth
    if left >= 8:
        return byte_swap(load64(at + depth))
    word = np.uint64(0)
    for k in range(left):
        word |= np.uint64(load8(at + depth + k)) << np.uint64(56 - 8 * k)
    return word


@kernel
def sort_order(views: Array, addresses: Array, order: Array) -> None:
    """Put the rows in `order` (uint32) into ascending order of their strings; equal ones come by row."""
    n = len(order)
    places = np.empty(n, np.int64)
    sizes = np.empty(n, np.int32)
    for i in range(n):
        places[i] = string_at(views, addresses, np.int64(order[i]))
        sizes[i] = views[order[i], 0]
    words = np.empty(n, np.uint64)
    spare = (np.empty(n, np.uint64), np.empty(n, np.uint32), np.empty(n, np.int64), np.empty(n, np.int32))
    rows = (words, order, places, sizes)
    stack = np.zeros(
        (1024, 4), np.int64
    )  # ranges: first place, last place + 1, depth, whether `words` are of that depth
    stack[0, 1] = n
    top: Int = 0
    while top >= 0:
        low, high, depth, loaded = stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3]
        top -= 1
        if high - low <= _COMPARE_TO:
            compare_sort(order, places, sizes, low, high, depth)
            continue
        if top + 512 > len(stack):
            bigger = np.zeros((2 * len(stack), 4), np.int64)
            bigger[: len(stack)] = stack
            stack = bigger
        if not loaded:
            for i in range(low, high):
                words[i] = word_of(places[i], np.int64(sizes[i]), depth)
        differing = np.uint64(0)
        for i in range(low, high):
            differing |= words[i] ^ words[low]
        if differing and high - low >= _RADIX_FROM:
            top = spread(rows, spare, stack, top, low, high, depth, differing)
            continue
        if differing:
            quick_sort(words, order, places, sizes, low, high - 1)
        top = push_runs(rows, spare, stack, top, low, high, depth)


@kernel
def push_runs(rows: Array, spare: Array, stack: Array, top: Int, low: Int, high: Int, depth: Int) -> Int:
    """Put the runs of equal words of a sorted range on the stack, as ranges at the next depth."""
    words = rows[0]
    start = low
    while start < high:
        end = start + 1
        while end < high and words[end] == words[start]:
            end += 1
        if end - start > 1:
            rest = ended_first(rows, spare, start, end, depth + 8)
            if end - rest > 1:
                if end - rest <= _COMPARE_TO:
                    compare_sort(rows[1], rows[2], rows[3], rest, end, depth + 8)
                else:
                    top += 1
                    stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3] = rest, end, depth + 8, 0
        start = end
    return top


@kernel
def compare_sort(order: Array, places: Array, sizes: Array, low: Int, high: Int, depth: Int) -> None:
    """Sort a short range by comparing the strings from `depth` on."""
    for i in range(low + 1, high):
        row, place, size = order[i], places[i], sizes[i]
        at = i
        while (
            at > low
            and compare(places[at - 1] + depth, np.int64(sizes[at - 1]) - depth, place + depth, np.int64(size) - depth)
            > 0
        ):
            order[at], places[at], sizes[at] = order[at - 1], places[at - 1], sizes[at - 1]
            at -= 1
        order[at], places[at], sizes[at] = row, place, size


@kernel
def ended_first(rows: Array, spare: Array, start: Int, end: Int, depth: Int) -> Int:
    """Move the strings that end before `depth` to the front, shorter ones first; returns where the others begin.

    All have the same bytes before `depth`, zeros where they have ended: so the shorter is the smaller.
    """
    _, order, places, sizes = rows
    _, spare_order, spare_places, spare_sizes = spare
    ended = 0
    for i in range(start, end):
        ended += sizes[i] <= depth
    if ended == 0:
        return start
    at, rest = start, 0
    for i in range(start, end):
        row, place, size = order[i], places[i], sizes[i]
        if size <= depth:
            to = at
            while to > start and sizes[to - 1] > size:
                order[to], places[to], sizes[to] = order[to - 1], places[to - 1], sizes[to - 1]
                to -= 1
            order[to], places[to], sizes[to] = row, place, size
            at += 1
        else:
            spare_order[rest], spare_places[rest], spare_sizes[rest] = row, place, size
            rest += 1
    for i in range(rest):
        order[at + i], places[at + i], sizes[at + i] = spare_order[i], spare_places[i], spare_sizes[i]
    return at


@kernel
def spread(rows: Array, spare: Array, stack: Array, top: Int, low: Int, high: Int, depth: Int, differing: Int) -> Int:
    """Spread a range over buckets by the first byte that differs, and put the buckets on the stack."""
    words, order, places, sizes = rows
    spare_words, spare_order, spare_places, spare_sizes = spare
    shift: Int = np.uint64(56)
    while (differing >> shift) & np.uint64(0xFF) == np.uint64(0):
        shift -= np.uint64(8)
    starts = np.zeros(257, np.int64)
    for i in range(low, high):
        starts[np.int64((words[i] >> shift) & np.uint64(0xFF)) + 1] += 1
    starts[0] = np.int64(low)
    for number in range(256):
        starts[number + 1] += starts[number]
        if starts[number + 1] - starts[number] > 1:
            top += 1
            stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3] = starts[number], starts[number + 1], depth, 1
    for i in range(low, high):
        digit: Int = np.int64((words[i] >> shift) & np.uint64(0xFF))
        at = starts[digit]
        starts[digit] += 1
        spare_words[at], spare_order[at] = words[i], order[i]
        spare_places[at], spare_sizes[at] = places[i], sizes[i]
    words[low:high] = spare_words[low:high]
    order[low:high] = spare_order[low:high]
    places[low:high] = spare_places[low:high]
    sizes[low:high] = spare_sizes[low:high]
    return top


@kernel
def less(words: Array, order: Array, i: Int, word: Int, row: Int) -> Int:
    """Whether place `i` comes before (word, row); rows make equal words different, so that the sort is stable."""
    return words[i] < word or (words[i] == word and order[i] < row)


@kernel
def swap(words: Array, order: Array, places: Array, sizes: Array, i: Int, j: Int) -> None:
    """Exchange two places."""
    words[i], words[j] = words[j], words[i]
    order[i], order[j] = order[j], order[i]
    places[i], places[j] = places[j], places[i]
    sizes[i], sizes[j] = sizes[j], sizes[i]


@kernel
def quick_sort(words: Array, order: Array, places: Array, sizes: Array, low: Int, high: Int) -> None:
    """Sort a range (`high` included) by (word, row)."""
    while high - low > _INSERTION_TO:
        middle = (low + high) >> 1
        for a, b in ((low, middle), (low, high), (middle, high)):
            if less(words, order, b, words[a], order[a]):
                swap(words, order, places, sizes, a, b)
        word, row = words[middle], order[middle]
        i, j = low, high
        while i <= j:
            while less(words, order, i, word, row):
                i += 1
            while words[j] > word or (words[j] == word and order[j] > row):
                j -= 1
            if i <= j:
                swap(words, order, places, sizes, i, j)
                i += 1
                j -= 1
        if j - low < high - i:
            quick_sort(words, order, places, sizes, low, j)
            low = i
        else:
            quick_sort(words, order, places, sizes, i, high)
            high = j
    for i in range(low + 1, high + 1):
        word, row, place, size = words[i], order[i], places[i], sizes[i]
        at = i
        while at > low and not less(words, order, at - 1, word, row):
            words[at], order[at] = words[at - 1], order[at - 1]
            places[at], sizes[at] = places[at - 1], sizes[at - 1]
            at -= 1
        words[at], order[at], places[at], sizes[at] = word, row, place, size


@kernel
def pack(views: Array, addresses: Array, order: Array, out: Array, at: Array, length: Array) -> None:
    """Copy the strings of the rows in `order` into `out`, one after the other; fills their offsets and lengths."""
    target = np.int64(out.ctypes.data)
    end = np.int64(0)
    for i in range(len(order)):
        row = np.int64(order[i])
        size = np.int64(views[row, 0])
        copy_bytes(target + end, string_at(views, addresses, row), size)
        at[i] = end
        length[i] = size
        end += size
