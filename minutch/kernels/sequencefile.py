"""Kernels that find the records of a SequenceFile and the strings in them, and that lay records out
as it has them, markers where they are due; and over the checksums of its `.crc` file, a big-endian
CRC-32 for each chunk.

    record   := int length of key and value | int length of key | key | value
    marker   := int -1 | 16 bytes sync
    key      := VInt length | bytes                         (Text)

Checksums are compared on the way, a stretch at a time, so that a file goes through the cache once.
What they can't make sense of they report by a count that falls short; the caller then reads record
by record, which names the error.
"""

from __future__ import annotations

from typing import NamedTuple

from minutch.kernels.memory import (
    call7,
    compare,
    copy_bytes,
    int_at,
    load32,
    load64,
    put_int,
    put_vint,
    store64,
    vint_at,
    vint_size,
    word_at,
)
from minutch.kernels.native import (
    I32,
    I64,
    U8,
    U64,
    Bool,
    Flags,
    Int,
    Views,
    callback,
    inlined,
    inner,
    int64,
    kernel,
    string_at,
    uint8,
    uint32,
)


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
        # A C uint32_t: the upper half of the register is undefined.
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


MARKER_SIZE = 20
STRETCH = 1 << 15
"""Bytes whose sums are compared before they are looked at: few enough to stay in the fastest
cache.
"""


class StretchPlace(NamedTuple):
    """The fields of a part of a SequenceFile: data[start:end], the bytes that mark it, and what its
    checksums are compared by.

    `sums` has the CRCs of all chunks of so many bytes of `data`, or nothing: then there is nothing
    to compare.
    """

    data: U8
    start: Int
    end: Int
    marker: U8
    sums: U8
    chunk: Int
    crc32: Int


class RecordPlaces(NamedTuple):
    """The fields of records: offsets or addresses, and lengths, of their keys and values."""

    key_at: I64
    key_len: I32
    value_at: I64
    value_len: I32


