"""Makes the head of an HTTP message fit the body that is kept, or makes a head where none was kept.
Pure: no I/O.

The body is kept unchunked and uncompressed, so Content-Encoding and Transfer-Encoding no longer
hold, and Content-Length may not: they get the prefix `X-Crawler-`, and a right Content-Length is
put behind the wrong one. Lines without a colon go. The head ends with one empty line.

Where no head was kept, one is made of the status code and of the headers that the page's metadata
has: one value of each name, in another order than they came in, and without what the server said of
its reasons. The line MADE_HEAD marks it.

Source: org.apache.nutch.tools.WARCUtils.fixHttpHeaders.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from http import HTTPStatus
from typing import Final

from minutch.records.metadata import (
    CONTENT_FETCH_TIME_KEY,
    SCORE_KEY,
    SEGMENT_NAME_KEY,
    SIGNATURE_KEY,
    Metadata,
)

MADE_HEAD: Final = "X-Crawler-Head: made, none was stored"
"""A line by which a head is marked that is not the server's."""
_TOKEN: Final = re.compile(r"[!#$%&'*+.^`|~0-9A-Za-z-][!#$%&'*+.^_`|~0-9A-Za-z-]*")
"""A header's name (RFC 9110, section 5.6.2); one that begins with an underscore is the crawler's
own.
"""
_OWN: Final = frozenset({SEGMENT_NAME_KEY, SIGNATURE_KEY, SCORE_KEY, CONTENT_FETCH_TIME_KEY})
_OWN_BEGINNINGS: Final = ("nutch.", "http.content.", "robotstxt.")
_LINE_ENDS: Final = re.compile(r"[\r\n\0]+")
_STATUS: Final = re.compile(r"HTTP/[0-9.]+ +([1-9][0-9]{2})(?![0-9])")
_ENCODINGS = re.compile(r"(?i)(?:content|transfer)-encoding")


def fitted_head(head: str, length: int) -> str:
    """Returns the head for a body of `length` bytes; empty for a blank one."""
    if not head.strip():
        return ""
    status, *lines = head.split("\r\n")
    return "\r\n".join((status, *_fitted(lines, length), "", ""))


def _fitted(lines: list[str], length: int) -> Iterator[str]:
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            continue
        if _ENCODINGS.fullmatch(name):
            yield f"X-Crawler-{line}"
        elif name.lower() == "content-length" and not _says(value, length):
            yield f"X-Crawler-{line}"
            yield f"Content-Length: {length}"
        else:
            yield line


def _says(value: str, length: int) -> bool:
    digits = value.strip()
    return digits.isascii() and digits.isdigit() and len(digits) < 19 and int(digits) == length


def rebuilt_head(code: int, metadata: Metadata, length: int) -> str:
    """Returns a head for a body of `length` bytes, of a page's metadata."""
    lines = [f"HTTP/1.1 {code} {reason(code)}"]
    for name in metadata.java_names():
        if _TOKEN.fullmatch(name) and name not in _OWN and not name.startswith(_OWN_BEGINNINGS):
            lines += [f"{name}: {_LINE_ENDS.sub(' ', value)}" for value in metadata[name]]
    if code != HTTPStatus.NOT_MODIFIED and not any(
        line.lower().startswith("content-length:") for line in lines
    ):
        lines.append(f"Content-Length: {length}")
    return fitted_head("\r\n".join((*lines, MADE_HEAD)), length)


def reason(code: int) -> str:
    """Returns RFC 9110's reason phrase for a status code; empty for an unknown one."""
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return ""


def status_of(head: str) -> int | None:
    """Returns the status code of a head."""
    match = _STATUS.match(head)
    return None if match is None else int(match[1])
