"""The fetch log: one frame per finished URL of the fetch list, on disk before the next one is begun.

    log    :=  magic(8) header-frame frame*
    frame  :=  u32 length of payload   u32 CRC-32 of payload   payload
    header payload   :=  name of the codec, UTF-8                   (values below are compressed by it; "" for none)
    payload          :=  u8 outcome   u16 number of listed URLs   (u32 length, URL)*   entry*
    entry            :=  u8 part   u32 length of key   u32 length of value   key (URL, UTF-8)   value

Numbers are big-endian. A frame holds everything that one URL of the list led to: its own records, those of redirects
that were followed, robots.txt files that were stored, links that are to be followed in the same fetch (part FOLLOW).
So a URL is either wholly done or not begun, whatever kills the process. Writing is one `write` call a frame, which the
kernel keeps through a SIGKILL; `sync` brings it through a power cut. A torn frame at the end is cut off when the log
is opened again; anything else that is wrong is an error, since it can't come from a kill.

An entry of part CRAWL_PARSE holds all records of one parsed document as minutch.parse.packing serializes them: they
stay together and in order in crawl_parse. Its key is the document's URL.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, NamedTuple, Self

from isal import isal_zlib

from minutch.errors import ChecksumError, FormatError, StoreError
from minutch.fetch.ledger import OUTCOMES, Outcome
from minutch.formats.compress import DEFAULT_CODEC, codec
from minutch.formats.javaio import decode_text, encode_text
from minutch.parse.packing import PackedDocument

MAGIC: Final = b"mnfetch\x01"
_FRAME: Final = struct.Struct(">II")
_HEAD: Final = struct.Struct(">BH")
_LENGTH: Final = struct.Struct(">I")
_ENTRY: Final = struct.Struct(">BII")
_LEVEL: Final = 2
"""Of ISA-L's levels the one that packs best for its time: half of libdeflate's quickest."""
MAX_FRAME: Final = 1 << 30
"""Bytes; a longer frame can only be damage."""


class Part(IntEnum):
    """What an entry belongs to: the part of the segment, or what only a resumed fetch needs."""

    FETCH = 1
    CONTENT = 2
    PARSE_TEXT = 3
    PARSE_DATA = 4
    CRAWL_PARSE = 5
    FOLLOW = 6
    ETAG = 7


_PARTS: Final = {int(part): part for part in Part}
_COMPRESSED: Final = frozenset({Part.FETCH, Part.CONTENT})
"""Parts whose values the log compresses; those of a parse come from its workers as they are to be stored."""


@dataclass(slots=True)
class Entry:
    """One record: `key` is the URL in UTF-8, `value` the record (read back: compressed by the log's codec)."""

    part: Part
    key: bytes
    value: bytes


@dataclass(slots=True)
class Frame:
    """What one finished URL left behind. `listed` are the URLs of the fetch list that it settles."""

    outcome: Outcome
    listed: list[str] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)

    def add(self, part: Part, url: str, value: bytes) -> None:
        """Append a record; the log compresses it."""
        self.entries.append(Entry(part, encode_text(url), value))

    def add_document(self, document: PackedDocument) -> None:
        """Append the records of a parsed document, which are compressed already."""
        self.entries.append(Entry(Part.CRAWL_PARSE, document.url, document.crawl))
        self.entries.append(Entry(Part.PARSE_DATA, document.url, document.data))
        if document.text is not None:
            self.entries.append(Entry(Part.PARSE_TEXT, document.url, document.text))


class EntryPlace(NamedTuple):
    """Where an entry's value stands in the log: enough to copy it later without keeping it."""

    part: Part
    key: bytes
    offset: int
    length: int


def compressor(codec_name: str) -> Callable[[bytes], bytes] | None:
    """How values are compressed: zlib streams quickly made, a sixth of zlib's time for a fifth more room."""
    if not codec_name:
        return None
    if codec_name != DEFAULT_CODEC:
        return codec(codec_name).compress
    return lambda data: isal_zlib.compress(data, _LEVEL)


class FetchLog:
    """Appends frames; opened on an existing log it goes on after the last whole frame."""

    def __init__(self, path: Path, codec_name: str) -> None:
        self.path = path
        self._codec_name = codec_name
        self._compress = compressor(codec_name)
        existing = path.exists() and path.stat().st_size > 0
        self._file: BinaryIO = path.open("r+b" if existing else "xb" if not path.exists() else "wb", buffering=0)
        self.position = 0
        self._dirty = False
        if not existing or not self._recover():
            self._file.seek(0)
            self._file.truncate()
            self.position = 0
            self._write(MAGIC + _frame(codec_name.encode()))

    def _recover(self) -> bool:
        """Cut off a torn end; False if not even the header is whole."""
        end = scan_end(self.path)
        if end is None:
            return False
        name = next(_payloads(self.path))[0].decode()
        if name != self._codec_name:
            raise FormatError(
                "the fetch log was written with another codec", path=self.path, expected=self._codec_name, found=name
            )
        self._file.truncate(end)
        self._file.seek(end)
        self.position = end
        return True

    def append(self, frame: Frame) -> None:
        """Write one frame. Raises StoreError, with the log cut back to the frame before, if the disk is full."""
        self._write(_frame(self.encode(frame)))

    def encode(self, frame: Frame) -> bytes:
        """The payload of `frame`, its records compressed."""
        pieces = [_HEAD.pack(frame.outcome, len(frame.listed))]
        for url in frame.listed:
            data = encode_text(url)
            pieces += (_LENGTH.pack(len(data)), data)
        compress = self._compress
        for entry in frame.entries:
            value = entry.value
            if compress is not None and entry.part in _COMPRESSED:
                value = compress(value)
            pieces += (_ENTRY.pack(entry.part, len(entry.key), len(value)), entry.key, value)
        return b"".join(pieces)

    def _write(self, data: bytes) -> None:
        try:
            done = self._file.write(data)
            while done < len(data):
                done += self._file.write(data[done:])
        except OSError as exc:
            self._cut_back()
            raise StoreError(
                f"{self.path}: can't write the fetch log: {exc.strerror}; all pages finished so far are kept, "
                "make room and run fetch on the same segment again"
            ) from exc
        self.position += len(data)
        self._dirty = True

    def _cut_back(self) -> None:
        self._file.truncate(self.position)
        self._file.seek(self.position)

    def sync(self) -> None:
        """Bring what was written onto the medium (safe from another thread); nothing if all is there."""
        if self._dirty:
            self._dirty = False
            os.fdatasync(self._file.fileno())

    def close(self) -> None:
        """Sync and close."""
        self.sync()
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def _frame(payload: bytes) -> bytes:
    return _FRAME.pack(len(payload), isal_zlib.crc32(payload)) + payload


