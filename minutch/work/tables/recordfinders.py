"""Finds the records in a stretch of a SequenceFile, by the way in which it is compressed."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from minutch.errors import FormatError
from minutch.hadoop.formats.batch import Batch, Lengths, Offsets, Stretch, keys_of
from minutch.hadoop.formats.compress import DEFAULT_CODEC, NO_LIMIT, codec
from minutch.hadoop.formats.javaio import DataInput
from minutch.hadoop.formats.sequencefile import BLOCK, NONE, RECORD, SYNC_ESCAPE
from minutch.kernels import find
from minutch.kernels.arrow import Bytes
from minutch.work.tables.zlibvalues import MOST, LargeSpanError, inflated

if TYPE_CHECKING:
    import polars as pl

_NO_ROOM = -2
_TYPICAL_RECORD = 64

KeyFilter = Callable[["pl.Series"], "pl.Series"]
"""Returns the mask (Boolean) of the keys (Binary) that are wanted."""


def chosen(batch: Batch, wanted: KeyFilter | None) -> Batch:
    if wanted is None or not batch.size:
        return batch
    return batch.filter(wanted(keys_of(batch)).to_numpy())


def find_plain(
    stretch: Stretch, most: int = NO_LIMIT, wanted: KeyFilter | None = None
) -> Batch | None:
    room = (stretch.end - stretch.start) // _TYPICAL_RECORD + 16
    while True:
        key_at, value_at = np.empty(room, np.int64), np.empty(room, np.int64)
        key_len, value_len = np.empty(room, np.int32), np.empty(room, np.int32)
        count = find.walk(stretch.place, find.Places(key_at, key_len, value_at, value_len))
        if count != _NO_ROOM:
            break
        room *= 3
    if count < 0:
        return None
    keys, values = (key_at[:count], key_len[:count]), (value_at[:count], value_len[:count])
    return chosen(Batch(stretch.data, *keys, stretch.data, *values), wanted)


def _find_compressed_values(stretch: Stretch, most: int, wanted: KeyFilter | None) -> Batch | None:
    batch = find_plain(stretch, most, wanted)
    return None if batch is None else inflated(batch, most)


def _find_blocks(stretch: Stretch, most: int, wanted: KeyFilter | None) -> Batch | None:
    if not stretch.is_whole:
        return None
    blocks: list[Batch] = []
    source = DataInput(stretch.data[: stretch.end].data)
    source.skip(stretch.start)
    sync = stretch.marker.tobytes()
    unpacked = 0
    try:
        while source.remaining:
            blocks.append(_read_block(source, sync))
            unpacked += len(blocks[-1].keys) + len(blocks[-1].values)
            if unpacked > most:
                raise too_large(most)
    except LargeSpanError:
        raise
    except (FormatError, zlib.error):
        return None
    return chosen(_join(blocks), wanted)


def too_large(most: int) -> LargeSpanError:
    what, expected = "records unpack to too much without a sync marker", f"at most {most} bytes"
    return LargeSpanError(what, expected=expected, found="more")


def _unpacked(part: bytes) -> Bytes:
    """Returns a part of a block. Raises FormatError or zlib.error."""
    return np.frombuffer(codec(DEFAULT_CODEC).decompress(part, MOST), np.uint8)


def _read_block(source: DataInput, sync: bytes) -> Batch:
    """Returns the next block. Raises FormatError or zlib.error."""
    if source.read_bytes(find.MARKER_SIZE) != SYNC_ESCAPE + sync:
        raise FormatError("no sync marker before a block", offset=source.pos)
    count = source.read_vint()
    parts = [_unpacked(source.read_bytes(source.read_vint())) for _ in range(4)]
    keys, values = _column(parts[0], parts[1], count), _column(parts[2], parts[3], count)
    if not find.strip_lengths(parts[1], *keys):
        raise FormatError("a key that is no Text", offset=source.pos)
    return Batch(parts[1], *keys, parts[3], *values)


def _column(lengths: Bytes, data: Bytes, count: int) -> tuple[Offsets, Lengths]:
    at, length = np.empty(max(count, 0), np.int64), np.empty(max(count, 0), np.int32)
    if count < 0 or not find.vints(lengths, length) or find.running_sum(length, at) != len(data):
        raise FormatError("lengths that do not fit a block", expected=len(data))
    return at, length


def _join(blocks: list[Batch]) -> Batch:
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


FINDERS: dict[str, Callable[[Stretch, int, KeyFilter | None], Batch | None]] = {
    NONE: find_plain,
    RECORD: _find_compressed_values,
    BLOCK: _find_blocks,
}
