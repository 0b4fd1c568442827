"""Kernels over URLs in bulk: the pattern of each, hashes of its levels (see `urls.patterns`); which
of them surely name a host.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from minutch.kernels.hash import string_hash
from minutch.kernels.memory import (
    compare,
    copy_bytes,
    load8,
    load64,
    scratch32,
    store8,
    store32,
)
from minutch.kernels.native import (
    I32,
    I64,
    U8,
    U64,
    Bool,
    Int,
    StringColumn,
    Views,
    Word,
    inlined,
    inner,
    int64,
    kernel,
    string_at,
    uint64,
)
from minutch.kernels.sequencefile import put_view

LEVELS: Final = 7
ROOM: Final = 128
"""Bytes of `out` besides four times the URLs'."""
_MOST: Final = 24
"""Path segments, and names of parameters, that are told apart."""
_NUMBER, _CODE, _FOLDED = 0x7D6E7B, 0x7D787B, 0x7D2B7B
"""`{n}`, `{x}`, `{+}` as numbers."""

_DIGIT, _HEX, _LOWER, _UPPER, _OTHER = 1, 2, 4, 8, 16


def _kinds() -> list[int]:
    kinds = [0] * 128 + [_OTHER] * 128
    for byte in range(128):
        char = chr(byte)
        kinds[byte] |= _DIGIT if char.isdigit() else 0
        kinds[byte] |= _LOWER if char.islower() else _UPPER if char.isupper() else 0
        kinds[byte] |= _HEX if char in "0123456789abcdefABCDEF" else 0
    kinds[ord("%")] = _OTHER  # an escape is part of a word
    return kinds


_KINDS: Final = np.array(_kinds(), np.uint8)
_PERCENT, _SLASH, _MARK, _HASH, _COLON, _AT, _SEMICOLON, _EQUALS, _AMPERSAND, _DASH, _BRACE = (
    b"%/?#:@;=&-{"
)
_CLOSED, _DOT, _STAR = b"}.*"


@inlined
def _kind(at: Int) -> Int:
    return int64(_KINDS[int64(load8(at))])


@inlined
def _put_class(to: Int, name: Int) -> Int:
    """Put one of the three classes; returns the address behind it."""
    store32(to, name)  # the fourth byte is written over
    return to + 3


@inner
def _is_uuid(at: Int, end: Int) -> Int:
    if end - at < 36 or (end - at > 36 and _kind(at + 36)):  # part of something longer
        return 0
    for i in range(36):  # RFC 9562, 4: 8-4-4-4-12
        if i in (8, 13, 18, 23):
            if load8(at + i) != _DASH:
                return 0
        elif not _kind(at + i) & _HEX:
            return 0
    return 1


@inner
def _class_of(at: Int, end: Int) -> Int:
    """The class of letters and digits that stand together; 0: they are words."""
    size, digits, others, turns, are_hex, before = end - at, 0, 0, 0, _HEX, 0
    for i in range(at, end):
        kind = _kind(i)
        digits += kind & _DIGIT
        others += kind & _OTHER
        are_hex &= kind
        # Base64 switches case often, words seldom.
        if kind & _UPPER and before & _LOWER:
            turns += 1
        before = kind
    if digits == size:
        return _NUMBER
    if not others and (
        (size >= 7 and are_hex and digits)
        or (size >= 16 and (digits > 1 or are_hex or 4 * turns >= size))
    ):
        return _CODE
    return 0


@inner
def _put_run(at: Int, end: Int, to: Int) -> Int:
    """Put letters and digits that stand together."""
    name = _class_of(at, end)
    if name:
        return _put_class(to, name)
    while at < end:
        if _kind(at) & _DIGIT:
            while at < end and _kind(at) & _DIGIT:
                at += 1
            to = _put_class(to, _NUMBER)
            continue
        count = 3 if load8(at) == _PERCENT else 1  # copy escapes whole
        while count and at < end:
            store8(to, load8(at))
            to, at, count = to + 1, at + 1, count - 1
    return to


@inner
def _end_of_run(at: Int, end: Int) -> Int:
    while at < end and _kind(at):
        at += 3 if load8(at) == _PERCENT else 1
    return min(at, end)


@inner
def _put_text(at: Int, end: Int, to: Int) -> Int:
    """Put text whose numbers and codes become classes."""
    while at < end:
        if not _kind(at):
            store8(to, load8(at))
            to, at = to + 1, at + 1
            continue
        if _is_uuid(at, end):
            to, at = _put_class(to, _CODE), at + 36
            continue
        stop = _end_of_run(at, end)
        to, at = _put_run(at, stop, to), stop
    return to


@inner
def _find(at: Int, end: Int, byte: Int) -> Int:
    """The address of a byte; `end` if there is none."""
    while at < end and load8(at) != byte:
        at += 1
    return at


