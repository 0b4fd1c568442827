"""Kernels that find and replace a value in the content metadata of ParseData; `records.parsedata` has the layout."""

from __future__ import annotations

import numpy as np

from minutch.kernels.links import first_outlink, skip_map, skip_text
from minutch.kernels.memory import int_at, vint_at
from minutch.kernels.native import I32, I64, U8, Bool, Int, copy_bytes, inner, kernel


@inner
def content_metadata(buf: U8, at: Int, end: Int) -> Int:
    """The offset of the content metadata in the ParseData at `at`; -1 if it makes no sense."""
    p = first_outlink(buf, at, end)
    if p < 0 or p + 4 > end:
        return -1
    links = int_at(buf, p)
    p += 4
    if links < 0:
        return -1
    for _ in range(links):
        p = skip_text(buf, p, end)
        if p < 0:
            return -1
        p = skip_text(buf, p, end)
        if p < 0 or p >= end:
            return -1
        p = skip_map(buf, p + 1, end) if buf[p] else p + 1
        if p < 0:
            return -1
    return p if p + 4 <= end else -1


@inner
def is_name(buf: U8, at: Int, end: Int, name: U8) -> Bool:
    """Whether the Text at `at`, which is inside, is `name`."""
    size, at = vint_at(buf, at, end)
    if size != len(name):
        return False
    same = True
    for i in range(size):
        same &= buf[at + i] == name[i]
    return same


@inner
def only_value(buf: U8, p: Int, end: Int, name: U8) -> Int:
    """The offset of the only value of `name` in the metadata at `p`; -1 if it has none or several, and for damage."""
    found = np.int64(-1)
    names = int_at(buf, p)
    p += 4
    for _ in range(names):
        after = skip_text(buf, p, end)
        if after < 0 or after + 4 > end:
            return -1
        values = int_at(buf, after)
        if is_name(buf, p, end, name):
            if found >= 0 or values != 1:
                return -1
            found = after + 4
        p = after + 4
        if values < 0:
            return -1
        for _ in range(values):
            p = skip_text(buf, p, end)
            if p < 0:
                return -1
    return found


@kernel
def find_value(buf: U8, at: I64, length: I32, name: U8, value_at: I64, value_len: I32) -> None:
    """Where the only value of `name` lies in the content metadata of each record, as a serialized Text.

    The length is -1 where there is none or more than one, and where a record is not as it should be.
    """
    for i in range(len(at)):
        end = at[i] + length[i]
        start = content_metadata(buf, at[i], end)
        place = only_value(buf, start, end, name) if start >= 0 else np.int64(-1)
        value_at[i] = place
        value_len[i] = skip_text(buf, place, end) - place if place >= 0 else -1


@kernel
def replace_value(
    buf: U8, at: I64, length: I32, value_at: I64, value_len: I32, value: U8, out: U8, out_at: I64
) -> None:
    """Copy each record to its place in `out`, with `value` for what `find_value` has found; others are left out."""
    source, target = np.int64(buf.ctypes.data), np.int64(out.ctypes.data)
    text, size = np.int64(value.ctypes.data), len(value)
    for i in range(len(at)):
        if value_len[i] < 0:
            continue
        before = value_at[i] - at[i]
        after = length[i] - before - value_len[i]
        copy_bytes(target + out_at[i], source + at[i], before)
        copy_bytes(target + out_at[i] + before, text, size)
        copy_bytes(target + out_at[i] + before + size, source + value_at[i] + value_len[i], after)
