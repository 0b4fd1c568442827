"""The heads of WARC records, versions 0.17 to 1.1.

    head  :=  "WARC/" version CRLF  (name ":" value CRLF)*  CRLF

Lines may end by LF alone, and continue on the next one. Source: ISO 28500:2017, section 4.
"""

from __future__ import annotations

import re
from typing import Final

from minutch.warc.reading.recordreader import Grammar

_START: Final = re.compile(rb"WARC/[0-9]\.[0-9]{1,2}\r?\n")
_END: Final = re.compile(rb"\n\r?\n")
_FOLD: Final = re.compile(r"\n[ \t]+")
_LENGTH: Final = re.compile(rb"(?i)\ncontent-length[ \t]*:[ \t]*([0-9]{1,18})[ \t]*\r?\n")


def _fields(head: bytes) -> dict[str, str]:
    text = head.decode("utf-8", "replace").replace("\r\n", "\n")
    if "\n " in text or "\n\t" in text:
        text = _FOLD.sub(" ", text)
    fields: dict[str, str] = {}
    for line in text.split("\n")[1:]:
        name, colon, value = line.partition(":")
        if colon:
            fields.setdefault(name.strip().lower(), value.strip())
    return fields


def _length(head: bytes) -> int:
    found = _LENGTH.search(head)
    if found is None:
        raise ValueError(
            "Content-Length: expected a number, found"
            f" {_fields(head).get('content-length', '')[:40]!r}"
        )
    return int(found[1])


WARC: Final = Grammar(_START, _START, _END, b"\r\n\r\n", _length, _fields)
