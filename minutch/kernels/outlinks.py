"""Kernels over the links of pages: what is found in one brought together, which of many pages' are
kept, by a table of verdicts, and the records that they become.

Links are runs of serialized Outlinks (minutch.records.links), URLs UTF-8.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from minutch.kernels.hash import string_hash
from minutch.kernels.memory import compare, copy_bytes, put_int, put_vint, vint_at
from minutch.kernels.native import (
    I32,
    I64,
    U8,
    U64,
    Bool,
    Flags,
    I64Rows,
    Int,
    StringColumn,
    Views,
    inlined,
    inner,
    int64,
    kernel,
    string_at,
)
from minutch.kernels.urls import plain_host

REJECTED: Final = -1
PENDING: Final = -2
IGNORES_EXTERNAL: Final = 1
IGNORES_INTERNAL: Final = 2
"""Flags of what goes because of the sites of link and page."""
NAMELESS: Final = 0
"""The site of a page whose URL has none."""
RECORD_HEAD: Final = 8
"""Bytes before a record's key: its length and the key's."""

_INLINE: Final = 12
_VINT: Final = 5
"""Bytes that a VInt may have."""


@inlined
def _address(buf: U8, at: Int) -> Int:
    """The address of a byte of an array."""
    return int64(buf.ctypes.data) + at


@inlined
def _equal(a: U8, at: Int, b: U8, bt: Int, size: Int) -> Bool:
    """Tell whether two strings of one size are equal."""
    return compare(_address(a, at), size, _address(b, bt), size) == 0


class PageRuns(NamedTuple):
    """The fields of pages: their links back to back, a row for each page, the pages' own URLs.

    A row has the start of the page's links in `data`, their number, start and size of its URL in
    `selves`.
    """

    data: U8
    rows: I64Rows
    selves: U8


class VerdictTable(NamedTuple):
    """The fields of a table of URLs and what they are stored as.

    URL i is arena[urls[i, 0] :][: urls[i, 1]], its hash hashes[i]; it is stored as
    arena[outs[i, 0] :][: outs[i, 1]], for a size REJECTED or PENDING. `slots` has i + 1 or 0, in
    open addressing by hash (`string_hash`); `state` the number of URLs, and of bytes of the arena
    that are used.

    A table of sites is one of these, of URLs up to the end of the host (whole ones where they are
    not plain): outs[i, 1] is the number of the site.
    """

    slots: I32
    hashes: U64
    urls: I64Rows
    outs: I64Rows
    arena: U8
    state: I64


class Kept(NamedTuple):
    """The fields of the links that are kept: back to back, and of each page their number, where
    they end, how many links were not looked at, since enough are kept, and how many were left out
    as they lead to other sites.
    """

    data: U8
    counts: I64
    ends: I64
    unread: I64
    external: I64


@inner
def _verdict(data: U8, at: Int, size: Int, seed: Int, verdicts: VerdictTable) -> Int:
    """The number of a URL in the table, where it is put as PENDING if it is new."""
    slots, hashes, urls, outs, arena, state = verdicts
    code = string_hash(_address(data, at), size, seed)
    mask = len(slots) - 1
    slot = int64(code) & mask
    while slots[slot]:
        i = int64(slots[slot] - 1)
        if hashes[i] == code and urls[i, 1] == size and _equal(arena, urls[i, 0], data, at, size):
            return i
        slot = (slot + 1) & mask
    i, used = int64(state[0]), int64(state[1])
    copy_bytes(_address(arena, used), _address(data, at), size)
    hashes[i] = code
    urls[i, 0], urls[i, 1] = used, size
    outs[i, 1] = PENDING
    slots[slot] = i + 1
    state[0], state[1] = i + 1, used + size
    return i


@inner
def _site(data: U8, at: Int, size: Int, seed: Int, sites: VerdictTable) -> Int:
    """The number of a URL's site; REJECTED where it has none, PENDING where nobody has said."""
    url = _address(data, at)
    host, host_size = plain_host(url, url + size)
    if host_size >= 0:
        size = host + host_size - url  # the URL up to there is the key
    return int64(sites.outs[_verdict(data, at, size, seed, sites), 1])


