"""Reads the bytes of an archive front to back, decompressed if need be, through a window.

    file  :=  bytes      plain: one member, the file itself
           |  member*    as a rule a member a record, or one for all, or blocks of any size

`window[at:]` is what was read and not yet used. Damage ends a member: what came before it is kept,
and the next member is sought from behind the damaged one's head on, since decompressing may run on
far behind the byte that is wrong. Members are of gzip or frames of zstd
(`membersources`).
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import BinaryIO, Final, NamedTuple, Protocol

PIECE: Final = 16 * 1024
"""Compressed bytes taken at a time."""
WHOLE: Final = 1 << 20
"""Members of up to so many bytes are decompressed at once."""
_READ: Final = 1 << 20
_LEAST: Final = 1 << 16
_OVERLAP: Final = 64
_MOST_TRIED: Final = 256
"""Places of a file where a member may be sought among damage, and one more for each _TRIED_EACH
bytes: 1 MB of nothing but beginnings took 12 s.
"""
_TRIED_EACH: Final = 4096


class RecordPosition(NamedTuple):
    """A record's position: the offset in the file (of its member, if any), and bytes into that."""

    offset: int
    inner: int = 0

    def __str__(self) -> str:
        return f"{self.offset} + {self.inner} decompressed" if self.inner else str(self.offset)


IsRecord = Callable[[bytes], bool]
"""Whether data may be the beginning of a record."""


class ByteSource(Protocol):
    """A source of the bytes of records."""

    window: bytes
    at: int
    damage: str
    """What ended the member early; empty if nothing did."""
    gap: RecordPosition | None
    """What is no member and was passed over by the last `next_member`."""

    def more(self) -> bool:
        """Drops the used part of the window and reads on behind the rest; False at the end."""

    def member(self) -> RecordPosition:
        """Returns the offset of the member."""

    def place(self) -> RecordPosition:
        """Returns the position of `window[at]`."""

    @property
    def end(self) -> int | None:
        """The offset behind what was used; None in the middle of a member."""
        ...

    def go_to(self, place: RecordPosition) -> None:
        """Makes `place` the beginning of the window, which may be empty then."""

    def keep(self) -> None:
        """Marks the beginning of a record: going back to it, or to a place in it, will be cheap."""

    def skip(self, count: int) -> int:
        """Passes over bytes of this member; returns how many were there."""

    def next_whole(self) -> bool:
        """After a good member: takes the next into the window; True if it is good and not large."""

    def next_member(self) -> bool:
        """Goes on with the next member; False at the end of the file. `damage` is empty again."""

    def joins(self) -> bool:
        """At the end of a member: returns True if the next one continues the same record, and is in
        the window now.
        """

    def close(self) -> None:
        """Closes the file."""


class PlainSource:
    """A file as it is: one member, from `start` up to `end`."""

    def __init__(self, file: BinaryIO, start: int = 0, end: int | None = None) -> None:
        self.window, self.at, self.damage = b"", 0, ""
        self._file, self._end = file, _size(file) if end is None else end
        self.gap: RecordPosition | None = None
        self._read_to = start
        self._file.seek(start)

    def more(self) -> bool:
        data = (
            self._file.read(min(_READ, self._end - self._read_to))
            if self._read_to < self._end
            else b""
        )
        self.window = self.window[self.at :] + data if self.at < len(self.window) else data
        self.at = 0
        self._read_to += len(data)
        return bool(data)

    def member(self) -> RecordPosition:
        return RecordPosition(0)

    def place(self) -> RecordPosition:
        return RecordPosition(self._read_to - len(self.window) + self.at)

    @property
    def end(self) -> int:
        return self.place().offset

    def go_to(self, place: RecordPosition) -> None:
        self.window, self.at = b"", 0
        self._read_to = place.offset + place.inner
        self._file.seek(self._read_to)

    def keep(self) -> None:
        """Does nothing: going back in a plain file is always cheap."""

    def skip(self, count: int) -> int:
        here = self.place().offset
        there = min(here + count, self._end)
        if there - here <= len(self.window) - self.at:
            self.at += there - here
        else:
            self.go_to(RecordPosition(there))
        return there - here

    def next_whole(self) -> bool:
        return False

    def next_member(self) -> bool:
        return False

    def joins(self) -> bool:
        return False

    def close(self) -> None:
        self._file.close()


