"""Writes pages of XML as pages of HTML, so that they are read as XML means them and one that is not
well-formed is read all the same.

    <script src="s.js"/>     gets an end tag, unless HTML knows the element as void
    <![CDATA[a < b]]>        text
    <?target …?>             nothing
    <h:a>                    <a>, where the prefix h stands for XHTML

Sources: XML 1.0, 2.6, 2.7 and 3.1; Namespaces in XML 1.0, 3; XHTML 1.0, C.2 and C.3.
"""

from __future__ import annotations

import re
from html import escape
from typing import Final

from minutch.mediatypes import essence

TYPE: Final = "application/xhtml+xml"

_VOID: Final = frozenset(
    b"area base basefont bgsound br col embed frame hr img input keygen link meta param source"
    b" track wbr".split()
)
_FOREIGN: Final = (b"svg", b"math")
_TOKEN: Final = re.compile(
    rb"<!--.*?(?:-->|\Z)|<!\[CDATA\[(?P<text>.*?)(?:\]\]>|\Z)|<\?.*?(?:\?>|\Z)"
    rb"|<(?P<close>/?)(?P<prefix>(?:[^\s/<>:]++:)?)(?P<name>[A-Za-z_][^\s/<>:]*+)"
    rb"(?P<rest>(?:[^>\"'/]++|\"[^\"]*+\"|'[^']*+'|/(?!>)|[\"'])*+)(?P<empty>/?)>"
    rb"|<(?:/?(?:[^\s/<>:]++:)?)[A-Za-z_].*",
    re.DOTALL,
)
"""The last alternative is a tag without an end, which holds all that follows, for HTML, too."""
_PREFIX: Final = re.compile(rb"xmlns:([\w.-]+)\s*=\s*[\"']http://www\.w3\.org/1999/xhtml[\"']")


def is_xhtml(header: str | None, media_type: str) -> bool:
    """Returns True for a page that is served as XHTML or, where nobody says, looks like it."""
    return essence(header or media_type) == TYPE


def as_html(data: bytes) -> bytes:
    """Returns a page of XML, in UTF-8, as one of HTML."""
    prefixes = {prefix + b":" for prefix in _PREFIX.findall(data)}
    inside: list[bytes] = []  # elements of svg or math that are open: HTML reads their "/>"

    def written(token: re.Match[bytes]) -> bytes:
        if token["text"] is not None:
            return escape(token["text"].decode("utf-8", "replace")).encode()
        name = token["name"]
        if name is None:
            return b"" if token[0].startswith(b"<?") else token[0]
        prefix = b"" if token["prefix"] in prefixes else token["prefix"]
        tag = b"<" + token["close"] + prefix + name + token["rest"]
        lower = name.lower()
        if lower in _FOREIGN and not token["empty"]:
            if not token["close"]:
                inside.append(lower)
            elif inside:
                inside.pop()
        if not token["empty"] or token["close"] or lower in _VOID:
            return tag + b">"
        return tag + (b"/>" if inside else b"></" + prefix + name + b">")

    return _TOKEN.sub(written, data)
