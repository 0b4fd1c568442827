"""Kernels that take ParseData apart, look up values in a Metadata, and find and replace a value in
the metadata of the content.

    ParseData      byte 5 | ParseStatus | text title | int count | count × Outlink | Metadata of
                   content, of parse
    ParseStatus    byte 2 | byte major | short minor | int count | count × string
    Metadata       int count | count × (text name | int values | values × text)

A record that makes no sense ends a kernel, which returns False: the codec for single records then
names the error.
"""

from __future__ import annotations

from minutch.kernels.links import after_status, first_outlink, skip_map, skip_text
from minutch.kernels.memory import copy_bytes, int_at, vint_at
from minutch.kernels.native import I32, I64, U8, Bool, Int, Slices, inner, int64, kernel


@inner
def after_links(buf: U8, at: Int, end: Int) -> Int:
    """The offset after the outlinks whose number stands at `at`; -1 if they make no sense."""
    if at + 4 > end:
        return -1
    count = int_at(buf, at)
    at += 4
    if count < 0:
        return -1
    for _ in range(count):
        at = skip_text(buf, at, end)
        if at < 0:
            return -1
        at = skip_text(buf, at, end)
        if at < 0 or at >= end:
            return -1
        at = skip_map(buf, at + 1, end) if buf[at] else at + 1
        if at < 0:
            return -1
    return at


@inner
def after_metadata(buf: U8, at: Int, end: Int) -> Int:
    """The offset after the Metadata at `at`; -1 if it makes no sense."""
    if at + 4 > end:
        return -1
    names = int_at(buf, at)
    at += 4
    if names < 0:
        return -1
    for _ in range(names):
        at = skip_text(buf, at, end)
        if at < 0 or at + 4 > end:
            return -1
        values = int_at(buf, at)
        at += 4
        if values < 0:
            return -1
        for _ in range(values):
            at = skip_text(buf, at, end)
            if at < 0:
                return -1
    return at


@kernel
def split(
    records: Slices,
    major: U8,
    title_at: I64,
    title_len: I32,
    links_at: I64,
    content_at: I64,
    parse_at: I64,
) -> Bool:
    """Find where the parts of each ParseData lie; the Metadata of the parse goes to the record's
    end.
    """
    buf, at, length = records
    for i in range(len(at)):
        end = at[i] + length[i]
        p = after_status(buf, at[i], end)
        if p < 0:
            return False
        major[i] = buf[at[i] + 2]
        size, start = vint_at(buf, p, end)
        if size < 0 or start + size > end:
            return False
        title_at[i] = start
        title_len[i] = size
        links_at[i] = start + size
        p = after_links(buf, start + size, end)
        if p < 0:
            return False
        content_at[i] = p
        p = after_metadata(buf, p, end)
        if p < 0:
            return False
        # The Metadata of the parse, which ends the record.
        parse_at[i] = p
        if after_metadata(buf, p, end) != end:
            return False
    return True


@inner
def likeness(buf: U8, at: Int, size: Int, name: U8, folds: Bool) -> Int:
    """Tell how the string at `at` is like `name`: 2 if they are the same, 1 if `folds` and only the
    case of ASCII letters differs, else 0.
    """
    if size != len(name):
        return 0
    found = 2
    for k in range(size):
        byte, wanted = int64(buf[at + k]), int64(name[k])
        if byte >= 128 or wanted >= 128:  # only ASCII is folded
            folds = False
        if byte != wanted:
            found = 1
            if 65 <= byte <= 90:
                byte += 32
            if 65 <= wanted <= 90:
                wanted += 32
            if byte != wanted:
                return 0
    return found if found == 2 or folds else 0


@kernel
def first_values(
    buf: U8, at: I64, end: Int, name: U8, folds: Bool, value_at: I64, value_len: I32
) -> None:
    """Find where the first value of `name` lies in each Metadata, or if `folds` and there is none
    of this name, of one that differs in case; its length is -1 where there is none.

    The records have been passed over by `split`.
    """
    for i in range(len(at)):
        value_at[i] = at[i]
        value_len[i] = -1
        names = int_at(buf, at[i])
        p = at[i] + 4
        for _ in range(names):
            size, start = vint_at(buf, p, end)
            like = likeness(buf, start, size, name, folds)
            p = start + size
            values = int_at(buf, p)
            p += 4
            # An exact name replaces one in another case.
            wanted = like == 2 or (like == 1 and value_len[i] < 0)
            for number in range(values):
                size, start = vint_at(buf, p, end)
                if wanted and number == 0:
                    value_at[i] = start
                    value_len[i] = size
                p = start + size
            if like == 2 and values > 0:  # an exact match is final
                break


@kernel
def count_values(buf: U8, at: I64, end: Int, name: U8, folds: Bool, first: I64, count: I64) -> Int:
    """Find where the first name is in each Metadata that is `name`, but for its case if `folds`,
    and how many values all such names have; returns how many in all.

    The records have been passed over by `split`.
    """
    total = int64(0)
    for i in range(len(at)):
        first[i] = at[i]
        count[i] = 0
        names = int_at(buf, at[i])
        p = at[i] + 4
        for _ in range(names):
            begin = p
            size, start = vint_at(buf, p, end)
            like = likeness(buf, start, size, name, folds)
            p = start + size
            values = int_at(buf, p)
            p += 4
            if like > 0 and values > 0:
                if count[i] == 0:
                    first[i] = begin
                count[i] += values
                total += values
            if like == 2 and not folds:  # a name occurs once
                break
            for _ in range(values):
                size, start = vint_at(buf, p, end)
                p = start + size
    return total


@kernel
def place_values(
    buf: U8,
    end: Int,
    name: U8,
    folds: Bool,
    first: I64,
    count: I64,
    record: I64,
    value_at: I64,
    value_len: I32,
) -> None:
    """Fill in where values lie that `count_values` has counted, and which record each is of."""
    row = int64(0)
    for i in range(len(first)):
        p = first[i]
        left = count[i]
        while left > 0:
            size, start = vint_at(buf, p, end)
            like = likeness(buf, start, size, name, folds)
            p = start + size
            values = int_at(buf, p)
            p += 4
            for _ in range(values):
                size, start = vint_at(buf, p, end)
                p = start + size
                if like > 0:
                    record[row] = i
                    value_at[row] = start
                    value_len[row] = size
                    row += 1
                    left -= 1


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
            found = after + 4  # behind the number of values
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
