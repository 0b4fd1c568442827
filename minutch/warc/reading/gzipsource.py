"""gzip files, member after member (RFC 1952).

Small members are inflated at once, by libdeflate; others piece by piece, by ISA-L, which has no
copies of its state: where a member turns out to be damaged, it is inflated once more by zlib, which
has: `careful`.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

from isal import igzip_lib, isal_zlib

from minutch.kernels.libdeflate import GzipMembers
from minutch.warc.reading.bytesource import WHOLE, IsRecord, MemberSource, RecordPosition

_GZIP: Final = 31
_ERRORS: Final[Any] = (igzip_lib.IsalError, zlib.error)
_RESERVED_FLAGS: Final = 0xE0
_FIRST_BYTES: Final = 1 << 14


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
