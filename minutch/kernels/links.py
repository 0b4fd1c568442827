"""Kernels that find the links in Inlinks and ParseData, and that write Inlinks; `links_columns` has
the layouts.

Decoding is done in two passes, the first of which counts the links. A record that is not what it
should be makes the first pass stop; the caller turns to the codec for single records, which names
the error.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from minutch.kernels.deflate import BEFORE, Compressor, deflate_one, finish_stored
from minutch.kernels.hash import SEED, string_hash
from minutch.kernels.memory import (
    copy_bytes,
    int_at,
    prefetch,
    put_int,
    put_vint,
    vint_at,
    vint_size,
)
from minutch.kernels.native import (
    I32,
    I64,
    U8,
    U32,
    U64,
    Bool,
    Flags,
    Int,
    Slices,
    StringColumn,
    Views,
    Word,
    inlined,
    inner,
    int64,
    kernel,
    string_at,
)

PARSE_DATA_VERSION = 5
PARSE_STATUS_VERSION = 2
AHEAD = 12
"""Rows from which on strings are fetched into the cache before they are needed: rows come in no
order of memory.
"""
TEXT_ID, FLOAT_ID, INT_ID, LONG_ID = 0x8C, 0x84, 0x85, 0x86
"""The classes that a MapWritable's entries may have for a kernel to pass over them."""


@inlined
def skip_text(buf: U8, at: Int, end: Int) -> Int:
    """The offset after the Text at `at`; -1 if it is not inside."""
    size, at = vint_at(buf, at, end)
    return at + size if size >= 0 and at + size <= end else -1


@inner
def skip_map(buf: U8, at: Int, end: Int) -> Int:
    """The offset after a MapWritable of Texts and numbers; -1 for any other, and if it is not
    inside.
    """
    if at >= end or buf[at] != 0 or at + 5 > end:  # 0: no classes of its own
        return -1
    entries = int_at(buf, at + 1)
    at += 5
    for _ in range(2 * entries):  # keys and values
        if at >= end:
            return -1
        kind = buf[at]
        at += 1
        if kind == TEXT_ID:
            at = skip_text(buf, at, end)
            if at < 0:
                return -1
        elif kind in (INT_ID, FLOAT_ID):
            at += 4
        elif kind == LONG_ID:
            at += 8
        else:
            return -1
    return at if at <= end else -1


@inner
def after_status(buf: U8, at: Int, end: Int) -> Int:
    """The offset after version and ParseStatus of the ParseData at `at`; -1 if they make no
    sense.
    """
    if at + 9 > end or buf[at] != PARSE_DATA_VERSION or buf[at + 1] != PARSE_STATUS_VERSION:
        return -1
    arguments = int_at(buf, at + 5)
    at += 9
    # Strings with an int for their length; -1 is null, also for all of them.
    for _ in range(arguments):
        if at + 4 > end:
            return -1
        size = int_at(buf, at)
        if size < -1 or at + 4 + size > end:
            return -1
        at += 4 + (size if size > 0 else 0)
    return at


@inner
def first_outlink(buf: U8, at: Int, end: Int) -> Int:
    """The offset of the number of outlinks in the ParseData at `at`; -1 if it makes no sense."""
    title = after_status(buf, at, end)
    return skip_text(buf, title, end) if title >= 0 else int64(-1)


@kernel
def count_links(
    buf: U8, at: I64, length: I32, parse_data: Bool, flag: Bool, first: I64, count: I64
) -> Int:
    """Find where the links of each record begin, and how many there are; the total, or -1 if a
    record is not right.

    `parse_data`: the records are ParseData, not Inlinks; `flag`: a boolean and perhaps a map follow
    each anchor.
    """
    total = int64(0)
    for i in range(len(at)):
        end = at[i] + length[i]
        start = first_outlink(buf, at[i], end) if parse_data else at[i]
        if start < 0 or start + 4 > end:
            return -1
        links = int_at(buf, start)
        p = start + 4
        if links < 0:
            return -1
        first[i] = p
        count[i] = links
        for _ in range(links):
            p = skip_text(buf, p, end)
            if p < 0:
                return -1
            p = skip_text(buf, p, end)
            if p < 0:
                return -1
            if flag:
                if p >= end:
                    return -1
                p = skip_map(buf, p + 1, end) if buf[p] else p + 1
                if p < 0:
                    return -1
        if not parse_data and p != end:  # ParseData goes on with metadata
            return -1
        total += links
    return total


