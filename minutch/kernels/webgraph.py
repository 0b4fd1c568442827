"""Kernels that take apart and write the WebGraph's records, and that find when a page was fetched.

    LinkDatum    text URL | text anchor | float score | long timestamp | byte type
    LinkNodes    int count | count × LinkNode
    ParseData    … outlinks | Metadata of the content | Metadata of the parse
    Metadata     int count | count × (text name | int count | count × text value)

A record that is not what it should be makes a kernel say so; the caller turns to the codec for
single records.
"""

from __future__ import annotations

from minutch.kernels.crawldatum import put_long
from minutch.kernels.links import (
    AHEAD,
    ask_for_string,
    first_outlink,
    put_string,
    skip_map,
    skip_text,
)
from minutch.kernels.memory import copy_bytes, int_at, long_at, put_int, vint_at, vint_size
from minutch.kernels.native import (
    I8,
    I32,
    I64,
    U8,
    Int,
    StringColumn,
    Views,
    inner,
    int8,
    int64,
    kernel,
    string_at,
)

TAIL = 13
"""Bytes of a LinkDatum after its strings."""
NO_TIME = -(1 << 63)
"""In place of a time: the record has none."""
_MOST_DIGITS = 18  # always fits into a long


@kernel
def read_link_data(
    buf: U8,
    at: I64,
    length: I32,
    url_at: I64,
    url_len: I32,
    anchor_at: I64,
    anchor_len: I32,
    score_bits: I32,
    timestamp: I64,
    kind: I8,
) -> Int:
    """Find the fields of LinkDatum records, the number of a record that is not right, or -1."""
    for i in range(len(at)):
        end = at[i] + length[i]
        url_len[i], p = vint_at(buf, at[i], end)
        if url_len[i] < 0 or p + url_len[i] > end:
            return i
        url_at[i] = p
        anchor_len[i], p = vint_at(buf, p + url_len[i], end)
        if anchor_len[i] < 0 or p + anchor_len[i] + TAIL != end:
            return i
        anchor_at[i] = p
        p += anchor_len[i]
        score_bits[i] = int_at(buf, p)
        timestamp[i] = long_at(buf, p + 4)
        kind[i] = int8(buf[p + 12])
    return -1


@kernel
def measure_link_data(urls: Views, anchors: Views, at: I64, length: I32) -> Int:
    """Fill in where the records of links with these strings will lie; returns the bytes that they
    take.
    """
    total = int64(0)
    for i in range(len(at)):
        url, anchor = int64(urls[i, 0]), int64(anchors[i, 0])
        at[i] = total
        length[i] = vint_size(url) + url + vint_size(anchor) + anchor + TAIL
        total += length[i]
    return total


@kernel
def write_link_data(
    out: U8,
    at: I64,
    urls: StringColumn,
    anchors: StringColumn,
    score_bits: I32,
    timestamp: I64,
    kind: I8,
) -> None:
    """Write the records that `measure_link_data` has made room for."""
    target = int64(out.ctypes.data)
    for i in range(len(at)):
        near = min(i + AHEAD, len(at) - 1)
        ask_for_string(urls, near)
        ask_for_string(anchors, near)
        p = put_string(out, target, at[i], urls, i)
        p = put_string(out, target, p, anchors, i)
        put_int(out, p, score_bits[i])
        put_long(out, p + 4, timestamp[i])
        out[p + 12] = kind[i]


@inner
def _after_outlinks(buf: U8, p: Int, links: Int, end: Int) -> Int:
    """The offset after so many outlinks, of which the first is at `p`; -1 if they make no sense."""
    for _ in range(links):
        p = skip_text(buf, p, end)
        if p >= 0:
            p = skip_text(buf, p, end)
        if p < 0 or p >= end:
            return -1
        p = skip_map(buf, p + 1, end) if buf[p] else p + 1
        if p < 0:
            return -1
    return p


@inner
def _number(buf: U8, at: Int, size: Int) -> Int:
    """The decimal number that stands in `size` bytes; NO_TIME if there is none."""
    negative = size > 1 and buf[at] == 45
    start = at + 1 if size > 1 and buf[at] in (43, 45) else at  # Long.parseLong takes either sign
    if at + size == start or at + size - start > _MOST_DIGITS:
        return int64(NO_TIME)
    value = int64(0)
    for k in range(start, at + size):
        if buf[k] < 48 or buf[k] > 57:
            return int64(NO_TIME)
        value = value * 10 + (int64(buf[k]) - 48)
    return -value if negative else value


@kernel
def content_times(
    buf: U8, at: I64, length: I32, name: U8, start: Int, links: I64, times: I64
) -> Int:
    """Count the outlinks of each ParseData from number `start` on, and read the number under `name`
    in the content's metadata, its first value, or NO_TIME.

    Returns the number of a record that it can't read, or -1.
    """
    for i in range(start, len(at)):
        end = at[i] + length[i]
        times[i] = NO_TIME
        p = first_outlink(buf, at[i], end)
        if p < 0 or p + 4 > end:
            return i
        links[i] = int_at(buf, p)
        p = _after_outlinks(buf, p + 4, links[i], end)
        if p < 0 or p + 4 > end:
            return i
        names = int_at(buf, p)
        p += 4
        for _ in range(names):
            size, p = vint_at(buf, p, end)
            if size < 0 or p + size + 4 > end:
                return i
            is_it = size == len(name)
            k = 0
            while is_it and k < size:
                is_it = buf[p + k] == name[k]
                k += 1
            p += size
            values = int_at(buf, p)
            p += 4
            # Only the first value counts, as in Metadata.get.
            for number in range(values):
                size, p = vint_at(buf, p, end)
                if size < 0 or p + size > end:
                    return i
                if is_it and number == 0:
                    times[i] = _number(buf, p, size)
                p += size
    return -1


@kernel
def join_runs(starts: I64, strings: StringColumn, out: U8, at: I64, length: I32) -> None:
    """Put each run of strings, from starts[i] to before starts[i + 1], together behind their
    number.

    `out` has room for all strings and 4 bytes a run; `at` and `length` get the places of the runs.
    """
    target = int64(out.ctypes.data)
    end = int64(0)
    for i in range(len(at)):
        at[i] = end
        put_int(out, end, starts[i + 1] - starts[i])
        end += 4
        for row in range(starts[i], starts[i + 1]):
            ask_for_string(strings, min(row + AHEAD, len(strings.views) - 1))
            size = int64(strings.views[row, 0])
            copy_bytes(target + end, string_at(strings.views, strings.addresses, row), size)
            end += size
        length[i] = end - at[i]
