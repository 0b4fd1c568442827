"""Kernels that decode and encode CrawlDatum, version 7, in bulk; `records.crawldatum_columns` has
the layout.

A record that is not a plain version 7 one makes the kernel stop, and the caller turns to the codec
for single records.
"""

from __future__ import annotations

from typing import NamedTuple

from minutch.kernels.memory import copy_bytes, int_at, long_at, put_int, scratch32, scratch64
from minutch.kernels.native import (
    I8,
    I32,
    I64,
    U8,
    Bool,
    Int,
    StringColumn,
    Views,
    inlined,
    inner,
    int8,
    int64,
    kernel,
    string_at,
)
from minutch.kernels.sequencefile import RecordPlaces, StretchPlace, put_view, records, verified

FIXED_SIZE = 28  # from the version to the signature's length
LEAST_RECORD = 8 + 1 + FIXED_SIZE + 1
"""Bytes of a record with its lengths, an empty URL and nothing that may be left out."""
AT_A_TIME = 256
"""Records that are found before they are decoded."""


@inlined
def put_long(buf: U8, at: Int, value: Int) -> None:
    """Store a big-endian long."""
    put_int(buf, at, value >> 32)
    put_int(buf, at + 4, value)


class Columns(NamedTuple):
    """The fields of many records. A column without room is not wanted."""

    status: U8
    fetch_time: I64
    modified_time: I64
    retries: I8
    interval: I32
    score_bits: I32
    signature_at: I64
    signature_len: I32
    metadata_at: I64
    metadata_len: I32


class Numbers(NamedTuple):
    """The fields of many records that are numbers."""

    status: U8
    fetch_time: I64
    modified_time: I64
    retries: I8
    interval: I32
    score_bits: I32


@inner
def decode_rows(buf: U8, at: I64, length: I32, count: Int, row: Int, columns: Columns) -> Bool:
    """Fill rows from `row` on from the first `count` values; see `decode`."""
    for k in range(count):
        i = row + k
        p = at[k]
        size = length[k]
        if size < FIXED_SIZE + 1 or buf[p] != 7:  # CrawlDatum.CUR_VERSION
            return False
        if len(columns.status):
            columns.status[i] = buf[p + 1]
        if len(columns.fetch_time):
            columns.fetch_time[i] = long_at(buf, p + 2)
        if len(columns.retries):
            columns.retries[i] = int8(buf[p + 10])
        if len(columns.interval):
            columns.interval[i] = int_at(buf, p + 11)
        if len(columns.score_bits):
            columns.score_bits[i] = int_at(buf, p + 15)
        if len(columns.modified_time):
            columns.modified_time[i] = long_at(buf, p + 19)
        if len(columns.signature_at) or len(columns.metadata_at):
            # CrawlDatum.readFields takes a length of 0 or less as none.
            signature = max(int64(int8(buf[p + 27])), int64(0))
            entries, flag = int64(0), FIXED_SIZE + signature
            if size <= flag:
                return False
            if buf[p + flag]:  # a boolean: metadata follow
                entries = map_size(buf, p + flag + 1, p + size)
                if entries < 0:
                    return False
            elif size != flag + 1:  # bytes that nobody reads
                return False
            if len(columns.signature_at):
                columns.signature_at[i] = p + FIXED_SIZE
                columns.signature_len[i] = signature
            if len(columns.metadata_at):
                columns.metadata_at[i] = p + flag + 1
                columns.metadata_len[i] = size - flag - 1 if entries > 0 else 0
    return True


@kernel
def decode(buf: U8, at: I64, length: I32, columns: Columns) -> Bool:
    """Fill the columns from the values at offsets `at` of `buf`; False if one of them is not a
    plain version 7.
    """
    return decode_rows(buf, at, length, len(at), 0, columns)


@kernel
def scan(
    stretch: StretchPlace,
    key_at: I64,
    key_len: I32,
    columns: Columns,
) -> Int:
    """`find.walk` and `decode` in one: a record is decoded while it is in the cache, and only its
    columns are kept.

    Columns that are wanted have room for a record of each LEAST_RECORD bytes. Returns how many
    there are; -1 if something looks wrong.
    """
    found_at, found_len = scratch64(AT_A_TIME), scratch32(AT_A_TIME)
    value_at, value_len = scratch64(AT_A_TIME), scratch32(AT_A_TIME)
    places = RecordPlaces(found_at, found_len, value_at, value_len)
    row = int64(0)
    start, end = stretch.start, stretch.end
    # Checksums cover whole chunks, and the first may begin before the stretch.
    at, good = start, start // stretch.chunk * stretch.chunk
    while at < end:
        good = verified(stretch, good)
        if good < 0:
            return -1
        count = int64(AT_A_TIME)
        # A full batch may not be all that lies before `good`.
        while count == AT_A_TIME:
            count, at = records(stretch, at, min(good, end), int64(0), places)
            if count < 0 or not decode_rows(stretch.data, value_at, value_len, count, row, columns):
                return -1
            if len(key_at):
                for k in range(count):
                    key_at[row + k] = found_at[k]
                    key_len[row + k] = found_len[k]
            row += count
        if good >= end and at < end:  # the last record is cut off
            return -1
    return row


