"""Kernels over URLs in bulk: the hosts of plain ones, those with http or https and nothing unusual
before the path; the links of pages made absolute; the seeds among the lines of a text.

Links are runs of serialized Outlinks; they are resolved by the short ways of `urls.resolve`:

    prefixes   what may stand before a target
    bounds     start and end in it of root | directory | page | scheme and colon | path of each
               page's base; end = -1 where there is none (see resolve.Resolver)
"""

from __future__ import annotations

from typing import Final

import numpy as np

from minutch.kernels.html import leads_to_no_page
from minutch.kernels.memory import compare, copy_bytes, load8, load32, load64, put_vint, vint_at
from minutch.kernels.native import (
    I32,
    I64,
    U8,
    U64,
    Bool,
    I64Rows,
    Int,
    Views,
    Word,
    inlined,
    inner,
    int64,
    kernel,
    uint8,
    uint64,
)
from minutch.kernels.sequencefile import put_view

ROOT, DIRECTORY, PAGE, SCHEME, PATH, WAYS = range(6)
"""PATH: nothing of a target is taken away where the base has no path."""
AT_PAGE, DONE, AT, TO, STRICT, STATE = range(6)

_SLASH, _HASH, _MARK, _DOT, _COLON = b"/#?.:"


def _host_bytes() -> list[bool]:
    return [
        chr(byte).isascii() and (chr(byte).isalnum() or chr(byte) in "._-") for byte in range(256)
    ]


_IN_HOST: Final = np.array(_host_bytes())


_AS_IT_IS: Final = np.array(
    [
        chr(byte).isascii() and (chr(byte).isalnum() or chr(byte) in "-._~!$&()*+,;=:@/?#%")
        for byte in range(256)
    ]
)
"""Bytes that the WHATWG's parser leaves as they are in path, query and fragment."""


@inner
def _is_address(data: U8, at: Int, end: Int) -> Bool:
    """Tell whether an IPv4 address stands there as the WHATWG's parser writes it."""
    parts = 0
    while at < end:
        first, value = at, 0
        while at < end and at - first < 4 and 48 <= data[at] <= 57:
            value = 10 * value + int64(data[at]) - 48
            at += 1
        if at == first or value > 255 or (data[first] == 48 and at - first > 1):
            return False
        parts += 1
        if at < end:
            if data[at] != _DOT or at + 1 == end:  # the parser drops a final dot
                return False
            at += 1
    return parts == 4


@inner
def _after_plain_host(data: U8, at: Int, end: Int) -> Int:
    """Where a host, or an address and its port, ends; -1 if the WHATWG's parser may change or
    refuse it.
    """
    start = label = at
    while at < end and (
        97 <= data[at] <= 122 or 48 <= data[at] <= 57 or data[at] == 45 or data[at] == _DOT
    ):
        if data[at] == _DOT:
            if at == label:
                return -1
            label = at + 1
        elif at == label + 2 and data[at] == 45 and data[label] == 120 and data[label + 1] == 110:
            return -1  # Punycode: the parser validates it
        at += 1
    # If the last label may be a number, the parser takes the host for an address.
    if at == label or (data[label] < 97 and not _is_address(data, start, at)):
        return -1
    if at < end and data[at] == _COLON:  # 80 and 443 may be left out
        first = at + 1
        at = first
        while at < end and 48 <= data[at] <= 57:
            at += 1
        if at - first < 4 or at - first > 5 or data[first] == 48:
            return -1
        if at - first == 5 and data[first] > 53:  # from 60000 on it may be none
            return -1
    return at if at == end or data[at] in (_SLASH, _MARK, _HASH) else -1


@inner
def _whatwgs(data: U8, at: Int, end: Int, is_absolute: Bool) -> Int:
    """-1 if the WHATWG's parser does not do to a target what a short way does; else where it puts a
    slash behind a host, `end` + 1 if nowhere.
    """
    host = int64(0)
    if data[at] == _DOT:
        return -1
    if is_absolute:
        at = host = _after_plain_host(data, at + (8 if data[at + 4] == 115 else 7), end)
    elif data[at] == _SLASH and at + 1 < end and data[at + 1] == _SLASH:
        at = host = _after_plain_host(data, at + 2, end)
    if at < 0:
        return -1
    before = int64(0)
    for i in range(at, end):
        byte = int64(data[i])
        if not _AS_IT_IS[byte] or (byte == _DOT and before == _SLASH):
            return -1
        if byte == 37 and i + 2 < end and data[i + 1] == 50 and data[i + 2] | 32 == 101:
            return -1  # `%2e` counts as a dot
        before = byte
    return host if host > 0 and (host == end or data[host] != _SLASH) else end + 1


