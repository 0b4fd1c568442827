"""The fetch log: one frame per finished URL of the fetch list, on disk before the next one is
begun.

    log      :=  magic(8) frame*                   the magic says how values are compressed
    frame    :=  u8 1   u32 length of payload   u32 CRC   u16 check   payload
    CRC      :=  the CRC-32 of all before and of the payload
    check    :=  the lower half of the CRC-32 of the nine bytes before it
    payload  :=  u8 outcome   u16 number of listed URLs   (u32 length, URL)*   entry*
    entry    :=  u8 part   u32 length of key   u32 length of value   key (URL, UTF-8)   value

Numbers are big-endian. A frame holds everything that one URL of the list led to: its own records,
those of redirects that were followed, robots.txt files that were stored, links that are to be
followed in the same fetch (part FOLLOW). So a URL is either wholly done or not begun, whatever
kills the process. Writing is one `write` call a frame, which the kernel keeps through a SIGKILL;
`sync` brings it through a power cut.

A torn end (the beginning of a frame, or zeros, and nothing after it) is cut off when the log is
opened again. Anything else that is wrong is damage: the log says where, goes on at the next good
frame and stays as it is; the URLs of the frames in between are fetched again.

An entry of part PARSE holds all that the parse of a page has given
(`minutch.cycle.parse.pageparser.ParsedPage`).
"""

from __future__ import annotations

import logging
import mmap
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

import deflate

from minutch.cycle.fetch.ledger import OUTCOMES, Outcome
from minutch.errors import FormatError, StoreError, in_a_line
from minutch.hadoop.formats.compress import DEFAULT_CODEC, RecordStreams
from minutch.hadoop.formats.javaio import decode_text, encode_text
from minutch.work.tables.install import sync_path

if TYPE_CHECKING:
    from minutch.records.crawldatum import CrawlDatum
    from minutch.records.protocol import Content
    from minutch.warc.pagewriter import Original

log = logging.getLogger(__name__)

_MAGICS: Final = {"": b"mnfetch\x06", DEFAULT_CODEC: b"mnfetch\x07"}
"""By the codec that values are compressed by."""
_OLD_MAGICS: Final = tuple(b"mnfetch%c" % version for version in range(1, 6))
_MAGIC_SIZE: Final = 8
_TYPE: Final = 1
_FRAME: Final = struct.Struct(">BIIH")
_TYPE_AND_LENGTH: Final = struct.Struct(">BI")
_CHECKED: Final = struct.Struct(">BII")
_HEAD: Final = struct.Struct(">BH")
_LENGTH: Final = struct.Struct(">I")
_WINDOW: Final = 1 << 21
"""Bytes of a log that stay mapped while it is read: all of it counted for the process, 225 MB
instead of 95 at 20,000 pages.
"""
_ZEROS: Final = 1 << 16
_ENTRY: Final = struct.Struct(">BII")


class Part(IntEnum):
    """The part of the segment that an entry belongs to, or a kind that only a resumed fetch needs.

    The value of a WARC entry says where its records lie (`pagearchive`); its key names the file.
    """

    FETCH = 1
    CONTENT = 2
    PARSE = 3
    FOLLOW = 6
    WARC = 7


_PARTS: Final = {int(part): part for part in Part}
_COMPRESSED: Final = frozenset({Part.FETCH, Part.CONTENT})
"""Parts whose values the log compresses; what is in a parse comes as it is to be stored."""


@dataclass(slots=True)
class LogEntry:
    """One record: `key` is the URL in UTF-8, `value` the record (read back: compressed by the log's
    codec).
    """

    part: Part
    key: bytes
    value: bytes


class WarcCapture(NamedTuple):
    """An answer on its way into the WARC files: a whole page, or, with a profile, a revisit of
    `original`.
    """

    url: str
    time: int
    datum: CrawlDatum
    content: Content
    profile: str = ""
    original: Original | None = None


