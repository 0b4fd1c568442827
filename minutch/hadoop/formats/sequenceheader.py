"""The header of a SequenceFile, versions 1 to 6 (SequenceFile.Reader.init, Writer.writeFileHeader).

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
from collections.abc import Mapping
from dataclasses import dataclass, field

from minutch.errors import FormatError
from minutch.hadoop.formats.compress import DEFAULT_CODEC
from minutch.hadoop.formats.javaio import DataInput, DataOutput, encode_text

MAGIC = b"SEQ"
VERSION = 6
SYNC_SIZE = 16
SYNC_ESCAPE = b"\xff\xff\xff\xff"
"""Stands before the marker where a record's length would stand."""

_SYNC_FROM, _COMPRESSED_FROM, _BLOCKS_FROM, _CODEC_FROM, _METADATA_FROM = 2, 3, 4, 5, 6

NONE, RECORD, BLOCK = "NONE", "RECORD", "BLOCK"
COMPRESSIONS = (NONE, RECORD, BLOCK)


@dataclass(frozen=True, slots=True)
class SequenceHeader:
    """The header of a SequenceFile. `sync` is empty in version 1, `codec` is None where nothing is
    compressed.
    """

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
        version = _read_version(source)
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
        for name, value in sorted(
            (encode_text(k), encode_text(v)) for k, v in self.metadata.items()
        ):
            out.write_text_bytes(name)
            out.write_text_bytes(value)
        out.write_bytes(self.sync)
        return out.getvalue()


def _read_version(source: DataInput) -> int:
    magic = source.read_bytes(4)
    if magic[:3] != MAGIC:
        raise FormatError("not a SequenceFile", offset=0, expected="'SEQ'", found=magic[:3])
    if not 1 <= magic[3] <= VERSION:
        raise FormatError(
            "unknown SequenceFile version", offset=3, expected=f"1 to {VERSION}", found=magic[3]
        )
    return magic[3]


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
