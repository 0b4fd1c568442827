"""Reads Rich Text Format: paragraphs, headers, footnotes, fields that are links, title and dates.

    \\word-12 x   a control word with its number; a blank behind it belongs to it
    \\'e9        a byte in the code page of the font, or of the document
    \\u8364?     a UTF-16 unit, with as many characters behind it as \\uc says, for old readers
    { }          a group: what is set in it ends with it; a word in it may name a destination
    \\*          a destination that those leave out who do not know it

Each token is read once, whatever it is. Sources: Rich Text Format Specification 1.9.1; Tika's
TextExtractor.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

from minutch.charsets import lookup
from minutch.errors import ParseError

from .package import Document

SIGNATURE: Final = b"{\\rtf"
_TOKEN: Final = re.compile(
    rb"\\([A-Za-z]{1,32})(-?[0-9]{1,10})? ?|\\'([0-9A-Fa-f]{2})|\\([^A-Za-z])|([{}])"
    rb"|[\r\n]+|([^\\{}\r\n]+)",
    re.DOTALL,
)
_DEEPEST: Final = 1000
"""Groups in each other, at most."""
_PAGES: Final = {
    437: "ibm437", 850: "ibm850", 932: "shift_jis", 936: "gbk", 949: "euc-kr", 950: "big5",
    10000: "macintosh", 65001: "utf-8",
}  # fmt: skip
_CHARSETS: Final = {
    0: 1252, 77: 10000, 128: 932, 129: 949, 134: 936, 136: 950, 161: 1253, 162: 1254, 163: 1258,
    177: 1255, 178: 1256, 186: 1257, 204: 1251, 222: 874, 238: 1250,
}  # fmt: skip
"""Number of a font's character set → code page."""
_CHARACTERS: Final = {
    "par": "\n", "sect": "\n", "page": "\n", "row": "\n", "line": "\n", "column": "\n",
    "cell": " ", "nestcell": " ", "nestrow": "\n", "tab": " ", "emspace": " ", "enspace": " ",
    "qmspace": " ", "emdash": "—", "endash": "–", "lquote": "‘", "rquote": "’", "ldblquote": "“",
    "rdblquote": "”", "bullet": "•", "~": " ", "_": "-", "\\": "\\", "{": "{", "}": "}",
    "\n": "\n", "\r": "\n",
}  # fmt: skip
_ASIDE: Final = frozenset([
    "fonttbl", "colortbl", "stylesheet", "listtable", "listoverridetable", "revtbl", "rsidtbl",
    "generator", "pict", "objdata", "objclass", "datafield", "fldinst", "info", "filetbl",
    "themedata", "colorschememapping", "latentstyles", "datastore", "pntext", "listtext", "pntxta",
    "pntxtb", "xmlnstbl", "wgrffmtfilter", "bkmkstart", "bkmkend", "private", "template", "atnid",
    "atnauthor", "atnref", "atntime", "atndate", "panose", "falt", "mmathPr", "nonshppict",
    "shpinst", "sn", "sv", "passwordhash", "ftnsep", "ftnsepc", "aftnsep", "aftnsepc", "author",
    "operator", "company", "manager", "category", "keywords", "comment", "doccomm", "hlinkbase",
    "subject", "title", "creatim", "revtim", "printim", "buptim", "tc", "xe",
])  # fmt: skip
"""Destinations whose text is not that of the document."""
_SHOWN: Final = frozenset(("shptxt", "annotation", "footnote", "nesttableprops", "shprslt"))
"""Destinations behind \\* that have text of the document."""
_BEHIND: Final = frozenset([
    "header", "headerl", "headerr", "headerf", "footer", "footerl", "footerr", "footerf",
    "footnote", "annotation", "shptxt",
])  # fmt: skip
"""Destinations whose text stands behind that of the document."""
_PROPERTIES: Final = {
    "title": "dc:title", "author": "dc:creator", "subject": "dc:subject",
    "keywords": "meta:keyword", "creatim": "dcterms:created", "revtim": "dcterms:modified",
}  # fmt: skip
_LINK: Final = re.compile(r'\s*HYPERLINK\s+(?:\\[a-z]\s+)*"([^"]{1,8192})"', re.IGNORECASE)


@dataclass(slots=True)
class _Group:
    """What is set in a group, and ends with it."""

    into: list[str]
    """Where its text goes."""
    destination: str = ""
    skip: int = 1
    """Characters behind \\u."""
    page: int = 0
    """Code page of the font; 0 for the document's."""
    is_hidden: bool = False


