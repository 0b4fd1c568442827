"""Writes SequenceFiles of version 6, whose grammar stands in `sequencefile`; and their header,
versions 1 to 6 (SequenceFile.Reader.init, Writer.writeFileHeader).

    header   :=  "SEQ" byte(version)  name(key class)  name(value class)
                 [version >= 3]  boolean(compressed)
                 [version >= 4]  boolean(in blocks)
                 [version >= 5 and compressed]  text(codec class)
                 [version >= 6]  int(count) (text(name) text(value))*                  sorted by
                                 name
                 [version >= 2]  16 bytes                                              the file's
                                 sync marker
    name     :=  text, before version 4 utf8 (two-byte length)

Before version 5 the codec is DefaultCodec. Version 1 has no sync markers.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from minutch.errors import FormatError
from minutch.hadoop.formats.checksum import ChecksumWriter, WholeOrNothing
from minutch.hadoop.formats.compress import DEFAULT_CODEC, Codec, codec
from minutch.hadoop.formats.javaio import DataInput, DataOutput, encode_text, encode_vlong
from minutch.hadoop.formats.writables import Writable
from minutch.paths import StorePath, as_path

TEXT = "org.apache.hadoop.io.Text"
MAGIC = b"SEQ"
VERSION = 6
SYNC_SIZE = 16
SYNC_ESCAPE = b"\xff\xff\xff\xff"
"""Stands before the marker where a record's length would stand."""

_SYNC_FROM, _COMPRESSED_FROM, _BLOCKS_FROM, _CODEC_FROM, _METADATA_FROM = 2, 3, 4, 5, 6

NONE, RECORD, BLOCK = "NONE", "RECORD", "BLOCK"
COMPRESSIONS = (NONE, RECORD, BLOCK)
SYNC_INTERVAL = 5 * 1024 * (len(SYNC_ESCAPE) + SYNC_SIZE)
"""Bytes after which a marker is due."""
BLOCK_SIZE = 1_000_000
"""Bytes of keys and values after which a block is closed."""

_LENGTHS = struct.Struct(">ii")


@dataclass(frozen=True, slots=True)
class SequenceHeader:
    """The header of a SequenceFile: `sync` is empty in version 1, `codec` None if uncompressed."""

    key_class: str
    value_class: str
    compression: str = NONE
    codec: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    sync: bytes = b""
    version: int = VERSION

    @classmethod
    def read(cls, source: DataInput) -> SequenceHeader:
        """Reads a header of any version; raises FormatError or TruncatedError with the offset."""
        magic = source.read_bytes(4)
        if magic[:3] != MAGIC:
            raise FormatError("not a SequenceFile", offset=0, expected="'SEQ'", found=magic[:3])
        if not 1 <= magic[3] <= VERSION:
            raise FormatError(
                "unknown SequenceFile version", offset=3, expected=f"1 to {VERSION}", found=magic[3]
            )
        version = magic[3]
        # Reader.init: Text.readString since BLOCK_COMPRESS_VERSION.
        read_name = source.read_utf8 if version < _BLOCKS_FROM else source.read_text
        key_class, value_class = read_name(), read_name()
        compressed = version >= _COMPRESSED_FROM and source.read_boolean()
        blocks = version >= _BLOCKS_FROM and source.read_boolean()
        codec = None
        if compressed:
            codec = source.read_text() if version >= _CODEC_FROM else DEFAULT_CODEC
        metadata = _read_metadata(source) if version >= _METADATA_FROM else {}
        sync = source.read_bytes(SYNC_SIZE) if version >= _SYNC_FROM else b""
        compression = NONE if not compressed else BLOCK if blocks else RECORD
        return cls(key_class, value_class, compression, codec, metadata, sync, version)

    def require(self, value_class: str, path: Path) -> None:
        """Raises FormatError, naming the file, unless it holds <Text, value_class>."""
        found = (self.key_class, self.value_class)
        if found != (TEXT, value_class):
            raise FormatError(
                "unexpected classes",
                path=path,
                offset=0,
                expected=f"<{TEXT}, {value_class}>",
                found=f"<{found[0]}, {found[1]}>",
            )

    def to_bytes(self) -> bytes:
        """Returns the header in version 6, whatever version it was read from."""
        out = DataOutput()
        out.write_bytes(MAGIC + bytes((VERSION,)))
        out.write_text(self.key_class)
        out.write_text(self.value_class)
        out.write_boolean(self.compression != NONE)
        out.write_boolean(self.compression == BLOCK)
        if self.compression != NONE:
            out.write_text(self.codec or DEFAULT_CODEC)
        out.write_int(len(self.metadata))
        # In a TreeMap of Texts: by the bytes of the names.
        for name, value in sorted(
            (encode_text(k), encode_text(v)) for k, v in self.metadata.items()
        ):
            out.write_text_bytes(name)
            out.write_text_bytes(value)
        out.write_bytes(self.sync)
        return out.getvalue()


