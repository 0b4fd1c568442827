"""Kernels for links into pages: taken out of parsed pages, their hosts compared, those of one page
merged.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from minutch.kernels.deflate import Decompressor
from minutch.kernels.hash import string_hash
from minutch.kernels.links import (
    AHEAD,
    ask_for_string,
    ask_for_view,
    first_outlink,
    skip_map,
)
from minutch.kernels.memory import (
    call7,
    copy_bytes,
    int_at,
    load8,
    load64,
    scratch64,
    store32,
    store64,
    vint_at,
)
from minutch.kernels.native import (
    I8,
    I64,
    U8,
    U32,
    U64,
    Int,
    Slices,
    StringColumn,
    Views,
    inlined,
    inner,
    int64,
    kernel,
    string_at,
    uint64,
)

DIFFERENT, SAME, UNKNOWN = 0, 1, 2
"""Results of `compare_hosts`: the hosts differ, they are the same, or a URL is not plain enough to
tell.
"""

_INLINE: Final = 12
_HOST_BYTES: Final = np.zeros(256, np.uint8)
"""The lower-case form of each byte that a plain host may have, 0 for others."""
for _byte in b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._":
    _HOST_BYTES[_byte] = bytes((_byte,)).lower()[0]
_HTTP: Final = uint64(int.from_bytes(b"http", "little"))


@inner
def _plain_host(address: Int, size: Int) -> Int:
    """Find where the host of a plain http(s) URL starts and how long it is, as start << 32 |
    length; -1 for other URLs.
    """
    # load64 reads eight bytes, the length of `http://x`.
    if size < 8 or load64(address) & uint64(0xFFFFFFFF) != _HTTP:
        return int64(-1)
    at = int64(5) if load8(address + 4) == 115 else int64(4)
    if (
        load8(address + at) != 58
        or load8(address + at + 1) != 47
        or at + 3 > size
        or load8(address + at + 2) != 47
    ):
        return int64(-1)
    start = at + 3
    end = start
    while end < size and _HOST_BYTES[load8(address + end)]:
        end += 1
    if end == start:
        return int64(-1)
    after = end
    if after < size and load8(address + after) == 58:
        after += 1
        digits = 0
        while after < size and 48 <= load8(address + after) <= 57:
            after += 1
            digits += 1
        if digits == 0 or digits > 5:  # 65535 has five
            return int64(-1)
    if after < size and load8(address + after) not in (47, 63, 35):
        return int64(-1)
    return (start << 32) | (end - start)


@kernel
def compare_hosts(from_strings: StringColumn, to_strings: StringColumn, found: I8) -> None:
    """Tell for each row whether both URLs have the same host, in any case: DIFFERENT, SAME or
    UNKNOWN.
    """
    last_address, last_host = int64(0), int64(-1)
    for i in range(len(found)):
        from_address, to_address = (
            string_at(from_strings.views, from_strings.addresses, i),
            string_at(to_strings.views, to_strings.addresses, i),
        )
        # Links of one page follow each other, so its host is found once.
        if i == 0 or from_address != last_address:
            last_address, last_host = (
                from_address,
                _plain_host(from_address, int64(from_strings.views[i, 0])),
            )
        found[i] = _compared(last_address, last_host, to_address, int64(to_strings.views[i, 0]))


@inner
def _compared(page: Int, page_host: Int, target: Int, size: Int) -> Int:
    """Compare the hosts of the URLs at two addresses; the page's is at `page_host`."""
    host = _plain_host(target, size)
    if host < 0 or page_host < 0:
        return UNKNOWN
    left = host & 0xFFFFFFFF
    if left != page_host & 0xFFFFFFFF:
        return DIFFERENT
    one, other = target + (host >> 32), page + (page_host >> 32)
    while left and _HOST_BYTES[load8(one)] == _HOST_BYTES[load8(other)]:
        one += 1
        other += 1
        left -= 1
    return DIFFERENT if left else SAME


