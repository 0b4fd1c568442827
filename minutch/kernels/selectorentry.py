"""Kernels for SelectorEntry in bulk: they find the CrawlDatum inside, and put entries together."""

from __future__ import annotations

import numpy as np

from minutch.kernels.layout import int_at, put_int, put_vint, vint_at, vint_size
from minutch.kernels.native import Array, Bool, Int, copy_bytes, kernel, string_at

_NUMBER = 4  # bytes of the segment's number


@kernel
def take_apart(
    values: Array,
    at: Array,
    length: Array,
    url_at: Array,
    url_len: Array,
    datum_at: Array,
    datum_len: Array,
    segment: Array,
) -> Bool:
    """Where URL and CrawlDatum of each entry lie in `values`, and its segment; False if one is too short."""
    for i in range(len(at)):
        end = at[i] + length[i] - _NUMBER
        size, start = vint_at(values, at[i], end)
        if size < 0 or start + size > end:
            return False
        url_at[i] = start
        url_len[i] = size
        datum_at[i] = start + size
        datum_len[i] = end - start - size
        segment[i] = int_at(values, end)
    return True


@kernel
def sizes(urls: Array, datum_len: Array, length: Array) -> None:
    """The bytes of each entry."""
    for i in range(len(length)):
        size = np.int64(urls[i, 0])
        length[i] = vint_size(size) + size + datum_len[i] + _NUMBER


@kernel
def put_together(
    out: Array, at: Array, urls: Array, addresses: Array, data: Array, datum_at: Array, datum_len: Array, segment: Array
) -> None:
    """Write entries to the offsets `at` of `out`."""
    target, source = np.int64(out.ctypes.data), np.int64(data.ctypes.data)
    for i in range(len(at)):
        size = np.int64(urls[i, 0])
        to: Int = put_vint(out, at[i], size)
        copy_bytes(target + to, string_at(urls, addresses, i), size)
        to += size
        copy_bytes(target + to, source + datum_at[i], datum_len[i])
        put_int(out, to + datum_len[i], np.int64(segment[i]))
