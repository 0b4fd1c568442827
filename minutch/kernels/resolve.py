"""A kernel that makes the links of pages absolute: the short ways of `resolve`, over runs of
serialized Outlinks.

prefixes   what may stand before a target bounds     start and end in it of root | directory | page
| scheme and colon | path of each page's base;
           end = -1 where there is none (see resolve.Resolver)
"""

from __future__ import annotations

from typing import Final

import numpy as np

from minutch.kernels.memory import put_vint, vint_at
from minutch.kernels.native import I64, U8, Bool, I64Rows, Int, inlined, inner, int64, kernel
from minutch.kernels.primitives import copy_bytes

ROOT: Final = 0
DIRECTORY: Final = 1
PAGE: Final = 2
SCHEME: Final = 3
PATH: Final = 4
"""Nothing of a target is taken away where the base has no path."""
WAYS: Final = 5

AT_PAGE: Final = 0
DONE: Final = 1
AT: Final = 2
TO: Final = 3

_SLASH, _HASH, _MARK, _DOT, _COLON = b"/#?.:"


def _host_bytes() -> list[bool]:
    return [
        chr(byte).isascii() and (chr(byte).isalnum() or chr(byte) in "._-") for byte in range(256)
    ]


_IN_HOST: Final = np.array(_host_bytes())


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
    data: U8, at: Int, end: Int, prefixes: U8, bounds: I64Rows, row: Int
) -> tuple[Int, Int, Int]:
    """Find what stands before a target: start and end in `prefixes`, and where the rest of the
    target starts.

    `row` is the page's first in `bounds`. The end is -1 if the target is not for a short way.
    """
    if at == end:
        return 0, -1, at
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
        return 0, -1, at
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
    top = start + bounds[row + ROOT, 1] - bounds[row + ROOT, 0] + 1
    while _stays(data, at, end) or _climbs(data, at, end):
        if data[at + 1] == _SLASH:
            at += 2
            continue
        stop -= 1
        while stop > top and prefixes[stop - 1] != _SLASH:
            stop -= 1
        if stop < top:
            return _above(data, at, end, start, top)
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
    (`lengths`) each.

    The links go to `out`, which has room for all; `counts` get how many each page has there (to
    begin with 0), `ends` where they end. `bounds` has five rows for each page. `state` is AT_PAGE,
    DONE (links of that page), AT (in `data`), TO (in `out`). False before a link that is not for a
    short way: the caller puts it there, and goes on behind it.
    """
    size = len(data)
    source, target, prefix = (
        int64(data.ctypes.data),
        int64(out.ctypes.data),
        int64(prefixes.ctypes.data),
    )
    done, at, to = state[DONE], state[AT], state[TO]
    for page in range(state[AT_PAGE], len(lengths)):
        for number in range(done, lengths[page]):
            length, start = vint_at(data, at, size)
            rest = start + length
            length, anchor = vint_at(data, rest, size)
            following = anchor + length + 1
            start, end = _without_blanks(data, start, rest)
            before, stop, start = _way(data, start, end, prefixes, bounds, WAYS * page)
            if stop < 0:
                state[AT_PAGE], state[DONE], state[AT], state[TO] = page, number, at, to
                return False
            to = put_vint(out, to, stop - before + end - start)
            copy_bytes(target + to, prefix + before, stop - before)
            to += stop - before
            copy_bytes(target + to, source + start, end - start)
            to += end - start
            copy_bytes(target + to, source + rest, following - rest)
            to += following - rest
            at = following
            counts[page] += 1
        ends[page] = to
        done = 0
    return True