class LinkPlaces(NamedTuple):
    """The fields of many links: the record that each is of, and where its strings lie."""

    record: I64
    url_at: I64
    url_len: I32
    anchor_at: I64
    anchor_len: I32
    map_at: I64
    map_len: I32


def new_link_places(count: int) -> LinkPlaces:
    """Room for so many links."""
    pairs = [(np.empty(count, np.int64), np.empty(count, np.int32)) for _ in range(3)]
    return LinkPlaces(np.empty(count, np.int64), *pairs[0], *pairs[1], *pairs[2])


@kernel
def read_links(
    buf: U8,
    first: I64,
    count: I64,
    flag: Bool,
    empty_row: Bool,
    links: LinkPlaces,
) -> None:
    """Fill in where the links' strings lie and which record each is of; `count_links` has passed
    them.

    With `empty_row` a record without links gets one row, with -1 as the length of its URL.
    """
    row, end = int64(0), len(buf)
    for i in range(len(first)):
        p = first[i]
        if empty_row and count[i] == 0:
            links.record[row] = i
            links.url_at[row] = links.anchor_at[row] = links.map_at[row] = p
            links.url_len[row] = links.anchor_len[row] = -1
            links.map_len[row] = 0
            row += 1
        for _ in range(count[i]):
            links.record[row] = i
            links.url_len[row], p = vint_at(buf, p, end)
            links.url_at[row] = p
            p += links.url_len[row]
            links.anchor_len[row], p = vint_at(buf, p, end)
            links.anchor_at[row] = p
            p += links.anchor_len[row]
            links.map_at[row] = p
            links.map_len[row] = 0
            if flag:
                p += 1
                if buf[p - 1]:
                    after = skip_map(buf, p, end)
                    links.map_at[row] = p
                    links.map_len[row] = after - p if after - p > 5 else 0  # an empty map is none
                    p = after
            row += 1


class UrlSlots(NamedTuple):
    """The fields of a table of distinct URLs: `slots` has their places + 1 or 0, in open addressing
    by `hashes` (`string_hash`, by `seed`), which are taken for the URLs themselves.
    """

    slots: I32
    hashes: U64
    seed: Int


def new_url_slots(count: int) -> UrlSlots:
    """Room for so many URLs."""
    slots = np.zeros(1 << max(4, (2 * count).bit_length()), np.int32)
    return UrlSlots(slots, np.empty(count, np.uint64), SEED)


@inlined
def slot_of(code: Word, table: UrlSlots) -> Int:
    """The slot of a hash, or the empty one where it would be."""
    mask = len(table.slots) - 1
    slot = int64(code) & mask
    while table.slots[slot] and table.hashes[table.slots[slot] - 1] != code:
        slot = (slot + 1) & mask
    return slot


@kernel
def put_urls(urls: StringColumn, table: UrlSlots) -> None:
    """Put URLs into a table, each at its row."""
    for row in range(len(urls.views)):
        at, size = string_at(urls.views, urls.addresses, row), int64(urls.views[row, 0])
        code = string_hash(at, size, table.seed)
        table.hashes[row] = code
        table.slots[slot_of(code, table)] = row + 1


@kernel
def find_urls(urls: StringColumn, table: UrlSlots, place: I32) -> None:
    """Fill in the place of each URL; -1 if it is not in the table."""
    for row in range(len(urls.views)):
        at, size = string_at(urls.views, urls.addresses, row), int64(urls.views[row, 0])
        place[row] = table.slots[slot_of(string_hash(at, size, table.seed), table)] - 1


