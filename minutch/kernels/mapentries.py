"""A kernel that finds one entry in serialized MapWritables; `records.rawmap` has the layout."""

from __future__ import annotations

import numpy as np

from minutch.kernels.links import FLOAT_ID, INT_ID, LONG_ID, TEXT_ID, skip_text
from minutch.kernels.memory import int_at, vint_at
from minutch.kernels.native import I32, I64, U8, Bool, Int, inner, kernel

ABSENT, UNKNOWN = -1, -2


@inner
def skip_item(buf: U8, at: Int, end: Int) -> Int:
    """The offset after the Text or number at `at`, its class byte included; -1 for any other, or if not inside."""
    if at >= end:
        return -1
    kind = buf[at]
    if kind == TEXT_ID:
        return skip_text(buf, at + 1, end)
    size = 4 if kind in (INT_ID, FLOAT_ID) else 8 if kind == LONG_ID else -1
    return at + 1 + size if size > 0 and at + 1 + size <= end else -1


@inner
def is_text(buf: U8, at: Int, end: Int, text: U8) -> Bool:
    """Whether the item at `at`, which is inside, is this Text."""
    if buf[at] != TEXT_ID:
        return False
    size, at = vint_at(buf, at + 1, end)
    if size != len(text):
        return False
    same = True
    for i in range(size):
        same &= buf[at + i] == text[i]
    return same


@kernel
def text_entry(buf: U8, at: I64, length: I32, key: U8, place: I64, size: I32) -> None:
    """Where the Text lies that each map has under `key`.

    The size is ABSENT where there is none, and UNKNOWN for a map or a value that holds more than Texts and numbers.
    """
    for i in range(len(at)):
        place[i], size[i] = at[i], ABSENT
        p, end = at[i], at[i] + length[i]
        if p == end:
            continue
        if p + 5 > end or buf[p] != 0:
            size[i] = UNKNOWN
            continue
        entries = int_at(buf, p + 1)
        p += 5
        for _ in range(entries):
            value = skip_item(buf, p, end)
            after = skip_item(buf, value, end) if value >= 0 else np.int64(-1)
            if after < 0:
                size[i] = UNKNOWN
                break
            if is_text(buf, p, end, key):
                found, place[i] = vint_at(buf, value + 1, end)
                size[i] = found if buf[value] == TEXT_ID else UNKNOWN
                break
            p = after
