"""Tables written to SequenceFiles and MapFiles with Text keys, with their `.crc` siblings.

    TableWriter     takes tables; what makes records of them is given to it
    BulkWriter      takes places of records, which a kernel lays out: a SequenceFile
    BulkMapWriter   the same with an index: a MapFile

The bytes are those that SequenceFileWriter and MapFileWriter write from the same records, but for
what zlib makes.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import IO, Generic, NoReturn, Protocol, Self, TypeVar
from zlib import decompress

import numpy as np

from minutch.errors import FormatError
from minutch.hadoop.formats.batch import Offsets, Places
from minutch.hadoop.formats.checksum import BYTES_PER_CHECKSUM, new_sums, remove_sums
from minutch.hadoop.formats.compress import DEFAULT_CODEC
from minutch.hadoop.formats.javaio import encode_vlong
from minutch.hadoop.formats.mapfile import DATA, INDEX, INDEX_INTERVAL, LONG, MapFileWriter
from minutch.hadoop.formats.sequencewriter import (
    BLOCK,
    BLOCK_SIZE,
    NONE,
    RECORD,
    SYNC_ESCAPE,
    SYNC_INTERVAL,
    TEXT,
    SequenceFileWriter,
    SequenceHeader,
    new_sync,
)
from minutch.kernels import sequencefile
from minutch.kernels.clibrary import libdeflate
from minutch.kernels.sequencefile import MARKER_SIZE
from minutch.work.tables.zlibvalues import deflated_places

_ROOM = 1 << 19
"""Bytes of a file that are written at a time: they are still in the processor's cache then. 4 MB
cost updatedb 0.8 s of CPU at five million entries, this 0.2.
"""
_AROUND = 2 * MARKER_SIZE + 16
"""Room for what `lay_out` writes, and keeps free, around a record."""
_SYNC_FILE_RANGE_WRITE = 2
_VINT = 5
"""Bytes that the VInt of a length takes at most."""
_LONG_SIZE = 8


class _Sized(Protocol):
    def __len__(self) -> int: ...


T = TypeVar("T", bound=_Sized)


class _File(Protocol):
    """A file that takes records."""

    def append(self, records: Places, /) -> object: ...
    def close(self) -> None: ...
    def discard(self) -> None: ...


class TableWriter(Generic[T]):
    """Writes tables to a MapFile (keys ascend) or SequenceFile of <Text, value_class>; a context
    manager.

    `encode` makes records of a table, with `deflated` each value as a zlib stream. `compression` is
    NONE, RECORD or BLOCK, `codec` Java's class of the codec. `sync` and `index_sync` give the
    markers. The file is complete, with its `.crc` siblings, when the context is left; an error
    removes it.
    """

    def __init__(  # noqa: PLR0913 - what a file is made of
        self,
        path: Path,
        value_class: str,
        encode: Callable[[T], Iterable[Places]],
        *,
        mapfile: bool = True,
        compression: str = NONE,
        codec: str = DEFAULT_CODEC,
        deflated: bool = False,
        sync: bytes | None = None,
        index_sync: bytes | None = None,
    ) -> None:
        self.path = path
        self.rows = 0
        self._encode = encode
        takes_zlib = compression == RECORD and codec == DEFAULT_CODEC
        self._deflates = takes_zlib and not deflated
        self._file: _File
        if not takes_zlib and (deflated or compression != NONE):
            # The codec is another one: zlib streams have to be unpacked for it.
            inflates = deflated
            self._file = _SingleRecords(
                path, value_class, mapfile, compression, codec, inflates, sync, index_sync
            )
        elif mapfile:
            self._file = PlacesMapWriter(
                path, value_class, compression=compression, sync=sync, index_sync=index_sync
            )
        else:
            self._file = PlacesWriter(path, value_class, compression=compression, sync=sync)

    def write(self, table: T) -> None:
        """Appends the rows of `table`. FormatError if a MapFile's keys are out of order."""
        self.rows += len(table)
        for records in self._encode(table):
            self._file.append(deflated_places(records) if self._deflates else records)

    def close(self) -> None:
        """Finishes the file."""
        self._file.close()

    def discard(self) -> None:
        """Removes what was written."""
        self._file.discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            try:
                self.close()
            except BaseException:
                self.discard()
                raise
        else:
            self.discard()


