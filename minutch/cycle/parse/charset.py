"""Decides the charset of a page. The one home of that decision.

The first that says something wins:

    1. a byte order mark
    2. `charset=` in the Content-Type header
    3. the XML declaration of a page of XHTML; a meta element within the first 8192 bytes, by
       `prescan`
    4. the content itself: an ISO-2022-JP escape, UTF-16 without a mark, an XML declaration, strict
       UTF-8 or nearly so, chardetng; for these there must be something that is not ASCII
    5. parser.character.encoding.default (windows-1252)

Labels are read as `minutch.charsets` says. Source: org.apache.nutch.util.EncodingDetector and
HtmlParser.sniffCharacterEncoding, with these differences: the byte order mark comes first, as in
browsers (Nutch: last of the declarations), and the content of a page that declares nothing decides.
Nutch takes the default for it and garbles such a page unless it is in windows-1252;
`parser.character.encoding.detect` = false brings that back.

With `encodingdetector.charset.min.confidence` of 0 to 100 the content of text types is asked first,
as in Nutch, and overrides what is declared when it is that sure: 100 for an escape or at least four
multi-byte sequences of UTF-8, 80 for fewer, 50 for a guess of chardetng.
"""

from __future__ import annotations

import re
from codecs import getincrementaldecoder
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from minutch.charsets import LABELS, UTF_8, Charset, lookup
from minutch.cycle.parse.prescan import BYTES as PRESCAN_BYTES
from minutch.cycle.parse.prescan import declared_charset
from minutch.mediatypes import parameters

if TYPE_CHECKING:
    from minutch.conf import Configuration

_LONGEST_KEPT: Final = 128
"""Characters of a header up to which it is remembered what it says."""
GUESS_LIMIT: Final = 1 << 18
"""Bytes of a page that chardetng is given: it needs 45 µs a kilobyte."""

SURE: Final = 100
LIKELY: Final = 80
GUESSED: Final = 50


class Clue(Enum):
    """The source of a charset; a guess is chardetng's."""

    MARK = "byte order mark"
    HEADER = "header"
    META = "meta element"
    CONTENT = "content"
    GUESS = "guess"
    DEFAULT = "default"


_DETECTABLE: Final = frozenset(
    (
        "text/html",
        "text/plain",
        "text/richtext",
        "text/rtf",
        "text/sgml",
        "text/tab-separated-values",
        "text/xml",
        "application/rss+xml",
        "application/xhtml+xml",
    )
)
_MARKS: Final = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16le"), (b"\xfe\xff", "utf-16be"))
_UTF16: Final = re.compile(rb"(?:(<\0[!?a-zA-Z]\0)|(\0<\0[!?a-zA-Z]))")

_XML: Final = re.compile(rb"\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']\s*([A-Za-z][\w.:-]*)")
_ESCAPE: Final = re.compile(rb"\x1b(?:\$[@B]|\([JI])")
_MULTI_BYTE: Final = re.compile(rb"[\xc2-\xf4][\x80-\xbf]+")
_VALID: Final = re.compile("[^\\x00-\\x7f\\ufffd]")
_VALID_PER_BAD: Final = 8
"""Characters of UTF-8 that make up for a byte that is none."""
_XHTML: Final = "application/xhtml+xml"
_NON_ASCII: Final = re.compile(rb"[\x80-\xff]")


