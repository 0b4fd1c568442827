"""Rewrites markup that Lexbor reads as text or drops from the tree, so that it is parsed as in
Nutch.

    template                    gets another name, so that its content is markup like any other; if
                                templates are inert, the root of a shadow tree alone, which is shown
    iframe with an end tag      likewise, if there is something inside
    iframe without one          gets another name and ends at once; so does `<iframe … />`
    noembed, noframes, xmp      get another name where the end tag is missing: a browser would take
                                the rest of the page for their text

An iframe has no end tag if the next one comes first: there can't be an iframe in an iframe.
Comments are left as they are, and so is the text of script, style, title and textarea, to the end
of the page if they have no end tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

PREFIX: Final = b"x-"
"""The prefix of renamed elements, which HTML does not know."""

_TEXTS: Final = (b"script", b"style", b"title", b"textarea")
"""Elements that hold text, however long."""
_HIDDEN: Final = (b"noembed", b"noframes", b"xmp")
"""Elements that hold text if they have an end tag."""
_TAG: Final = re.compile(rb"<(?:!--|(/?)([a-z][^\s/>]*))")
_REST_OF_TAG: Final = re.compile(rb"(?:[^>=]++|=\s*+(?:\"[^\"]*+\"|'[^']*+'|(?![\"'])))*+(>?)")
_SHADOW: Final = re.compile(rb"[\s/\"']shadowrootmode\s*=\s*[\"']?(?:open|closed)(?![^\s/>\"'])")
_BLANKS: Final = b" \t\n\x0b\f\r"


def rewrite(data: bytes, *, inert: bool = False) -> bytes:
    """Returns the page with other names where they have to be; takes one pass. `inert`: what
    templates hold is not the page's.
    """
    return b"".join(_Rewriter(data, inert).pieces())


class _Rewriter:
    """One pass over one page."""

    def __init__(self, data: bytes, inert: bool) -> None:
        self._data, self._inert = data, inert
        self._lower = data.lower()
        self._next: dict[bytes, int] = {}
        self._templates: list[bool] = []
        """For each open template, whether it is renamed."""

    def pieces(self) -> Iterator[bytes]:
        """Yields the page in pieces."""
        data, done, at = self._data, 0, 0
        while (match := _TAG.search(self._lower, at)) is not None:
            closes, name = match.groups()
            start, at = match.span(2)
            new_end = b""
            if name is None:
                at = self._after(b"-->", match.end())
                continue
            if closes:
                is_renamed = name == b"iframe" or (name == b"template" and self._closes_renamed())
            elif name in _TEXTS:
                at, is_renamed = self._after(b"</" + name, at), False
            elif name in _HIDDEN:
                is_renamed = self._find(b"</" + name, at) < 0
                at = at if is_renamed else self._after(b"</" + name, at)
            else:
                name_end, at = at, self._end_of_tag(at)
                is_renamed = (name == b"template" and self._opens_renamed(name_end, at)) or (
                    name == b"iframe" and not self._is_empty(at)
                )
                if name == b"iframe" and is_renamed and self._is_unclosed(name_end, at):
                    new_end = b"</" + PREFIX + name + b">"
                elif name == b"iframe" and not is_renamed:
                    at = self._after(b"</iframe", at)
            if is_renamed:
                yield data[done:start] + PREFIX + data[start:at] + new_end
                done = at
        yield data[done:]

    def _opens_renamed(self, name_end: int, end: int) -> bool:
        """Returns True if the template whose tag goes from `name_end` to `end` is renamed."""
        is_renamed = not self._inert or _SHADOW.search(self._lower, name_end, end) is not None
        self._templates.append(is_renamed)
        return is_renamed

    def _closes_renamed(self) -> bool:
        return self._templates.pop() if self._templates else not self._inert

    def _find(self, text: bytes, start: int) -> int:
        """Returns the next position of a text, -1 if there is none. Remembers it, so that all calls
        together take one pass.
        """
        found = self._next.get(text, 0)
        if 0 <= found < start:
            found = self._next[text] = self._lower.find(text, start)
        return found

    def _after(self, text: bytes, start: int) -> int:
        """Returns the end of the next occurrence of a text, or the page's end."""
        found = self._find(text, start)
        return len(self._data) if found < 0 else found + len(text)

    def _end_of_tag(self, start: int) -> int:
        """Returns the end of a tag; the page's end if a quote in it is not closed."""
        rest = _REST_OF_TAG.match(self._data, start)
        return rest.end() if rest is not None and rest[1] else len(self._data)

    def _is_empty(self, start: int) -> bool:
        """Returns True if the end tag of an iframe follows at once, or after blanks."""
        found = self._find(b"</iframe", start)
        return found >= 0 and not self._data[start:found].strip(_BLANKS)

    def _is_unclosed(self, name_end: int, start: int) -> bool:
        """Returns True if an iframe whose tag goes from `name_end` to `start` has no end tag of its
        own.
        """
        tag = self._data[name_end : start - 1]
        if tag.endswith(b"/") and (len(tag) == 1 or tag[-2:-1] in b" \t\n\x0b\f\r\"'"):
            return True
        following, end = self._find(b"<iframe", start), self._find(b"</iframe", start)
        return end < 0 or 0 <= following < end
