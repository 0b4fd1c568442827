"""Kernels over columns of keys: which strings are distinct, where two sorted columns meet, ranges
that tables are cut into, and the strings of a range gathered from many tables.
"""

from __future__ import annotations

import numpy as np

from minutch.kernels.hash import SEED, part_of, string_hash
from minutch.kernels.memory import (
    compare,
    copy_bytes,
    load8,
    load32,
    load64,
    prefetch,
    store8,
    store32,
    store64,
)
from minutch.kernels.native import (
    F32,
    I32,
    I64,
    U8,
    U32,
    U64,
    Bool,
    Int,
    StringColumn,
    Views,
    inlined,
    inner,
    int64,
    kernel,
    string_at,
    uint64,
)
from minutch.kernels.sort import INLINE, word_of


def numbered(strings: StringColumn) -> tuple[U32, U32]:
    """The first row of each distinct string, in the order in which they come, and the number of
    each row's string.
    """
    count = len(strings.views)
    # At most half of them are ever used.
    slots = np.zeros(1 << max(4, (2 * count).bit_length()), np.int32)
    hashes = np.empty(count, np.uint64)
    rows, numbers = np.empty(count, np.uint32), np.empty(count, np.uint32)
    found = number(strings.views, strings.addresses, SEED, slots, hashes, rows, numbers)
    return rows[:found], numbers


@kernel
def number(
    views: Views, addresses: U64, seed: Int, slots: I32, hashes: U64, rows: U32, numbers: U32
) -> Int:
    """Number the strings: equal ones have one number, in the order in which they come first.

    Fills `numbers` with that of each string and `rows` with the first row of each number; returns
    how many there are. `slots` are zeros, a power of two of them and more than there are strings;
    `hashes` has room for each string. `seed` as in `string_hash`.
    """
    mask = len(slots) - 1
    count = int64(0)
    for i in range(len(views)):
        size, at = int64(views[i, 0]), string_at(views, addresses, i)
        code = string_hash(at, size, seed)
        slot = int64(code) & mask
        while slots[slot]:
            known = int64(slots[slot]) - 1
            row = int64(rows[known])
            if (
                hashes[known] == code  # saves a trip to the string
                and compare(string_at(views, addresses, row), int64(views[row, 0]), at, size) == 0
            ):
                numbers[i] = known
                break
            slot = (slot + 1) & mask
        else:
            slots[slot] = count + 1
            hashes[count] = code
            rows[count] = i
            numbers[i] = count
            count += 1
    return count


@kernel
def repeats(views: Views, addresses: U64) -> Bool:
    """Tell whether a string is the same as the one before it."""
    for i in range(1, len(views)):
        size = int64(views[i, 0])
        if size != int64(views[i - 1, 0]):
            continue
        here, last = string_at(views, addresses, i), string_at(views, addresses, i - 1)
        # Neighbours of a sorted column differ at their ends, mostly.
        if size >= 8 and load64(here + size - 8) != load64(last + size - 8):
            continue
        if compare(here, size, last, size) == 0:
            return True
    return False


@kernel
def meet(
    views: Views,
    addresses: U64,
    table_views: Views,
    table_addresses: U64,
    group: I64,
    at: I64,
    before: I64,
) -> Int:
    """Number the distinct strings of a sorted column and look them up in a sorted table, in one
    walk over both.

    Fills `group` (of each string, the number), `at` (of each number, the first row of the table
    with that string, or -1) and `before` (of each number, the rows of the table with smaller
    strings). Returns how many numbers there are.
    """
    count = 0
    row = 0
    rows = len(table_views)
    for i in range(len(views)):
        here, size = string_at(views, addresses, i), int64(views[i, 0])
        if count:
            # Often the same place; see `pack` of the sort.
            last = string_at(views, addresses, i - 1)
            if last == here or compare(last, int64(views[i - 1, 0]), here, size) == 0:
                group[i] = count - 1
                continue
        # Both columns ascend, so the table's row only moves forward.
        found = -1
        while row < rows:
            order = compare(
                string_at(table_views, table_addresses, row),
                int64(table_views[row, 0]),
                here,
                size,
            )
            if order >= 0:
                if order == 0:
                    found = row
                break
            row += 1
        group[i] = count
        at[count] = found
        before[count] = row
        count += 1
    return count


def sort_runs(group: I64, values: F32, order: I64) -> None:
    """Fill `order` with the rows by group (which ascends), and within a group by descending value,
    stably.
    """
    sort_runs_in(group, values, order, np.empty(len(group), np.int64))