class CharsetDetector:
    """Decides by the rules above, as configured; has no state of a page."""

    def __init__(self, conf: Configuration) -> None:
        self._confidence = conf.get_int("encodingdetector.charset.min.confidence")
        self._detects = conf.get_boolean("parser.character.encoding.detect")
        name = conf.get_text("parser.character.encoding.default")
        default = lookup(name)
        if default is None:
            raise conf.wrong("parser.character.encoding.default", "a charset", name)
        self.default: Charset = Charset(name.strip().lower(), default.codec)

    def detect(
        self, data: bytes, header: str | None = None, media_type: str = "", tld: str = ""
    ) -> Charset:
        """Returns the charset of `data`; `header` is the value of Content-Type, `tld` the last
        label of the host name.
        """
        return self.detect_by(data, header, media_type, tld)[0]

    def detect_by(
        self, data: bytes, header: str | None = None, media_type: str = "", tld: str = ""
    ) -> tuple[Charset, Clue]:
        """The same, and what has told it."""
        marked = byte_order_mark(data)
        if marked:
            return marked, Clue.MARK
        if self._confidence >= 0 and media_type in _DETECTABLE and len(data) > 4:
            guess = guess_content(data, tld)
            if guess and guess[1] >= self._confidence:
                return guess[0], _clue(guess[1])
        if header and (declared := from_header(header)):
            return declared, Clue.HEADER
        is_open = media_type == _XHTML and _NON_ASCII.search(data)
        if is_open and (declared := _of_xml(data)):
            return declared, Clue.META
        if declared := declared_charset(data):
            return declared, Clue.META
        found = guess_content(data, tld) if self._detects else None
        return (found[0], _clue(found[1])) if found else (self.default, Clue.DEFAULT)


def _clue(confidence: int) -> Clue:
    return Clue.GUESS if confidence == GUESSED else Clue.CONTENT


def byte_order_mark(data: bytes) -> Charset | None:
    """Returns the charset that the first bytes of a document name; None if they do not."""
    for mark, name in _MARKS:
        if data.startswith(mark):
            return LABELS[name]
    return None


def from_header(value: str) -> Charset | None:
    """Returns the charset that a Content-Type header names, None if unknown."""
    return _kept_from_header(value) if len(value) <= _LONGEST_KEPT else _from_header(value)


def _from_header(value: str) -> Charset | None:
    label = parameters(value).get("charset")
    return None if label is None else lookup(label)


_kept_from_header = lru_cache(maxsize=512)(_from_header)


def guess_content(data: bytes, tld: str = "") -> tuple[Charset, int] | None:
    """Guesses the charset by the bytes themselves, with a confidence from 0 to 100; None for plain
    ASCII.
    """
    escaped = _ESCAPE.search(data)
    if escaped and "\ufffd" not in LABELS["iso-2022-jp"].decode(data)[:-2]:
        return LABELS["iso-2022-jp"], SURE  # cut off within an escape, it ends in up to two U+FFFD
    utf16 = _UTF16.match(data)
    if utf16:
        return LABELS["utf-16le" if utf16[1] else "utf-16be"], SURE
    if not _NON_ASCII.search(data):
        return None
    if declared := _of_xml(data):
        return declared, SURE
    if _is_utf8(data) and (count := len(_MULTI_BYTE.findall(data, 0, GUESS_LIMIT))):
        return UTF_8, SURE if count > 3 else LIKELY
    head = data[:GUESS_LIMIT]
    return (UTF_8, LIKELY) if _is_nearly_utf8(head) else _guess(head, tld)


def _of_xml(data: bytes) -> Charset | None:
    """Returns the charset that an XML declaration names."""
    xml = _XML.match(data[:PRESCAN_BYTES])
    return lookup(xml[1].decode("ascii")) if xml else None


def _is_nearly_utf8(data: bytes) -> bool:
    """Tells whether far more characters are valid UTF-8 than bytes are not: by chance they hardly
    are.
    """
    text = data.decode("utf-8", "replace")
    bad = text.count("\ufffd")
    return bad * _VALID_PER_BAD <= len(_VALID.findall(text))


def _is_utf8(data: bytes) -> bool:
    """Tells whether all bytes are valid UTF-8; a page cut off by the content limit may end within a
    character.
    """
    try:
        getincrementaldecoder("utf-8")().decode(data)
    except UnicodeDecodeError:
        return False
    return True


def _guess(data: bytes, tld: str) -> tuple[Charset, int] | None:
    from chardetng_py import EncodingDetector

    detector = EncodingDetector()
    detector.feed(data, last=False)  # it may be cut off
    hint = tld.lower().encode() if tld.isascii() and tld.isalpha() else None
    guess = lookup(detector.guess(tld=hint, allow_utf8=False))
    return (guess, GUESSED) if guess else None
