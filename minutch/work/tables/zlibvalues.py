"""The values of records as zlib streams and back, in bulk: how files that are compressed record by
record hold them.
"""

from __future__ import annotations

import sys
from typing import Final

import numpy as np

from minutch.errors import FormatError
from minutch.hadoop.formats.batch import Batch, Lengths, Offsets, Places
from minutch.kernels import deflate
from minutch.kernels.arrow import Bytes
from minutch.kernels.clibrary import compressor, decompressor, libdeflate
from minutch.kernels.native import Slices

LEVEL = 1
"""libdeflate's level for record after record: small records gain nothing from more."""
MOST: Final = 64 << 20
"""Bytes of one record, or of the keys or values of a block; what unpacks to more is damaged: a
hostile segment of 400 KB took updatedb to 3.6 GB.
"""
MOST_AT_A_TIME: Final = 256 << 20
"""Bytes of all records that are unpacked together."""
_TYPICAL_RATIO = 16
"""Room for what a stream holds, per byte of it: buffers that grew were copied. Memory that is not
used is never touched.
"""


class LargeSpanError(FormatError):
    """The records are sound, but unpack to more than is wanted at a time."""


def inflated(batch: Batch, most: int = sys.maxsize) -> Batch | None:
    """Returns the records with their streams inflated; None if one is damaged. Raises
    LargeSpanError for more than `most` bytes.
    """
    at, length = np.empty(batch.size, np.int64), np.empty(batch.size, np.int32)
    out = np.empty(
        min(int(batch.value_len.sum(dtype=np.int64)) * _TYPICAL_RATIO + 1024, most), np.uint8
    )
    done = 0
    streams = Slices(batch.values, batch.value_at, batch.value_len)
    with decompressor() as state:
        unpack = deflate.Decompressor(state, libdeflate().zlib_decompress_ex)
        while True:
            done = deflate.inflate(streams, done, Slices(out, at, length), unpack)
            if done == batch.size or done < 0:
                break
            end = int(at[done - 1] + length[done - 1]) if done else 0
            if len(out) - end > MOST:  # the next record is larger than any may be
                return None
            if len(out) >= most:
                raise LargeSpanError(
                    "records unpack to too much", expected=f"at most {most} bytes", found="more"
                )
            # Pages that nobody writes to cost nothing.
            larger = np.empty(min(max(2 * len(out), 3 * MOST), most), np.uint8)
            larger[:end] = out[:end]
            out = larger
    if done < 0 or length.max(initial=0) > MOST:
        return None
    # The rest is not written to, and is not to be copied.
    used = int(at[-1] + length[-1]) if batch.size else 0
    return batch._replace(values=out[:used], value_at=at, value_len=length)


def deflated(batch: Batch) -> Batch:
    """Returns the records with each value as a stream."""
    out, at, length = _streams(batch.value_at + batch.values.ctypes.data, batch.value_len)
    return batch._replace(values=out, value_at=at, value_len=length)


def deflated_places(records: Places) -> Places:
    """Deflates the values of records on their way into a file."""
    out, at, length = _streams(records.value_at, records.value_len)
    return records._replace(
        value_at=at + out.ctypes.data, value_len=length, owner=(records.owner, out)
    )


def _streams(address: Offsets, length: Lengths) -> tuple[Bytes, Offsets, Lengths]:
    out_at, out_len = np.empty(len(address), np.int64), np.empty(len(address), np.int32)
    room = int(length.sum(dtype=np.int64)) + deflate.LIBRARY_OVERHEAD * len(address) + 1
    out = np.empty(room, np.uint8)
    with compressor(LEVEL) as state:
        pack = deflate.Compressor(deflate.new_places(), state, libdeflate().zlib_compress)
        deflate.deflate(address, length, Slices(out, out_at, out_len), pack)
    return out, out_at, out_len