def _payloads(path: Path, *, complete: bool = False) -> Iterator[tuple[bytes, int, int]]:
    """Payload, its offset and the end of its frame, header first; stops at a torn end (an error if `complete`)."""
    size = path.stat().st_size
    with path.open("rb", buffering=1 << 20) as file:
        magic = file.read(len(MAGIC))
        if magic != MAGIC:
            if MAGIC.startswith(magic) and len(magic) < len(MAGIC) and not complete:
                return
            raise FormatError("not a fetch log", path=path, offset=0, expected=MAGIC, found=magic)
        at = len(MAGIC)
        while head := file.read(_FRAME.size):
            payload = b""
            length = crc = -1
            if len(head) == _FRAME.size:
                length, crc = _FRAME.unpack(head)
                payload = file.read(length) if length <= min(size, MAX_FRAME) else b""
            if len(payload) == length and isal_zlib.crc32(payload) == crc:
                at += _FRAME.size
                yield payload, at, at + length
                at += length
                continue
            if not complete and _is_torn(size, at, length):
                return
            raise ChecksumError("damaged frame in the fetch log", path=path, offset=at, expected=crc, found=size - at)


def _is_torn(size: int, at: int, length: int) -> bool:
    """The broken frame at `at` is the file's last one: no whole frame of that length is followed by more."""
    return length < 0 or at + _FRAME.size + length >= size


def scan_end(path: Path) -> int | None:
    """Where the last whole frame ends; None if not even the header is whole."""
    end = None
    for _, _, end in _payloads(path):  # noqa: B007
        pass
    return end


def log_codec(path: Path) -> str:
    """The name of the codec that the values of a log are compressed by."""
    for payload, _, _ in _payloads(path):
        return payload.decode()
    raise FormatError("fetch log without a header", path=path)


def frames(path: Path) -> Iterator[Frame]:
    """All whole frames with their entries' values as stored; a torn end is left out."""
    for payload, at in _frame_payloads(path):
        outcome, listed, start = _read_head(path, payload, at)
        entries = [
            Entry(part, key, payload[offset : offset + length])
            for part, key, offset, length in _read_entries(path, payload, start, at)
        ]
        yield Frame(outcome, listed, entries)


def settled(path: Path) -> Iterator[tuple[Outcome, list[str]]]:
    """Outcome and listed URLs of each whole frame: what a resumed fetch leaves out."""
    for payload, at in _frame_payloads(path):
        outcome, listed, _ = _read_head(path, payload, at)
        yield outcome, listed


def places(path: Path) -> Iterator[EntryPlace]:
    """Every entry of a finished log in order, by its place. A torn end is an error here."""
    for payload, at in _frame_payloads(path, complete=True):
        _, _, start = _read_head(path, payload, at)
        for part, key, offset, length in _read_entries(path, payload, start, at):
            yield EntryPlace(part, key, at + offset, length)


def _frame_payloads(path: Path, *, complete: bool = False) -> Iterable[tuple[bytes, int]]:
    first = True
    for payload, at, _ in _payloads(path, complete=complete):
        if not first:
            yield payload, at
        first = False


def _read_head(path: Path, payload: bytes, at: int) -> tuple[Outcome, list[str], int]:
    try:
        outcome, count = _HEAD.unpack_from(payload)
        pos = _HEAD.size
        listed = []
        for _ in range(count):
            (length,) = _LENGTH.unpack_from(payload, pos)
            pos += _LENGTH.size
            listed.append(decode_text(payload[pos : pos + length]))
            pos += length
        return OUTCOMES[outcome], listed, pos
    except (struct.error, ValueError, KeyError) as exc:
        raise FormatError(f"broken frame in the fetch log ({exc})", path=path, offset=at) from exc


def _read_entries(path: Path, payload: bytes, pos: int, at: int) -> Iterator[tuple[Part, bytes, int, int]]:
    while pos < len(payload):
        try:
            part, key_length, length = _ENTRY.unpack_from(payload, pos)
            pos += _ENTRY.size
            offset = pos + key_length
            if offset + length > len(payload):
                raise ValueError(f"entry of {key_length + length} bytes")
            yield _PARTS[part], payload[pos:offset], offset, length
        except (struct.error, ValueError, KeyError) as exc:
            raise FormatError(f"broken entry in the fetch log ({exc})", path=path, offset=at + pos) from exc
        pos = offset + length