@inner
def _put_segment(at: Int, end: Int, to: Int) -> Int:
    """Put a path segment; of its parameters (`;name=value`) the names."""
    stop = _find(at, end, _SEMICOLON)
    to = _put_text(at, stop, to)
    while stop < end:
        store8(to, _SEMICOLON)
        at, stop = stop + 1, _find(stop + 1, end, _SEMICOLON)
        to = _put_text(at, _find(at, stop, _EQUALS), to + 1)
    return to


@inner
def _put_query(at: Int, end: Int, to: Int) -> Int:
    """Put the sorted names of a query's parameters, each once."""
    starts, sizes, order = scratch32(_MOST), scratch32(_MOST), scratch32(_MOST)
    count, free, more = 0, to, 0
    while at < end:
        stop = at
        while stop < end and load8(stop) != _AMPERSAND and load8(stop) != _SEMICOLON:
            stop += 1
        if stop == at:
            at += 1
            continue
        # Write the name behind the others; it stays only if it is new.
        after, is_repeated = _put_text(at, _find(at, stop, _EQUALS), free), 0
        for i in range(count):
            if compare(to + starts[i], sizes[i], free, after - free) == 0:
                is_repeated = 1
        if is_repeated:
            at = stop + 1
            continue
        if count == _MOST:
            more = 1
            break
        starts[count], sizes[count] = free - to, after - free
        place = count
        while place and (
            compare(to + starts[order[place - 1]], sizes[order[place - 1]], free, after - free) > 0
        ):
            order[place] = order[place - 1]
            place -= 1
        order[place] = count
        count, free, at = count + 1, after + 1, stop + 1
    # Join the names in order behind the last one, then move the result to the front.
    put = free
    for i in range(count):
        if i:
            store8(put, _AMPERSAND)
            put += 1
        size = int64(sizes[order[i]])
        copy_bytes(put, to + starts[order[i]], size)
        put += size
    if more:
        put = _put_class(put, _FOLDED)
    copy_bytes(to, free, put - free)
    return to + put - free


@inner
def _is_repeated(to: Int, end: Int, base: Int, starts: I32, sizes: I32, count: Int) -> Int:
    """Tell whether a segment stands in the path before; one that begins with a class (a date's
    parts), three times.
    """
    # `/2024/01/01/` is not a loop.
    left = 3 if end > to and load8(to) == _BRACE else 1
    for i in range(count):
        if compare(base + starts[i], sizes[i], to, end - to) == 0:
            left -= 1
    return left <= 0


@inner
def _put_path(at: Int, end: Int, base: Int, to: Int, ends: I32) -> Int:
    """Put a path, after its host at `base`; the ends of its levels go into `ends`."""
    starts, sizes = scratch32(_MOST), scratch32(_MOST)
    count, folded = 0, False
    store8(to, _SLASH)
    at, to = at + 1, to + 1
    ends[1] = ends[2] = to - base
    while at < end:
        stop = _find(at, end, _SLASH)
        after = _put_segment(at, stop, to)
        at = stop + 1
        # A loop is folded once, however long it is.
        if count == _MOST or _is_repeated(to, after, base, starts, sizes, count):
            if folded:
                continue
            folded, after = True, _put_class(to, _FOLDED)
        else:
            starts[count], sizes[count] = to - base, after - to
            count += 1
        to = after
        if stop < end:
            store8(to, _SLASH)
            to += 1
            ends[2] = to - base
            if count + folded == 1:
                ends[1] = to - base
    return to


@inner
def _put_shape(at: Int, end: Int, to: Int) -> Int:
    """Put the shape of a pattern's path."""
    while at < end:
        byte = load8(at)
        if byte == _SEMICOLON:  # parameters have no shape
            at = _find(at, end, _SLASH)
            continue
        if byte in (_SLASH, _DOT):
            store8(to, byte)
            to, at = to + 1, at + 1
            continue
        shown = _HASH
        while at < end and byte not in (_SLASH, _DOT, _SEMICOLON):
            if byte == _BRACE and at + 3 <= end and load8(at + 2) == _CLOSED:
                at += 3
            else:
                shown, at = _STAR, at + 1
            if at < end:
                byte = load8(at)
        store8(to, shown)
        to += 1
    return to


@inlined
def _behind_scheme(at: Int, end: Int) -> Int:
    place = at
    while place < end and _kind(place):
        place += 1
    if place + 3 <= end and load8(place) == _COLON and load8(place + 1) == _SLASH:
        return place + 3 if load8(place + 2) == _SLASH else place + 1
    return at


@kernel
def url_forms(urls: StringColumn, seed: Int, out: U8, hashes: U64) -> None:
    """The hash of each URL without its scheme and fragment, whose codes are `{x}`; 0 where it has
    none. `out` has room for the longest one, and 4 bytes.
    """
    base = int64(out.ctypes.data)
    for row in range(len(urls.views)):
        at = string_at(urls.views, urls.addresses, row)
        end = _find(at, at + int64(urls.views[row, 0]), _HASH)
        at, to, found = _behind_scheme(at, end), base, False
        while at < end:
            is_uuid = _is_uuid(at, end)
            stop = at + 36 if is_uuid else _end_of_run(at, end)
            if is_uuid or (stop > at and _class_of(at, stop) == _CODE):
                to, at, found = _put_class(to, _CODE), stop, True
                continue
            stop = max(stop, at + 1)
            copy_bytes(to, at, stop - at)
            to, at = to + stop - at, stop
        hashes[row] = 0
        if found:
            hashes[row] = string_hash(base, to - base, seed)


