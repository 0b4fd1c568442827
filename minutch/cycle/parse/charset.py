"""Decides the charset of a page. The one home of that decision. Pure: no I/O.

The first that says something wins:

    1. a byte order mark
    2. `charset=` in the Content-Type header
    3. the XML declaration of a page of XHTML; a meta element within the first 8192 bytes
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

The meta element is found as by the HTML Standard, 13.2.3.2 ("prescan a byte stream to determine its
encoding", "algorithm for extracting a character encoding from a meta element"). Comments are passed
over, and what stands in the values of attributes; the first one that names a known charset counts.

XML from the web (`xml_text`) is decoded by other rules, and mended so that parsers read all of it:

    charset     a byte order mark, `charset=` of Content-Type, the XML declaration, the bytes
    beginning   blanks before the XML declaration go, and the declaration, which has been obeyed
    references  `&` that begins none, and `<` that begins no tag, stand for themselves; names that
                HTML has for characters are these characters

Source: RFC 7303, section 3, for the order of charsets (a byte order mark before the header); XML
1.0, sections 2.4 and 4.1, for what is no reference; the HTML standard for the names of characters.
"""

from __future__ import annotations

import re
from codecs import getincrementaldecoder
from collections.abc import Iterator
from enum import Enum
from functools import lru_cache
from html.entities import html5
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

from minutch.charsets import LABELS, UTF_8, Charset, lookup
from minutch.mediatypes import parameters
from minutch.records.metadata import CONTENT_TYPE_KEY

if TYPE_CHECKING:
    from minutch.conf import Configuration
    from minutch.records.protocol import Content


PRESCAN_BYTES: Final = 8192
"""Bytes of a page that are searched (NUTCH-2042; browsers: 1024)."""

# HTML Standard, 13.2.3.2: in a meta element x-user-defined stands for windows-1252.
_INSTEAD: Final = {"x-user-defined": LABELS["windows-1252"]}

# Possessive throughout: a head of 8 KB of blanks or quotes is read once, not by trial.
_B: Final = rb"[\t\n\f\r ]*+"
_ATTRIBUTE: Final = (
    rb"[\t\n\f\r /]*+([^\t\n\f\r />][^\t\n\f\r />=]*+)(?:" + _B + rb"=" + _B
    + rb"(?:\"([^\"]*+)(?:\"|\Z)|'([^']*+)(?:'|\Z)|((?![\"'])[^\t\n\f\r >]*+)))?+"
)  # fmt: skip
_NEXT_ATTRIBUTE: Final = re.compile(_ATTRIBUTE)
# A comment, a meta element up to its attributes, any other tag with its attributes, `<!` or `<?`.
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


def declared_labels(data: bytes) -> Iterator[str]:
    """Yields the labels that meta elements name, in their order; those after an unknown one count,
    too.
    """
    head, at = data[:PRESCAN_BYTES], 0
    # Spares the prescan on most pages whose header has spoken of none.
    if b"charset" not in head.lower():
        return
    while (tag := _TAG.search(head, at)) is not None:
        at = tag.end()
        if tag[1] is None:
            continue
        attributes: dict[bytes, bytes] = {}
        while (match := _NEXT_ATTRIBUTE.match(head, at)) is not None:
            at = match.end()
            # Of attributes with one name the first counts.
            attributes.setdefault(match[1].lower(), match[2] or match[3] or match[4] or b"")
        label = attributes.get(b"charset")
        if label is None and attributes.get(b"http-equiv", b"").lower() == b"content-type":
            named = _IN_CONTENT.search(attributes.get(b"content", b""))
            label = named and (named[1] or named[2] or named[3])
        if label:
            yield label.decode("latin-1")


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


_DETECTABLE: Final = frozenset((
    "text/html", "text/plain", "text/richtext", "text/rtf", "text/sgml",
    "text/tab-separated-values", "text/xml", "application/rss+xml", "application/xhtml+xml",
))  # fmt: skip
_MARKS: Final = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16le"), (b"\xfe\xff", "utf-16be"))
# `<` and a letter, `!` or `?` in two bytes each: how markup in UTF-16 begins.
_UTF16: Final = re.compile(rb"(?:(<\0[!?a-zA-Z]\0)|(\0<\0[!?a-zA-Z]))")

