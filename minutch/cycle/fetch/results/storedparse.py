"""The parse of a page as one value of the fetch log: made by a parse worker, read when the segment
is closed.

    parse     :=  u16 number of outcomes   (u8 length, outcome in ASCII)*   document*
    document  :=  u8 flags   u32 length of each   URL   text   data   crawl
    flags     :=  1: found inside another page   2: texts are stored

URL, text, data and crawl are those of `minutch.cycle.parse.packing.PackedDocument`, whose values
are compressed as the segment's files have them. Numbers are big-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from minutch.cycle.parse.packing import PackedDocument
from minutch.cycle.parse.pageparser import are_usable
from minutch.errors import FormatError

_COUNT: Final = struct.Struct(">H")
_DOCUMENT: Final = struct.Struct(">B4I")
_EXTRA: Final = 1
_TEXT: Final = 2


def pack_parse(outcomes: Sequence[str], documents: Sequence[PackedDocument]) -> bytes:
    """Returns the value of a page with these outcomes and documents."""
    pieces = [_COUNT.pack(len(outcomes))]
    for outcome in outcomes:
        name = outcome.encode("ascii")
        pieces += (bytes([len(name)]), name)
    for url, text, data, crawl, is_extra in documents:
        flags = (_EXTRA if is_extra else 0) | (0 if text is None else _TEXT)
        found = (url, text or b"", data, crawl)
        pieces += (_DOCUMENT.pack(flags, *map(len, found)), *found)
    return b"".join(pieces)


def is_parse(value: bytes) -> bool:
    """Tells whether a value can be used: a worker that was taken over answers what it likes, and
    what is in the log has to be read when the segment is closed.
    """
    try:
        return are_usable(*unpack_parse(value))
    except FormatError:
        return False


def unpack_parse(value: bytes) -> tuple[list[str], list[PackedDocument]]:
    """Returns outcomes and documents of a value. Raises FormatError."""
    try:
        (count,) = _COUNT.unpack_from(value)
        at = _COUNT.size
        outcomes = []
        for _ in range(count):
            end = at + 1 + value[at]
            outcomes.append(value[at + 1 : end].decode("ascii"))
            at = end
        documents = []
        while at < len(value):
            flags, *sizes = _DOCUMENT.unpack_from(value, at)
            at += _DOCUMENT.size
            found = []
            for size in sizes:
                found.append(value[at : at + size])
                at += size
            url, text, data, crawl = found
            stored = text if flags & _TEXT else None
            documents.append(PackedDocument(url, stored, data, crawl, bool(flags & _EXTRA)))
        if at != len(value):
            raise ValueError(f"{at - len(value)} bytes are missing")
    except (struct.error, ValueError, IndexError) as error:
        raise FormatError(f"broken parse of a page ({error})") from error
    return outcomes, documents
