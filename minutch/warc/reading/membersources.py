"""Reads archives that are compressed record by record: a gzip member or a zstd frame each.

    gzip        :=  member*
    zstd        :=  dictionary?  (frame | skippable)*
    dictionary  :=  0x184D2A5D, uint32 size, size bytes, which may be a frame: all frames share it
    skippable   :=  0x184D2A50 … 0x184D2A5F, uint32 size, size bytes: passed over

Numbers are little-endian.

Small gzip members are inflated at once, by libdeflate; others piece by piece, by ISA-L, which has
no copies of its state: where a member turns out to be damaged, it is inflated once more by zlib,
which has: `careful`.

A decoder of zstd says where data is wrong only by failing, and what it had of the same piece is
lost then: so a frame that turns out to be damaged is decompressed twice more, the piece with the
damage in smaller ones, of which the last in bytes.

Source: RFC 1952; RFC 8878; the IIPC's Zstandard Compression for WARC Files, version 1.0.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

from isal import igzip_lib, isal_zlib

from minutch.hadoop.formats import zstd
from minutch.kernels.clibrary import GzipMembers
from minutch.warc.reading.bytesource import PIECE, WHOLE, IsRecord, MemberSource, RecordPosition

_GZIP: Final = 31
_ERRORS: Final[Any] = (igzip_lib.IsalError, zlib.error)
_RESERVED_FLAGS: Final = 0xE0
_FIRST_BYTES: Final = 1 << 14
FRAME: Final = b"\x28\xb5\x2f\xfd"
DICTIONARY: Final = b"\x5d\x2a\x4d\x18"
_SKIPPABLE: Final = b"\x2a\x4d\x18"
"""What follows the first byte of a skippable frame, 0x50 to 0x5f."""
_SKIPPABLE_HEAD: Final = 8
_OUT: Final = 1 << 20
"""Most bytes that come out at once, whatever the data says."""
_LARGEST_WINDOW: Final = 27
"""Log2 of the bytes that a frame may look back, as zstd's own program has it."""
_LARGEST_DICTIONARY: Final = 1 << 27
_NO_OFFSET: Final = 1 << 62
_SMALLER: Final = {PIECE: 256, 256: 1}
"""Pieces in which a piece with damage is decompressed again."""


@dataclass(frozen=True, slots=True)
class _State:
    """A place in a member from which it can be inflated again."""

    place: RecordPosition
    inflater: Any
    offset: int
    window: bytes
    starts: list[tuple[int, int, int]]


class GzipSource(MemberSource):
    """A gzip file, from `start` up to `end`."""

    magic = b"\x1f\x8b\x08"
    head_size = 10

    def __init__(
        self, file: BinaryIO, is_record: IsRecord, start: int = 0, end: int | None = None
    ) -> None:
        self._members = GzipMembers(WHOLE)
        self._careful = False
        self._inflater: Any = None
        self._kept: _State | None = None
        super().__init__(file, is_record, start, end)

    def _begin(self, offset: int, *, careful: bool = False) -> None:
        self._careful, self._kept = careful, None
        super()._begin(offset)

    def _open_member(self) -> None:
        self._inflater = (
            zlib.decompressobj(_GZIP) if self._careful else isal_zlib.decompressobj(wbits=_GZIP)
        )

    def next_whole(self) -> bool:
        found = super().next_whole()
        if found:
            self._careful, self._kept = False, None
        return found

    def _whole(self, data: bytes, at: int) -> tuple[bytes, int] | None:
        return self._members.inflate(data, at)

    def _inflate(self) -> bytes:
        piece = self._piece()
        if not piece:
            self._ended, self.damage = True, "cut off"
            return b""
        # The state before the piece, to find the byte in it that is wrong.
        before = self._inflater.copy() if self._careful else None
        try:
            data: bytes = self._inflater.decompress(piece)
        except _ERRORS as exc:
            if before is None:
                return self._again()
            self._ended, self.damage = True, f"bad gzip data ({_reason(exc)})"
            return _up_to_damage(before, piece)
        if self._inflater.eof:
            self._ended = True
            # What is behind the member was not its own: it is given back.
            self._raw_at -= len(self._inflater.unused_data)
        return data

    def _again(self) -> bytes:
        """Inflates this member once more, as far as it was read; returns what comes next of it."""
        window, at, starts = self.window, self.at, self._member_starts
        position, offset, inner = starts[-1]
        self._begin(offset, careful=True)
        self.skip(inner + len(window) - position)
        rest = self.window[self.at :]
        self.window, self.at, self._member_starts = window, at, starts
        return rest or (b"" if self._ended else self._inflate())

    def _first_bytes(self, head: bytes) -> bytes:
        if (
            len(head) < self.head_size
            or not head.startswith(self.magic)
            # RFC 1952, 2.3.1.2: reserved bits must be zero, which rules most false beginnings out.
            or head[3] & _RESERVED_FLAGS
        ):
            return b""
        for data in (head, head[:512]):
            try:
                return zlib.decompressobj(_GZIP).decompress(data, _FIRST_BYTES)
            except zlib.error:
                pass
        return b""

    def _go_back(self, place: RecordPosition) -> None:
        if (
            self._kept is not None
            and self._kept.place.offset == place.offset
            and self._kept.place <= place
        ):
            self._return(self._kept)
        else:
            self._begin(place.offset, careful=self._member == place.offset)

    def keep(self) -> None:
        if self._careful and not self._ended:
            self._drop()
            self._kept = _State(
                self.place(),
                self._inflater.copy(),
                self._offset,
                self.window,
                [*self._member_starts],
            )

    def _return(self, kept: _State) -> None:
        self._begin(kept.offset, careful=True)
        self._inflater, self.window, self._member_starts, self._kept = (
            kept.inflater.copy(),
            kept.window,
            [*kept.starts],
            kept,
        )