@kernel
def url_patterns(urls: StringColumn, seed: Int, out: U8, views: Views, hashes: U64) -> Int:
    """The patterns of URLs in `out`, and as views of it; and the hash of each one's levels.

    `views` or `hashes` may be empty. Returns how many bytes of `out` are used.
    """
    base = int64(out.ctypes.data)
    to, ends = base, scratch32(LEVELS)
    for row in range(len(urls.views)):
        at = string_at(urls.views, urls.addresses, row)
        end = _find(at, at + int64(urls.views[row, 0]), _HASH)
        first = to
        at = _behind_scheme(at, end)
        mark = _find(at, end, _MARK)
        path = _find(at, mark, _SLASH)
        # Skip user and password.
        for place in range(at, path):
            if load8(place) == _AT:
                at = place + 1
        # The host, in lower case.
        for place in range(at, path):
            store8(to, int64(load8(place)) + (32 if _kind(place) & _UPPER else 0))
            to += 1
        # The path, noting where its levels end.
        ends[0] = to - first
        to = _put_path(path, mark, first, to, ends)
        ends[3] = to - first
        # The query: sorted names, no values.
        if mark < end:
            store8(to, _MARK)
            to = _put_query(mark + 1, end, to + 1)
        ends[4] = to - first
        if len(hashes):
            own = LEVELS * row
            for level in range(5):  # places 1 and 4 are the shape's and the names'
                place = own + level + (level > 0) + (level > 2)
                hashes[place] = string_hash(first, int64(ends[level]), seed)
            # What is no beginning of the pattern is put behind it, in room that the next row
            # overwrites: directory and names, then host and shape.
            hashes[own + 4] = hashes[own + 3]
            if ends[4] > ends[3]:
                copy_bytes(to, first, int64(ends[2]))
                copy_bytes(to + ends[2], first + ends[3], int64(ends[4] - ends[3]))
                hashes[own + 4] = string_hash(to, int64(ends[2] + ends[4] - ends[3]), seed)
            copy_bytes(to, first, int64(ends[0]))
            end = _put_shape(first + ends[0], first + ends[3], to + ends[0])
            hashes[own + 1] = string_hash(to, end - to, seed)
        if len(views):
            put_view(views, row, out, first - base, to - first, int64(0))
        else:  # hashes alone: start over
            to = base
    return to - base


_HTTP, _HTTPS = 0x2F2F3A70747468, 0x2F2F3A7370747468
"""`http://` in seven bytes, `https://` in eight, as numbers."""


_ONES, _HIGHS = uint64(0x0101_0101_0101_0101), uint64(0x8080_8080_8080_8080)
_SLASHES, _ATS = uint64(_SLASH) * _ONES, uint64(_AT) * _ONES


@inlined
def _bytes_of(word: Word, eight: Word) -> Word:
    """Mark (by the highest bit) the bytes of a word that are that one of which `eight` has eight:
    all up to the first one are right.
    """
    other = word ^ eight
    return (other - _ONES) & ~other & _HIGHS


@inlined
def _lowest(word: Word) -> Word:
    """All bits below the lowest one that is set; of 0 all."""
    return (word & (~word + uint64(1))) - uint64(1)


@inlined
def _names_host(at: Int, end: Int) -> Bool:
    """Tell whether the URL between two addresses surely names a host: after http[s]:// comes a
    letter or a digit, and no `@` before the path.
    """
    if end - at <= 8:
        return False
    word = load64(at)
    place = at
    if word == uint64(_HTTPS):
        place += 8
    elif word & uint64(0xFF_FFFF_FFFF_FFFF) == uint64(_HTTP):
        place += 7
    else:
        return False
    if not _kind(place) & (_DIGIT | _LOWER | _UPPER):
        return False
    while place + 8 <= end:
        word = load64(place)
        slashes, ats = _bytes_of(word, _SLASHES), _bytes_of(word, _ATS)
        if slashes | ats:  # what stands before `@` names nobody
            return _lowest(slashes) < _lowest(ats)
        place += 8
    while place < end:
        byte = load8(place)
        if byte in (_SLASH, _AT):
            return byte == _SLASH
        place += 1
    return True


@kernel
def unsure_of_host(views: Views, addresses: U64, rows: I64) -> Int:
    """Fill `rows` with the numbers of the URLs that may name no host; returns how many these are.

    Nothing is copied, and the host is not looked at further: to take it out, as `urls.find_hosts`
    does, cost 80 ns for a URL of a segment of five million links, this 36.
    """
    count = int64(0)
    for i in range(len(views)):
        at = string_at(views, addresses, i)
        if not _names_host(at, at + int64(views[i, 0])):
            rows[count] = i
            count += 1
    return count