def _read_metadata(source: DataInput) -> dict[str, str]:
    at = source.pos
    count = source.read_int()
    if count < 0:
        raise FormatError("negative number of metadata entries", offset=at, found=count)
    metadata = {}
    for _ in range(count):
        name = source.read_text()
        metadata[name] = source.read_text()
    return metadata


def new_sync() -> bytes:
    """Returns a marker that no data contains by chance (Hadoop takes the MD5 of a unique id)."""
    return os.urandom(SYNC_SIZE)


class _StreamOut:
    """A binary stream to write to; it is left open, and what went into it can't be taken back."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.position = 0

    def write(self, data: bytes) -> None:
        self._stream.write(data)
        self.position += len(data)

    def close(self) -> None:
        self._stream.flush()

    def discard(self) -> None:
        pass


class SequenceFileWriter(WholeOrNothing):
    """Writes a SequenceFile of version 6 to a path, with its `.crc` sibling, or to a binary stream,
    which stays open.

    `sync` gives the 16 bytes of the marker (for files that must come out equal byte for byte).
    Leaving the `with` block by an error removes the unfinished file.
    """

    def __init__(  # noqa: PLR0913 - what a file is made of
        self,
        target: str | Path | BinaryIO,
        key_class: str,
        value_class: str,
        *,
        compression: str = NONE,
        codec: str = DEFAULT_CODEC,
        metadata: Mapping[str, str] | None = None,
        sync: bytes | None = None,
        block_size: int = BLOCK_SIZE,
        sync_interval: int = SYNC_INTERVAL,
    ) -> None:
        path = _path_of(target)
        if compression not in COMPRESSIONS:
            raise FormatError(
                "unknown compression",
                path=path,
                expected="NONE, RECORD or BLOCK",
                found=compression,
            )
        sync = new_sync() if sync is None else sync
        if len(sync) != SYNC_SIZE:
            raise FormatError(
                "wrong size of a sync marker", path=path, expected=SYNC_SIZE, found=len(sync)
            )
        self.path = path
        self.header = SequenceHeader(
            key_class,
            value_class,
            compression,
            None if compression == NONE else codec,
            dict(metadata or {}),
            sync,
        )
        self._compress = None if compression == NONE else _find(codec, path).compress
        self._marker = SYNC_ESCAPE + sync
        self._interval = sync_interval
        self._last_sync = 0
        self._block = _BlockColumns(block_size) if compression == BLOCK else None
        self._out = (
            ChecksumWriter(target)
            if isinstance(target, str | Path | StorePath)
            else _StreamOut(target)
        )
        self._out.write(self.header.to_bytes())

    @property
    def position(self) -> int:
        """The file's length so far (Writer.getLength): where the next record or block will be."""
        return self._out.position

    def append(self, key: Writable, value: Writable) -> None:
        """Appends a record; FormatError if it is of other classes than the file's."""
        found = (key.class_name, value.class_name)
        expected = (self.header.key_class, self.header.value_class)
        if found != expected:
            raise FormatError(
                "wrong class",
                path=self.path,
                expected=" and ".join(expected),
                found=" and ".join(found),
            )
        self.append_raw(key.to_bytes(), value.to_bytes())

    def append_raw(self, key: bytes, value: bytes, *, compressed: bool = False) -> None:
        """Appends a record of serialized bytes; `compressed` if the value went through this file's
        codec already.

        Only a record-compressed file takes compressed values.
        """
        if self._block is not None:
            if self._block.add(key, value):
                self.sync()
            return
        if self._compress is not None and not compressed:
            value = self._compress(value)
        out = self._out
        # SequenceFile.Writer.checkAndWriteSync.
        if out.position >= self._last_sync + self._interval:
            self._write_marker()
        out.write(_LENGTHS.pack(len(key) + len(value), len(key)) + key + value)

    def append_columns(self, count: int, *columns: bytes) -> None:
        """Appends records to the current block of a file of blocks: lengths of keys, keys, lengths
        of values, values.

        They go together into that block; it is closed if they fill it.
        """
        assert self._block is not None
        if self._block.add_all(count, columns):
            self.sync()

    @property
    def held(self) -> int:
        """Bytes of keys and values in the current block; from BLOCK_SIZE on it would be closed."""
        return 0 if self._block is None else self._block.held

    def append_records(self, records: bytes) -> None:
        """Appends records as they lie in a file like this one, back to back without markers; these
        come in between.

        Values are compressed where this file's are compressed by record.
        """
        if self._block is not None:
            for start, end, key_end in record_places(records):
                self.append_raw(records[start + _LENGTHS.size : key_end], records[key_end:end])
            return
        out = self._out
        begin = 0
        # Records are told apart only where a marker is due among them.
        due = self._last_sync + self._interval - out.position
        if due < len(records):
            for start, _, _ in record_places(records):
                if start >= due:
                    out.write(records[begin:start])
                    self._write_marker()
                    begin, due = start, start + self._interval
        out.write(records[begin:])

    def sync(self) -> None:
        """Writes a marker; in a file of blocks, closes the block unless it is empty."""
        if self._block is None:
            self._write_marker()
        elif self._block.count:
            self._write_marker()
            assert self._compress is not None
            self._out.write(encode_vlong(self._block.count))
            for part in self._block.parts():
                data = self._compress(part)
                self._out.write(encode_vlong(len(data)))
                self._out.write(data)
            self._block.clear()

    def _write_marker(self) -> None:
        if self._last_sync != self._out.position:  # SequenceFile.Writer.sync
            self._out.write(self._marker)
            self._last_sync = self._out.position

    def close(self) -> None:
        """Writes pending records and closes the file."""
        if self._block is not None:
            self.sync()
        self._out.close()

    def discard(self) -> None:
        """Closes and removes the unfinished file."""
        self._out.discard()