@dataclass(slots=True)
class Frame:
    """The records of one finished URL. `listed` are the URLs of the fetch list that it settles."""

    outcome: Outcome
    listed: list[str] = field(default_factory=list)
    entries: list[LogEntry] = field(default_factory=list)
    captures: list[WarcCapture] = field(default_factory=list)
    """Answers that are to be archived; they are when the frame is written, and not part of the
    log.
    """

    def add(self, part: Part, url: str, value: bytes) -> None:
        """Appends a record; the log compresses it."""
        self.entries.append(LogEntry(part, encode_text(url), value))


class EntryPosition(NamedTuple):
    """The position of an entry's value in the log, by which it can be copied later without being
    kept.
    """

    part: Part
    key: bytes
    offset: int
    length: int


class AppendFile:
    """A file that takes data whole, or not at all; another thread may bring it onto the medium."""

    def __init__(self, path: Path, size: int = 0) -> None:
        """What is behind `size` is cut off."""
        self.path, self.size = path, size
        self._file: BinaryIO = path.open("r+b" if path.exists() else "xb", buffering=0)
        self._synced = 0
        self._lock = Lock()
        """Held while the file is synced, by a thread, or closed."""
        self._cut_back()

    def write(self, data: bytes) -> None:
        """Appends data. Raises StoreError, with the file as it was, if the disk is full."""
        try:
            done = self._file.write(data)
            while done < len(data):
                # A write may take less, as when the disk becomes full.
                done += self._file.write(data[done:])
        except OSError as exc:
            exc.filename = exc.filename or str(self.path)
            self._cut_back()
            raise StoreError(
                f"can't write {len(data):,} bytes of the fetch's results, all pages finished so"
                f" far are kept: {in_a_line(exc)}; make room and run fetch on the same segment"
                " again"
            ) from exc
        self.size += len(data)

    def _cut_back(self) -> None:
        self._file.truncate(self.size)
        self._file.seek(self.size)

    def sync(self) -> None:
        """Brings what was written onto the medium; nothing if all is there, or it is closed."""
        with self._lock:
            # Before the sync: what another thread writes meanwhile is not on the medium yet.
            written = self.size
            if written > self._synced and not self._file.closed:
                os.fdatasync(self._file.fileno())
                self._synced = written

    def close(self) -> None:
        """Syncs and closes."""
        self.sync()
        with self._lock:
            self._file.close()


class FetchLog(AppendFile):
    """Appends frames; opened on an existing log it goes on after the last whole frame."""

    def __init__(self, path: Path, codec_name: str) -> None:
        """`codec_name` is what values are compressed by: the default codec, or none ("")."""
        self._magic = _MAGICS[codec_name]
        self._streams = RecordStreams() if codec_name else None
        super().__init__(path, self._end(path) if path.exists() else 0)
        if not self.size:
            self.write(self._magic)
            self.sync()
            # The name of a new file is on the medium only when its folder is.
            sync_path(path.parent)
            sync_path(path.parent.parent)

    def _end(self, path: Path) -> int:
        """Returns the offset at which the log goes on; 0 if not even the magic is whole."""
        scan = _Scan(path)
        for _ in scan.payloads():
            pass
        if scan.magic not in (b"", self._magic):
            if scan.end == _MAGIC_SIZE and not scan.damage:
                return 0  # nothing is in it
            raise FormatError(
                "the fetch log's values are compressed in another way: run fetch with the"
                " mapreduce.output.fileoutputformat.compress and .type that it was begun with",
                path=path,
                offset=0,
                expected=self._magic,
                found=scan.magic,
            )
        return scan.end

    def append(self, frame: Frame) -> None:
        """Writes one frame. Raises StoreError, with the log cut back to the frame before, if the
        disk is full.
        """
        self.write(_frame(self.encode(frame)))

    def encode(self, frame: Frame) -> bytes:
        """Returns the payload of `frame`, its records compressed."""
        pieces = [_HEAD.pack(frame.outcome, len(frame.listed))]
        for url in frame.listed:
            data = encode_text(url)
            pieces += (_LENGTH.pack(len(data)), data)
        for entry in frame.entries:
            value = entry.value
            if self._streams is not None and entry.part in _COMPRESSED:
                value = self._streams.of(value)
            pieces += (_ENTRY.pack(entry.part, len(entry.key), len(value)), entry.key, value)
        return b"".join(pieces)


