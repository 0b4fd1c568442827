"""Writing SequenceFiles and MapFiles with Text keys in bulk, with their `.crc` siblings.

The bytes are those that SequenceFileWriter and MapFileWriter write from the same records.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import IO, NamedTuple, NoReturn, Protocol

import numpy as np

from minutch.errors import FormatError
from minutch.formats.checksum import BYTES_PER_CHECKSUM, MAGIC, crc_path
from minutch.formats.compress import DEFAULT_CODEC
from minutch.formats.javaio import encode_vlong
from minutch.formats.mapfile import DATA, INDEX, INDEX_INTERVAL, LONG
from minutch.formats.sequencefile import BLOCK, NONE, RECORD, SYNC_ESCAPE, SYNC_INTERVAL, SequenceFileWriter
from minutch.formats.sequenceheader import SequenceHeader, new_sync
from minutch.kernels import deflate as deflate_kernels
from minutch.kernels import layout as kernels
from minutch.kernels.arrow import Bytes, Strings
from minutch.kernels.native import Libdeflate, compressor, libdeflate
from minutch.tables.spans import Lengths, Offsets

TEXT = "org.apache.hadoop.io.Text"
LEVEL = 1
"""libdeflate's level for record after record: small records gain nothing from more."""
_ROOM = 1 << 22
_AROUND = 2 * kernels.MARKER_SIZE + 16
"""Room for what `lay_out` writes, and keeps free, around a record."""
_SYNC_FILE_RANGE_WRITE = 2
ZLIB_OVERHEAD = 64
"""Bytes of room that a zlib stream may want beyond its string's."""


class Records(NamedTuple):
    """Records by the addresses (int64) and lengths of their keys, as in a Text, and values, as in the file.

    What lies at the addresses belongs to `owner`.
    """

    key_at: Offsets
    key_len: Lengths
    value_at: Offsets
    value_len: Lengths
    owner: object

    @classmethod
    def of(cls, keys: Strings, values: Bytes, at: Offsets, length: Lengths) -> Records:
        """Keys from a column, values at offsets of a buffer."""
        return cls(*places(keys), at + values.ctypes.data, length, (keys.owner, keys.views, values))

    def between(self, start: int, end: int) -> Records:
        """The records from number `start` to before `end`."""
        here = slice(start, end)
        return Records(self.key_at[here], self.key_len[here], self.value_at[here], self.value_len[here], self.owner)

    def key(self, row: int) -> bytes:
        """The bytes of a key."""
        return ctypes.string_at(int(self.key_at[row]), int(self.key_len[row]))


def places(strings: Strings) -> tuple[Offsets, Lengths]:
    """The addresses and lengths of a column's strings."""
    count = len(strings.views)
    at, length = np.empty(count, np.int64), np.empty(count, np.int32)
    kernels.string_places(strings.views, strings.addresses, at, length)
    return at, length


