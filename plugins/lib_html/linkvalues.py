"""Finds links in the values of attributes and headers, in style sheets and in text, in linear time.

Sources: HTML standard (srcset), CSS Syntax Level 3 (strings, url(), comments), RFC 8288 section 3
(Link).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from minutch.cycle.parse.outlinks import text_outlinks

LONGEST: Final = 8192
"""Characters of a link that is taken from a style sheet or a header."""

_BLANKS: Final = " \t\n\f\r"
_CANDIDATE: Final = re.compile(r"[\s,]*+([^\s]++)((?:[^,(]|\([^)]*+(?:\)|\Z))*+)")
_WIDTH, _HEIGHT = (rf"0*+[1-9][0-9]*+{letter}" for letter in "wh")
_DENSITY: Final = r"(?:[0-9]++(?:\.[0-9]++)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?x"
_DESCRIPTORS: Final = re.compile(
    rf"\s*+(?:{_WIDTH}(?:\s++{_HEIGHT})?|{_HEIGHT}\s++{_WIDTH}|{_DENSITY})?\s*+", re.ASCII
)
_IN_CSS: Final = re.compile(
    r"/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z)"
    r"|(?:(?P<link>@import\s++|url\(\s*+)|)(?:\"(?P<double>(?:[^\"\\\n]++|\\.)*+)\"?|'(?P<single>(?:[^'\\\n]++|\\.)*+)'?)"
    r"|url\(\s*+(?P<plain>(?:[^\\)\s\"'(]++|\\.)++)",
    re.IGNORECASE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(?:([0-9a-f]{1,6})\s?|(.))", re.IGNORECASE | re.DOTALL)
_IN_LINK_HEADER: Final = re.compile(
    rf"\s*+<([^<>]{{0,{LONGEST}}}+)>((?:[^,\"]++|\"(?:[^\"\\]++|\\.)*+(?:\"|\Z))*+),?", re.DOTALL
)
_LIKELY: Final = re.compile(r"(?:https?://|//?|\.\.?/)[\w~%-][^\s<>\"']*+", re.IGNORECASE)


def in_srcset(value: str) -> Iterator[str]:
    """Yields the URLs of the candidates; one whose descriptors are in error is none."""
    at = 0
    while (match := _CANDIDATE.match(value, at)) is not None:
        url, descriptors = match.groups()
        at = match.end()
        if url.endswith(","):
            at, descriptors = match.end(1), ""
        if _DESCRIPTORS.fullmatch(descriptors) is not None:
            yield url.rstrip(",")


def in_list(value: str) -> Iterator[str]:
    """URLs between blanks or commas."""
    return iter(value.replace(",", " ").split())


def in_css(style: str) -> Iterator[str]:
    """Finds the links of url() and @import, not those in comments and other strings."""
    for match in _IN_CSS.finditer(style):
        text = match["plain"] or (match["link"] and (match["double"] or match["single"]))
        if text and len(text) <= LONGEST:
            yield _unescaped(text).strip(_BLANKS)


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(match: re.Match[str]) -> str:
    code = int(match[1] or "0", 16)
    if not match[1]:
        return "" if match[2] == "\n" else match[2]
    return chr(code) if 0 < code < 0xD800 or 0xDFFF < code < 0x110000 else "\ufffd"


def in_link_header(value: str) -> Iterator[tuple[str, str]]:
    """Target and parameters of each link in a Link header."""
    at = 0
    while (match := _IN_LINK_HEADER.match(value, at)) is not None:
        yield match[1].strip(), match[2]
        at = match.end()


def is_likely(value: str) -> bool:
    """Returns True if an arbitrary value looks like a URL or a path."""
    return _LIKELY.fullmatch(value) is not None


def in_policy(policy: str) -> Iterator[str]:
    """Finds the URLs that a Content-Security-Policy has reports sent to."""
    for directive in policy.split(";"):
        name, *values = directive.split() or [""]
        if name.lower() == "report-uri":
            yield from values


def in_text(text: str) -> Iterator[str]:
    """URLs of the web in running text; a path without a scheme is hardly ever meant as one."""
    for link in text_outlinks(text):
        if link.to_url.lower().startswith(("http://", "https://")):
            yield link.to_url.rstrip(".,;:!?")