@inner
def verified(stretch: StretchPlace, good: Int) -> Int:
    """Check how far the bytes are good, when they are so before `good`, a chunk's begin: some
    chunks further. -1 if a sum is not the right one.
    """
    size, sums = stretch.chunk, stretch.sums
    first = good // size
    # The last chunk may be shorter.
    last = min(first + max(STRETCH // size, 1), -(-stretch.end // size))
    if len(sums) and first_bad_sum(stretch.data, first, last, size, sums, stretch.crc32) >= 0:
        return -1
    return last * size


@inner
def records(
    stretch: StretchPlace, at: Int, end: Int, n: Int, places: RecordPlaces
) -> tuple[Int, Int]:
    """Find the records with Text keys from `at` on that end before `end`, as long as there is room;
    see `walk`.

    Returns how many there are, with `n` that were there before, and where the next one begins. (-1,
    at) for nonsense.
    """
    buf, sync = stretch.data, stretch.marker
    key_at, key_len, value_at, value_len = places
    while at + 8 <= end and n < len(key_at):
        length = int_at(buf, at)
        if length == -1:  # SequenceFile.SYNC_ESCAPE
            if at + MARKER_SIZE > end:
                break
            if compare(int64(buf.ctypes.data) + at + 4, 16, sync.ctypes.data, 16) != 0:
                return -1, at
            at += MARKER_SIZE
            continue
        klen = int_at(buf, at + 4)
        after = at + 8 + length
        if klen < 1 or klen > length:  # a Text has at least its length
            return -1, at
        if after > end:  # its end is not verified yet
            break
        size, text = vint_at(buf, at + 8, end)
        if size < 0 or text + size != at + 8 + klen:
            return -1, at
        key_at[n] = text
        key_len[n] = size
        value_at[n] = at + 8 + klen
        value_len[n] = length - klen
        n += 1
        at = after
    return n, at


@callback
def release(array: Int) -> None:
    """A C function that releases an ArrowArray, which other libraries call at any time.

    Its private data (at 72) points to an integer that is set, followed by the address of one that
    is set for any array; then the pointer to itself (at 64) is cleared.
    """
    mine = int64(load64(array + 72))
    store64(mine, 1)
    store64(int64(load64(mine + 8)), 1)
    store64(array + 64, 0)  # the mark of a released array


@kernel
def walk(stretch: StretchPlace, places: RecordPlaces) -> Int:
    """Find the records of a stretch, which ends at a marker or with the file.

    Fills their places (key_at: where the URL starts, after its length). Returns how many there are:
    -1 if the bytes make no sense or a sum is wrong, -2 if the arrays are too short.
    """
    n = int64(0)
    start, end = stretch.start, stretch.end
    # Checksums cover whole chunks, and the first may begin before the stretch.
    at, good = start, start // stretch.chunk * stretch.chunk
    while at < end:
        good = verified(stretch, good)
        if good < 0:
            return -1
        n, at = records(stretch, at, min(good, end), n, places)
        if n == len(places.key_at) and at < end:
            return -2
        if n < 0 or (good >= end and at < end):  # nonsense, or the last record is cut off
            return -1
    return n


@kernel
def blocks_having(
    stretch: StretchPlace,
    bounds: I64,
    words: U8,
    word_ends: I64,
    memmem: Int,
    found: Flags,
) -> Bool:
    """Clear those of `found`, a flag for each block, whose blocks have none of some words. False if
    a sum is wrong.

    Block i lies between bounds[i] and bounds[i + 1], counted from the start of the stretch. Blocks
    without a flag are not looked at.
    """
    buf, sums, size = stretch.data, stretch.sums, stretch.chunk
    start, crc32 = stretch.start, stretch.crc32
    data = int64(buf.ctypes.data)
    for i in range(len(found)):
        if not found[i]:  # ruled out by the index
            continue
        low, high = start + bounds[i], start + bounds[i + 1]
        if len(sums) and first_bad_sum(buf, low // size, -(-high // size), size, sums, crc32) >= 0:
            return False
        word = int64(words.ctypes.data)
        has_one = False
        for k in range(len(word_ends)):  # the words stand back to back
            length = words.ctypes.data + word_ends[k] - word
            has_one = has_one or call7(memmem, data + low, high - low, word, length, 0, 0, 0) != 0
            word += length
        found[i] = has_one
    return True


@kernel
def extent(at: I64, length: I32, least: Int, found: I64) -> None:
    """Find where the strings of at least `least` bytes begin and end altogether, and how many they
    are, into `found`.
    """
    found[:] = 0
    for i in range(len(at)):
        if length[i] >= least:
            if found[2] == 0 or at[i] < found[0]:
                found[0] = at[i]
            found[1] = max(found[1], at[i] + length[i])
            found[2] += 1


@inlined
def put_view(views: Views, i: Int, buf: U8, start: Int, size: Int, base: Int) -> None:
    """View `i` (see `arrow`) of the string at an offset of `buf`; its buffer, number 0, begins at
    `base`.
    """
    views[i, 0] = size
    if size > 12:
        views[i, 1] = uint32(load32(int64(buf.ctypes.data) + start))
        views[i, 2] = 0
        views[i, 3] = uint32(start - base)
    else:
        views[i, 1] = word_at(buf, start, size)
        views[i, 2] = word_at(buf, start + 4, size - 4)
        views[i, 3] = word_at(buf, start + 8, size - 8)


@kernel
def fill_views(
    buf: U8, at: I64, length: I32, least: Int, base: Int, views: Views, valid: U8
) -> None:
    """Views of strings at offsets `at` of `buf`; see `put_view`.

    Strings shorter than `least` are empty; the others set their bit in the bitmap `valid`, where
    that has room.
    """
    for i in range(len(at)):
        size = length[i]
        put_view(views, i, buf, at[i], int64(size) if size >= least else int64(0), base)
        if size >= least and len(valid):
            valid[i >> 3] |= uint8(1 << (i & 7))


@kernel
def running_sum(length: I32, at: I64) -> Int:
    """The offsets of strings that lie one after the other; returns the offset after the last."""
    total = int64(0)
    for i in range(len(length)):
        at[i] = total
        total += length[i]
    return total


@kernel
def vints(buf: U8, values: I32) -> Bool:
    """Read VInts that are not negative into all of `values`; False unless they use up `buf`."""
    at = int64(0)
    for i in range(len(values)):
        value, at = vint_at(buf, at, len(buf))
        if value < 0:
            return False
        values[i] = value
    return at == len(buf)


@kernel
def strip_lengths(buf: U8, at: I64, length: I32) -> Bool:
    """Turn the places of serialized Texts into the places of their bytes; False if one is not a
    Text.
    """
    for i in range(len(at)):
        size, start = vint_at(buf, at[i], at[i] + length[i])
        if size < 0 or start + size != at[i] + length[i]:
            return False
        at[i] = start
        length[i] = size
    return True


@kernel
def string_places(views: Views, addresses: U64, at: I64, length: I32) -> None:
    """The address and length of each string of a column."""
    for i in range(len(views)):
        at[i] = string_at(views, addresses, i)
        length[i] = views[i, 0]


@inlined
def _copy(source: RecordPlaces, row: Int, target: RecordPlaces, to: Int) -> None:
    """Copy the places of a record."""
    target.key_at[to], target.key_len[to] = source.key_at[row], source.key_len[row]
    target.value_at[to], target.value_len[to] = source.value_at[row], source.value_len[row]


@kernel
def put_in(
    table: RecordPlaces, more: RecordPlaces, instead: I64, before: I64, out: RecordPlaces
) -> None:
    """Put more records between those of a table: record i before row before[i], which it replaces
    if instead[i] >= 0.

    `before` ascends.
    """
    row, n = int64(0), int64(0)
    for i in range(len(before) + 1):
        end = before[i] if i < len(before) else len(table.key_at)
        while row < end:
            _copy(table, row, out, n)
            n += 1
            row += 1
        if i < len(before):
            _copy(more, i, out, n)
            n += 1
            if instead[i] >= 0:
                row += 1


ROW, USED, POSITION, LAST_SYNC, COUNT, INDEX_DUE, INDEX_POSITION, INDEXED, DESCENT = range(9)
"""Fields of the state of `lay_out`."""


class Indexed(NamedTuple):
    """The fields of the records that a MapFile's index gets: rows, and positions in the file."""

    row: I64
    position: I64


@kernel
def lay_out(
    out: U8,
    state: I64,
    marker: U8,
    sync_interval: Int,
    index_interval: Int,
    records: RecordPlaces,
    index: Indexed,
) -> None:
    """Write records with Text keys into `out` as far as there is room, markers where they are due.

    Goes on at row state[ROW] and byte state[USED] of `out`, which stands at state[POSITION] of the
    file. If index_interval > 0 (a MapFile), fills in what the index gets, and stops at a row whose
    key is less than the one before: state[DESCENT].
    """
    key_at, key_len, value_at, value_len = records
    row, used = state[ROW], state[USED]
    shift = state[POSITION] - used
    last_sync, count, due = state[LAST_SYNC], state[COUNT], state[INDEX_DUE]
    last_indexed, indexed = state[INDEX_POSITION], state[INDEXED]
    target = int64(out.ctypes.data)
    room = int64(len(out)) - MARKER_SIZE  # a marker may be due before any record
    while row < len(key_at):
        key, key_size = key_at[row], int64(key_len[row])
        value, value_size = value_at[row], int64(value_len[row])
        prefix = vint_size(key_size)
        # The caller writes `out` and calls again.
        if used + 8 + prefix + key_size + value_size > room:
            break
        if (
            index_interval
            and row
            and compare(key_at[row - 1], int64(key_len[row - 1]), key, key_size) > 0
        ):
            state[DESCENT] = row  # the caller names both keys in its error
            break
        position = used + shift
        # As MapFile.Writer.append: the position before a marker, and only a new one.
        if index_interval and count >= due and position > last_indexed:
            index.row[indexed] = row
            index.position[indexed] = position
            indexed += 1
            due = count + index_interval
            last_indexed = position
        if position >= last_sync + sync_interval:  # SequenceFile.Writer.checkAndWriteSync
            for i in range(MARKER_SIZE):
                out[used + i] = marker[i]
            used += MARKER_SIZE
            last_sync = used + shift
        put_int(out, used, prefix + key_size + value_size)
        put_int(out, used + 4, prefix + key_size)
        used = put_vint(out, used + 8, key_size)
        copy_bytes(target + used, key, key_size)
        used += key_size
        copy_bytes(target + used, value, value_size)
        used += value_size
        count += 1
        row += 1
    state[ROW], state[USED], state[POSITION] = row, used, used + shift
    state[LAST_SYNC], state[COUNT], state[INDEX_DUE] = last_sync, count, due
    state[INDEX_POSITION], state[INDEXED] = last_indexed, indexed


@kernel
def index_entries(
    records: RecordPlaces,
    rows: I64,
    first: Int,
    held: Int,
    most: Int,
    sizes: U8,
    keys: U8,
    used: I64,
) -> Int:
    """Lay out the keys of `rows`, from number `first` on, as a block has them: lengths into
    `sizes`, Texts into `keys`.

    Stops after the one with which Texts and positions (8 bytes each), and `held` bytes before them,
    come to `most`. Returns the number after it; `used` tells the bytes written to either.
    """
    key_at, key_len = records.key_at, records.key_len
    lengths, texts, number = int64(0), int64(0), first
    while number < len(rows) and held < most:
        size = int64(key_len[rows[number]])
        start = texts
        texts = put_vint(keys, texts, size)
        copy_bytes(int64(keys.ctypes.data) + texts, key_at[rows[number]], size)
        texts += size
        lengths = put_vint(sizes, lengths, texts - start)
        held += texts - start + 8
        number += 1
    used[0], used[1] = lengths, texts
    return number