@inner
def _is_longer(data: U8, at: Int, size: Int, longest: Int) -> Bool:
    """Tell whether a string has more characters than `longest`."""
    if size <= longest:
        return False
    characters = 0
    for i in range(at, at + size):
        characters += (data[i] & 0xC0) != 0x80
    return characters > longest


@kernel
def keep_links(
    pages: PageRuns,
    most: Int,
    longest: Int,
    ignored: Int,
    seed: Int,
    verdicts: VerdictTable,
    sites: VerdictTable,
    kept: Kept,
) -> Int:
    """Write the links that are kept of each page; `ignored` are flags of those that go because of
    their sites.

    Returns how many verdicts are pending (links without one are not written, three of four are
    taken for kept), or -1 if `kept` has too little room. `verdicts` and `sites` have room for all.
    """
    data, rows, selves = pages
    outs, arena, out = verdicts.outs, verdicts.arena, kept.data
    size = len(data)
    to = pending = 0
    for page in range(len(rows)):
        at, own, own_size = rows[page, 0], rows[page, 2], rows[page, 3]
        number = unknown = external = 0
        kept.unread[page] = 0
        here = _site(selves, own, own_size, seed, sites) if ignored else int64(NAMELESS)
        here = int64(NAMELESS) if here == REJECTED else here  # no link is of the same site
        for link in range(rows[page, 1]):
            # Three of four links without a verdict are expected to be kept: fewer are asked about
            # in vain.
            if number + unknown - unknown // 4 >= most:
                kept.unread[page] = rows[page, 1] - link
                break
            length, start = vint_at(data, at, size)
            rest = start + length
            anchor_length, anchor = vint_at(data, rest, size)
            at = anchor + anchor_length + 1  # behind the byte that says: no metadata
            # ParseOutputFormat.filterNormalize drops links to the page itself.
            if length == own_size and _equal(data, start, selves, own, length):
                continue
            if _is_longer(data, start, length, longest):
                continue
            # By site, if both are known.
            if ignored:
                site = _site(data, start, length, seed, sites)
                if PENDING in (site, here):
                    unknown += 1
                    continue
                if site != here and ignored & IGNORES_EXTERNAL:
                    external += site != REJECTED
                    continue
                if site == REJECTED or (site == here and ignored & IGNORES_INTERNAL):
                    continue
            # By what filters and normalizers have said.
            i = _verdict(data, start, length, seed, verdicts)
            stored = outs[i, 1]
            if stored == REJECTED:
                continue
            if stored == PENDING:  # the caller asks, and calls again
                unknown += 1
                continue
            number += 1
            if to + stored + at - rest + _VINT > len(out):
                return -1
            to = put_vint(out, to, stored)
            copy_bytes(_address(out, to), _address(arena, outs[i, 0]), stored)
            copy_bytes(_address(out, to + stored), _address(data, rest), at - rest)
            to += stored + at - rest
        kept.counts[page] = number
        kept.external[page] = external
        kept.ends[page] = to
        pending += unknown
    return pending


@kernel
def view_urls(data: U8, places: I64Rows, views: Views) -> None:
    """Views (see `arrow`) of the strings at `places` (start and size) of `data`."""
    for row in range(len(views)):
        start, size = places[row, 0], places[row, 1]
        views[row] = 0
        views[row, 0] = size
        if size <= _INLINE:
            copy_bytes(int64(views.ctypes.data) + 16 * row + 4, _address(data, start), size)
        else:
            # A long view begins with the first four bytes.
            copy_bytes(int64(views.ctypes.data) + 16 * row + 4, _address(data, start), 4)
            views[row, 3] = start


@kernel
def settle(judged: StringColumn, rejected: Flags, rows: I64, verdicts: VerdictTable) -> None:
    """Note what the URLs with the numbers `rows` are stored as: the strings of a column. The arena
    has room for them.
    """
    views, addresses = judged
    urls, outs = verdicts.urls, verdicts.outs
    arena, state = verdicts.arena, verdicts.state
    used = state[1]
    for row in range(len(views)):
        i = rows[row]
        if rejected[row]:
            outs[i, 1] = REJECTED
            continue
        size = int64(views[row, 0])
        copy_bytes(_address(arena, used), string_at(views, addresses, row), size)
        outs[i, 1] = size
        # Unchanged: the arena has it already.
        if size == urls[i, 1] and _equal(arena, used, arena, urls[i, 0], size):
            outs[i, 0] = urls[i, 0]
        else:
            outs[i, 0] = used
            used += size
    state[1] = used