class MemberSource(ABC):
    """A compressed file from `start` to `end`, member by member; subclasses know how to unpack."""

    magic: bytes
    """What a member begins with."""
    head_size: int
    """How long the head of a member is at least."""

    def __init__(
        self, file: BinaryIO, is_record: IsRecord, start: int = 0, end: int | None = None
    ) -> None:
        self.window, self.at, self.damage = b"", 0, ""
        self._file, self._is_record, self._end = (
            file,
            is_record,
            _size(file) if end is None else end,
        )
        self._raw, self._raw_at, self._raw_start = b"", 0, start
        self._view = memoryview(b"")
        self._unit = _LEAST
        self._member_starts: list[tuple[int, int, int]] = []
        """Members in the window: position in it, offset in the file, bytes before that position."""
        self.gap: RecordPosition | None = None
        self._ended = False
        self._tried = 0
        self._member = start
        self._begin(start)

    # -- what a subclass knows ---------------------------------------------------------------------

    @abstractmethod
    def _open_member(self) -> None:
        """Makes ready to decompress the member that begins here."""

    @abstractmethod
    def _inflate(self) -> bytes:
        """Returns the next bytes of the member, or none yet; `_ended` behind its last byte, and
        `damage` says what is wrong.
        """

    @abstractmethod
    def _whole(self, data: bytes, at: int) -> tuple[bytes, int] | None:
        """Returns the member at `data[at]` and its packed size, if it is whole, good and small."""

    @abstractmethod
    def _first_bytes(self, head: bytes) -> bytes:
        """Decompresses the first bytes of a member that are easily had; empty if it is none."""

    # -- bytes of the file -------------------------------------------------------------------------

    @property
    def _offset(self) -> int:
        return self._raw_start + self._raw_at

    def _seek(self, offset: int) -> None:
        # A jump within what was read costs nothing.
        if self._raw_start <= offset <= self._raw_start + len(self._raw):
            self._raw_at = offset - self._raw_start
        else:
            self._raw, self._raw_at, self._raw_start = b"", 0, offset

    def _read_from(self, offset: int) -> None:
        """Reads on from `offset`: little after a jump, more and more from there."""
        self._unit = min(2 * self._unit, _READ) if offset == self._file.tell() else _LEAST
        self._file.seek(offset)
        self._raw = self._file.read(max(0, min(self._unit, self._end - offset)))
        self._view, self._raw_at, self._raw_start = memoryview(self._raw), 0, offset

    def _piece(self, size: int = PIECE) -> memoryview:
        """Returns the next compressed bytes; empty at the end."""
        if self._raw_at >= len(self._raw):
            self._read_from(self._offset)
        piece = self._view[self._raw_at : self._raw_at + size]
        self._raw_at += len(piece)
        return piece

    # -- members -----------------------------------------------------------------------------------

    def _begin(self, offset: int) -> None:
        self._seek(offset)
        self._member, self._ended, self.damage = offset, False, ""
        self.window, self.at = b"", 0
        self._member_starts = [(0, offset, 0)]
        self._open_member()

    def more(self) -> bool:
        data = b""
        # A piece may hold a head alone, which gives nothing.
        while not data and not self._ended:
            data = self._inflate()
        if self.at:
            self._drop()
        self.window = self.window + data if self.window else data
        return bool(data)

    def _drop(self) -> None:
        at, starts = self.at, self._member_starts
        # The member that the window begins in stays, for its offset.
        while len(starts) > 1 and starts[1][0] <= at:
            starts.pop(0)
        self._member_starts = [
            (max(0, pos - at), offset, inner + max(0, at - pos)) for pos, offset, inner in starts
        ]
        self.window, self.at = self.window[at:], 0

    def next_whole(self) -> bool:
        if not self._ended or self.damage:
            return False
        offset = self._offset
        found = self._whole(self._raw, self._raw_at)
        if found is None and self._raw_at and self._raw_start + len(self._raw) < self._end:
            self._read_from(offset)  # it may go on behind what was read
            found = self._whole(self._raw, 0)
        if found is None:
            return False
        self.window, size = found
        self._raw_at += size
        self._member, self.at = offset, 0
        self._member_starts = [(0, offset, 0)]
        return True

    def next_member(self) -> bool:
        """Returns the next member: behind the last, or, after damage, where a record is found."""
        # Behind the head: a damaged length would lead past good members.
        start: int | None = self._member + self.head_size if self.damage else self._offset
        assert start is not None
        if self.damage:
            start = self._find(start)
        elif not self._is_member():
            end, start = self._offset, self._find(self._offset)
            self.gap = self._gap(end, self._end if start is None else start)
        if start is None or start >= self._end:
            return False
        self._begin(start)
        return True

    def _is_member(self) -> bool:
        """Tells whether a member begins here."""
        return bytes(self._peek(len(self.magic))) == self.magic

    def _gap(self, start: int, end: int) -> RecordPosition | None:
        """Returns the offset of the first byte that is no member; zeros at the end, as some disks
        leave them, are no damage.
        """
        self._seek(start)
        while start < end:
            data = bytes(self._piece(min(_READ, end - start)))
            blank = len(data) - len(data.lstrip(b"\0\r\n"))
            if blank < len(data) or not data:
                return RecordPosition(start + blank)
            start += len(data)
        return None

    def _peek(self, size: int) -> memoryview:
        offset = self._offset
        piece = self._piece(size)
        if len(piece) < size and offset + len(piece) < self._end:
            self._read_from(offset)
            piece = self._view[:size]
        self._seek(offset)
        return piece

    def _find(self, start: int) -> int | None:
        """Returns the offset of the next member that holds a record, from `start` on; of very many
        beginnings not all are tried.
        """
        at, size = start, _LEAST
        while at < self._end:
            self._file.seek(at)
            # Overlapping, as a magic number may lie across two reads.
            data = self._file.read(min(size + _OVERLAP, self._end - at))
            if not data:
                return None
            found = data.find(self.magic)
            while 0 <= found < size:
                if self._tried <= _MOST_TRIED + (at + found) // _TRIED_EACH:
                    self._tried += 1
                    if self._holds_record(at + found):
                        return at + found
                found = data.find(self.magic, found + 1)
            at, size = at + size, min(2 * size, _READ)
        return None

    def _holds_record(self, offset: int) -> bool:
        self._file.seek(offset)
        return self._is_record(self._first_bytes(self._file.read(min(PIECE, self._end - offset))))

    def joins(self) -> bool:
        if (
            not self._ended
            or self.damage
            or not self._is_member()
            or self._begins_record(self._offset)
        ):
            return False
        self._drop()
        rest, starts = self.window, self._member_starts
        self._begin(self._offset)
        self.window, self._member_starts = rest, [*starts, (len(rest), self._member, 0)]
        return self.more()

    def _begins_record(self, offset: int) -> bool:
        holds = self._holds_record(offset)
        self._seek(offset)
        return holds

    # -- places ------------------------------------------------------------------------------------

    def member(self) -> RecordPosition:
        return RecordPosition(self._member)

    def place(self) -> RecordPosition:
        position, offset, inner = next(
            start for start in reversed(self._member_starts) if start[0] <= self.at
        )
        return RecordPosition(offset, inner + self.at - position)

    @property
    def end(self) -> int | None:
        if self._ended and self.at >= len(self.window):
            return self._offset
        place = self.place()
        return None if place.inner else place.offset

    def go_to(self, place: RecordPosition) -> None:
        here = self.place()
        if not (place.offset == here.offset and place.inner >= here.inner):
            self._go_back(place)
            here = self.place()
        left = place.inner - here.inner
        # A record may go on in the next member.
        while (left := left - self.skip(left)) and self.joins():
            pass

    def _go_back(self, place: RecordPosition) -> None:
        """Goes to the beginning of the member of `place`, or anywhere before that in it."""
        self._begin(place.offset)

    def keep(self) -> None:  # noqa: B027 - a subclass may have nothing to do
        """Does nothing where a member can only be decompressed from its beginning."""

    def skip(self, count: int) -> int:
        left = count
        while left > len(self.window) - self.at:
            left -= len(self.window) - self.at
            self.at = len(self.window)
            if not self.more():
                return count - left
        self.at += left
        return count

    def close(self) -> None:
        self._file.close()


def _size(file: BinaryIO) -> int:
    """Returns the size of a file; it stands at its beginning then."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    return size
