"""SequenceFile: a flat file of keys and values, written in version 6, read from version 1 on.

    file         :=  header  ( [sync] record )*                   compression NONE, RECORD
                 |   header  ( sync block )*                      compression BLOCK
    sync         :=  int(-1)  16 bytes of the header              where SYNC_INTERVAL bytes or more
                 went since the last
    record       :=  int(key + value bytes)  int(key bytes)  key  value          RECORD: the value
                 alone is compressed
    block        :=  vint(records)  part(key sizes)  part(keys)  part(value sizes)  part(values)
    part         :=  vint(bytes)  the codec's stream              sizes: a VInt per record

A block is closed once its keys and values together reach `block_size` bytes
(`io.seqfile.compress.blocksize`). A reader may be given a byte range: it starts at the first marker
at or after `start` (0: at the first record) and stops at the first marker at or after `end`, so
ranges that adjoin give every record once, as SequenceFileRecordReader's do (which, unlike this one,
gives the first records twice if a range ends inside the header).

A `ReadBuffer` is a window on a file or stream that is read front to back, with jumps. Reads are
aligned to checksum chunks and grow from 16 KiB to 1 MiB, so that a look-up stays cheap and a scan
fast. No length that a damaged file claims makes a read larger than the file.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import accumulate, pairwise
from pathlib import Path
from typing import BinaryIO, Protocol, Self

from minutch.errors import FormatError, TruncatedError
from minutch.hadoop.formats.checksum import ChecksumReader
from minutch.hadoop.formats.compress import NO_LIMIT, Codec, codec
from minutch.hadoop.formats.javaio import DataInput
from minutch.hadoop.formats.sequencewriter import BLOCK, SYNC_ESCAPE, SequenceHeader
from minutch.hadoop.formats.writables import Writable, lookup
from minutch.paths import StorePath

SMALLEST_READ = 16 * 1024
LARGEST_READ = 1024 * 1024
_LENGTHS = struct.Struct(">ii")
_HEADER_LIMIT = 1 << 24


class ReadSource(Protocol):
    """The source of a reader: a file with its sums, or any binary stream."""

    def read(self, size: int, /) -> bytes: ...
    def seek(self, position: int, /) -> object: ...
    def close(self) -> None: ...


class ReadBuffer:
    """A window on a source: `data[pos:]` lies at file offset `base + pos`."""

    def __init__(self, source: ReadSource, name: str, size: int | None) -> None:
        self.source = source
        self.name = name
        self.size = size
        self.data = b""
        self.base = 0
        self.pos = 0
        self._unit = SMALLEST_READ

    @property
    def offset(self) -> int:
        return self.base + self.pos

    def seek(self, offset: int) -> None:
        # A jump within the window reads nothing.
        if not self.base <= offset <= self.base + len(self.data):
            self.source.seek(offset)
            self.data, self.base, self._unit = b"", offset, SMALLEST_READ
        self.pos = offset - self.base

    def fill(self, need: int) -> int:
        """Reads until `need` bytes lie after `pos` or the source ends; returns how many lie there.

        Reads are aligned and grow, so that a look-up stays cheap; a wrong length never makes them
        larger than the file.
        """
        have = len(self.data) - self.pos
        if have >= need:
            return have
        parts = [self.data[self.pos :]]
        end = self.base + len(self.data)
        while have < need:
            # Up to a multiple of 16 KiB, and so of a chunk: no chunk is read and compared twice.
            part = self.source.read(self._unit - end % SMALLEST_READ)
            if not part:
                break
            parts.append(part)
            have += len(part)
            end += len(part)
            self._unit = min(2 * self._unit, LARGEST_READ)
        self.base += self.pos
        self.pos = 0
        self.data = b"".join(parts)
        return have

    def take(self, size: int, what: str) -> bytes:
        """Returns the next `size` bytes; TruncatedError if they are not there."""
        at = self.offset
        # Before anything is read: a damaged length may claim gigabytes.
        if self.size is not None and size > self.size - at:
            raise self.truncated(what, at, size, self.size - at)
        have = self.fill(size)
        if have < size:
            raise self.truncated(what, at, size, have)
        pos = self.pos
        self.pos = pos + size
        return self.data[pos : self.pos]

    def take_vint(self, what: str) -> int:
        at = self.offset
        self.fill(9)  # the longest VLong
        source = DataInput(self.data, self.pos)
        try:
            value = source.read_vint()
        except FormatError as exc:
            exc.what, exc.offset = f"{what}: {exc.what}", at
            raise exc.at(self.name) from None
        self.pos = source.pos
        if value < 0:
            raise FormatError(f"negative {what}", path=self.name, offset=at, found=value)
        return value

    def truncated(self, what: str, at: int, expected: int, found: int) -> TruncatedError:
        return TruncatedError(
            f"file ends inside {what}",
            path=self.name,
            offset=at,
            expected=f"{expected} bytes",
            found=found,
        )


class SequenceFileReader:
    """Reads a SequenceFile from a path (verified by its `.crc` sibling) or from a binary stream.

    Iterating gives `(key, value)` as serialized bytes, decompressed; `records()` gives Writables.
    Both go on from `position`, which `seek` and `sync_to` move. A record, or the keys or values of
    a block, that unpacks to more than `most` bytes is damaged. All errors are FormatErrors with
    file and offset.
    """

    def __init__(
        self,
        source: str | Path | BinaryIO,
        *,
        start: int = 0,
        end: int | None = None,
        verify: bool = True,
        most: int = NO_LIMIT,
    ) -> None:
        self._most = most
        if isinstance(source, (str, Path, StorePath)):
            file = ChecksumReader(source, verify=verify)
            self._in = ReadBuffer(file, str(source), file.size)
        else:
            self._in = ReadBuffer(source, str(getattr(source, "name", "stream")), None)
        try:
            self.header = self._read_header()
            self._codec = codec(self.header.codec) if self.header.codec else None
        except FormatError as exc:
            self.close()
            raise exc.at(self._in.name) from exc.__cause__
        except BaseException:
            self.close()
            raise
        self.key_class = self.header.key_class
        self.value_class = self.header.value_class
        self.compression = self.header.compression
        self.codec = self.header.codec
        self.version = self.header.version
        self.metadata: dict[str, str] = dict(self.header.metadata)
        self.sync = self.header.sync
        self.header_end = self._in.offset
        self._marker = SYNC_ESCAPE + self.sync if self.sync else b""
        self._end = end if self._marker else None
        self._empty = end is not None and end <= start
        if start > 0:
            self._find_marker(max(start, self.header_end))

    def _read_header(self) -> SequenceHeader:
        size = 1024
        while True:
            have = self._in.fill(size)
            source = DataInput(self._in.data)
            try:
                header = SequenceHeader.read(source)
            except TruncatedError:
                # The file has no more, or claims metadata beyond reason.
                if have < size or size >= _HEADER_LIMIT:
                    raise
                size *= 4  # long metadata
            else:
                self._in.pos = source.pos
                return header

    @property
    def name(self) -> str:
        """The file's name, as it stands in errors."""
        return self._in.name

    @property
    def size(self) -> int:
        """The file's bytes; 0 for a stream."""
        return self._in.size or 0

    @property
    def position(self) -> int:
        """The offset after the last record; in a file of blocks, after the block it lies in."""
        return self._in.offset

    def seek(self, position: int) -> None:
        """Moves to an offset from `position` of a reader or writer; older iterators are void."""
        self._in.seek(position)

    def sync_to(self, position: int) -> None:
        """Moves to the first marker at or after `position`, or to the end if there is none
        (Reader.sync).

        A position inside the header leads to the first record. A file of version 1 has no markers.
        """
        if position <= self.header_end:
            self._in.seek(self.header_end)
        else:
            self._find_marker(position)

    def _find_marker(self, position: int) -> None:
        self._in.seek(position)
        size = SMALLEST_READ
        while True:
            have = self._in.fill(size)
            found = self._in.data.find(self._marker, self._in.pos) if self._marker else -1
            if found >= 0:
                self._in.pos = found
                return
            if have < size:
                self._in.pos += have
                return
            self._in.pos += have - len(self._marker) + 1  # a marker may begin in the last bytes
            size = min(2 * size, LARGEST_READ)

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        if self._empty:
            return iter(())
        if self.compression == BLOCK:
            return self._block_records()
        if self._codec is not None:
            return self._compressed_records(self._codec)
        return self._plain_records()

    def stored(self) -> Iterator[tuple[bytes, bytes]]:
        """Yields the records like iterating, with values as they are stored: compressed in a file
        of compression RECORD.
        """
        return iter(self) if self._empty or self.compression == BLOCK else self._plain_records()

    def find(self, key: bytes) -> bytes | None:
        """Returns the value of the first record with this key from `position` on, or None; the
        records may have any order.

        Keys that lie in the file as they are, are looked for as bytes; of the records, only those
        between two markers are read that have them. Damage elsewhere shows in the checksums alone.
        """
        window, marker = self._in, self._marker
        sought = len(key).to_bytes(4, "big") + key  # as it stands in a record
        if self.compression == BLOCK or not marker:
            return self._value_of(key, None)
        need = LARGEST_READ
        while True:
            have = window.fill(need)
            place = window.data.find(sought, window.pos)
            # Where records begin is known from a marker on.
            last = window.data.rfind(marker, window.pos + 1, None if place < 0 else place)
            if place >= 0:
                end = window.base + place
                window.pos = max(last, window.pos)
                value = self._value_of(key, end)  # nothing, if the bytes stood in a value
                if value is not None:
                    return value
                need = LARGEST_READ
            elif have < need:
                return None
            else:
                window.pos = max(last, window.pos)
                # No marker in all of it: a long record.
                need = LARGEST_READ if last >= 0 else 2 * need

    def _value_of(self, key: bytes, end: int | None) -> bytes | None:
        """Reads on to a record with this key, or to the one that begins after `end`."""
        for found, value in self:
            if found == key:
                return value
            if end is not None and self.position > end:
                break
        return None

    @property
    def value_type(self) -> type[Writable]:
        """The class of the values; FormatError, naming the file, if minutch does not have it."""
        return self._type(self.value_class)

    def _type(self, class_name: str) -> type[Writable]:
        try:
            return lookup(class_name)
        except FormatError as exc:
            raise exc.at(self.name) from exc.__cause__

    def records(self) -> Iterator[tuple[Writable, Writable]]:
        """Yields the records as Writables; raises FormatError for a class that is not known or a
        record that is not one.

        The error's offset is that of the record, or of the block that it lies in.
        """
        key_type, value_type = self._type(self.key_class), self.value_type
        at = self.position
        for key, value in self:
            try:
                yield key_type.from_bytes(key), value_type.from_bytes(value)
            except FormatError as exc:
                exc.what, exc.offset = f"bad record: {exc.what}", at
                raise exc.at(self.name) from exc.__cause__
            at = self.position

    def _plain_records(self) -> Iterator[tuple[bytes, bytes]]:
        """Records as they lie in the file."""
        window = self._in
        unpack = _LENGTHS.unpack_from
        while True:
            data, pos = window.data, window.pos
            if pos + 8 <= len(data):
                length, key_length = unpack(data, pos)
                value_at = pos + 8 + key_length
                end = pos + 8 + length
                if 0 <= key_length <= length and end <= len(data):  # a marker's -1 is no length
                    window.pos = end
                    yield data[pos + 8 : value_at], data[value_at:end]
                    continue
            if not self._ready():
                return

    def _ready(self) -> bool:
        """Passes a marker and reads the next record into the window; False at the end."""
        window = self._in
        if self._pass_marker() or not window.fill(1):
            return False
        at = window.offset
        if window.fill(8) < 8:
            raise window.truncated("the lengths of a record", at, 8, window.fill(0))
        length, key_length = _LENGTHS.unpack_from(window.data, window.pos)
        if not 0 <= key_length <= length:
            raise FormatError(
                "impossible lengths of a record",
                path=window.name,
                offset=at,
                expected="0 <= key <= record",
                found=f"key {key_length}, record {length}",
            )
        window.take(8 + length, "a record")  # brings it into the window
        window.seek(at)
        return True

    def _pass_marker(self) -> bool:
        """Moves behind a marker if there is one; True if it ends this reader's range."""
        window = self._in
        marker = self._marker
        if (
            not marker
            or window.fill(len(marker)) < 4
            or not window.data.startswith(SYNC_ESCAPE, window.pos)
        ):
            return False
        # As SequenceFileRecordReader: a range ends at the first marker behind it.
        if self._end is not None and window.offset >= self._end:
            return True
        at = window.offset
        found = window.take(len(marker), "a sync marker")
        if found != marker:
            raise FormatError(
                "wrong sync marker",
                path=window.name,
                offset=at,
                expected=marker.hex(),
                found=found.hex(),
            )
        return False

    def _compressed_records(self, values: Codec) -> Iterator[tuple[bytes, bytes]]:
        decompress, most = values.decompress, self._most
        for key, value in self._plain_records():
            try:
                plain = decompress(value, most)
            except FormatError as exc:
                raise exc.at(self.name, self._in.offset - len(value)) from exc.__cause__
            yield key, plain

    def _block_records(self) -> Iterator[tuple[bytes, bytes]]:
        while True:
            at = self._in.offset
            if not self._in.fill(1):
                return
            if self._pass_marker():
                return
            if self._marker and self._in.offset == at:
                have = self._in.fill(4)
                if have < 4:
                    raise self._in.truncated("a sync marker", at, len(self._marker), have)
                raise FormatError(
                    "no sync marker before a block",
                    path=self.name,
                    offset=at,
                    expected=self._marker.hex(),
                    found=self._in.data[self._in.pos : self._in.pos + len(self._marker)].hex(),
                )
            count = self._in.take_vint("number of records")
            keys = self._read_column(count, "keys")
            values = self._read_column(count, "values")
            yield from zip(keys, values, strict=True)

    def _read_column(self, count: int, what: str) -> list[bytes]:
        """Returns the keys or the values of a block: their sizes, then the bytes."""
        at = self._in.offset
        lengths = _read_lengths(
            self._read_part(f"the sizes of the {what}"), count, what, self.name, at
        )
        at = self._in.offset
        data = self._read_part(f"the {what}")
        if sum(lengths) != len(data):
            raise FormatError(
                f"sizes of the {what} don't add up",
                path=self.name,
                offset=at,
                expected=sum(lengths),
                found=len(data),
            )
        return [data[begin:end] for begin, end in pairwise(accumulate(lengths, initial=0))]

    def _read_part(self, what: str) -> bytes:
        """Returns a compressed part of a block, decompressed."""
        size = self._in.take_vint(f"size of {what}")
        at = self._in.offset
        part = self._in.take(size, what)
        assert self._codec is not None
        try:
            return self._codec.decompress(part, self._most)
        except FormatError as exc:
            raise exc.at(self.name, at) from exc.__cause__

    def close(self) -> None:
        self._in.source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _read_lengths(data: bytes, count: int, what: str, name: str, at: int) -> list[int]:
    """`count` VInts that are not negative and use up `data`."""
    if len(data) == count and (not data or max(data) < 128):  # each in one byte
        return list(data)
    if count <= len(data):
        source = DataInput(data)
        try:
            lengths = [source.read_vint() for _ in range(count)]
        except FormatError as exc:
            exc.offset = at
            raise exc.at(name) from None
        if not source.remaining and min(lengths, default=0) >= 0:
            return lengths
    raise FormatError(
        f"wrong sizes of the {what} of a block", path=name, offset=at, expected=f"{count} sizes"
    )