class FoundLinks(NamedTuple):
    """The fields of links to known URLs: how many each record has, their places, and where the
    anchors of those lie that somebody is told of.
    """

    counts: I32
    to: I32
    anchor_at: I64
    anchor_len: I32


class RecordLinks(NamedTuple):
    """Room for the links of one record: their hashes, and where their anchors lie."""

    hashes: U64
    anchor_at: I64
    anchor_len: I32


def new_record_links(count: int) -> RecordLinks:
    """Room for so many links."""
    return RecordLinks(
        np.empty(count, np.uint64), np.empty(count, np.int64), np.empty(count, np.int32)
    )


@inner
def ask_for_slots(links: RecordLinks, count: Int, table: UrlSlots) -> None:
    """Have the slots of a record's links fetched into the cache, then the hashes there."""
    mask = len(table.slots) - 1
    for i in range(count):
        prefetch(int64(table.slots.ctypes.data) + 4 * (int64(links.hashes[i]) & mask))
    for i in range(count):
        place = int64(table.slots[int64(links.hashes[i]) & mask])
        if place:
            prefetch(int64(table.hashes.ctypes.data) + 8 * (place - 1))


@kernel
def find_links(
    buf: U8,
    links_at: I64,
    table: UrlSlots,
    told: Flags,
    links: RecordLinks,
    found: FoundLinks,
    sizes: I64,
) -> Bool:
    """Find the links to URLs of a table in records of ParseData whose links, `split` has seen to
    it, are whole. `told` are the URLs whose links are told of; `sizes` gets the number of links,
    and of those. False if there is metadata that kernels don't know.

    `links` has room for those of any of the records: they are sought together, since each of
    millions of URLs has to come from memory.
    """
    size = len(buf)
    count = anchors = int64(0)
    base = int64(buf.ctypes.data)
    for record in range(len(links_at)):
        p, before = links_at[record] + 4, count
        own = int_at(buf, links_at[record])
        for i in range(own):
            length, url = vint_at(buf, p, size)
            anchor_size, anchor = vint_at(buf, url + length, size)
            p = anchor + anchor_size + 1
            if buf[p - 1]:
                p = skip_map(buf, p, size)
                if p < 0:
                    return False
            links.hashes[i] = string_hash(base + url, length, table.seed)
            links.anchor_at[i], links.anchor_len[i] = anchor, anchor_size
        ask_for_slots(links, own, table)
        for i in range(own):
            place = table.slots[slot_of(links.hashes[i], table)] - 1
            if place < 0:
                continue
            found.to[count] = place
            count += 1
            if told[place]:
                found.anchor_at[anchors] = links.anchor_at[i]
                found.anchor_len[anchors] = links.anchor_len[i]
                anchors += 1
        found.counts[record] = count - before
    sizes[0], sizes[1] = count, anchors
    return True


@inlined
def ask_for_view(views: Views, row: Int) -> None:
    """Have the view of a row fetched into the cache: `ask_for_string` will want it."""
    prefetch(int64(views.ctypes.data) + 16 * row)


@inlined
def ask_for_string(strings: StringColumn, row: Int) -> None:
    """Have the first 128 bytes of a row's string fetched into the cache."""
    at = string_at(strings.views, strings.addresses, row)
    prefetch(at)
    prefetch(at + 64)


@inlined
def take_view(views: Views, row: Int, taken: Views, at: Int) -> None:
    """Copy a row's view to row `at` of `taken`."""
    for k in range(4):
        taken[at, k] = views[row, k]


class LinkViews(NamedTuple):
    """The fields of links into pages, as views of their strings."""

    keys: Views
    urls: Views
    anchors: Views
    maps: Views


