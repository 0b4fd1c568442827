"""Gives a PDF that was cut off a new end: PDFium finds objects without their cross references, but
not where the document begins.

    objects in streams     as objects of their own
    a catalog, its pages   if both are there; else pages in the order of the file, under a new one
    trailer                names the catalog

Pure: no I/O. Sources: ISO 32000-2, 7.5.7 and 7.7; PDFBox's BruteForceParser.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

_OBJECT: Final = re.compile(rb"(?<!\d)(\d{1,8})[ \r\n\t]+\d{1,5}[ \r\n\t]+obj\b")
_STREAM: Final = re.compile(rb"stream\r?\n")
_PACKED: Final = re.compile(rb"/Type\s*/ObjStm\b")
_FIRST: Final = re.compile(rb"/First\s+(\d{1,8})\b")
_PAGE: Final = re.compile(rb"/Type\s*/Page\b")
_PAGES: Final = re.compile(rb"/Pages\s+(\d{1,8})\s+\d{1,5}\s+R\b")
_CATALOG: Final = re.compile(rb"/Type\s*/Catalog\b")
_HEAD: Final = 4096
"""Bytes of an object that are looked at."""
_MOST_OBJECTS: Final = 200_000
_MOST_BYTES: Final = 32 << 20
"""Unpacked bytes of streams of objects."""


def repaired(data: bytes) -> bytes | None:
    """Returns the file with a new end; None if it has no page."""
    heads: dict[int, bytes] = {}
    unpacked: dict[int, bytes] = {}
    left = _MOST_BYTES
    for match in _OBJECT.finditer(data):
        if len(heads) >= _MOST_OBJECTS:
            break
        head = data[match.end() : match.end() + _HEAD].partition(b"endobj")[0]
        heads[int(match[1])] = head.partition(b"stream")[0]
        if left > 0 and _PACKED.search(heads[int(match[1])]):
            for number, body in _packed(data, match.end(), head, left):
                left -= len(body)
                heads[number] = body[:_HEAD]
                unpacked[number] = body
    added = [b"\n%d 0 obj\n%b\nendobj" % entry for entry in unpacked.items()]
    pages = [number for number, head in heads.items() if _PAGE.search(head)]
    if not pages:
        return None
    root = _catalog(heads)
    if not root:
        root = max(heads) + 1
        kids = b" ".join(b"%d 0 R" % number for number in pages)
        added += [
            b"\n%d 0 obj\n<</Type/Catalog/Pages %d 0 R>>\nendobj" % (root, root + 1),
            b"\n%d 0 obj\n<</Type/Pages/Count %d/Kids[%b]>>\nendobj" % (root + 1, len(pages), kids),
        ]
    size = max(heads) + 3
    return b"%b%b\ntrailer\n<</Root %d 0 R/Size %d>>\nstartxref\n0\n%%%%EOF\n" % (
        _closed(data),
        b"".join(added),
        root,
        size,
    )


def _closed(data: bytes) -> bytes:
    """Returns the file with its last object closed if that is a stream, else without it."""
    whole = data.rfind(b"endobj") + len(b"endobj")
    last = _OBJECT.search(data, whole)
    if last is None:
        return data[:whole]
    head = data[last.end() : last.end() + _HEAD]
    if _STREAM.search(head) and not _PACKED.search(head):
        return data + b"\nendstream\nendobj"
    return data[:whole]


def _packed(data: bytes, at: int, head: bytes, most: int) -> Iterator[tuple[int, bytes]]:
    """Yields numbers and bodies of the objects in a stream, as far as it goes."""
    start, first = _STREAM.search(data, at, at + _HEAD), _FIRST.search(head)
    if start is None or first is None or b"/FlateDecode" not in head:
        return
    end = data.find(b"endstream", start.end())
    unpacker, body = zlib.decompressobj(), b""
    with suppress(zlib.error):
        body = unpacker.decompress(data[start.end() : end if end >= 0 else None], most)
    offset = int(first[1])
    numbers = [int(word) for word in body[:offset].split() if word.isdigit() and len(word) < 9]
    pairs = list(zip(numbers[::2], numbers[1::2], strict=False))
    ends = [place for _, place in pairs[1:]]
    if unpacker.eof:
        ends.append(len(body) - offset)  # else the last is cut off, too
    for (number, place), until in zip(pairs, ends, strict=False):
        part = body[offset + place : offset + until]
        if len(part) == until - place:
            yield number, part


def _catalog(heads: dict[int, bytes]) -> int:
    """Returns the number of the last catalog whose pages are there; 0 if there is none."""
    for number, head in reversed(heads.items()):
        pages = _PAGES.search(head) if _CATALOG.search(head) else None
        if pages and b"/Kids" in heads.get(int(pages[1]), b""):
            return number
    return 0