@inner
def _ends_as_authority(data: U8, at: Int, end: Int) -> Bool:
    """Tell whether `host[:port]` stands at `at`, and then a path, query, fragment or nothing."""
    start = at
    while at < end and _IN_HOST[data[at]]:
        at += 1
    if at == start:
        return False
    if at < end and data[at] == _COLON:
        first = at + 1
        at = first
        while at < end and at - first < 9 and 48 <= data[at] <= 57:
            at += 1
    return at == end or data[at] in (_SLASH, _MARK, _HASH)


@inner
def _is_absolute(data: U8, at: Int, end: Int) -> Bool:
    """Tell whether the target is an http or https URL with a plain host."""
    if (
        end - at < 8
        or data[at] != 104
        or data[at + 1] != 116
        or data[at + 2] != 116
        or data[at + 3] != 112
    ):
        return False
    at += 4
    if data[at] == 115:
        at += 1
    if data[at] != _COLON or data[at + 1] != _SLASH or data[at + 2] != _SLASH:
        return False
    return _ends_as_authority(data, at + 3, end)


@inner
def _is_plain_relative(data: U8, at: Int, end: Int) -> Bool:
    """Tell whether a relative target has no colon and no segment that starts with a dot in its
    path.
    """
    if at < end and data[at] == _SLASH:
        return False
    starts = True
    for i in range(at, end):
        byte = data[i]
        if byte in (_MARK, _HASH):
            return i > at
        if byte == _COLON or (starts and byte == _DOT):
            return False
        starts = byte == _SLASH
    return end > at


@inlined
def _stays(data: U8, at: Int, end: Int) -> Bool:
    """Tell whether `./` stands at `at`."""
    return at + 2 <= end and data[at] == _DOT and data[at + 1] == _SLASH


@inlined
def _climbs(data: U8, at: Int, end: Int) -> Bool:
    """Tell whether `../` stands at `at`."""
    return at + 3 <= end and data[at] == _DOT and data[at + 1] == _DOT and data[at + 2] == _SLASH


@inlined
def _above(data: U8, at: Int, end: Int, start: Int, top: Int) -> tuple[Int, Int, Int]:
    """`_way` for a target of which one `../` or two would climb above the root: these stay."""
    rest = at + 3
    if _climbs(data, rest, end):
        rest += 3
    return start, top if _is_plain_relative(data, rest, end) else -1, at


@inner
def _way(
    data: U8, at: Int, end: Int, prefixes: U8, bounds: I64Rows, row: Int, strict: Bool
) -> tuple[Int, Int, Int]:
    """Find what stands before a target: start and end in `prefixes`, and where the rest of the
    target starts.

    `row` is the page's first in `bounds`. The end is -1 if the target is not for a short way.
    """
    if at == end:
        return bounds[row + PAGE, 0], bounds[row + PAGE, 1] if strict else -1, at
    first = data[at]
    if first == _SLASH:
        if at + 1 == end or data[at + 1] != _SLASH:
            return bounds[row + ROOT, 0], bounds[row + ROOT, 1], at
        if _ends_as_authority(data, at + 2, end):
            return bounds[row + SCHEME, 0], bounds[row + SCHEME, 1], at
        return 0, -1, at
    if first == _HASH:
        return bounds[row + PAGE, 0], bounds[row + PAGE, 1], at
    if first == _MARK:
        # Where the base is all prefixes, its path follows its root.
        is_one = strict and bounds[row + PATH, 0] == bounds[row + ROOT, 1]
        return bounds[row + ROOT, 0], bounds[row + PATH, 1] if is_one else -1, at
    if _is_absolute(data, at, end):
        return 0, 0, at
    start, stop = bounds[row + DIRECTORY, 0], bounds[row + DIRECTORY, 1]
    if stop < 0:
        return 0, -1, at
    if first != _DOT:
        return start, stop if _is_plain_relative(data, at, end) else -1, at
    if bounds[row + PATH, 1] < 0:
        return 0, -1, at
    begin = at
    # Behind the root's slash, where climbing ends.
    top = start + bounds[row + ROOT, 1] - bounds[row + ROOT, 0] + 1
    while _stays(data, at, end) or _climbs(data, at, end):
        if data[at + 1] == _SLASH:
            at += 2
            continue
        # Cut the last segment off the directory.
        stop -= 1
        while stop > top and prefixes[stop - 1] != _SLASH:
            stop -= 1
        if stop < top and not strict:
            return _above(data, at, end, start, top)
        stop = max(stop, top)
        at += 3
    plain = at == end or data[at] in (_MARK, _HASH) or _is_plain_relative(data, at, end)
    return start, stop if plain and at > begin else -1, at