@kernel
def take_links(
    starts: I64,
    rows: U32,
    present: Flags,
    links: LinkViews,
    flag: Bool,
    length: I32,
    own: LinkViews,
    sums: I64,
) -> None:
    """Measure the Inlinks record of each run of `rows`, from starts[i] to starts[i + 1] - 1, and
    gather its views.

    Fills the lengths and, in the order of records and rows, the views of the records' keys and of
    their links' strings; a URL of length -1 is no link. `present` tells the rows that are links,
    the links' `maps` may be empty: no metadata. `sums` gets the sum of the lengths and the longest.
    """
    total, longest = int64(0), int64(0)
    for i in range(len(length)):
        size = int64(4)
        take_view(links.keys, int64(rows[starts[i]]), own.keys, i)
        for place in range(starts[i], starts[i + 1]):
            far = int64(rows[min(place + AHEAD, len(rows) - 1)])
            ask_for_view(links.keys, far)
            ask_for_view(links.urls, far)
            ask_for_view(links.anchors, far)
            row, at = int64(rows[place]), place - starts[0]
            if not present[row]:
                own.urls[at, 0] = -1
                continue
            take_view(links.urls, row, own.urls, at)
            take_view(links.anchors, row, own.anchors, at)
            url, anchor = int64(links.urls[row, 0]), int64(links.anchors[row, 0])
            size += vint_size(url) + url + vint_size(anchor) + anchor
            if flag:
                size += 1
                if len(links.maps):
                    take_view(links.maps, row, own.maps, at)
                    size += int64(links.maps[row, 0])
        length[i] = size
        total += size
        longest = max(longest, size)
    sums[0], sums[1] = total, longest


@inlined
def put_string(buf: U8, target: Int, at: Int, strings: StringColumn, row: Int) -> Int:
    """Store a string as a Text at `at` of `buf`, whose address is `target`; returns the offset
    after it.
    """
    size = int64(strings.views[row, 0])
    at = put_vint(buf, at, size)
    copy_bytes(target + at, string_at(strings.views, strings.addresses, row), size)
    return at + size


@kernel
def write_inlinks(
    streams: Slices,
    starts: I64,
    keys: StringColumn,
    urls: StringColumn,
    anchors: StringColumn,
    maps: StringColumn,
    flag: Bool,
    compressor: Compressor,
) -> None:
    """Write the Inlinks records that `take_links` has prepared, each as a zlib stream, one after
    the other.

    A record with a single link holds next to no repetition: it is stored. Others are put together
    in the last bytes of `streams`, as many as the longest takes. The lengths are those of the
    records first, then those of the streams, whose places are filled in.
    """
    out, at, length = streams.bytes, streams.at, streams.length
    target = int64(out.ctypes.data)
    longest = int64(0)
    for i in range(len(length)):
        longest = max(longest, int64(length[i]))
    scratch = len(out) - longest
    end = int64(0)
    for i in range(len(length)):
        size = int64(length[i])
        # LEN of a stored block has 16 bits.
        is_stored = starts[i + 1] - starts[i] == 1 and size < 0x10000
        begin = end + BEFORE if is_stored else scratch  # in its final place, or aside
        p = begin + 4
        links = 0
        ask_for_string(keys, min(i + AHEAD, len(keys.views) - 1))
        for row in range(starts[i] - starts[0], starts[i + 1] - starts[0]):
            near = min(row + AHEAD, len(urls.views) - 1)
            ask_for_string(urls, near)
            ask_for_string(anchors, near)
            if urls.views[row, 0] < 0:
                continue
            links += 1
            p = put_string(out, target, p, urls, row)
            p = put_string(out, target, p, anchors, row)
            if flag:
                extra = int64(maps.views[row, 0]) if len(maps.views) else int64(0)
                out[p] = extra > 0
                p += 1
                if extra:
                    copy_bytes(target + p, string_at(maps.views, maps.addresses, row), extra)
                    p += extra
        put_int(out, begin, links)
        at[i] = end
        if is_stored:
            length[i] = finish_stored(target + end, size)
        else:
            room = scratch - end
            length[i] = deflate_one(target + begin, size, target + end, room, compressor)
        end += length[i]