class _Reader:
    def __init__(self, found: Document) -> None:
        self._found = found
        self._text: list[str] = []
        self._behind: dict[str, None] = {}
        """Headers and notes, each once: left and right pages have headers of their own."""
        self._page, self._default = 1252, 0
        self._fonts: dict[int, int] = {}
        self._font = 0
        self._time: dict[str, int] = {}
        self._links: list[list[str]] = []
        """Targets of the fields that are open, with the pieces of their words."""
        self._bytes = bytearray()

    def read(self, data: bytes) -> None:  # noqa: C901, PLR0912, PLR0915 - one branch a token
        """Adds the document as far as it goes. Raises ParseError."""
        group = _Group(self._text)
        groups: list[_Group] = []
        at, left, is_starred = 0, 0, False
        while match := _TOKEN.match(data, at):
            at = match.end()
            word, number, byte, symbol, brace, plain = match.groups()
            if left and (byte or plain or symbol):  # stands for a \u before it
                if plain and len(plain) > left:
                    at, left = match.start() + left, 0
                else:
                    left -= len(plain) if plain else 1
                continue
            if byte:
                self._bytes += bytes((int(byte, 16),))
                continue
            if plain:
                self._bytes += plain
                continue
            if not (word or symbol or brace):
                continue
            left = 0
            self._flush(group)
            if brace == b"{":
                if len(groups) >= _DEEPEST:
                    raise ParseError(f"more than {_DEEPEST} groups in each other")
                groups.append(group)
                group = replace(group, destination="")
            elif brace:
                self._close(group)
                if not groups:
                    break
                group = groups.pop()
            elif symbol:
                is_starred = symbol == b"*" or is_starred
                self._put(group, _CHARACTERS.get(symbol.decode("latin-1"), ""))
                continue
            else:
                name = word.decode()
                value = int(number) if number else None
                if name == "bin":
                    at += max(value or 0, 0)
                elif name == "u" and value is not None:
                    self._put(group, chr(value & 0xFFFF))
                    left = group.skip
                else:
                    self._word(group, name, value, is_starred)
            is_starred = False
        self._flush(group)
        if at < len(data) and data[at:].strip(b"\0\r\n } "):
            self._found.missing.append(f"what stands behind byte {at:,}")
        elif groups and not self._found.missing:
            self._found.missing.append("its end: groups are open")
        self._found.texts += [_joined(self._text), *self._behind]

    def _word(self, group: _Group, name: str, value: int | None, is_starred: bool) -> None:  # noqa: C901
        if name in _ASIDE or (is_starred and name not in _SHOWN) or name in _BEHIND:
            group.destination, group.into = name, []
        elif name in _CHARACTERS:
            self._put(group, _CHARACTERS[name])
        elif name == "fldrslt" and self._links:
            group.destination, group.into = name, group.into
            self._links[-1].append("")
        elif name == "field":
            group.destination = name
            self._links.append([""])
        elif name == "ansicpg" and value:
            self._page = value
        elif name == "deff":
            self._default = value or 0
        elif name == "f":
            self._font = value or 0
            group.page = self._fonts.get(self._font, 0)
        elif name == "plain":
            group.page = self._fonts.get(self._default, 0)
        elif name == "fcharset":
            self._fonts[self._font] = _CHARSETS.get(value or 0, 0)
        elif name == "uc":
            group.skip = min(max(1 if value is None else value, 0), 16)
        elif name == "v":
            group.is_hidden = value != 0
        elif name in ("yr", "mo", "dy", "hr", "min", "sec"):
            self._time[name] = value or 0

    def _put(self, group: _Group, text: str) -> None:
        if text and not group.is_hidden:
            group.into.append(text)
            if self._links and len(self._links[-1]) > 1 and group.into is self._text:
                self._links[-1].append(text)

    def _flush(self, group: _Group) -> None:
        if not self._bytes:
            return
        page = group.page or self._page
        charset = lookup(_PAGES.get(page, f"windows-{page}")) or lookup("windows-1252")
        assert charset is not None
        self._put(group, charset.decode(bytes(self._bytes)))
        self._bytes.clear()

    def _close(self, group: _Group) -> None:
        """Takes what a destination has had, at its end."""
        name = group.destination
        if name in _BEHIND:
            self._behind.setdefault(_joined(group.into))
        elif name == "fldinst" and self._links:
            match = _LINK.match(_joined(group.into))
            self._links[-1][0] = match[1] if match else ""
        elif name == "field" and self._links:
            target, *words = self._links.pop()
            if target and ":" in target:
                self._found.links.append((target, _joined(words)))
        elif name in ("creatim", "revtim"):
            parts = [self._time.get(part, 0) for part in ("yr", "mo", "dy", "hr", "min", "sec")]
            year, month, day, hour, minute, second = parts
            self._found.date(
                _PROPERTIES[name],
                f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}",
            )
            self._time.clear()
        elif name in _PROPERTIES:
            value = _joined(group.into)
            self._found.describe(_PROPERTIES[name], value)
            if name == "title":
                self._found.title = " ".join(value.split())


def _joined(pieces: list[str]) -> str:
    """Joins pieces; the halves of a pair of UTF-16 units come together."""
    return "".join(pieces).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def read_rich_text(data: bytes, found: Document) -> None:
    """Adds what a document has. Raises ParseError."""
    if not data.startswith(SIGNATURE):
        raise ParseError("not a document of Rich Text Format")
    _Reader(found).read(data)