@inlined
def _without_blanks(data: U8, start: Int, end: Int) -> tuple[Int, Int]:
    """The bounds of a target without the characters up to the blank at both ends."""
    while start < end and data[start] <= 32:
        start += 1
    while start < end and data[end - 1] <= 32:
        end -= 1
    return start, end


@kernel
def resolve_links(
    data: U8,
    lengths: I64,
    prefixes: U8,
    bounds: I64Rows,
    out: U8,
    counts: I64,
    ends: I64,
    state: I64,
) -> Bool:
    """Resolve the runs of many pages, which stand back to back in `data` and have so many links
    (`lengths`) each; if `state[STRICT]`, as the WHATWG's standard has it, without those to no page.

    The links go to `out`, which has room for all; `counts` get how many each page has there (to
    begin with 0), `ends` where they end. `bounds` has five rows for each page. `state` is AT_PAGE,
    DONE (links of that page), AT (in `data`), TO (in `out`). False before a link that is not for a
    short way: the caller puts it there, and goes on behind it.
    """
    size = len(data)
    source, target = int64(data.ctypes.data), int64(out.ctypes.data)
    prefix = int64(prefixes.ctypes.data)
    done, at, to = state[DONE], state[AT], state[TO]  # resumes behind the caller's link
    for page in range(state[AT_PAGE], len(lengths)):
        for number in range(done, lengths[page]):
            length, start = vint_at(data, at, size)
            rest = start + length
            length, anchor = vint_at(data, rest, size)
            following = anchor + length + 1
            start, end = _without_blanks(data, start, rest)
            first = start
            strict, slash = state[STRICT] != 0, end + 1
            before, stop, start = _way(data, start, end, prefixes, bounds, WAYS * page, strict)
            if stop >= 0 and strict and start < end:  # else it leads to a folder, or the page
                slash = _whatwgs(data, start, end, stop == 0)
                stop = stop if slash >= 0 else -1
            # Of 12 links that a real page left to the library, 7 were `data:`, `tel:` and the like.
            if stop < 0 and strict and leads_to_no_page(source + first, end - first):
                at = following
                continue
            if stop < 0:
                state[AT_PAGE], state[DONE], state[AT], state[TO] = page, number, at, to
                return False
            to = put_vint(out, to, stop - before + end - start + (1 if slash <= end else 0))
            copy_bytes(target + to, prefix + before, stop - before)
            to += stop - before
            if slash <= end:
                copy_bytes(target + to, source + start, slash - start)
                to += slash - start + 1
                out[to - 1] = _SLASH
                start = slash
            copy_bytes(target + to, source + start, end - start)
            to += end - start
            copy_bytes(target + to, source + rest, following - rest)
            to += following - rest
            at = following
            counts[page] += 1
        ends[page] = to
        done = 0
    return True


_MOST_DIGITS = 5
_HTTP = 0x70747468


@inlined
def is_host_byte(byte: Word) -> Bool:
    """A letter, a digit, `.`, `_` or `-`."""
    lower = byte | uint64(32)
    return 97 <= lower <= 122 or 48 <= byte <= 57 or byte in (45, 46, 95)


@inlined
def ends_site(at: Int, end: Int) -> Bool:
    """Tell whether host and port are over at an address."""
    if at == end:
        return True
    byte = load8(at)
    return byte in (_SLASH, _MARK, _HASH)