class BulkSequenceWriter:
    """Writes a SequenceFile whose values come serialized (and compressed, where the file is RECORD-compressed)."""

    def __init__(
        self,
        path: Path,
        value_class: str,
        library: Libdeflate,
        *,
        compression: str = NONE,
        index_interval: int = 0,
        sync: bytes | None = None,
    ) -> None:
        self.path = path
        sync = sync or new_sync()
        codec = None if compression == NONE else DEFAULT_CODEC
        header = SequenceHeader(TEXT, value_class, compression, codec, {}, sync).to_bytes()
        self._marker = np.frombuffer(SYNC_ESCAPE + sync, np.uint8)
        self._crc32 = library.crc32
        self._interval = index_interval
        self._out = np.empty(_ROOM, np.uint8)
        self._out[: len(header)] = np.frombuffer(header, np.uint8)
        self._state = np.zeros(9, np.int64)
        self._state[kernels.USED] = self._state[kernels.POSITION] = len(header)
        self._state[kernels.INDEX_POSITION] = -1
        crc_path(path).unlink(missing_ok=True)
        self._file = path.open("wb", buffering=0)
        self._sums = crc_path(path).open("wb")
        self._sums.write(MAGIC + BYTES_PER_CHECKSUM.to_bytes(4, "big"))

    def write(self, keys: Strings, values: Bytes, at: Offsets, length: Lengths) -> None:
        """Append records whose values lie at the offsets `at` of a buffer."""
        self.append(Records.of(keys, values, at, length))

    def append(self, records: Records) -> tuple[Offsets, Offsets]:
        """Append records; returns the rows that a MapFile's index gets, and their positions in the file.

        FormatError if the file is a MapFile's and a key is less than the one before it.
        """
        count = len(records.key_at)
        room = count // self._interval + 2 if self._interval else 1
        index_row, index_position = np.empty(room, np.int64), np.empty(room, np.int64)
        state = self._state
        state[kernels.ROW] = state[kernels.INDEXED] = state[kernels.DESCENT] = 0
        while True:
            kernels.lay_out(
                self._out,
                state,
                self._marker,
                SYNC_INTERVAL,
                self._interval,
                *records[:4],
                index_row,
                index_position,
            )
            row = int(state[kernels.ROW])
            if row == count:
                break
            if state[kernels.DESCENT]:
                self.reject(records.key(row - 1), records.key(row))
            self._drain()
            need = int(state[kernels.USED]) + int(records.key_len[row]) + int(records.value_len[row]) + _AROUND
            if need > len(self._out):  # one record that is longer than the buffer
                self._out = np.concatenate((self._out, np.empty(need - len(self._out), np.uint8)))
        indexed = int(state[kernels.INDEXED])
        return index_row[:indexed], index_position[:indexed]

    def reject(self, before: bytes, key: bytes) -> NoReturn:
        """Raise the error for a key that is less than the one before it."""
        raise FormatError("key out of order", path=self.path, expected=f"a key after {before!r}", found=repr(key))

    def _drain(self, *, all_of_it: bool = False) -> None:
        """Move what is in the buffer into the file, whole checksum chunks but at the end."""
        used = int(self._state[kernels.USED])
        size = used if all_of_it else used // BYTES_PER_CHECKSUM * BYTES_PER_CHECKSUM
        sums = np.empty(-(-size // BYTES_PER_CHECKSUM) * 4, np.uint8)
        kernels.make_sums(self._out, 0, size, BYTES_PER_CHECKSUM, sums, self._crc32)
        _write_all(self._file, self._out[:size])
        _start_storing(self._file, int(self._state[kernels.POSITION]) - used, size)
        self._sums.write(sums.tobytes())
        self._out[: used - size] = self._out[size:used]
        self._state[kernels.USED] = used - size

    def close(self) -> None:
        """Write the rest and close both files."""
        if not self._file.closed:
            try:
                self._drain(all_of_it=True)
            finally:
                self._file.close()
                self._sums.close()

    def discard(self) -> None:
        """Close and remove the unfinished files."""
        self._file.close()
        self._sums.close()
        self.path.unlink(missing_ok=True)
        crc_path(self.path).unlink(missing_ok=True)


def _write_all(file: IO[bytes], data: Bytes) -> None:
    view = data.data
    done = 0
    while done < len(view):
        done += os.write(file.fileno(), view[done:])


@cache
def _sync_file_range() -> Callable[[int, int, int, int], int] | None:
    """Linux's system call of that name; None on other systems."""
    try:
        function = ctypes.CDLL(None).sync_file_range
    except (OSError, AttributeError):
        return None
    function.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
    return function


def _start_storing(file: IO[bytes], start: int, size: int) -> None:
    """Let the system move a stretch of the file to the disk from now on: whoever waits for it in the end waits less."""
    function = _sync_file_range()
    if function is not None:
        function(file.fileno(), start, size, _SYNC_FILE_RANGE_WRITE)


class BulkMapWriter:
    """Writes a MapFile in bulk; keys ascend over all calls."""

    def __init__(
        self,
        directory: Path,
        value_class: str,
        library: Libdeflate,
        *,
        compression: str = NONE,
        sync: bytes | None = None,
        index_sync: bytes | None = None,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._data = BulkSequenceWriter(
            directory / DATA,
            value_class,
            library,
            compression=compression,
            index_interval=INDEX_INTERVAL,
            sync=sync,
        )
        self._index = SequenceFileWriter(directory / INDEX, TEXT, LONG, compression=BLOCK, sync=index_sync)
        self._last = b""

    def write(self, keys: Strings, values: Bytes, at: Offsets, length: Lengths) -> None:
        """Append records whose values lie at the offsets `at` of a buffer. FormatError as `append`."""
        self.append(Records.of(keys, values, at, length))

    def append(self, records: Records) -> None:
        """Append records. FormatError if a key is less than the one before it."""
        count = len(records.key_at)
        if not count:
            return
        first = records.key(0)
        if first < self._last:
            self._data.reject(self._last, first)
        self._last = records.key(count - 1)
        for row, position in zip(*map(np.ndarray.tolist, self._data.append(records)), strict=True):
            key = records.key(row)
            self._index.append_raw(encode_vlong(len(key)) + key, position.to_bytes(8, "big"))

    def close(self) -> None:
        """Finish both files."""
        self._data.close()
        self._index.close()

    def discard(self) -> None:
        """Close and remove the unfinished files."""
        self._data.discard()
        self._index.discard()


class BulkWriter(Protocol):
    """Either of the two."""

    def write(self, keys: Strings, values: Bytes, at: Offsets, length: Lengths) -> None: ...
    def close(self) -> None: ...
    def discard(self) -> None: ...


def open_bulk(
    path: Path,
    value_class: str,
    mapfile: bool,
    compression: str,
    sync: bytes | None = None,
    index_sync: bytes | None = None,
) -> BulkWriter | None:
    """A MapFile or SequenceFile with Text keys, written by kernels; None where they can't write it.

    `compression` is NONE or RECORD; the values are compressed on the way.
    """
    library = libdeflate()
    if library is None or compression == BLOCK:
        return None
    if mapfile:
        file: BulkWriter = BulkMapWriter(
            path, value_class, library, compression=compression, sync=sync, index_sync=index_sync
        )
    else:
        file = BulkSequenceWriter(path, value_class, library, compression=compression, sync=sync)
    return Deflating(file, library) if compression == RECORD else file


class Deflating:
    """Compresses values one by one on their way into a file."""

    def __init__(self, file: BulkWriter, library: Libdeflate) -> None:
        self._file, self._library = file, library
        self.close, self.discard = file.close, file.discard

    def write(self, keys: Strings, values: Bytes, at: Offsets, length: Lengths) -> None:
        """Append records, given as they are before compression."""
        self._file.write(keys, *deflate(values, at, length, self._library))


def deflate(values: Bytes, at: Offsets, length: Lengths, library: Libdeflate) -> tuple[Bytes, Offsets, Lengths]:
    """Each value as a zlib stream: a buffer, and offsets and lengths in it."""
    out_at, out_len = np.empty(len(at), np.int64), np.empty(len(at), np.int32)
    out = np.empty(int(length.sum(dtype=np.int64)) + ZLIB_OVERHEAD * len(at) + 1, np.uint8)
    with compressor(LEVEL) as state:
        deflate_kernels.deflate(values, at, length, out, out_at, out_len, state, library.zlib_compress)
    return out, out_at, out_len
