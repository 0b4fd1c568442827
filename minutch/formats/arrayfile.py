"""ArrayFile and SetFile: MapFiles with the keys 0, 1, 2, ... (LongWritable), and with NullWritables as values."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from minutch.formats.keyorder import LONG, NULL
from minutch.formats.mapfile import MapFileReader, MapFileWriter

_LONG = struct.Struct(">q")


class ArrayFileWriter(MapFileWriter):
    """Writes an ArrayFile: values at the positions 0, 1, 2, ..."""

    def __init__(self, directory: str | Path, value_class: str, **options: Any) -> None:
        super().__init__(directory, LONG, value_class, **options)
        self._next = 0

    def append_value(self, value: bytes) -> None:
        """Append a serialized value."""
        self.append_raw(_LONG.pack(self._next), value)
        self._next += 1


class ArrayFileReader(MapFileReader):
    """Reads an ArrayFile."""

    def get_value(self, position: int) -> bytes | None:
        """The serialized value at a position, or None beyond the end."""
        return self.get(_LONG.pack(position))

    def values(self) -> Iterator[bytes]:
        """The serialized values from where the data reader stands."""
        return (value for _, value in self)


class SetFileWriter(MapFileWriter):
    """Writes a SetFile: keys without values, each once."""

    def __init__(self, directory: str | Path, key_class: str, **options: Any) -> None:
        super().__init__(directory, key_class, NULL, **options)

    def add(self, key: bytes) -> None:
        """Append a serialized key; FormatError if it is out of order."""
        self.append_raw(key, b"")


class SetFileReader(MapFileReader):
    """Reads a SetFile."""

    def __contains__(self, key: bytes) -> bool:
        return self.seek(key)

    def keys(self) -> Iterator[bytes]:
        """The serialized keys from where the data reader stands."""
        return (key for key, _ in self)