_XML: Final = re.compile(rb"\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']\s*([A-Za-z][\w.:-]*)")
_ESCAPE: Final = re.compile(rb"\x1b(?:\$[@B]|\([JI])")
_MULTI_BYTE: Final = re.compile(rb"[\xc2-\xf4][\x80-\xbf]+")
# Characters of several bytes that were decoded.
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

    def charset_of(self, content: Content) -> Charset:
        """Returns the charset of a page."""
        header = content.metadata.field(CONTENT_TYPE_KEY)
        return self.detect(content.content, header, content.content_type, content.base)

    def detect(
        self, data: bytes, header: str | None = None, media_type: str = "", url: str = ""
    ) -> Charset:
        """Returns the charset of `data`; `header` is the value of Content-Type, the top-level
        domain of `url` a hint.
        """
        return self.detect_by(data, header, media_type, url)[0]

    def detect_by(
        self, data: bytes, header: str | None = None, media_type: str = "", url: str = ""
    ) -> tuple[Charset, Clue]:
        """The same, and what has told it."""
        for label, clue in self._told(data, header, media_type, url):
            if (found := lookup(label)) is not None:
                if clue is Clue.META:  # it could be read, so the page is not in UTF-16
                    found = UTF_8 if found.is_wide else _INSTEAD.get(found.codec, found)
                return found, clue
        return self.default, Clue.DEFAULT

    def _told(
        self, data: bytes, header: str | None, media_type: str, url: str
    ) -> Iterator[tuple[str, Clue]]:
        """Yields what the page is said to be in, by the rules above."""
        if marked := _mark(data):
            yield marked, Clue.MARK
        # Nutch's EncodingDetector.autoDetectClues: from 5 bytes, of these types.
        if self._confidence >= 0 and media_type in _DETECTABLE and len(data) > 4:
            for guess, confidence in guessed_labels(data, url):
                if confidence < self._confidence:
                    break
                yield guess, _clue(confidence)
        if header and (label := _header_label(header)):
            yield label, Clue.HEADER
        # Plain ASCII is the same in all of them: no declaration is worth a look.
        if (
            media_type == _XHTML
            and _NON_ASCII.search(data)
            and (xml := _XML.match(data, 0, PRESCAN_BYTES))
        ):
            yield xml[1].decode("ascii"), Clue.META
        for declared in declared_labels(data):
            yield declared, Clue.META
        if self._detects:
            for guess, confidence in guessed_labels(data, url):
                yield guess, _clue(confidence)


def _clue(confidence: int) -> Clue:
    return Clue.GUESS if confidence == GUESSED else Clue.CONTENT


def _mark(data: bytes) -> str | None:
    return next((name for mark, name in _MARKS if data.startswith(mark)), None)


def byte_order_mark(data: bytes) -> Charset | None:
    """Returns the charset that the first bytes of a document name; None if they do not."""
    name = _mark(data)
    return None if name is None else LABELS[name]


def from_header(value: str) -> Charset | None:
    """Returns the charset that a Content-Type header names, None if unknown."""
    return lookup(_header_label(value) or "")


def _header_label(value: str) -> str | None:
    # Headers of 64 KB each would fill the cache with megabytes.
    return _kept_label(value) if len(value) <= _LONGEST_KEPT else _label(value)


def _label(value: str) -> str | None:
    return parameters(value).get("charset")


_kept_label = lru_cache(maxsize=512)(_label)