class PlacesWriter:
    """Writes a SequenceFile whose values come serialized (and compressed, for RECORD)."""

    def __init__(
        self,
        path: Path,
        value_class: str,
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
        self._interval = index_interval
        self._out = np.empty(_ROOM, np.uint8)
        self._out[: len(header)] = np.frombuffer(header, np.uint8)
        self._state = np.zeros(9, np.int64)
        self._state[sequencefile.USED] = self._state[sequencefile.POSITION] = len(header)
        self._state[sequencefile.INDEX_POSITION] = -1  # no entry yet
        # First: the sums of a file that was here would call the new one damaged.
        remove_sums(path)
        self._file = path.open("wb", buffering=0)
        self._sums = new_sums(path)

    def append(self, records: Places) -> tuple[Offsets, Offsets]:
        """Appends records; returns the rows that a MapFile's index gets, and their positions in the
        file.

        FormatError if the file is a MapFile's and a key is less than the one before it.
        """
        room = records.size // self._interval + 2 if self._interval else 1
        index = sequencefile.Indexed(np.empty(room, np.int64), np.empty(room, np.int64))
        state = self._state
        state[sequencefile.ROW] = state[sequencefile.INDEXED] = state[sequencefile.DESCENT] = 0
        while True:
            intervals = SYNC_INTERVAL, self._interval
            sequencefile.lay_out(self._out, state, self._marker, *intervals, records.arrays, index)
            row = int(state[sequencefile.ROW])
            if row == records.size:
                break
            if state[sequencefile.DESCENT]:
                self.reject(records.key(row - 1), records.key(row))
            self._drain()
            need = (
                int(state[sequencefile.USED])
                + int(records.key_len[row])
                + int(records.value_len[row])
                + _AROUND
            )
            if need > len(self._out):  # one record that is longer than the buffer
                self._out = np.concatenate((self._out, np.empty(need - len(self._out), np.uint8)))
        indexed = int(state[sequencefile.INDEXED])
        return index.row[:indexed], index.position[:indexed]

    def reject(self, before: bytes, key: bytes) -> NoReturn:
        """Raises the error for a key that is less than the one before it."""
        raise FormatError(
            "key out of order", path=self.path, expected=f"a key after {before!r}", found=repr(key)
        )

    def _drain(self, *, all_of_it: bool = False) -> None:
        """Moves what is in the buffer into the file, whole checksum chunks but at the end."""
        used = int(self._state[sequencefile.USED])
        # Checksums are of whole chunks.
        size = used if all_of_it else used // BYTES_PER_CHECKSUM * BYTES_PER_CHECKSUM
        found = np.empty(-(-size // BYTES_PER_CHECKSUM) * 4, np.uint8)
        sequencefile.make_sums(self._out, 0, size, BYTES_PER_CHECKSUM, found, libdeflate().crc32)
        view = self._out[:size].data
        done = 0
        while done < len(view):
            done += os.write(self._file.fileno(), view[done:])  # may write only a part
        _start_storing(self._file, int(self._state[sequencefile.POSITION]) - used, size)
        self._sums.write(found.tobytes())
        self._out[: used - size] = self._out[size:used]  # the incomplete chunk
        self._state[sequencefile.USED] = used - size

    def close(self) -> None:
        """Writes the rest and closes both files."""
        if not self._file.closed:
            try:
                self._drain(all_of_it=True)
            finally:
                self._file.close()
                self._sums.close()

    def discard(self) -> None:
        """Closes and removes the unfinished files."""
        self._file.close()
        self._sums.close()
        self.path.unlink(missing_ok=True)
        remove_sums(self.path)


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
    """Lets the system move a stretch of the file to the disk from now on: whoever waits for it in
    the end waits less: 0.3 s for 600 MB, and then nothing.
    """
    function = _sync_file_range()
    if function is not None:
        function(file.fileno(), start, size, _SYNC_FILE_RANGE_WRITE)


class PlacesMapWriter:
    """Writes a MapFile in bulk; keys ascend over all calls."""

    def __init__(
        self,
        directory: Path,
        value_class: str,
        *,
        compression: str = NONE,
        sync: bytes | None = None,
        index_sync: bytes | None = None,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._data = PlacesWriter(
            directory / DATA,
            value_class,
            compression=compression,
            index_interval=INDEX_INTERVAL,
            sync=sync,
        )
        self._index = SequenceFileWriter(
            directory / INDEX, TEXT, LONG, compression=BLOCK, sync=index_sync
        )
        self._last = b""

    def append(self, records: Places) -> None:
        """Appends records. FormatError if a key is less than the one before it."""
        if not records.size:
            return
        key = records.key(0)
        if key < self._last:  # `lay_out` compares keys of one call
            self._data.reject(self._last, key)
        self._last = records.key(records.size - 1)
        rows, positions = self._data.append(records)
        first = 0
        # A block of the index may be full in between.
        while first < len(rows):
            first = self._append_index(records, rows, positions, first)

    def _append_index(self, records: Places, rows: Offsets, positions: Offsets, first: int) -> int:
        """Adds index entries from number `first` on to the current block; returns the next one."""
        room = _VINT * (len(rows) - first)  # for the longest VInts
        lengths = np.empty(room, np.uint8)
        keys = np.empty(room + int(records.key_len[rows[first:]].sum(dtype=np.int64)), np.uint8)
        used, held = np.empty(2, np.int64), self._index.held
        end: int = sequencefile.index_entries(
            records.arrays, rows, first, held, BLOCK_SIZE, lengths, keys, used
        )
        values = positions[first:end].astype(">i8").tobytes()
        columns = (
            lengths[: used[0]].tobytes(),
            keys[: used[1]].tobytes(),
            bytes([_LONG_SIZE]) * (end - first),
            values,
        )
        self._index.append_columns(end - first, *columns)
        return end

    def close(self) -> None:
        """Finishes both files."""
        self._data.close()
        self._index.close()

    def discard(self) -> None:
        """Closes and removes the unfinished files."""
        self._data.discard()
        self._index.discard()


class _SingleRecords:
    """A file that no kernel lays out, by another codec or in blocks: written record by record."""

    def __init__(
        self,
        path: Path,
        value_class: str,
        mapfile: bool,
        compression: str,
        codec: str,
        inflates: bool,
        sync: bytes | None,
        index_sync: bytes | None,
    ) -> None:
        self._file: MapFileWriter | SequenceFileWriter
        if mapfile:
            self._file = MapFileWriter(
                path,
                TEXT,
                value_class,
                compression=compression,
                codec=codec,
                sync=sync,
                index_sync=index_sync,
            )
        else:
            self._file = SequenceFileWriter(
                path, TEXT, value_class, compression=compression, codec=codec, sync=sync
            )
        self._inflates = inflates
        self.close, self.discard = self._file.close, self._file.discard

    def append(self, records: Places) -> None:
        for key, value in ((records.key(row), records.value(row)) for row in range(records.size)):
            self._file.append_raw(
                encode_vlong(len(key)) + key, decompress(value) if self._inflates else value
            )