@inlined
def _put_view(views: Views, row: Int, address: Int, size: Int, at: Int) -> None:
    """The view (see `arrow`) of a string, which lies at `at` of the column's one buffer unless it
    is short.
    """
    view = int64(views.ctypes.data) + 16 * row
    store64(view, 0)
    store64(view + 8, 0)
    store32(view, size)
    if size <= _INLINE:
        copy_bytes(view + 4, address, size)
    else:
        copy_bytes(view + 4, address, 4)
        store32(view + 12, at)


class LinkColumns(NamedTuple):
    """The fields of many links: views of their strings, the bytes of these, how the hosts
    compare.
    """

    bytes: U8
    targets: Views
    sources: Views
    anchors: Views
    hosts: I8


@kernel
def spread(
    streams: Slices,
    pages: StringColumn,
    unwanted: Int,
    decompressor: Decompressor,
    scratch: U8,
    links: LinkColumns,
    state: I64,
) -> Int:
    """Take the links of many ParseData out of their zlib streams, those left out that
    `compare_hosts` finds `unwanted`.

    A row for each link: its target, its page (one of `pages`) and its anchor as strings of `bytes`,
    and in `hosts` how the hosts compare; with `unwanted` UNKNOWN nothing is compared and left out.
    `state` has the number of the record to go on with, and of links written, read and left out, and
    how many `bytes` are used. Returns 0 at the end, 1 where `scratch` has no room for a
    record, 2 where the outputs have none, -1 for a record that is damaged or unusual.
    """
    counts = scratch64(2)
    buf, at, length = streams.bytes, streams.at, streams.length
    out, targets, sources = links.bytes, links.targets, links.sources
    anchors, found = links.anchors, links.hosts
    count_at, source = int64(counts.ctypes.data), int64(buf.ctypes.data)
    data, target = int64(scratch.ctypes.data), int64(out.ctypes.data)
    while state[0] < len(at):
        i = state[0]
        code = call7(
            decompressor.function,
            decompressor.state,
            source + at[i],
            length[i],
            data,
            len(scratch),
            count_at,
            count_at + 8,
        )
        if code & 0xFFFF_FFFF == 3:
            return 1
        if code & 0xFFFF_FFFF != 0 or counts[0] != length[i]:
            return -1
        # The inflated record: its links follow the title.
        end = counts[1]
        p = first_outlink(scratch, 0, end)
        if p < 0 or p + 4 > end:
            return -1
        count = int_at(scratch, p)
        p += 4
        page, page_size = string_at(pages.views, pages.addresses, i), int64(pages.views[i, 0])
        row, used = state[1], state[4]
        # Each link takes a byte at least: a count beyond `end` is damage, found below, and must
        # not demand that much room.
        if count < 0 or row + min(count, end) > len(found) or used + page_size + end > len(out):
            return -1 if count < 0 else 2
        page_at = used
        # Once per page: the views of all its links point here.
        copy_bytes(target + used, page, page_size)
        used += page_size
        page_host = _plain_host(page, page_size)
        left_out = 0
        for _ in range(count):
            size, url = vint_at(scratch, p, end)
            if size < 0 or url + size > end:
                return -1
            anchor_size, anchor = vint_at(scratch, url + size, end)
            if anchor_size < 0 or anchor + anchor_size >= end:
                return -1
            p = anchor + anchor_size + 1
            if scratch[p - 1]:
                p = skip_map(scratch, p, end)
                if p < 0:
                    return -1
            same = (
                int64(DIFFERENT)
                if unwanted == UNKNOWN
                else _compared(page, page_host, data + url, size)
            )
            if same == unwanted:
                left_out += 1  # counted, not copied
                continue
            copy_bytes(target + used, data + url, size)
            _put_view(targets, row, data + url, size, used)
            used += size
            _put_view(sources, row, page, page_size, page_at)
            if anchor_size > _INLINE:  # shorter ones live in their view
                copy_bytes(target + used, data + anchor, anchor_size)
            _put_view(anchors, row, data + anchor, anchor_size, used)
            used += anchor_size if anchor_size > _INLINE else 0
            found[row] = same
            row += 1
        state[0], state[1], state[2], state[3], state[4] = (
            i + 1,
            row,
            state[2] + count,
            state[3] + left_out,
            used,
        )
    return 0