def guessed_labels(data: bytes, url: str = "") -> Iterator[tuple[str, int]]:
    """Yields guesses by the bytes themselves, the surest first, with a confidence from 0 to 100;
    nothing for plain ASCII.
    """
    escaped = _ESCAPE.search(data)
    # An escape alone occurs in binary data: all of it has to be valid.
    if escaped and "\ufffd" not in LABELS["iso-2022-jp"].decode(data)[:-2]:
        yield "iso-2022-jp", SURE  # cut off within an escape, it ends in up to two U+FFFD
    if utf16 := _UTF16.match(data):
        yield "utf-16le" if utf16[1] else "utf-16be", SURE
    if not _NON_ASCII.search(data):
        return
    if xml := _XML.match(data, 0, PRESCAN_BYTES):
        yield xml[1].decode("ascii"), SURE
    # Strict UTF-8 hardly occurs by chance; four sequences rule it out.
    if _is_utf8(data) and (count := len(_MULTI_BYTE.findall(data, 0, GUESS_LIMIT))):
        yield "utf-8", SURE if count > 3 else LIKELY
    head = data[:GUESS_LIMIT]
    if _is_nearly_utf8(head):
        yield "utf-8", LIKELY
    from chardetng_py import EncodingDetector

    detector = EncodingDetector()
    detector.feed(head, last=False)  # it may be cut off
    # urlsplit raises ValueError for brackets that are no IPv6 address.
    host = urlsplit(url).hostname or "" if "[" not in url else ""
    tld = host.rpartition(".")[2]
    hint = tld.encode() if tld.isascii() and tld.isalpha() else None
    # UTF-8 has been ruled out above.
    yield detector.guess(tld=hint, allow_utf8=False), GUESSED


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
        # Not final: an unfinished last character is no error.
        getincrementaldecoder("utf-8")().decode(data)
    except UnicodeDecodeError:
        return False
    return True


_BEFORE: Final = "\ufeff \t\n\x0b\x0c\r\xa0"
_DECLARATION: Final = re.compile(r"<\?xml\s[^>]*\?>", re.IGNORECASE)
_TO_MEND: Final = re.compile(r"&(?!(?:amp|lt|gt|quot|apos);)|<(?![\w:/!?])")
_PART: Final = re.compile(
    r"<!\[CDATA\[.*?(?:\]\]>|\Z)|<!--.*?(?:-->|\Z)|<\?.*?(?:\?>|\Z)|<(?![\w:/!?])"
    r"|&(?:(amp|lt|gt|quot|apos)|\#([0-9]{1,9}|[xX][0-9A-Fa-f]{1,8})|([A-Za-z][A-Za-z0-9]{1,31}));"
    r"|&",
    re.DOTALL,
)
_NOT_IN_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LAST_CODE: Final = 0x10FFFF


def xml_text(data: bytes, declared: Charset | None = None) -> str:
    """Returns the text of a document; `declared` is the charset of its Content-Type header."""
    text = _charset(data, declared).decode(data).lstrip(_BEFORE)
    # lxml refuses a str whose declaration names a charset.
    text = _DECLARATION.sub("", text, count=1) if text[:5].lower() == "<?xml" else text
    # Most feeds are well-formed: a search in C instead of a call for each reference.
    return _PART.sub(_mended, text) if _TO_MEND.search(text) else text


def _charset(data: bytes, declared: Charset | None) -> Charset:
    marked = byte_order_mark(data)
    if marked:
        return marked
    guesses = (lookup(label) for label, _ in guessed_labels(data))
    found = declared or next(filter(None, guesses), None)
    # `<?xm` in UTF-16 has a zero in its first four bytes: the declaration is wrong.
    return UTF_8 if found is None or (found.is_wide and b"\0" not in data[:4]) else found


def _mended(match: re.Match[str]) -> str:
    text = match[0]
    own, number, name = match.groups()
    if number is not None:
        code = int(number[1:], 16) if number[0] in "xX" else int(number)
        character = chr(code) if code <= _LAST_CODE else "\0"
        # XML 1.0, 2.2: most controls and surrogates are no characters, not even as references.
        return "\ufffd" if _NOT_IN_XML.match(character) else f"&#{code};"
    if name is not None:
        # An unknown name stays as it stands, its `&` escaped.
        return escape(html5.get(f"{name};", text))
    return escape(text) if own is None and len(text) == 1 else text
