"""Kernel that inflates the values of records that are compressed one by one."""

from __future__ import annotations

from typing import NamedTuple

from minutch.kernels.memory import compare
from minutch.kernels.native import Int, Slices, int64, kernel
from minutch.kernels.primitives import call7, scratch64


class Decompressor(NamedTuple):
    """The fields of what unpacks zlib streams: libdeflate's decompressor and function."""

    state: Int
    function: Int


@kernel
def inflate(streams: Slices, first: Int, strings: Slices, decompressor: Decompressor) -> Int:
    """Inflate zlib streams from number `first` on into `strings`, one after the other.

    A stream with the bytes of the one before shares its output: the links of a page are often
    alike. Returns the number of the stream for which there was no room, or how many there are; -1
    if one is damaged.
    """
    buf, at, length = streams
    out, out_at, out_len = strings
    counts = scratch64(2)
    source = int64(buf.ctypes.data)
    target = int64(out.ctypes.data)
    count_at = int64(counts.ctypes.data)
    end = out_at[first - 1] + out_len[first - 1] if first else int64(0)
    for i in range(first, len(at)):
        if i and length[i] == length[i - 1]:
            size = int64(length[i])
            if compare(source + at[i], size, source + at[i - 1], size) == 0:
                out_at[i], out_len[i] = out_at[i - 1], out_len[i - 1]
                continue
        room = len(out) - end
        code = (
            call7(
                decompressor.function,
                decompressor.state,
                source + at[i],
                length[i],
                target + end,
                room,
                count_at,
                count_at + 8,
            )
            & 0xFFFF_FFFF
        )
        if code == 3:
            return i
        if code != 0 or counts[0] != length[i]:
            return -1
        out_at[i] = end
        out_len[i] = counts[1]
        end += counts[1]
    return len(at)