@inner
def _is_equal(strings: StringColumn, i: Int, j: Int) -> Int:
    """Tell whether two strings of a column are equal, compared from the end, where URLs differ."""
    views, addresses = strings.views, strings.addresses
    size = int64(views[i, 0])
    if size != views[j, 0] or views[i, 1] != views[j, 1]:  # the latter: their first four bytes
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


class SetTable(NamedTuple):
    """The fields of a hash table of the links of one record: their places in it, -1 where there is
    none, and by place the hashes.
    """

    slots: I64
    hashes: U64


class Sets(NamedTuple):
    """The fields of sets of links: rows, and where in them each set begins and the last one
    ends.
    """

    rows: U32
    starts: I64


def merge(
    order: U32,
    keys: StringColumn,
    urls: StringColumn,
    anchors: StringColumn,
    limit: Int,
    seed: Int,
    sets: Sets,
) -> Int:
    """Make a record of the rows of each key (`order` has them sorted): each link once, at most
    `limit`, in their order.

    Fills `sets`; returns how many records there are. `seed` as in `string_hash`.
    """
    count = len(order)
    # `empty`: pages that are never touched cost no memory.
    table = SetTable(np.empty(4 * count, np.int64), np.empty(2 * count, np.uint64))
    return merge_in(order, keys, urls, anchors, limit, seed, table, sets)


@kernel
def merge_in(
    order: U32,
    keys: StringColumn,
    urls: StringColumn,
    anchors: StringColumn,
    limit: Int,
    seed: Int,
    table: SetTable,
    sets: Sets,
) -> Int:
    """Do the same as `merge`, with room in `table` for four times and twice the rows."""
    slots, hashes, rows, starts = table.slots, table.hashes, sets.rows, sets.starts
    used, count, place = int64(0), int64(0), int64(0)
    while place < len(order):
        last: Int = place
        while last < len(order) and (last == place or _is_equal(keys, order[place], order[last])):
            last += 1
            # Views first: they say where the strings are.
            far = int64(order[min(last + 2 * AHEAD, len(order) - 1)])
            ask_for_view(keys.views, far)
            ask_for_view(urls.views, far)
            ask_for_view(anchors.views, far)
            near = int64(order[min(last + AHEAD, len(order) - 1)])
            ask_for_string(keys, near)
            ask_for_string(urls, near)
            ask_for_string(anchors, near)
        starts[count] = used
        begin = used
        if last - place == 1:  # nothing to compare with
            if limit > 0:
                rows[used] = order[place]
                used += 1
        else:
            # Slots have to be cleared: only as many as keep this record's chains short.
            size = int64(4)
            while size < 2 * (last - place):
                size *= 2
            for k in range(size):
                slots[k] = -1
            for now in range(place, last):
                if used - begin >= limit:
                    break
                row = int64(order[now])
                mixed = string_hash(
                    string_at(urls.views, urls.addresses, row), int64(urls.views[row, 0]), seed
                )
                anchor = string_at(anchors.views, anchors.addresses, row)
                # Seeded by the URL's hash, so that it covers both.
                mixed = string_hash(anchor, int64(anchors.views[row, 0]), int64(mixed))
                slot: Int = int64(mixed & uint64(size - 1))
                while slots[slot] >= 0:
                    twin = int64(rows[begin + slots[slot]])
                    if (
                        hashes[slots[slot]] == mixed
                        and _is_equal(anchors, twin, row)
                        and _is_equal(urls, twin, row)
                    ):
                        break
                    slot = (slot + 1) & (size - 1)
                else:
                    slots[slot] = used - begin
                    hashes[used - begin] = mixed
                    rows[used] = row
                    used += 1
        count += used > begin  # with a limit of 0 there is no record
        place = last
    starts[count] = used
    return count
