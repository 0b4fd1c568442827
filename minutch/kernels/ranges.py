"""Kernels that cut tables into ranges of keys, and that gather the strings of a range from many
tables.
"""

from __future__ import annotations

import numpy as np

from minutch.kernels.memory import compare
from minutch.kernels.native import (
    I32,
    I64,
    U8,
    U32,
    U64,
    Column,
    Int,
    Views,
    inlined,
    int64,
    kernel,
    string_at,
    uint64,
)
from minutch.kernels.primitives import copy_bytes, load8, load32, load64, prefetch, store32
from minutch.kernels.sort import INLINE, word_of

_AHEAD = 12  # rows whose strings are on their way to the cache


def group(
    keys: Column,
    borders: Column,
    parts: U32,
    buckets: I32,
    starts: I64,
    order: U32,
) -> None:
    """Put the rows of a table into buckets, in their order: `order` has their numbers, bucket b's
    from starts[b] on.

    A row's bucket (which `buckets` gets) is part * number of ranges + range. Range r has the keys
    from border r - 1 up to before border r.
    """
    words = np.empty(len(borders.views), np.uint64)
    group_by(keys, borders, words, parts, buckets, starts, order)


@kernel
def group_by(
    keys: Column,
    borders: Column,
    words: U64,
    parts: U32,
    buckets: I32,
    starts: I64,
    order: U32,
) -> None:
    """Do the same as `group`; `words` gets of each border what comes after the prefix that all
    share.
    """
    views, addresses = keys
    border_views, border_addresses = borders
    ranges = len(border_views) + 1
    starts[:] = 0
    prefix, shared = int64(0), int64(0)
    if ranges > 1:
        prefix = string_at(border_views, border_addresses, 0)
        final = string_at(border_views, border_addresses, ranges - 2)
        longest = min(border_views[0, 0], border_views[ranges - 2, 0])
        while shared < longest and load8(prefix + shared) == load8(final + shared):
            shared += 1
    for k in range(len(border_views)):
        words[k] = word_of(
            string_at(border_views, border_addresses, k), int64(border_views[k, 0]), shared
        )
    for i in range(len(views)):
        at, size = string_at(views, addresses, i), int64(views[i, 0])
        low, high = int64(0), int64(len(border_views))
        side = compare(at, min(size, shared), prefix, shared)
        if side < 0:
            high = low
        elif side > 0:
            low = high
        word = word_of(at, size, shared) if low < high else uint64(0)
        while low < high:
            middle = (low + high) >> 1
            if word != words[middle]:
                is_less = word < words[middle]
            else:
                border = string_at(border_views, border_addresses, middle)
                is_less = compare(at, size, border, int64(border_views[middle, 0])) < 0
            if is_less:
                high = middle
            else:
                low = middle + 1
        buckets[i] = parts[i] * ranges + low
        starts[buckets[i] + 1] += 1
    for bucket in range(1, len(starts)):
        starts[bucket] += starts[bucket - 1]
    for i in range(len(views)):
        order[starts[buckets[i]]] = i
        starts[buckets[i]] += 1
    for bucket in range(len(starts) - 1, 0, -1):  # each bucket's end is the next one's beginning
        starts[bucket] = starts[bucket - 1]
    starts[0] = 0


@kernel
def add_sizes(views: Views, buckets: I32, sizes: I64) -> None:
    """Add up the bytes of a column's strings by bucket."""
    for i in range(len(views)):
        sizes[buckets[i]] += views[i, 0]


@kernel
def held_bytes(views: Views) -> Int:
    """The bytes of a column's strings that do not stand in their views, of those that lie at one
    place only once.
    """
    total = int64(0)
    for i in range(len(views)):
        size = int64(views[i, 0])
        if size > INLINE and (
            i == 0 or views[i, 3] != views[i - 1, 3] or views[i, 2] != views[i - 1, 2]
        ):
            total += size
    return total


@inlined
def place_of(view: Int, addresses: Int) -> Int:
    """The address of the string of the view at an address (see `arrow.Strings`)."""
    if load32(view) <= 12:
        return view + 4
    return int64(load64(addresses + 8 * int64(load32(view + 8)))) + int64(load32(view + 12))


@kernel
def take_strings(views: I64, addresses: I64, rows: I64, counts: I64, out: U8, taken: Views) -> Int:
    """Copy strings of many tables into `out`, one after the other, and make their views there;
    returns the bytes used.

    For each table come the addresses of a column's views, of its buffers' addresses and of rows'
    numbers (uint32), and how many rows to take. A string that is the one before it shares its
    place, one that fits into its view has none.
    """
    target, view = int64(out.ctypes.data), int64(taken.ctypes.data)
    end, last_size, last_at = int64(0), int64(-1), int64(0)
    for table in range(len(counts)):
        first, buffers = int64(views[table]), int64(addresses[table])
        here, last = (
            int64(rows[table]),
            int64(rows[table]) + 4 * (int64(counts[table]) - 1),
        )
        while here <= last:
            prefetch(first + 16 * int64(load32(min(here + 8 * _AHEAD, last))))
            near = place_of(first + 16 * int64(load32(min(here + 4 * _AHEAD, last))), buffers)
            prefetch(near)
            prefetch(near + 64)
            source = first + 16 * int64(load32(here))
            size = int64(load32(source))
            copy_bytes(view, source, 16)
            if size > 12:
                place = place_of(source, buffers)
                if size != last_size or compare(target + last_at, size, place, size) != 0:
                    copy_bytes(target + end, place, size)
                    last_size, last_at = size, end
                    end += size
                store32(view + 8, 0)
                store32(view + 12, last_at)
            view += 16
            here += 4
    return end
