"""Opens zipped documents, whole or not: members, XML, and the relationships of Office Open XML.

    member        unpacked as far as it goes; what is damaged or cut off is noted, not raised
    no directory  (the end of the file is missing) members are found by their own headers
    relationship  `_rels/NAME.rels` beside NAME: id, kind, target, inside or outside

Unpacked bytes are bounded in all, XML is read without entities, DTDs and network. Sources: PKWARE's
APPNOTE, 4.3; ECMA-376, part 2 (Open Packaging Conventions).
"""

from __future__ import annotations

import io
import posixpath
import re
import struct
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NamedTuple
from urllib.parse import unquote

from lxml import etree

from minutch.errors import ParseError
from minutch.records.metadata import Metadata

from ..lib_xml.reading import large_xml, parse_xml

# A document while it is read: a reader adds what it finds as it goes.
#
# So all that stands before a fault, or before the end of the time for a page, is kept.

_PDF_DATE: Final = re.compile(
    r"(?:D:)?(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:Z|([+-])(\d\d)'?(\d\d)?'?)?", re.ASCII
)
RESERVATION: Final = ("tdm:reservation", "tdm:policy")
"""What the TDM Reservation Protocol (W3C CG) puts into XMP and EPUB, and metadata are called."""
_MOST_VALUES: Final = 100
"""Of one name."""
_TOLD: Final = 5
"""Parts that a message names."""
MOST_BYTES = 64 << 20
"""Unpacked bytes that are read at most."""
MOST_OF_A_TREE: Final = 24 << 20
"""Bytes of XML of which a tree is made, which takes ten times as much memory."""
_CHUNK: Final = 1 << 15
_HEADER: Final = struct.Struct("<4s5H3I2H")
"""A local file header: signature, version, flags, method, time, date, CRC, sizes, lengths of name
and extra field.
"""
_LOCAL: Final = b"PK\x03\x04"
_ENCRYPTED, _SIZE_BEHIND, _UTF8 = 0x1, 0x8, 0x800
_STORED, _DEFLATED = 0, 8


@dataclass(slots=True)
class Document:
    """Text, title, links, metadata, as far as they are known."""

    texts: list[str] = field(default_factory=list)
    """Each ends a line; `text` folds them."""
    title: str = ""
    links: list[tuple[str, str]] = field(default_factory=list)
    """Targets as written, with their anchors."""
    metadata: Metadata = field(default_factory=Metadata)
    """Under the names that Tika gives them."""
    missing: list[str] = field(default_factory=list)
    """Parts that could not be read, and why."""

    @property
    def text(self) -> str:
        """Lines with their blanks folded, those without a word left out."""
        return "\n".join(_lines(self.texts))

    @property
    def loss(self) -> str:
        """What is missing from the text; empty if nothing is."""
        more = len(self.missing) - _TOLD
        told = "; ".join(self.missing[:_TOLD])
        return f"{told}; {more} more" if more > 0 else told

    def describe(self, name: str, value: str) -> None:
        """Adds a value to the metadata, if there is one."""
        folded = " ".join(value.split())
        known = self.metadata.get_values(name)
        if folded and folded not in known and len(known) < _MOST_VALUES:
            self.metadata.add(name, folded)

    def date(self, name: str, value: str) -> None:
        """Adds a time, of ISO 8601 or as PDF writes it, as Tika does: in UTC, to the second. One
        without a zone counts as UTC; one that is no time is left out.
        """
        time = _time(value.strip())
        if time:
            self.describe(name, time.strftime("%Y-%m-%dT%H:%M:%SZ"))