@inner
def put_plain(
    buf: U8, p: Int, size: Int, row: Int, status: U8, fetch_time: I64, score_bits: I32
) -> Bool:
    """Fill a row from the value of so many bytes at `p`; see `plain`."""
    if size < FIXED_SIZE + 1 or buf[p] != 7:
        return False
    # The whole record is checked: unchanged ones are copied without being decoded.
    status[row] = buf[p + 1]
    fetch_time[row] = long_at(buf, p + 2)
    score_bits[row] = int_at(buf, p + 15)
    flag = FIXED_SIZE + int64(int8(buf[p + 27]))
    if flag < FIXED_SIZE or flag >= size:
        return False
    if size == flag + 1:
        if buf[p + flag] != 0:
            return False
    # `encode` never writes an empty map.
    elif buf[p + flag] != 1 or map_size(buf, p + flag + 1, p + size) <= 0:
        return False
    return True


@kernel
def plain(buf: U8, at: I64, length: I32, status: U8, fetch_time: I64, score_bits: I32) -> Bool:
    """Fill the columns from the values at offsets `at` of `buf`; False if one of them is not as
    `encode` writes it.
    """
    for i in range(len(at)):
        if not put_plain(buf, at[i], int64(length[i]), i, status, fetch_time, score_bits):
            return False
    return True


@kernel
def scan_plain(
    stretch: StretchPlace,
    keys: Views,
    values: Views,
    status: U8,
    fetch_time: I64,
    score_bits: I32,
) -> Int:
    """`find.walk` and `plain` in one, as `scan` is, and the views of keys and values in the bytes
    of the stretch, all of which have room for a record of each LEAST_RECORD bytes.

    Returns how many records there are; -1 if one is not as `encode` writes it, or looks wrong.
    """
    found_at, found_len = scratch64(AT_A_TIME), scratch32(AT_A_TIME)
    value_at, value_len = scratch64(AT_A_TIME), scratch32(AT_A_TIME)
    places = RecordPlaces(found_at, found_len, value_at, value_len)
    row = int64(0)
    buf, start, end = stretch.data, stretch.start, stretch.end
    at, good = start, start // stretch.chunk * stretch.chunk
    while at < end:
        good = verified(stretch, good)
        if good < 0:
            return -1
        count = int64(AT_A_TIME)
        while count == AT_A_TIME:
            count, at = records(stretch, at, min(good, end), int64(0), places)
            for k in range(count):
                p, size = value_at[k], int64(value_len[k])
                if not put_plain(buf, p, size, row, status, fetch_time, score_bits):
                    return -1
                put_view(keys, row, buf, found_at[k], int64(found_len[k]), int64(0))
                put_view(values, row, buf, p, size, int64(0))
                row += 1
        if count < 0 or (good >= end and at < end):  # nonsense, or the last record is cut off
            return -1
    return row


@inner
def map_size(buf: U8, at: Int, end: Int) -> Int:
    """The number of entries of the MapWritable at `at`; -1 if it goes beyond `end`."""
    if at >= end:
        return -1
    classes = buf[at]
    at += 1
    for _ in range(classes):  # non-Hadoop classes: id, then name by DataOutput.writeUTF
        if at + 3 > end:
            return -1
        at += 3 + (int64(buf[at + 1]) << 8 | buf[at + 2])
    return int_at(buf, at) if at + 4 <= end else -1


@kernel
def encode(
    buf: U8,
    at: I64,
    numbers: Numbers,
    signatures: StringColumn,
    metadata: StringColumn,
) -> None:
    """Write the records to the offsets `at` of `buf`; empty signatures and metadata stand for
    none.
    """
    target = int64(buf.ctypes.data)
    for i in range(len(at)):
        p = at[i]
        buf[p] = 7
        buf[p + 1] = numbers.status[i]
        put_long(buf, p + 2, numbers.fetch_time[i])
        buf[p + 10] = numbers.retries[i]
        put_int(buf, p + 11, numbers.interval[i])
        put_int(buf, p + 15, numbers.score_bits[i])
        put_long(buf, p + 19, numbers.modified_time[i])
        size = int64(signatures.views[i, 0])
        buf[p + 27] = size
        p += FIXED_SIZE
        if size:
            copy_bytes(target + p, string_at(signatures.views, signatures.addresses, i), size)
            p += size
        size = int64(metadata.views[i, 0])
        buf[p] = size > 0
        if size:
            copy_bytes(target + p + 1, string_at(metadata.views, metadata.addresses, i), size)


@kernel
def copy_scored(value_at: I64, value_len: I32, rows: I64, score_bits: I32, out: U8) -> None:
    """Copy the values of some rows into `out`, one after the other, with other scores; their places
    are those then.
    """
    used = int64(0)
    for i in range(len(rows)):
        row = rows[i]
        copy_bytes(int64(out.ctypes.data) + used, value_at[row], int64(value_len[row]))
        value_at[row] = int64(out.ctypes.data) + used
        put_int(out, used + 15, score_bits[i])
        used += int64(value_len[row])
