"""Kernels for links into pages: the hosts of both ends compared, links of one page merged into a record."""

from __future__ import annotations

from typing import Final

import numpy as np

from minutch.kernels.links import AHEAD, ask_for_string, ask_for_view
from minutch.kernels.native import I8, I64, U32, U64, Int, Views, inner, kernel, load8, load64, string_at

DIFFERENT, SAME, UNKNOWN = 0, 1, 2
"""What `compare_hosts` says: the hosts differ, they are the same, or a URL is not plain enough to tell."""

_HOST_BYTES: Final = np.zeros(256, np.uint8)
"""The lower-case form of each byte that a plain host may have, 0 for others."""
for _byte in b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._":
    _HOST_BYTES[_byte] = bytes((_byte,)).lower()[0]
_MULTIPLIER: Final = np.uint64(0x9E37_79B9_7F4A_7C15)
_HTTP: Final = np.uint64(int.from_bytes(b"http", "little"))


@inner
def _plain_host(address: Int, size: Int) -> Int:
    """Where the host of a plain http(s) URL starts and how long it is, as start << 32 | length; -1 for other URLs."""
    if size < 8 or load64(address) & np.uint64(0xFFFFFFFF) != _HTTP:
        return np.int64(-1)
    at = np.int64(5) if load8(address + 4) == 115 else np.int64(4)
    if load8(address + at) != 58 or load8(address + at + 1) != 47 or at + 3 > size or load8(address + at + 2) != 47:
        return np.int64(-1)
    start = at + 3
    end = start
    while end < size and _HOST_BYTES[load8(address + end)]:
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
def compare_hosts(from_views: Views, from_addresses: U64, to_views: Views, to_addresses: U64, found: I8) -> None:
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
            while k < size and _HOST_BYTES[load8(one + k)] == _HOST_BYTES[load8(other + k)]:
                k += 1
            if k == size:
                found[i] = SAME


@inner
def _is_equal(views: Views, addresses: U64, i: Int, j: Int) -> Int:
    """Whether two strings of a column are equal, compared from the end, where URLs differ."""
    size = np.int64(views[i, 0])
    if size != views[j, 0] or views[i, 1] != views[j, 1]:
        return False
    one, other = string_at(views, addresses, i), string_at(views, addresses, j)
    if one == other:
        return True
    left = size
    while left >= 8:
        left -= 8
        if load64(one + left) != load64(other + left):
            return False
    while left:
        left -= 1
        if load8(one + left) != load8(other + left):
            return False
    return True


@inner
def _mixed(value: Int, address: Int, size: Int) -> Int:
    """A hash with a string mixed in."""
    at = np.int64(0)
    while at + 8 <= size:
        value = (value ^ load64(address + at)) * _MULTIPLIER
        value ^= value >> np.uint64(29)
        at += 8
    while at < size:
        value = (value ^ load8(address + at)) * _MULTIPLIER
        at += 1
    return value ^ value >> np.uint64(32)


@kernel
def merge(
    order: U32,
    keys: Views,
    key_addresses: U64,
    urls: Views,
    url_addresses: U64,
    anchors: Views,
    anchor_addresses: U64,
    limit: Int,
    rows: U32,
    starts: I64,
) -> Int:
    """Make a record of the rows of each key (`order` has them sorted): each link once, at most `limit`, in their order.

    Fills `rows`, and `starts` with where in it the records begin and the last one ends; returns how many there are.
    """
    used, count, place = np.int64(0), np.int64(0), np.int64(0)
    hashes = np.empty(64, np.uint64)
    slots = np.empty(128, np.int64)  # a hash table: places of links in the record, -1 where there is none
    while place < len(order):
        last: Int = place
        while last < len(order) and (last == place or _is_equal(keys, key_addresses, order[place], order[last])):
            last += 1
            far = np.int64(order[min(last + 2 * AHEAD, len(order) - 1)])
            ask_for_view(keys, far)
            ask_for_view(urls, far)
            ask_for_view(anchors, far)
            near = np.int64(order[min(last + AHEAD, len(order) - 1)])
            ask_for_string(keys, key_addresses, near)
            ask_for_string(urls, url_addresses, near)
            ask_for_string(anchors, anchor_addresses, near)
        starts[count] = used
        begin = used
        if last - place == 1:
            if limit > 0:
                rows[used] = order[place]
                used += 1
        else:
            size = np.int64(4)
            while size < 2 * (last - place):
                size *= 2
            if size > len(slots):
                slots, hashes = np.empty(size, np.int64), np.empty(size // 2, np.uint64)
            slots[:size] = -1
            for now in range(place, last):
                if used - begin >= limit:
                    break
                row = np.int64(order[now])
                mixed = _mixed(np.uint64(0), string_at(urls, url_addresses, row), np.int64(urls[row, 0]))
                mixed = _mixed(mixed, string_at(anchors, anchor_addresses, row), np.int64(anchors[row, 0]))
                slot = np.int64(mixed & np.uint64(size - 1))
                while slots[slot] >= 0:
                    twin = np.int64(rows[begin + slots[slot]])
                    if (
                        hashes[slots[slot]] == mixed
                        and _is_equal(anchors, anchor_addresses, twin, row)
                        and _is_equal(urls, url_addresses, twin, row)
                    ):
                        break
                    slot = (slot + 1) & (size - 1)
                else:
                    slots[slot] = used - begin
                    hashes[used - begin] = mixed
                    rows[used] = row
                    used += 1
        count += used > begin
        place = last
    starts[count] = used
    return count
