"""ArrayFile and SetFile: MapFiles with the keys 0, 1, 2, ... (LongWritable), and with NullWritables
as values.

An ArrayFile of Nutch 0.4 and 0.5 consists of SequenceFiles of version 1, which have no markers, its
index among them:

    file     "SEQ" byte(1), utf8 key class, utf8 value class, record*
    record   int length of key and value, int length of key, key, value

The classes are named in short: `long` is LongWritable. There are no checksums.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from minutch.hadoop.formats.checksum import WholeOrNothing
from minutch.hadoop.formats.javaio import DataOutput
from minutch.hadoop.formats.mapfile import (
    DATA,
    INDEX,
    INDEX_INTERVAL,
    LONG,
    NULL,
    MapFileReader,
    MapFileWriter,
)
from minutch.hadoop.formats.sequencewriter import MAGIC
from minutch.paths import as_path

_LONG = struct.Struct(">q")
_OLD_RECORD = struct.Struct(">iiq")
_SHORT_LONG = "long"


class ArrayFileWriter(MapFileWriter):
    """Writes an ArrayFile: values at the positions 0, 1, 2, ..."""

    def __init__(self, directory: str | Path, value_class: str, **options: Any) -> None:
        super().__init__(directory, LONG, value_class, **options)
        self._next = 0

    def append_value(self, value: bytes) -> None:
        """Appends a serialized value."""
        self.append_raw(_LONG.pack(self._next), value)
        self._next += 1


class OldArrayFileWriter(WholeOrNothing):
    """Writes an ArrayFile as Nutch 0.4 and 0.5 did."""

    def __init__(self, directory: str | Path, value_class: str) -> None:
        self.path = as_path(directory)
        self.path.mkdir(parents=True, exist_ok=True)
        self._data, self._index = (
            (self.path / name).open("wb", buffering=1 << 16) for name in (DATA, INDEX)
        )
        self._data.write(_old_head(value_class))
        self._index.write(_old_head(_SHORT_LONG))
        self._next = 0

    def append_value(self, value: bytes) -> None:
        """Appends a serialized value."""
        if self._next % INDEX_INTERVAL == 0:
            self._index.write(_OLD_RECORD.pack(16, 8, self._next) + _LONG.pack(self._data.tell()))
        self._data.write(_OLD_RECORD.pack(8 + len(value), 8, self._next))
        self._data.write(value)
        self._next += 1

    def close(self) -> None:
        self._data.close()
        self._index.close()

    def discard(self) -> None:
        """Closes and removes the unfinished files."""
        self.close()
        for name in (DATA, INDEX):
            (self.path / name).unlink(missing_ok=True)


def _old_head(value_class: str) -> bytes:
    out = DataOutput()
    out.write_bytes(MAGIC + b"\1")
    out.write_utf8(_SHORT_LONG)
    out.write_utf8(value_class)
    return out.getvalue()


class ArrayFileReader(MapFileReader):
    """Reads an ArrayFile."""

    def get_value(self, position: int) -> bytes | None:
        """Returns the serialized value at a position, or None beyond the end."""
        return self.get(_LONG.pack(position))

    def values(self) -> Iterator[bytes]:
        """Returns the serialized values from where the data reader stands."""
        return (value for _, value in self)


class SetFileWriter(MapFileWriter):
    """Writes a SetFile: keys without values, each once."""

    def __init__(self, directory: str | Path, key_class: str, **options: Any) -> None:
        super().__init__(directory, key_class, NULL, **options)

    def add(self, key: bytes) -> None:
        """Appends a serialized key; FormatError if it is out of order."""
        self.append_raw(key, b"")


class SetFileReader(MapFileReader):
    """Reads a SetFile."""

    def __contains__(self, key: bytes) -> bool:
        return self.seek(key)

    def keys(self) -> Iterator[bytes]:
        """Returns the serialized keys from where the data reader stands."""
        return (key for key, _ in self)
