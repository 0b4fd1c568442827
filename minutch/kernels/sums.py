"""Kernels over the checksums of Hadoop's `.crc` files: a big-endian CRC-32 for each chunk of a
file.
"""

from __future__ import annotations

from minutch.kernels.memory import int_at, put_int
from minutch.kernels.native import U8, Int, int64, kernel
from minutch.kernels.primitives import call7


@kernel
def first_bad_sum(buf: U8, first: Int, last: Int, size: Int, sums: U8, crc32: Int) -> Int:
    """The first of the chunks `first` to `last` - 1 whose CRC is not the big-endian one in `sums`;
    -1 if all are.
    """
    data = int64(buf.ctypes.data)
    total = len(buf)
    for i in range(first, last):
        at = i * size
        count = min(size, total - at)
        found = call7(crc32, 0, data + at, count, 0, 0, 0, 0) & 0xFFFF_FFFF
        if found != int_at(sums, 4 * i) & 0xFFFF_FFFF:
            return i
    return -1


@kernel
def make_sums(buf: U8, start: Int, end: Int, size: Int, sums: U8, crc32: Int) -> None:
    """The big-endian CRCs of the chunks of `size` bytes of buf[start:end], the last one may be
    shorter.
    """
    data = int64(buf.ctypes.data)
    n = 0
    while start < end:
        count = min(size, end - start)
        put_int(sums, 4 * n, call7(crc32, 0, data + start, count, 0, 0, 0, 0) & 0xFFFF_FFFF)
        start += count
        n += 1
