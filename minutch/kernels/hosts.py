"""Kernel that finds the hosts of plain URLs: those with http or https and nothing unusual before the path."""

from __future__ import annotations

from minutch.kernels.native import I32, I64, U8, Bool, Int, inlined, kernel

_SLASH, _COLON, _QUESTION, _HASH = ord("/"), ord(":"), ord("?"), ord("#")
_MOST_DIGITS = 5


@inlined
def is_host_byte(byte: Int) -> Bool:
    """A letter, a digit, `.`, `_` or `-`."""
    lower = byte | 32
    return 97 <= lower <= 122 or 48 <= byte <= 57 or byte in (45, 46, 95)


@kernel
def find_hosts(buf: U8, at: I64, length: I32, host_at: I64, host_len: I32) -> Int:
    """Where the host of each URL lies in `buf`; its length is -1 where the URL is not plain. Returns how many are not.

    plain := http[s]:// | letters, digits, `.`, `_`, `-` | [: up to 5 digits] | end or one of / ? #
    """
    others = 0
    for i in range(len(at)):
        p, end = at[i], at[i] + length[i]
        host_at[i], host_len[i] = p, -1
        others += 1
        if end - p < 8 or buf[p] != 104 or buf[p + 1] != 116 or buf[p + 2] != 116 or buf[p + 3] != 112:
            continue
        p += 5 if buf[p + 4] == 115 else 4
        if p + 3 > end or buf[p] != _COLON or buf[p + 1] != _SLASH or buf[p + 2] != _SLASH:
            continue
        p += 3
        start = p
        while p < end and is_host_byte(buf[p]):
            p += 1
        stop = p
        if stop == start:
            continue
        if p < end and buf[p] == _COLON:
            p += 1
            digits = p
            while p < end and 48 <= buf[p] <= 57:
                p += 1
            if p == digits or p - digits > _MOST_DIGITS:
                continue
        if p < end and buf[p] != _SLASH and buf[p] != _QUESTION and buf[p] != _HASH:
            continue
        host_at[i], host_len[i] = start, stop - start
        others -= 1
    return others
