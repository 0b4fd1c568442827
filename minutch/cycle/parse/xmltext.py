"""Decodes XML from the web and mends its references, so that parsers read all of it. Pure: no I/O.

    charset     a byte order mark, `charset=` of Content-Type, the XML declaration, the bytes
    beginning   blanks before the XML declaration go, and the declaration, which has been obeyed
    references  `&` that begins none, and `<` that begins no tag, stand for themselves; names that
                HTML has for characters are these characters

Source: RFC 7303, section 3, for the order of charsets (a byte order mark before the header); XML
1.0, sections 2.4 and 4.1, for what is no reference; the HTML standard for the names of characters.
"""

from __future__ import annotations

import re
from html.entities import html5
from typing import Final
from xml.sax.saxutils import escape

from minutch.charsets import UTF_8, Charset
from minutch.cycle.parse.charset import byte_order_mark, guess_content

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
    text = _DECLARATION.sub("", text, count=1) if text[:5].lower() == "<?xml" else text
    return _PART.sub(_mended, text) if _TO_MEND.search(text) else text


def _charset(data: bytes, declared: Charset | None) -> Charset:
    marked = byte_order_mark(data)
    if marked:
        return marked
    guess = guess_content(data)
    found = declared or (guess[0] if guess else None)
    return UTF_8 if found is None or (found.is_wide and b"\0" not in data[:4]) else found


def _mended(match: re.Match[str]) -> str:
    text = match[0]
    own, number, name = match.groups()
    if number is not None:
        code = int(number[1:], 16) if number[0] in "xX" else int(number)
        character = chr(code) if code <= _LAST_CODE else "\0"
        return "\ufffd" if _NOT_IN_XML.match(character) else f"&#{code};"
    if name is not None:
        return escape(html5.get(f"{name};", text))
    return escape(text) if own is None and len(text) == 1 else text