@kernel
def sort_runs_in(group: I64, values: F32, order: I64, spare: I64) -> None:
    """Do the same as `sort_runs`, with room for as many rows."""
    n = len(group)
    start = 0
    while start < n:
        end = start + 1
        while end < n and group[end] == group[start]:
            end += 1
        if end - start <= 32:  # insertion: in place and stable
            for i in range(start, end):
                # `order[start:i]` is sorted; row i goes where it belongs.
                value, to = values[i], i
                while to > start and values[order[to - 1]] < value:
                    order[to] = order[to - 1]
                    to -= 1
                order[to] = i
        else:
            for i in range(start, end):
                order[i] = i
            merge_sort(values, order, start, end, spare)
        start = end


@inner
def merge_sort(values: F32, order: I64, start: Int, end: Int, spare: I64) -> None:
    """Sort the rows in order[start:end] by descending value, stably: runs of growing width are
    merged in pairs.
    """
    width = 1
    while width < end - start:
        for low in range(start, end - width, 2 * width):
            middle, high = low + width, min(low + 2 * width, end)
            if values[order[middle]] <= values[order[middle - 1]]:  # already in order
                continue
            left, right, to = low, middle, 0
            while left < middle and right < high:
                if values[order[right]] > values[order[left]]:
                    spare[to] = order[right]
                    right += 1
                else:
                    spare[to] = order[left]
                    left += 1
                to += 1
            while left < middle:
                spare[to] = order[left]
                left += 1
                to += 1
            for i in range(to):  # the rest of the right run is in place
                order[low + i] = spare[i]
        width *= 2


@kernel
def rows_led_to(group: I64, rows: I64, row_of: I64, chosen: I64, led_to: U32) -> Int:
    """Of the rows `rows`, those whose number in `group` has a row in `row_of` (-1: none): they come
    into `chosen`, and what they lead to into `led_to`. Returns how many there are.
    """
    count = int64(0)
    for i in range(len(rows)):
        row = row_of[group[rows[i]]]
        if row >= 0:
            chosen[count] = rows[i]
            led_to[count] = row
            count += 1
    return count


_AHEAD = 12  # rows whose strings are on their way to the cache


def group(
    keys: StringColumn, borders: StringColumn, parts: int, buckets: I32, starts: I64, order: U32
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
    keys: StringColumn,
    borders: StringColumn,
    words: U64,
    parts: Int,
    buckets: I32,
    starts: I64,
    order: U32,
) -> None:
    """Do the same as `group`; `words` gets of each border what comes after the prefix that all
    share.

    Partitions are told here, too: in a walk of their own, all keys went through the cache once
    more. A search without branches, by counting borders, gained nothing: most keys share eight
    bytes with several of them.
    """
    views, addresses = keys
    border_views, border_addresses = borders
    ranges = len(border_views) + 1
    starts[:] = 0
    prefix, shared = int64(0), int64(0)
    # Borders ascend: a prefix of the first and the last is one of all between.
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
        # A key without the prefix lies before all borders or after them.
        side = compare(at, min(size, shared), prefix, shared)
        if side < 0:
            high = low
        elif side > 0:
            low = high
        word = word_of(at, size, shared) if low < high else uint64(0)
        # By the eight bytes after the prefix; by the whole string only where these are equal.
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
        part = int64(part_of(at, size, parts)) if parts > 1 else int64(0)
        buckets[i] = part * ranges + low
        starts[buckets[i] + 1] += 1
    for bucket in range(1, len(starts)):  # counts become offsets
        starts[bucket] += starts[bucket - 1]
    for i in range(len(views)):
        # Each offset moves on with its rows, up to the start of the next bucket.
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
        # Sorted columns hold equal strings once (`sort.pack`).
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
            # Row numbers take 4 bytes: the view of the row 24 ahead, the string of that 12 ahead.
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


@kernel
def take_numbers(values: I64, rows: I64, counts: I64, width: Int, out: U8) -> None:
    """Copy numbers of `width` bytes from many tables into `out`, one after the other.

    For each table come the addresses of a column's numbers and of rows' numbers (uint32), and how
    many rows to take.
    """
    target = int64(out.ctypes.data)
    for table in range(len(counts)):
        first, here = int64(values[table]), int64(rows[table])
        end = here + 4 * int64(counts[table])
        while here < end:
            source = first + width * int64(load32(here))
            if width == 8:
                store64(target, int64(load64(source)))
            elif width == 4:
                store32(target, int64(load32(source)))
            else:
                for k in range(width):
                    store8(target + k, int64(load8(source + k)))
            target += width
            here += 4
