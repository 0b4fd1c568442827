"""The heads of ARC records, versions 1 and 2: one line.

    version 1  :=  URL " " IP address " " date " " media type " " length LF
    version 2  :=  URL " " IP address " " date " " media type " " status " " checksum " " location
                   " " offset " " file name " " length LF

Dates are yyyyMMddHHmmss, in UTC, or as much of it as was known. The first record of a file,
`filedesc://`, describes the file. Source: the Internet Archive's ARC File Format, version 1.0
(1996).
"""

from __future__ import annotations

import re
from typing import Final

from minutch.warc.reading.recordreader import Grammar

FILE_DESCRIPTION: Final = "filedesc:"
_START: Final = re.compile(
    rb"[A-Za-z][A-Za-z0-9+.-]{0,20}:(?=[^\n]{0,15000} [0-9]{1,18}\r?\n)[^\n]*? \S{1,64}"
    rb" [0-9]{8,14} "
)
_AFTER_LINE: Final = re.compile(rb"(?<=\n)" + _START.pattern)
_END: Final = re.compile(rb"\n")
_LINE: Final = re.compile(r"(.+?) (\S+) ([0-9]{8,14}) (?:(.*) )?([0-9]{1,18})")
_NO_UTF8: Final = re.compile("[\udc80-\udcff]")
"""Bytes of a URL that are not UTF-8: it is escaped, as it was asked for."""
_VERSION_2: Final = 6
"""Words from the media type to the file name."""


def _fields(head: bytes) -> dict[str, str]:
    url, address, date, rest, _ = _words(head)
    words = (rest or "").split(" ")
    media_type = words[0] if len(words) == _VERSION_2 else " ".join(words)
    return {"url": _NO_UTF8.sub(_escaped, url), "ip": address, "date": date, "type": media_type}


def _escaped(found: re.Match[str]) -> str:
    return f"%{ord(found[0]) - 0xDC00:02X}"


def _length(head: bytes) -> int:
    return int(_words(head)[4])


def _words(head: bytes) -> tuple[str, ...]:
    found = _LINE.fullmatch(head.decode("utf-8", "surrogateescape").rstrip("\r\n"))
    if found is None:
        raise ValueError(f"expected the five words of an ARC record's head, found {head[:80]!r}")
    return found.groups("")


ARC: Final = Grammar(_START, _AFTER_LINE, _END, b"\n", _length, _fields, longest=1 << 14)
