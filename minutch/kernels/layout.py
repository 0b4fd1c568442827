"""Kernels that lay records out as a SequenceFile has them (`find` has the grammar), markers where
they are due.
"""

from __future__ import annotations

from typing import NamedTuple

from minutch.kernels.find import MARKER_SIZE, Places
from minutch.kernels.memory import compare, put_int, put_vint, vint_size
from minutch.kernels.native import I64, U8, Int, inlined, int64, kernel
from minutch.kernels.primitives import copy_bytes


@inlined
def _copy(source: Places, row: Int, target: Places, to: Int) -> None:
    """Copy the places of a record."""
    target.key_at[to], target.key_len[to] = source.key_at[row], source.key_len[row]
    target.value_at[to], target.value_len[to] = source.value_at[row], source.value_len[row]


@kernel
def put_in(table: Places, more: Places, instead: I64, before: I64, out: Places) -> None:
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
    records: Places,
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
    room = int64(len(out)) - MARKER_SIZE
    while row < len(key_at):
        key, key_size = key_at[row], int64(key_len[row])
        value, value_size = value_at[row], int64(value_len[row])
        prefix = vint_size(key_size)
        if used + 8 + prefix + key_size + value_size > room:
            break
        if (
            index_interval
            and row
            and compare(key_at[row - 1], int64(key_len[row - 1]), key, key_size) > 0
        ):
            state[DESCENT] = row
            break
        position = used + shift
        if index_interval and count >= due and position > last_indexed:
            index.row[indexed] = row
            index.position[indexed] = position
            indexed += 1
            due = count + index_interval
            last_indexed = position
        if position >= last_sync + sync_interval:
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
    records: Places,
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