def _frame(payload: bytes) -> bytes:
    """Returns a payload behind its head. The checksums are libdeflate's (see `formats.compress` for
    what ISA-L's cost).
    """
    start = _TYPE_AND_LENGTH.pack(_TYPE, len(payload))
    crc = deflate.crc32(payload, deflate.crc32(start))
    # The head has a check of its own: a wrong length would lead past good frames.
    checked = _CHECKED.pack(_TYPE, len(payload), crc)
    return b"".join((checked, (deflate.crc32(checked) & 0xFFFF).to_bytes(2), payload))


class _Scan:
    """Reads the frames of a log; `damage` and `end` are known when all have been read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.magic = b""
        self.end = 0
        """Where the log goes on: behind the last frame, or behind damage that no frame follows."""
        self.damage: list[tuple[int, int]] = []
        """Offset and size of what is no frame, a torn end apart."""

    def payloads(self) -> Iterator[tuple[memoryview, int]]:
        """Payload and its offset, of each good frame."""
        data = mapped(self.path) if self.path.stat().st_size else b""
        view = memoryview(data)
        self._read_magic(data[:_MAGIC_SIZE])
        at, passed = self.end, 0
        while self.magic and at < len(data):
            if at - passed > _WINDOW:
                let_go(data, passed, at)
                passed = at
            length = _length_at(data, at)
            start = at + _FRAME.size
            if length is not None and start + length <= len(data) and _is_whole(view, at, length):
                yield view[start : start + length], start
                at = self.end = start + length
            # The write was cut short by a kill: nothing can follow it.
            elif (length is not None and start + length > len(data)) or _is_torn(data, at):
                return
            else:
                following = _next_frame(data, at + 1)
                self.damage.append((at, following - at))
                at = self.end = following

    def _read_magic(self, magic: bytes) -> None:
        if magic in _MAGICS.values():
            self.magic, self.end = magic, _MAGIC_SIZE
        elif magic in _OLD_MAGICS:
            raise FormatError(
                "the fetch was begun by an earlier version: finish it with that one, or remove "
                f"{self.path.parent} and fetch the segment again", path=self.path, offset=0,
            )  # fmt: skip
        elif magic.strip(b"\0") and not any(known.startswith(magic) for known in _MAGICS.values()):
            raise FormatError(
                "not a fetch log", path=self.path, offset=0, expected=_MAGICS[""], found=magic
            )


def mapped(path: Path) -> mmap.mmap:
    """Returns a log as a map of its file."""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def let_go(data: bytes | mmap.mmap, start: int, end: int) -> None:
    """Takes a stretch that has been read out of this process's memory; the system may keep the
    file's pages.
    """
    if isinstance(data, mmap.mmap) and hasattr(data, "madvise"):
        first = start // mmap.PAGESIZE * mmap.PAGESIZE
        data.madvise(mmap.MADV_DONTNEED, first, end // mmap.PAGESIZE * mmap.PAGESIZE - first)


def _length_at(data: bytes | mmap.mmap, at: int) -> int | None:
    """Returns the length of the payload by a good head of a frame at `at`; None if there is
    none.
    """
    if at + _FRAME.size > len(data):
        return None
    kind, length, _, check = _FRAME.unpack_from(data, at)
    good = kind == _TYPE and deflate.crc32(data[at : at + _CHECKED.size]) & 0xFFFF == check
    return int(length) if good else None


def _is_whole(data: memoryview, at: int, length: int) -> bool:
    """Tells whether a frame's checksum is right."""
    crc = _FRAME.unpack_from(data, at)[2]
    start = deflate.crc32(data[at : at + _TYPE_AND_LENGTH.size])
    return bool(deflate.crc32(data[at + _FRAME.size : at + _FRAME.size + length], start) == crc)


