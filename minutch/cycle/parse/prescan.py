"""Finds the charset that a page's markup declares, in its first bytes.

Source: HTML Standard, 13.2.3.2 ("prescan a byte stream to determine its encoding", "algorithm for
extracting a character encoding from a meta element"). Comments are passed over, and what stands in
the values of attributes; the first meta element that names a known charset counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from minutch.charsets import LABELS, UTF_8, Charset, lookup

BYTES: Final = 8192
"""Bytes of a page that are searched (NUTCH-2042; browsers: 1024)."""

_INSTEAD: Final = {"x-user-defined": LABELS["windows-1252"]}

_B: Final = rb"[\t\n\f\r ]*+"
_ATTRIBUTE: Final = (
    rb"[\t\n\f\r /]*+([^\t\n\f\r />][^\t\n\f\r />=]*+)(?:" + _B + rb"=" + _B
    + rb"(?:\"([^\"]*+)(?:\"|\Z)|'([^']*+)(?:'|\Z)|((?![\"'])[^\t\n\f\r >]*+)))?+"
)  # fmt: skip
_NEXT_ATTRIBUTE: Final = re.compile(_ATTRIBUTE)
_TAG: Final = re.compile(
    rb"<(?:!(?=--).*?(?:-->|\Z)|(meta)(?=[\t\n\f\r /])|/?[a-z][^\t\n\f\r >]*+(?:"
    + re.sub(rb"\((?!\?)", b"(?:", _ATTRIBUTE)
    + rb")*+|[!/?][^>]*+)",
    re.IGNORECASE | re.DOTALL,
)
_IN_CONTENT: Final = re.compile(
    rb"charset"
    + _B
    + rb"="
    + _B
    + rb"(?:\"([^\"]*+)\"|'([^']*+)'|([^\t\n\f\r ;\"'][^\t\n\f\r ;]*+)|)",
    re.IGNORECASE,
)


def declared_charset(data: bytes) -> Charset | None:
    """Returns the charset that a meta element names; a page that can be read so far is not in
    UTF-16, so that means UTF-8.
    """
    head, at = data[:BYTES], 0
    if b"charset" not in head.lower():
        return None
    while (tag := _TAG.search(head, at)) is not None:
        at = tag.end()
        if tag[1] is None:
            continue
        attributes: dict[bytes, bytes] = {}
        while (match := _NEXT_ATTRIBUTE.match(head, at)) is not None:
            at = match.end()
            attributes.setdefault(match[1].lower(), match[2] or match[3] or match[4] or b"")
        for label in _labels(attributes):
            found = lookup(label.decode("latin-1"))
            if found is not None:
                return UTF_8 if found.is_wide else _INSTEAD.get(found.codec, found)
    return None


def _labels(attributes: dict[bytes, bytes]) -> Iterator[bytes]:
    """Yields the label that a meta element names, if it names one."""
    if b"charset" in attributes:
        yield attributes[b"charset"]
    elif attributes.get(b"http-equiv", b"").lower() == b"content-type":
        match = _IN_CONTENT.search(attributes.get(b"content", b""))
        if match is not None:
            yield match[1] or match[2] or match[3] or b""