@inner
def plain_host(at: Int, end: Int) -> tuple[Int, Int]:
    """The address and size of the host of the URL between two addresses; the size is -1 where it is
    not plain.

    plain := http[s]:// | letters, digits, `.`, `_`, `-` | [: up to 5 digits] | end or one of / ? #
    """
    if end - at < 8 or load32(at) != _HTTP:
        return at, int64(-1)
    p = at + (5 if load8(at + 4) == 115 else 4)
    if p + 3 > end or load8(p) != _COLON or load8(p + 1) != _SLASH or load8(p + 2) != _SLASH:
        return at, int64(-1)
    start = p + 3
    p = start
    while p < end and is_host_byte(load8(p)):
        p += 1
    size = p - start
    if p < end and load8(p) == _COLON:
        p += 1
        digits = p
        while p < end and 48 <= load8(p) <= 57:
            p += 1
        if p == digits or p - digits > _MOST_DIGITS:
            return at, int64(-1)
    return start, size if size > 0 and ends_site(p, end) else int64(-1)


@inner
def put_hosts(
    base: Int,
    at: I64,
    length: I32,
    count: Int,
    row: Int,
    out: U8,
    used: Int,
    views: Views,
    valid: U8,
) -> Int:
    """The hosts of the first `count` URLs as rows from `row` on; `used` bytes of `out` are used.
    See `find_hosts`.
    """
    target = int64(out.ctypes.data)
    last, size = used, int64(0)
    # The last URL that had a host, and its bytes up to the end of the host.
    url, site = base, int64(0)
    for k in range(count):
        i = row + k
        here, end = base + at[k], base + at[k] + length[k]
        # A URL that begins with the same bytes has the same host.
        if (
            not site
            or here + site > end
            or compare(here, site, url, site) != 0
            or not ends_site(here + site, end)
        ):
            start, found = plain_host(here, end)
            if found < 0:
                put_view(views, i, out, used, int64(0), int64(0))
                continue
            if found != size or compare(start, found, target + last, size) != 0:
                copy_bytes(target + used, start, found)
                last, size = used, found
                used += found
            url, site = here, start + size - here
        put_view(views, i, out, last, size, int64(0))
        valid[i >> 3] |= uint8(1 << (i & 7))
    return used


@kernel
def find_hosts(base: Int, at: I64, length: I32, out: U8, views: Views, valid: U8) -> Int:
    """The hosts of URLs, which lie at some distances from an address, as views (see `arrow`) of
    their bytes in `out`.

    A host that is the one before it is not repeated in `out`, which has room for all URLs. Where a
    URL is plain its bit is set in `valid`; the views of the others are empty. Returns how many
    bytes of `out` are used.
    """
    return put_hosts(base, at, length, len(at), int64(0), out, int64(0), views, valid)


_BLANK, _COMMENT, _TAB, _LINE_FEED = 32, ord("#"), 9, 10


@inner
def next_control(at: Int, end: Int) -> Int:
    """The address of the first byte below 32 between two addresses; `end` if there is none."""
    ones, high = uint64(0x0101_0101_0101_0101), uint64(0x8080_8080_8080_8080)
    while at + 8 <= end:
        word: Word = load64(at)
        # Marks bytes below 32. A false mark only ends this loop early.
        if (word - ones * uint64(32)) & ~word & high:
            break
        at += 8
    while at < end and load8(at) >= 32:
        at += 1
    return at


@inner
def trimmed(start: Int, end: Int) -> tuple[Int, Int]:
    """The addresses without the blanks (all bytes up to the space) at both ends."""
    while start < end and load8(start) <= _BLANK:
        start += 1
    while start < end and load8(end - 1) <= _BLANK:
        end -= 1
    return start, end


@kernel
def find_seeds(
    text: U8, number: Int, line: U64, url_at: I64, url_len: I32, extra_at: I64, extra_len: I32
) -> Int:
    """Find where URLs, and what stands after the first tab (length -1: no tab), lie in `text`, the
    lines of which end in LF.

    `number` is that of the first line. Arrays have room for all lines; returns how many of them
    hold a seed.
    """
    base = int64(text.ctypes.data)
    end = base + len(text)
    start, count = base, 0
    while start < end:
        tab = int64(0)
        at = next_control(start, end)
        while at < end and load8(at) != _LINE_FEED:
            if not tab and load8(at) == _TAB:
                tab = at
            at = next_control(at + 1, end)
        first, last = trimmed(start, tab or at)
        if first < last and load8(first) != _COMMENT:
            line[count] = number
            url_at[count] = first - base
            url_len[count] = last - first
            extra_at[count] = 0
            extra_len[count] = -1
            if tab:
                first, last = trimmed(tab + 1, at)
                extra_at[count] = first - base
                extra_len[count] = last - first
            count += 1
        number += 1
        start = at + 1
    return count