class ParagraphWalk(ABC):
    """A way through a tree of paragraphs, which libxml2 keeps to 256 levels."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.pieces: list[str] = []
        """Of the paragraph that is being read."""

    @abstractmethod
    def inline(self, element: etree._Element) -> None:
        """Adds the text inside a paragraph."""

    def paragraph(self, element: etree._Element) -> None:
        """Adds a paragraph, and behind it what is anchored in it."""
        outer, lines = self.pieces, self.lines
        self.pieces, self.lines = [], []
        self.inline(element)
        lines.append("".join(self.pieces))
        lines += self.lines
        self.pieces, self.lines = outer, lines


def _lines(texts: list[str]) -> Iterator[str]:
    for text in texts:
        for line in text.splitlines():
            folded = " ".join(line.split())
            if folded:
                yield folded


def _time(value: str) -> datetime | None:
    try:
        if match := _PDF_DATE.fullmatch(value):
            *parts, sign, hours, minutes = match.groups()
            numbers = [
                int(part) if part else default
                for part, default in zip(parts, (0, 1, 1, 0, 0, 0), strict=True)
            ]
            zone = f"{sign}{hours}:{minutes or '00'}" if sign else "+00:00"
            year, month, day, hour, minute, second = numbers
            value = f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{zone}"
        time = datetime.fromisoformat(value)
        return time.replace(tzinfo=time.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


class Relation(NamedTuple):
    """A relationship of a part: `kind` is the last part of its type, `target` the name of a member,
    or a URL as written if it `is_outside`.
    """

    id: str
    kind: str
    target: str
    is_outside: bool


class _Member(NamedTuple):
    offset: int
    size: int
    """Bytes that it has at most, packed."""
    checksum: int | None
    """CRC-32 of what it unpacks to, where that is known."""


class Package:
    """The members of a zipped document; what is wrong with them goes into `found.missing`."""

    def __init__(self, data: bytes, found: Document) -> None:
        """Raises ParseError if there is no archive."""
        self._data, self._found = data, found
        self._left = MOST_BYTES
        self._members: dict[str, _Member] = {}
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                for info in archive.infolist():
                    self._members[info.filename] = _Member(
                        info.header_offset, info.compress_size, info.CRC
                    )
        except (
            zipfile.BadZipFile,
            ValueError,
            OverflowError,
            NotImplementedError,
            OSError,
        ) as error:
            self._members = dict(_salvaged(data))
            if not self._members:
                raise ParseError(f"not an office document that can be read: {error}") from error
            found.missing.append("the file is cut off or damaged, its directory is missing")
        self._folded = {name.lower(): name for name in reversed(self._members)}

    @property
    def names(self) -> list[str]:
        """The members in the order of the archive."""
        return list(self._members)

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._folded

    def read(self, name: str, most: int | None = None) -> bytes:
        """Returns the bytes of a member, as far as they can be had: empty without such a member."""
        member = self._members.get(self._folded.get(name.lower(), ""))
        if member is None:
            return b""
        if self._left <= 0:
            raise ParseError(f"more than {MOST_BYTES} bytes unpacked")
        data, fault = self._unpack(member, self._left if most is None else min(most, self._left))
        self._left -= len(data)
        if not fault and member.checksum not in (None, zlib.crc32(data)):
            fault = "damaged: its checksum is another"
        if fault:
            self._found.missing.append(f"{name}: {fault}")
        return data

    def root(self, name: str) -> etree._Element | None:
        """Returns the root element of a member; None if there is none."""
        data = self.read(name, MOST_OF_A_TREE)
        if not data:
            return None
        try:
            return parse_xml(data)
        except ParseError as error:
            self._found.missing.append(f"{name}: {error}")
            return None

    def elements(self, name: str, tags: list[str]) -> Iterator[etree._Element]:
        """Yields elements of a member as they end, and forgets them: a member may be large."""
        data = self.read(name)
        try:
            yield from large_xml(data, tags) if data else ()
        except ParseError as error:
            self._found.missing.append(f"{name}: {error}")

    def relations(self, name: str = "") -> list[Relation]:
        """Returns the relationships of a part; without a name those of the package."""
        folder, file = posixpath.split(name)
        root = self.root(posixpath.join(folder, "_rels", f"{file}.rels"))
        return [] if root is None else [_relation(entry, folder) for entry in root]

    def _unpack(self, member: _Member, most: int) -> tuple[bytes, str]:
        """Returns the first `most` bytes of a member, and what is wrong with it."""
        try:
            header = _HEADER.unpack_from(self._data, member.offset)
        except struct.error:
            return b"", "behind the end of the file"
        signature, _, flags, method = header[:4]
        start = member.offset + _HEADER.size + header[9] + header[10]
        if signature != _LOCAL or member.offset < 0:
            return b"", "no file where the directory has one"
        if flags & _ENCRYPTED:
            return b"", "encrypted"
        end = min(start + member.size, len(self._data))
        if method == _STORED:
            is_cut = start + member.size > len(self._data)
            return self._data[start : min(end, start + most)], "cut off" if is_cut else ""
        if method != _DEFLATED:
            return b"", f"packed by a method that is not read ({method})"
        return _inflated(self._data, start, end, most)


def _inflated(data: bytes, start: int, end: int, most: int) -> tuple[bytes, str]:
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
    pieces: list[bytes] = []
    left = most
    try:
        for at in range(start, end, _CHUNK):
            piece = unpacker.decompress(data[at : min(at + _CHUNK, end)], left)
            pieces.append(piece)
            left -= len(piece)
            if unpacker.eof or not left:
                break
    except zlib.error as error:
        return b"".join(pieces), f"damaged: {error}"
    fault = "" if unpacker.eof else "cut off" if left else f"more than {most} bytes"
    return b"".join(pieces), fault


def _salvaged(data: bytes) -> Iterator[tuple[str, _Member]]:
    """Finds members by their local headers; what has no size ends where the next begins."""
    at = data.find(_LOCAL)
    while at >= 0:
        with suppress(struct.error):
            header = _HEADER.unpack_from(data, at)
            flags, size, length = header[2], header[7], header[9]
            start = at + _HEADER.size
            name = data[start : start + length].decode(
                "utf-8" if flags & _UTF8 else "cp437", "replace"
            )
            start += length + header[10]
            known = bool(size) or not flags & _SIZE_BEHIND
            behind = data.find(_LOCAL, start + (size if known else 0))
            if not known:
                size = (behind if behind >= 0 else len(data)) - start
            yield name, _Member(at, size, header[6] if known else None)
            at = behind
            continue
        return


def _relation(entry: etree._Element, folder: str) -> Relation:
    target = entry.get("Target", "")
    is_outside = entry.get("TargetMode", "").lower() == "external"
    if not is_outside:
        path = unquote(target.partition("#")[0]).replace("\\", "/")
        target = posixpath.normpath(posixpath.join("/", folder, path)).lstrip("/")
    return Relation(
        entry.get("Id", ""), entry.get("Type", "").rpartition("/")[2], target, is_outside
    )
