"""The head of an HTTP message, as it came, made to fit the body as it is kept. Pure: no I/O.

The body is kept unchunked and uncompressed, so Content-Encoding and Transfer-Encoding no longer hold, and
Content-Length may not: they get the prefix `X-Crawler-`, and a right Content-Length is put behind the wrong one. Lines
without a colon go. The head ends with one empty line.

Source: org.apache.nutch.tools.WARCUtils.fixHttpHeaders.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_ENCODINGS = re.compile(r"(?i)(?:content|transfer)-encoding")


def fitted_head(head: str, length: int) -> str:
    """The head for a body of `length` bytes; empty for a blank one."""
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
