"""Kernels that take ParseData apart, and that look up values in a Metadata.

    ParseData      byte 5 | ParseStatus | text title | int count | count × Outlink | Metadata of
                   content, of parse
    ParseStatus    byte 2 | byte major | short minor | int count | count × string
    Metadata       int count | count × (text name | int values | values × text)

A record that makes no sense ends a kernel, which returns False: the codec for single records then
names the error.
"""

from __future__ import annotations

from minutch.kernels.links import after_status, skip_map, skip_text
from minutch.kernels.memory import int_at, vint_at
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
        parse_at[i] = p
        if after_metadata(buf, p, end) != end:
            return False
    return True


@kernel
def first_values(buf: U8, at: I64, end: Int, name: U8, value_at: I64, value_len: I32) -> None:
    """Find where the first value of `name` lies in each Metadata; its length is -1 where there is
    none.

    The records have been passed over by `split`.
    """
    for i in range(len(at)):
        value_at[i] = at[i]
        value_len[i] = -1
        names = int_at(buf, at[i])
        p = at[i] + 4
        for _ in range(names):
            size, start = vint_at(buf, p, end)
            same = size == len(name)
            if same:
                for k in range(size):
                    if buf[start + k] != name[k]:
                        same = False
                        break
            p = start + size
            values = int_at(buf, p)
            p += 4
            for number in range(values):
                size, start = vint_at(buf, p, end)
                if same and number == 0:
                    value_at[i] = start
                    value_len[i] = size
                p = start + size
            if same and values > 0:
                break


@kernel
def count_values(buf: U8, at: I64, end: Int, name: U8, first: I64, count: I64) -> Int:
    """Find where the values of `name` begin in each Metadata, and how many there are; returns how
    many in all.

    The records have been passed over by `split`.
    """
    total = int64(0)
    for i in range(len(at)):
        first[i] = at[i]
        count[i] = 0
        names = int_at(buf, at[i])
        p = at[i] + 4
        for _ in range(names):
            size, start = vint_at(buf, p, end)
            same = size == len(name)
            if same:
                for k in range(size):
                    if buf[start + k] != name[k]:
                        same = False
                        break
            p = start + size
            values = int_at(buf, p)
            p += 4
            if same:
                first[i] = p
                count[i] = values
                total += values
                break
            for _ in range(values):
                size, start = vint_at(buf, p, end)
                p = start + size
    return total


@kernel
def place_values(
    buf: U8, end: Int, first: I64, count: I64, record: I64, value_at: I64, value_len: I32
) -> None:
    """Fill in where values lie that `count_values` has counted, and which record each is of."""
    row = int64(0)
    for i in range(len(first)):
        p = first[i]
        for _ in range(count[i]):
            record[row] = i
            value_len[row], p = vint_at(buf, p, end)
            value_at[row] = p
            p += value_len[row]
            row += 1