def _path_of(target: str | Path | BinaryIO) -> Path:
    """Returns a file's path; a stream has its name."""
    if isinstance(target, str | Path | StorePath):
        return as_path(target)
    return Path(str(getattr(target, "name", "stream")))


def record_places(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yields start and end of each of the records that stand back to back in `data`, and where its
    key ends. Raises FormatError.
    """
    at, head = 0, _LENGTHS.size
    while at < len(data):
        left = len(data) - at - head
        length, key_length = _LENGTHS.unpack_from(data, at) if left >= 0 else (-1, -1)
        if not 0 <= key_length <= length <= left:
            raise FormatError(
                "lengths of a record that do not fit",
                offset=at,
                expected=f"at most {left} bytes",
                found=f"{length}, {key_length} of the key",
            )
        start, at = at, at + head + length
        yield start, at, start + head + key_length


class _BlockColumns:
    """The records of a block that is being collected."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.clear()

    def clear(self) -> None:
        self.count = 0
        self._key_sizes, self._keys = DataOutput(), bytearray()
        self._value_sizes, self._values = DataOutput(), bytearray()

    def add(self, key: bytes, value: bytes) -> bool:
        """Adds a record; True if the block is full."""
        self.count += 1
        self._key_sizes.write_vint(len(key))
        self._keys += key
        self._value_sizes.write_vint(len(value))
        self._values += value
        return self.held >= self._limit

    def add_all(self, count: int, columns: Sequence[bytes]) -> bool:
        """Adds the columns of some records; True if the block is full."""
        self.count += count
        own = self._key_sizes.buf, self._keys, self._value_sizes.buf, self._values
        for column, more in zip(own, columns, strict=True):
            column.extend(more)
        return self.held >= self._limit

    @property
    def held(self) -> int:
        return len(self._keys) + len(self._values)

    def parts(self) -> Iterator[bytes]:
        yield self._key_sizes.getvalue()
        yield bytes(self._keys)
        yield self._value_sizes.getvalue()
        yield bytes(self._values)


def _find(name: str, path: Path) -> Codec:
    try:
        return codec(name)
    except FormatError as exc:
        raise exc.at(path) from None