@kernel
def linked_records(data: U8, runs: I64Rows, values: U8, out: U8, ends: I64) -> None:
    """A record of a SequenceFile for each link of each run, its URL for a key, all of a run with
    one value.

    Runs stand back to back in `data`, with a row each in `runs`: links in it | start and size of
    the value in `values`. Their records go to `out`, and where those of each run end to `ends`.
    """
    at = to = 0
    size = len(data)
    for run in range(len(runs)):
        value, value_size = _address(values, runs[run, 1]), runs[run, 2]
        for _ in range(runs[run, 0]):
            length, start = vint_at(data, at, size)
            key_size = start - at + length
            put_int(out, to, key_size + value_size)
            put_int(out, to + 4, key_size)
            to += RECORD_HEAD
            copy_bytes(_address(out, to), _address(data, at), key_size)
            to += key_size
            copy_bytes(_address(out, to), value, value_size)
            to += value_size
            length, anchor = vint_at(data, start + length, size)
            at = anchor + length + 1
        ends[run] = to


@kernel
def drop_targets(data: U8, count: Int, targets: U8, ends: I64, out: U8, size: I64) -> Int:
    """Copy a run of links but for those without an anchor that lead to one of some targets (where
    each ends in `targets`): how many are left, and in `size[0]` their bytes.
    """
    at, to, kept = int64(0), int64(0), 0
    for _ in range(count):
        start = at
        length, url = vint_at(data, at, data.size)
        anchor_length, anchor = vint_at(data, url + length, data.size)
        at = anchor + anchor_length + 1
        is_one, target = False, int64(0)
        for i in range(ends.size if anchor_length == 0 else 0):
            if ends[i] - target == length:
                is_one |= _equal(data, url, targets, target, length)
            target = ends[i]
        if not is_one:
            copy_bytes(_address(out, to), _address(data, start), at - start)
            to += at - start
            kept += 1
    size[0] = to
    return kept


class LinkTargets(NamedTuple):
    """The fields of what may be links of a page: values, with what each is and its bounds; which of
    these are targets; and targets of others, each with its end and the row that it comes before.
    """

    values: U8
    rows: I64Rows
    is_target: Flags
    others: U8
    places: I64Rows


@inner
def _put_target(data: U8, at: Int, end: Int, seed: Int, slots: I64, out: U8, to: Int) -> Int:
    """Append a link to a target unless it is there; where the links end then."""
    size, mask = end - at, len(slots) - 1
    if size == 0 or data[at] == 35:  # a place in the page itself
        return to
    slot = int64(string_hash(_address(data, at), size, seed)) & mask
    while slots[slot]:
        length, start = vint_at(out, slots[slot] - 1, to)
        if length == size and _equal(out, start, data, at, size):
            return to
        slot = (slot + 1) & mask
    slots[slot] = to + 1
    to = put_vint(out, to, size)
    copy_bytes(_address(out, to), _address(data, at), size)
    to += size
    out[to] = out[to + 1] = 0  # no anchor, no metadata
    return to + 2


@kernel
def join_targets(found: LinkTargets, seed: Int, slots: I64, out: U8, size: I64) -> Int:
    """Write a link without an anchor for each target that a page has, each once, in the order of
    rows: how many, and in `size[0]` their bytes. `slots`, zeros, are a power of two and more than
    there may be.
    """
    values, rows, is_target, others, places = found
    other = before = to = int64(0)
    links = 0
    for row in range(len(rows) + 1):
        while other < len(places) and places[other, 1] <= row:
            end = _put_target(others, before, places[other, 0], seed, slots, out, to)
            before = places[other, 0]
            links += end > to
            to, other = end, other + 1
        if row < len(rows) and is_target[rows[row, 0]]:
            end = _put_target(values, rows[row, 1], rows[row, 2], seed, slots, out, to)
            links += end > to
            to = end
    size[0] = to
    return links