def _up_to_damage(inflater: Any, data: memoryview) -> bytes:
    """Decompresses `data` up to the byte that is wrong."""
    pieces: list[bytes] = []
    at = 0
    # Coarse to fine: 1,024 bytes at a time would lose some, one by one would take long.
    for step in (1024, 32, 1):
        while at < len(data) and not inflater.eof:
            before = inflater.copy()
            try:
                pieces.append(inflater.decompress(data[at : at + step]))
            except zlib.error:
                inflater = before
                break
            at += step
    return b"".join(pieces)


def _reason(error: Exception) -> str:
    return str(error).rpartition(": ")[2]


class ZstdSource(MemberSource):
    """A zstd file, from `start` up to `end`."""

    magic = FRAME
    head_size = 4

    def __init__(
        self, file: BinaryIO, is_record: IsRecord, start: int = 0, end: int | None = None
    ) -> None:
        self._decoder: Any = None
        self._dictionary: Any = None
        self._fed = self._made = 0
        self._doubtful, self._step = _NO_OFFSET, PIECE
        super().__init__(file, is_record, start, end)
        bad = self._read_dictionary() if bytes(self._peek(len(DICTIONARY))) == DICTIONARY else ""
        if bad:
            self._ended, self.damage = True, bad
        else:
            self._seek(start)
            self._pass_over()
            self._begin(self._offset)

    def _read_dictionary(self) -> str:
        """Reads the dictionary that the file begins with; returns what is wrong with it, if any."""
        head = bytes(self._peek(_SKIPPABLE_HEAD))
        size = int.from_bytes(head[len(DICTIONARY) :], "little")
        self._file.seek(self._offset + _SKIPPABLE_HEAD)
        left = max(0, self._end - self._file.tell())  # the file may end within this head
        data = self._file.read(min(size, _LARGEST_DICTIONARY, left))
        try:
            if data.startswith(FRAME):
                # A bound, as the size in a frame may say anything.
                data = zstd.decompressor(_LARGEST_WINDOW).decompress(data, _LARGEST_DICTIONARY)
            self._dictionary = zstd.dictionary(data)
        except (zstd.ZstdError, ValueError) as exc:
            return f"bad dictionary ({_reason(exc)})"
        return ""

    def _pass_over(self) -> None:
        """Goes on behind frames that say of themselves that they hold nothing."""
        while True:
            head = bytes(self._peek(_SKIPPABLE_HEAD))
            # 0x184D2A50 to 0x184D2A5F, little-endian: the low half of the first byte is free.
            if len(head) < _SKIPPABLE_HEAD or head[0] >> 4 != 5 or head[1:4] != _SKIPPABLE:
                return
            self._seek(
                min(self._end, self._offset + _SKIPPABLE_HEAD + int.from_bytes(head[4:], "little"))
            )

    def _is_member(self) -> bool:
        self._pass_over()
        return super()._is_member()

    def _open_member(self) -> None:
        self._decoder = zstd.decompressor(_LARGEST_WINDOW, self._dictionary)
        self._fed, self._made = self._offset, 0
        self._doubtful, self._step = _NO_OFFSET, PIECE

    def _inflate(self) -> bytes:
        piece: bytes | memoryview = b""
        if self._decoder.needs_input:
            self._fed = self._offset
            # Up to the doubtful piece as before, then in smaller ones.
            left = self._doubtful - self._fed
            piece = self._piece(min(PIECE, left) if left > 0 else self._step)
            if not piece:
                self._ended, self.damage = True, "cut off"
                return b""
        try:
            data: bytes = self._decoder.decompress(piece, _OUT)
        except zstd.ZstdError as exc:
            if self._step in _SMALLER:
                return self._again()
            self._ended, self.damage = True, f"bad zstd data ({_reason(exc)})"
            return b""
        if self._decoder.eof:
            self._ended = True
            self._raw_at -= len(self._decoder.unused_data)
        self._made += len(data)
        return data

    def _again(self) -> bytes:
        """Decompresses this frame again, as far as it came; the next bytes come in small pieces."""
        doubtful, left, step = self._fed, self._made, _SMALLER[self._step]
        self._seek(self._member)
        self._open_member()
        self._doubtful, self._step = doubtful, step
        while left > 0:
            left -= len(self._inflate())
        return b""

    def _whole(self, data: bytes, at: int) -> tuple[bytes, int] | None:
        try:
            frame = memoryview(data)[at:]
            size = zstd.frame_size(frame)
            decoder = zstd.decompressor(_LARGEST_WINDOW, self._dictionary)
            found: bytes = decoder.decompress(frame[:size], WHOLE)
        except zstd.ZstdError:
            return None
        return (found, size) if decoder.eof else None

    def _first_bytes(self, head: bytes) -> bytes:
        for data in (head, head[:512]):
            try:
                return bytes(
                    zstd.decompressor(_LARGEST_WINDOW, self._dictionary).decompress(
                        data, _FIRST_BYTES
                    )
                )
            except zstd.ZstdError:
                pass
        return b""
