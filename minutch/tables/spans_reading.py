"""Reading spans of SequenceFiles by kernels: for each compression, from bytes to a Batch.

    block := marker | VInt count | 4 × (VInt size | zlib stream of: key lengths, keys, value lengths, values)

Functions return None where something does not look right; see `columns`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np
import polars as pl

from minutch.formats.sequencefile import BLOCK, NONE, RECORD
from minutch.kernels import layout as kernels
from minutch.kernels.arrow import Bytes, to_series
from minutch.kernels.native import decompressor, libdeflate
from minutch.tables.spans import Batch, Lengths, Offsets, Span

_TYPICAL_RECORD = 64
_TYPICAL_RATIO = 4
_NO_ROOM = -2


def sums_match(data: Bytes, span: Span, sums: Bytes, size: int) -> bool:
    """Whether the chunks of `size` bytes that `span` touches have the CRCs in `sums`; True where there are none."""
    library = libdeflate()
    if not len(sums):
        return True
    if library is None:
        return False
    first, last = span.start // size, -(-span.end // size)
    return bool(kernels.first_bad_sum(data, first, last, size, sums, library.crc32) < 0)


def read_plain(data: Bytes, span: Span, sync: bytes) -> Batch | None:
    """A span of a file that is not compressed."""
    marker = np.frombuffer(sync, np.uint8)
    room = (span.end - span.start) // _TYPICAL_RECORD + 16
    while True:
        key_at, value_at = np.empty(room, np.int64), np.empty(room, np.int64)
        key_len, value_len = np.empty(room, np.int32), np.empty(room, np.int32)
        count = kernels.walk(data, span.start, span.end, marker, key_at, key_len, value_at, value_len)
        if count != _NO_ROOM:
            break
        room *= 3
    if count < 0:
        return None
    return Batch(data, key_at[:count], key_len[:count], data, value_at[:count], value_len[:count])


def read_records(data: Bytes, span: Span, sync: bytes) -> Batch | None:
    """A span of a file whose values are compressed one by one."""
    library = libdeflate()
    batch = read_plain(data, span, sync)
    if batch is None or library is None:
        return None
    count = batch.size
    at, length = np.empty(count, np.int64), np.empty(count, np.int32)
    out = np.empty(int(batch.value_len.sum()) * _TYPICAL_RATIO + 1024, np.uint8)
    done = 0
    with decompressor() as state:
        while True:
            done = kernels.inflate(
                data, batch.value_at, batch.value_len, done, out, at, length, state, library.zlib_decompress_ex
            )
            if done == count or done < 0:
                break
            out = np.concatenate((out, np.empty(len(out), np.uint8)))
    return None if done < 0 else batch._replace(values=out, value_at=at, value_len=length)


def read_blocks(data: Bytes, span: Span, sync: bytes) -> Batch | None:
    """A span of a file that is compressed in blocks."""
    blocks: list[Batch] = []
    at = span.start
    while at < span.end:
        block, at = _read_block(data, at, span.end, sync)
        if block is None:
            return None
        blocks.append(block)
    return _join(blocks)


def _read_block(data: Bytes, at: int, end: int, sync: bytes) -> tuple[Batch | None, int]:
    body = at + kernels.MARKER_SIZE
    if data[at:body].tobytes() != b"\xff\xff\xff\xff" + sync:
        return None, at
    count, at = kernels.vint_at(data, body, end)
    parts: list[Bytes] = []
    for _ in range(4):
        size, at = kernels.vint_at(data, at, end)
        if size < 0 or at + size > end:
            return None, at
        try:
            parts.append(np.frombuffer(zlib.decompress(data[at : at + size].data), np.uint8))
        except zlib.error:
            return None, at
        at += size
    if count < 0:
        return None, at
    keys, values = _column(parts[0], parts[1], count), _column(parts[2], parts[3], count)
    if keys is None or values is None or not kernels.strip_lengths(parts[1], *keys):
        return None, at
    return Batch(parts[1], *keys, parts[3], *values), at


def _column(lengths: Bytes, data: Bytes, count: int) -> tuple[Offsets, Lengths] | None:
    at, length = np.empty(count, np.int64), np.empty(count, np.int32)
    if not kernels.vints(lengths, length) or kernels.running_sum(length, at) != len(data):
        return None
    return at, length


def _join(blocks: list[Batch]) -> Batch | None:
    if not blocks:
        return None
    key_shift = np.cumsum([0, *(len(block.keys) for block in blocks)])
    value_shift = np.cumsum([0, *(len(block.values) for block in blocks)])
    return Batch(
        np.concatenate([block.keys for block in blocks]),
        np.concatenate([block.key_at + key_shift[i] for i, block in enumerate(blocks)]),
        np.concatenate([block.key_len for block in blocks]),
        np.concatenate([block.values for block in blocks]),
        np.concatenate([block.value_at + value_shift[i] for i, block in enumerate(blocks)]),
        np.concatenate([block.value_len for block in blocks]),
    )


def string_column(name: str, buffer: Bytes, at: Offsets, length: Lengths, *, least: int | None = None) -> pl.Series:
    """A Binary column over strings in `buffer`, not copied. Their offsets may span 4 GiB at most.

    With `least`, strings shorter than that (down to length -1) are null.
    """
    shortest = 0 if least is None else least
    base, end, present = kernels.extent(at, length, shortest)
    if least is not None and not present:
        return pl.Series(name, [None], dtype=pl.Binary).new_from_index(0, len(at))
    views = np.empty((len(at), 4), np.int32)
    valid = np.zeros(0 if present == len(at) else -(-len(at) // 8), np.uint8)
    kernels.fill_views(buffer, at, length, shortest, base, views, valid)
    return to_series(name, views, [buffer[base:end]], valid if len(valid) else None)


READERS: dict[str, Callable[[Bytes, Span, bytes], Batch | None]] = {
    NONE: read_plain,
    RECORD: read_records,
    BLOCK: read_blocks,
}