def _is_torn(data: bytes | mmap.mmap, at: int) -> bool:
    """Tells whether the bytes from `at` are too few for the head of a frame, or zeros up to the
    end.
    """
    if len(data) - at < _FRAME.size:
        return True
    return all(
        not data[start : start + _ZEROS].strip(b"\0") for start in range(at, len(data), _ZEROS)
    )


def _next_frame(data: bytes | mmap.mmap, at: int) -> int:
    """Returns the offset of the next good frame; the end of the log if there is none."""
    # The check of a head is 16 bits, so the payload's sum is looked at, too.
    while (at := data.find(bytes([_TYPE]), at)) >= 0:
        length = _length_at(data, at)
        if (
            length is not None
            and at + _FRAME.size + length <= len(data)
            and _is_whole(memoryview(data), at, length)
        ):
            return at
        at += 1
    return len(data)


def log_codec(path: Path) -> str:
    """Returns the name of the codec that the values of a log are compressed by."""
    with path.open("rb") as file:
        magic = file.read(_MAGIC_SIZE)
    for name, known in _MAGICS.items():
        if magic == known:
            return name
    raise FormatError("not a fetch log", path=path, offset=0, expected=_MAGICS[""], found=magic)


def frames(path: Path) -> Iterator[Frame]:
    """Yields all good frames with their entries' values as stored. Damage is logged, a torn end
    passed over.
    """
    scan = _Scan(path)
    for payload, at in scan.payloads():
        outcome, listed, start = _read_head(path, payload, at)
        entries = [
            LogEntry(part, key, bytes(payload[offset : offset + length]))
            for part, key, offset, length in _read_entries(path, payload, start, at)
        ]
        yield Frame(outcome, listed, entries)
    for offset, size in scan.damage:
        log.error(
            "%s: damaged: no frame at offset %d; %d bytes are skipped, their URLs fetched again",
            path,
            offset,
            size,
        )


def cut(path: Path, at: int) -> None:
    """Forgets the frame at `at` and all behind it."""
    with path.open("r+b") as file:
        file.truncate(at)
        os.fsync(file.fileno())


def positions(path: Path) -> Iterator[tuple[int, list[EntryPosition], int]]:
    """Yields for each good frame, in order, the number of listed URLs that it settles, the
    positions of its entries, and its own offset.
    """
    for payload, at in _Scan(path).payloads():
        _, listed, start = _read_head(path, payload, at)
        yield (
            len(listed),
            [
                EntryPosition(part, key, at + offset, length)
                for part, key, offset, length in _read_entries(path, payload, start, at)
            ],
            at - _FRAME.size,
        )


def _read_head(path: Path, payload: memoryview, at: int) -> tuple[Outcome, list[str], int]:
    try:
        outcome, count = _HEAD.unpack_from(payload)
        pos = _HEAD.size
        listed = []
        for _ in range(count):
            (length,) = _LENGTH.unpack_from(payload, pos)
            pos += _LENGTH.size
            listed.append(decode_text(bytes(payload[pos : pos + length])))
            pos += length
        return OUTCOMES[outcome], listed, pos
    except (struct.error, ValueError, KeyError) as exc:
        raise FormatError(f"broken frame in the fetch log ({exc})", path=path, offset=at) from exc


def _read_entries(
    path: Path, payload: memoryview, pos: int, at: int
) -> Iterator[tuple[Part, bytes, int, int]]:
    while pos < len(payload):
        try:
            part, key_length, length = _ENTRY.unpack_from(payload, pos)
            pos += _ENTRY.size
            offset = pos + key_length
            if offset + length > len(payload):
                raise ValueError(f"entry of {key_length + length} bytes")
            yield _PARTS[part], bytes(payload[pos:offset]), offset, length
        except (struct.error, ValueError, KeyError) as exc:
            raise FormatError(
                f"broken entry in the fetch log ({exc})", path=path, offset=at + pos
            ) from exc
        pos = offset + length
