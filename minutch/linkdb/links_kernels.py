"""Kernels for links: hash codes of strings, hosts compared, sets of links in Java's order. For big data only.

A row's spread hash is Inlink.hashCode as HashMap spreads it (`javaset.link_hashes`).
"""

from __future__ import annotations

import numpy as np

from minutch.formats.columns_native import Array, Int, kernel, load8, string_at

DIFFERENT, SAME, UNKNOWN = 0, 1, 2
"""What `compare_hosts` says: the hosts differ, they are the same, or a URL is not plain enough to tell."""


@kernel
def string_hashes(views: Array, addresses: Array, hashes: Array, plain: Array) -> None:
    """String.hashCode of each ASCII string into `hashes`; `plain` tells which ones are ASCII."""
    for i in range(len(hashes)):
        address = string_at(views, addresses, i)
        value, seen = np.uint32(0), np.uint64(0)
        for offset in range(views[i, 0]):
            byte = load8(address + offset)
            seen |= byte
            value = np.uint32(value * np.uint32(31) + np.uint32(byte))
        hashes[i] = np.int32(value)
        plain[i] = seen < 128


@kernel
def _lower(byte: Int) -> Int:
    return byte + 32 if 65 <= byte <= 90 else byte


@kernel
def _is_host_byte(byte: Int) -> Int:
    return 97 <= _lower(byte) <= 122 or 48 <= byte <= 57 or byte in (45, 46, 95)


@kernel
def _plain_host(address: Int, size: Int) -> Int:
    """Where the host of a plain http(s) URL starts and how long it is, as start << 32 | length; -1 for other URLs."""
    if size < 8 or load8(address) != 104 or load8(address + 1) != 116 or load8(address + 2) != 116:
        return np.int64(-1)
    if load8(address + 3) != 112:
        return np.int64(-1)
    at = np.int64(5) if load8(address + 4) == 115 else np.int64(4)
    if load8(address + at) != 58 or load8(address + at + 1) != 47 or at + 3 > size or load8(address + at + 2) != 47:
        return np.int64(-1)
    start = at + 3
    end = start
    while end < size and _is_host_byte(load8(address + end)):
        end += 1
    if end == start:
        return np.int64(-1)
    after = end
    if after < size and load8(address + after) == 58:
        after += 1
        digits = 0
        while after < size and 48 <= load8(address + after) <= 57:
            after += 1
            digits += 1
        if digits == 0 or digits > 5:
            return np.int64(-1)
    if after < size and load8(address + after) not in (47, 63, 35):
        return np.int64(-1)
    return (start << 32) | (end - start)


@kernel
def compare_hosts(from_views: Array, from_addresses: Array, to_views: Array, to_addresses: Array, found: Array) -> None:
    """For each row whether both URLs have the same host, in any case: DIFFERENT, SAME or UNKNOWN."""
    last_address, last_host = np.int64(0), np.int64(-1)
    for i in range(len(found)):
        from_address, to_address = string_at(from_views, from_addresses, i), string_at(to_views, to_addresses, i)
        if i == 0 or from_address != last_address:
            last_address, last_host = from_address, _plain_host(from_address, np.int64(from_views[i, 0]))
        host = _plain_host(to_address, np.int64(to_views[i, 0]))
        if host < 0 or last_host < 0:
            found[i] = UNKNOWN
            continue
        size = host & 0xFFFFFFFF
        found[i] = DIFFERENT
        if size == last_host & 0xFFFFFFFF:
            one, other = to_address + (host >> 32), from_address + (last_host >> 32)
            k = 0
            while k < size and _lower(load8(one + k)) == _lower(load8(other + k)):
                k += 1
            if k == size:
                found[i] = SAME


@kernel
def _is_equal(views: Array, addresses: Array, i: Int, j: Int) -> Int:
    if views[i, 0] != views[j, 0]:
        return False
    one, other = string_at(views, addresses, i), string_at(views, addresses, j)
    size = np.int64(views[i, 0])
    k = np.int64(0)
    while k < size and load8(one + k) == load8(other + k):
        k += 1
    return k == size


@kernel
def _first_of_kind(
    slots: Array, spread: Array, urls: Array, url_addresses: Array, anchors: Array, anchor_addresses: Array, row: Int
) -> Int:
    """Whether no equal link is in the hash table `slots` (rows, -1 for a free place) yet; it is there afterwards."""
    mask = len(slots) - 1
    at = (spread[row] * np.int64(0x9E3779B1) >> 7) & mask
    while slots[at] >= 0:
        twin = slots[at]
        if (
            spread[twin] == spread[row]
            and _is_equal(anchors, anchor_addresses, twin, row)
            and _is_equal(urls, url_addresses, twin, row)
        ):
            return False
        at = (at + 1) & mask
    slots[at] = row
    return True


@kernel
def _sort_by_bucket(rows: Array, first: Int, last: Int, spread: Array) -> None:
    """Rows first to last - 1 in the order of the buckets of a new HashSet, equal ones as they stand."""
    count = last - first
    table = np.int64(2)
    while 4 * count > 3 * table:
        table *= 2
    if count > 32:
        part = rows[first:last].copy()
        order = np.argsort(spread[part] & (table - 1), kind="mergesort")
        rows[first:last] = part[order]
        return
    for place in range(first + 1, last):
        row = rows[place]
        bucket = spread[row] & (table - 1)
        at = place
        while at > first and (spread[rows[at - 1]] & (table - 1)) > bucket:
            rows[at] = rows[at - 1]
            at -= 1
        rows[at] = row


@kernel
def run_starts(views: Array, addresses: Array, order: Array, starts: Array) -> Int:
    """Where, in `order` (rows sorted by string), each new string begins, into `starts`; returns how many there are."""
    count = np.int64(0)
    for place in range(len(order)):
        if place == 0 or not _is_equal(views, addresses, order[place - 1], order[place]):
            starts[count] = place
            count += 1
    return count


@kernel
def unite(
    order: Array,
    starts: Array,
    spread: Array,
    urls: Array,
    url_addresses: Array,
    anchors: Array,
    anchor_addresses: Array,
    limit: Int,
    rows: Array,
) -> Int:
    """The rows of each set (`order` from starts[i] to starts[i + 1]), each link once, at most `limit`, in Java's order.

    Fills `rows` and returns how many there are.
    """
    used = np.int64(0)
    for i in range(len(starts) - 1):
        first, last = starts[i], starts[i + 1]
        if last - first == 1:
            rows[used] = order[first]
            used += 1
            continue
        size = np.int64(4)
        while size < 2 * (last - first):
            size *= 2
        slots = np.full(size, -1, np.int64)
        begin = used
        for place in range(first, last):
            if used - begin >= limit:
                break
            row = np.int64(order[place])
            if _first_of_kind(slots, spread, urls, url_addresses, anchors, anchor_addresses, row):
                rows[used] = row
                used += 1
        _sort_by_bucket(rows, begin, used, spread)
    return used
