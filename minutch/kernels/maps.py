"""Kernels that take MapWritables apart: the metadata of CrawlDatums and HostDatums, many at a time.

    n classes | n × (id | short size, name) | int entries | entries × (id, key, id, value)

Entries whose classes Hadoop has ids for are found, and a ProtocolStatus, which Nutch puts beside
them. A map that has anything else, or makes no sense, is reported as a whole; its caller turns to
`RawMap`.
"""

from __future__ import annotations

from typing import NamedTuple

from minutch.kernels.memory import compare, copy_bytes, load8
from minutch.kernels.native import (
    I32,
    I64,
    U8,
    Int,
    StringColumn,
    inlined,
    inner,
    int8,
    int32,
    int64,
    kernel,
    string_at,
    uint64,
)

TEXT, FLOAT, INT, LONG, BOOLEAN, NULL, MD5, STATUS, ODD = (
    0x8C,
    0x84,
    0x85,
    0x86,
    0x82,
    0x89,
    0x88,
    1,
    0,
)
"""Kinds of values, the ids of their classes; STATUS is a ProtocolStatus, ODD a map that was not
taken apart.
"""


@inlined
def word_of(at: Int) -> Int:
    """The big-endian int at an address."""
    high = load8(at) << uint64(24) | load8(at + 1) << uint64(16)
    return int64(int32(high | load8(at + 2) << uint64(8) | load8(at + 3)))


@inner
def text_size(at: Int, end: Int) -> tuple[Int, Int]:
    """The size of the Text at an address, and where its bytes begin; -1 if it is not inside."""
    if at >= end:
        return -1, at
    first = int64(int8(load8(at)))
    at += 1
    size = first
    if first < 0:
        more = -112 - first  # WritableUtils.decodeVIntSize less the first byte
        if more < 1 or more > 4 or at + more > end:
            return -1, at
        size = int64(0)
        for _ in range(more):
            size = size << 8 | int64(load8(at))
            at += 1
    return (size, at) if at + size <= end else (-1, at)


@inner
def status_end(at: Int, end: Int) -> Int:
    """The address after the ProtocolStatus (version 2) at an address; -1 if it is none."""
    if at + 14 > end or load8(at) != 2:  # version, code, time, number of arguments
        return -1
    arguments = word_of(at + 10)
    at += 14
    for _ in range(arguments):
        if at + 4 > end:
            return -1
        size = word_of(at)
        at += 4 + (size if size > 0 else 0)  # -1 is null
        if size < -1 or at > end:
            return -1
    return at


@inner
def value_place(kind: Int, at: Int, end: Int) -> tuple[Int, Int]:
    """Find where the value of a kind begins that is stored at an address, and its size; -1 if it
    can't be passed over.
    """
    if kind == TEXT:
        size, start = text_size(at, end)
        return start, size
    size = int64(-1)
    if kind in (INT, FLOAT):
        size = int64(4)
    elif kind == LONG:
        size = int64(8)
    elif kind == BOOLEAN:
        size = int64(1)
    elif kind == NULL:
        size = int64(0)
    elif kind == MD5:
        size = int64(16)
    elif kind == STATUS:
        size = status_end(at, end) - at
    return (at, size) if size >= 0 and at + size <= end else (at, int64(-1))


@inner
def which_name(at: Int, size: Int, names: U8, ends: I64) -> Int:
    """The number of the name at an address among `names`, which end at `ends`; -1 if it is none of
    them.
    """
    start = int64(0)
    for i in range(len(ends)):
        if ends[i] - start == size and compare(at, size, names.ctypes.data + start, size) == 0:
            return i
        start = ends[i]
    return -1


@inner
def classes_end(at: Int, end: Int, status: U8) -> tuple[Int, Int]:
    """The address after a map's table of classes (-1: it makes no sense), and the id of the class
    named `status`.
    """
    if at >= end:
        return -1, 0
    count = int64(load8(at))
    at += 1
    found = int64(0)
    for _ in range(count):
        if at + 3 > end:
            return -1, 0  # as DataOutput.writeUTF has it
        number = int64(load8(at))
        size = int64(load8(at + 1) << uint64(8) | load8(at + 2))
        at += 3
        if at + size > end:
            return -1, 0
        if size == len(status) and compare(at, size, status.ctypes.data, size) == 0:
            found = number
        at += size
    return at, found


class Entries(NamedTuple):
    """The fields of entries: the rows of their maps, the numbers of their names, the kinds of their
    values, and the addresses and lengths of both.
    """

    row: I64
    name: I64
    kind: I64
    key_at: I64
    key_len: I32
    value_at: I64
    value_len: I32


@kernel
def find_entries(maps: StringColumn, status: U8, names: U8, ends: I64, found: Entries) -> Int:
    """Find the entries of a column's maps whose key is a Text, among `names` if there are any (else
    `name` is -1).

    `status` is the class name of ProtocolStatus. A map that was not taken apart has one entry, of
    kind ODD. Returns the number of entries; -1 if there is no room for all of them.
    """
    views, addresses = maps
    row, name, kind, key_at, key_len, value_at, value_len = found
    count, room = 0, len(row)
    for i in range(len(views)):
        size = int64(views[i, 0])
        if size == 0:
            continue
        at = string_at(views, addresses, i)
        end = at + size
        first = count
        at, status_id = classes_end(at, end, status)
        entries = int64(-1)
        if at >= 0 and at + 4 <= end:
            entries = word_of(at)
            at += 4
        # Entries still to come: if any are left at a break, the whole map is odd.
        rest = entries
        for _ in range(entries):
            if at >= end or int64(load8(at)) != TEXT:
                break
            key_size, key = text_size(at + 1, end)
            at = key + key_size  # not used before the size is checked
            if key_size < 0 or at >= end:
                break
            what = int64(load8(at))
            if status_id and what == status_id:
                what = int64(STATUS)
            # AbstractMapWritable numbers the map's own classes from 1 on, Hadoop's from -127 on.
            elif what < 0x80:
                what = int64(ODD)
            start, length = value_place(what, at + 1, end)
            if length < 0:
                break
            at = start + length
            rest -= 1
            wanted = which_name(key, key_size, names, ends) if len(ends) else int64(-1)
            if len(ends) and wanted < 0:
                continue
            if count == room:
                return -1
            row[count], name[count], kind[count] = i, wanted, what
            key_at[count], key_len[count] = key, key_size
            value_at[count], value_len[count] = start, length
            count += 1
        # Drop what was found of it.
        if rest != 0 or at != end:
            count = first
            if count == room:
                return -1
            row[count], name[count], kind[count] = i, -1, ODD
            key_at[count] = value_at[count] = end
            key_len[count] = value_len[count] = 0
            count += 1
    return count


@kernel
def gather(at: I64, length: I32, out: U8, out_at: I64) -> None:
    """Copy strings by their addresses into `out`, one after the other; `out_at` gets their
    offsets.
    """
    target = int64(out.ctypes.data)
    done = int64(0)
    for i in range(len(at)):
        copy_bytes(target + done, at[i], int64(length[i]))
        out_at[i] = done
        done += length[i]
