"""The values of records as zlib streams and back, in bulk: how files that are compressed record by record hold them."""

from __future__ import annotations

import numpy as np

from minutch.kernels import deflate, inflate
from minutch.kernels.arrow import Bytes
from minutch.kernels.libdeflate import compressor, decompressor, libdeflate
from minutch.records.batch import Batch, Lengths, Offsets, Places

LEVEL = 1
"""libdeflate's level for record after record: small records gain nothing from more."""
_TYPICAL_RATIO = 4


def inflated(batch: Batch) -> Batch | None:
    """The records with what their streams hold; None if one is damaged."""
    at, length = np.empty(batch.size, np.int64), np.empty(batch.size, np.int32)
    out = np.empty(int(batch.value_len.sum(dtype=np.int64)) * _TYPICAL_RATIO + 1024, np.uint8)
    done = 0
    with decompressor() as state:
        while True:
            function = libdeflate().zlib_decompress_ex
            done = inflate.inflate(
                batch.values, batch.value_at, batch.value_len, done, out, at, length, state, function
            )
            if done == batch.size or done < 0:
                break
            out = np.concatenate((out, np.empty(len(out), np.uint8)))
    return None if done < 0 else batch._replace(values=out, value_at=at, value_len=length)


def deflated(batch: Batch) -> Batch:
    """The records with each value as a stream."""
    out, at, length = _streams(batch.value_at + batch.values.ctypes.data, batch.value_len)
    return batch._replace(values=out, value_at=at, value_len=length)


def deflated_places(records: Places) -> Places:
    """The same for records on their way into a file."""
    out, at, length = _streams(records.value_at, records.value_len)
    return records._replace(value_at=at + out.ctypes.data, value_len=length, owner=(records.owner, out))


def _streams(address: Offsets, length: Lengths) -> tuple[Bytes, Offsets, Lengths]:
    out_at, out_len = np.empty(len(address), np.int64), np.empty(len(address), np.int32)
    room = int(length.sum(dtype=np.int64)) + deflate.LIBRARY_OVERHEAD * len(address) + 1
    out = np.empty(room, np.uint8)
    with compressor(LEVEL) as state:
        deflate.deflate(address, length, out, out_at, out_len, state, libdeflate().zlib_compress)
    return out, out_at, out_len
