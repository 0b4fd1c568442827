"""Kernels that find and replace a value in the content metadata of ParseData; `records.parsedata`
has the layout.
"""

from __future__ import annotations

from minutch.kernels.links import first_outlink, skip_text
from minutch.kernels.memory import int_at, vint_at
from minutch.kernels.native import I32, I64, U8, Bool, Int, Slices, inner, int64, kernel
from minutch.kernels.parsedata import after_links
from minutch.kernels.primitives import copy_bytes


@inner
def content_metadata(buf: U8, at: Int, end: Int) -> Int:
    """The offset of the content metadata in the ParseData at `at`; -1 if it makes no sense."""
    p = first_outlink(buf, at, end)
    if p < 0:
        return -1
    p = after_links(buf, p, end)
    return p if p >= 0 and p + 4 <= end else -1


@inner
def is_name(buf: U8, at: Int, end: Int, name: U8) -> Bool:
    """Tell whether the Text at `at`, which is inside, is `name`."""
    size, at = vint_at(buf, at, end)
    if size != len(name):
        return False
    same = True
    for i in range(size):
        same &= buf[at + i] == name[i]
    return same


@inner
def only_value(buf: U8, p: Int, end: Int, name: U8) -> tuple[Int, Int]:
    """The offset of the only value of `name` in the metadata at `p`, and that after the metadata.

    The first is -1 if `name` has none or several, the second if the metadata are damaged.
    """
    found, seen = int64(-1), int64(0)
    names = int_at(buf, p)
    p += 4
    for _ in range(names):
        after = skip_text(buf, p, end)
        if after < 0 or after + 4 > end:
            return -1, -1
        values = int_at(buf, after)
        if values < 0:
            return -1, -1
        if is_name(buf, p, end, name):
            seen += values
            found = after + 4
        p = after + 4
        for _ in range(values):
            p = skip_text(buf, p, end)
            if p < 0:
                return -1, -1
    return (found if seen == 1 else int64(-1)), p


@kernel
def find_value(records: Slices, name: U8, place: I64, size: I32, single: U8) -> None:
    """Find where the only value of `name` lies in the content metadata of each record, as a
    serialized Text.

    Where it has none or several, where the metadata lie, and `single` is 0. The size is -1 for a
    record that is not as it should be.
    """
    buf, at, length = records
    for i in range(len(at)):
        end = at[i] + length[i]
        start = content_metadata(buf, at[i], end)
        found, after = only_value(buf, start, end, name) if start >= 0 else (int64(-1), int64(-1))
        single[i] = found >= 0
        place[i] = found if found >= 0 else start
        size[i] = (
            (skip_text(buf, found, end) if found >= 0 else after) - place[i] if after >= 0 else -1
        )


@kernel
def replace(
    records: Slices,
    place: I64,
    size: I32,
    texts: Slices,
    out: U8,
    out_at: I64,
) -> None:
    """Copy each record to its place in `out`, with a string of `texts` for the bytes that
    `find_value` has found.
    """
    at, length, text_at, text_len = records.at, records.length, texts.at, texts.length
    source, target, text = (
        int64(records.bytes.ctypes.data),
        int64(out.ctypes.data),
        int64(texts.bytes.ctypes.data),
    )
    for i in range(len(at)):
        before = place[i] - at[i]
        after = length[i] - before - size[i]
        copy_bytes(target + out_at[i], source + at[i], before)
        copy_bytes(target + out_at[i] + before, text + text_at[i], text_len[i])
        copy_bytes(target + out_at[i] + before + text_len[i], source + place[i] + size[i], after)
