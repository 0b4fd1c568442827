"""Kernel that finds the hosts of plain URLs: those with http or https and nothing unusual before
the path.
"""

from __future__ import annotations

from minutch.kernels.find import put_view
from minutch.kernels.memory import compare
from minutch.kernels.native import (
    I32,
    I64,
    U8,
    Bool,
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
from minutch.kernels.primitives import copy_bytes, load8, load32

_SLASH, _COLON, _QUESTION, _HASH = ord("/"), ord(":"), ord("?"), ord("#")
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
    return byte in (_SLASH, _QUESTION, _HASH)


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
    url, site = (
        base,
        int64(0),
    )  # the URL before that had a host, and its bytes up to the host's end
    for k in range(count):
        i = row + k
        here, end = base + at[k], base + at[k] + length[k]
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
