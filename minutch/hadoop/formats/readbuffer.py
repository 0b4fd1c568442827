"""A window on a file or stream that is read front to back, with jumps: how SequenceFiles are read.

Reads are aligned to checksum chunks and grow from 16 KiB to 1 MiB, so that a look-up stays cheap
and a scan fast. No length that a damaged file claims makes a read larger than the file.
"""

from __future__ import annotations

from typing import Protocol

from minutch.errors import FormatError, TruncatedError
from minutch.hadoop.formats.javaio import DataInput

SMALLEST_READ = 16 * 1024
LARGEST_READ = 1024 * 1024


class ByteSource(Protocol):
    """The source of a reader: a file with its sums, or any binary stream."""

    def read(self, size: int, /) -> bytes: ...
    def seek(self, position: int, /) -> object: ...
    def close(self) -> None: ...


class ReadBuffer:
    """A window on a source: `data[pos:]` lies at file offset `base + pos`."""

    def __init__(self, source: ByteSource, name: str, size: int | None) -> None:
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
        self.fill(9)
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
