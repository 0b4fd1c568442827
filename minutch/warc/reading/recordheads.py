"""The heads of records of archives: the grammars of WARC and ARC.

    WARC, versions 0.17 to 1.1
    head       :=  "WARC/" version CRLF  (name ":" value CRLF)*  CRLF

    ARC
    version 1  :=  URL " " IP address " " date " " media type " " length LF
    version 2  :=  URL " " IP address " " date " " media type " " status " " checksum " " location
                   " " offset " " file name " " length LF

Lines of WARC may end by LF alone, and continue on the next one. Dates of ARC are yyyyMMddHHmmss, in
UTC, or as much of it as was known; the first record of a file, `filedesc://`, describes the file.
Source: ISO 28500:2017, section 4; the Internet Archive's ARC File Format, version 1.0 (1996).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

LONGEST_HEAD: Final = 1 << 18
_WARC_START: Final = re.compile(rb"WARC/[0-9]\.[0-9]{1,2}\r?\n")
_WARC_END: Final = re.compile(rb"\n\r?\n")
_FOLD: Final = re.compile(r"\n[ \t]+")
_LENGTH: Final = re.compile(rb"(?i)\ncontent-length[ \t]*:[ \t]*([0-9]{1,18})[ \t]*\r?\n")
FILE_DESCRIPTION: Final = "filedesc:"
_ARC_START: Final = re.compile(
    # A look at the line's end first: to seek a date in each line took quadratic time.
    rb"[A-Za-z][A-Za-z0-9+.-]{0,20}:(?=[^\n]{0,15000} [0-9]{1,18}\r?\n)[^\n]*? \S{1,64}"
    rb" [0-9]{8,14} "
)
_AFTER_LINE: Final = re.compile(rb"(?<=\n)" + _ARC_START.pattern)
_ARC_END: Final = re.compile(rb"\n")
_LINE: Final = re.compile(r"(.+?) (\S+) ([0-9]{8,14}) (?:(.*) )?([0-9]{1,18})")
_NO_UTF8: Final = re.compile("[\udc80-\udcff]")
"""Bytes of a URL that are not UTF-8: it is escaped, as it was asked for."""
_VERSION_2: Final = 6
"""Words from the media type to the file name."""


@dataclass(frozen=True)
class Grammar:
    """The syntax of records of one kind."""

    start: re.Pattern[bytes]
    """The first line of a record, or as much of it as tells it from all else."""
    seek: re.Pattern[bytes]
    """The same, where records are sought among anything else."""
    end: re.Pattern[bytes]
    """What ends a head."""
    tail: bytes
    """What follows a block."""
    length: Callable[[bytes], int]
    """How long the block behind a head is; ValueError, saying what is wrong, if it does not say."""
    fields: Callable[[bytes], dict[str, str]]
    """What a head says, by lower-case name; of several values the first."""
    longest: int = LONGEST_HEAD


def _warc_fields(head: bytes) -> dict[str, str]:
    text = head.decode("utf-8", "replace").replace("\r\n", "\n")
    if "\n " in text or "\n\t" in text:
        text = _FOLD.sub(" ", text)
    fields: dict[str, str] = {}
    for line in text.split("\n")[1:]:
        name, colon, value = line.partition(":")
        if colon:
            fields.setdefault(name.strip().lower(), value.strip())
    return fields


def _warc_length(head: bytes) -> int:
    found = _LENGTH.search(head)
    if found is None:
        raise ValueError(
            "Content-Length: expected a number, found"
            f" {_warc_fields(head).get('content-length', '')[:40]!r}"
        )
    return int(found[1])


WARC: Final = Grammar(_WARC_START, _WARC_START, _WARC_END, b"\r\n\r\n", _warc_length, _warc_fields)


def _arc_fields(head: bytes) -> dict[str, str]:
    url, address, date, rest, _ = _words(head)
    words = (rest or "").split(" ")
    # A version 1 type may hold blanks: `text/html; charset=…`.
    media_type = words[0] if len(words) == _VERSION_2 else " ".join(words)
    return {"url": _NO_UTF8.sub(_escaped, url), "ip": address, "date": date, "type": media_type}


def _escaped(found: re.Match[str]) -> str:
    return f"%{ord(found[0]) - 0xDC00:02X}"


def _arc_length(head: bytes) -> int:
    return int(_words(head)[4])


def _words(head: bytes) -> tuple[str, ...]:
    found = _LINE.fullmatch(head.decode("utf-8", "surrogateescape").rstrip("\r\n"))
    if found is None:
        raise ValueError(f"expected the five words of an ARC record's head, found {head[:80]!r}")
    return found.groups("")


ARC: Final = Grammar(
    _ARC_START, _AFTER_LINE, _ARC_END, b"\n", _arc_length, _arc_fields, longest=1 << 14
)
