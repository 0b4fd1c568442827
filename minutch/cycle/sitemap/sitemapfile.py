"""Reads a sitemap: the URLs that it lists, or the sitemaps that an index lists. Pure: no I/O.

    sitemap   XML (urlset), RSS or Atom, or text with a URL per line; also gzipped
    index     XML (sitemapindex): sitemaps

XML is decoded and mended as that of feeds; text is UTF-8, if neither a byte order mark nor its
header say otherwise. What is cut off or damaged is read up to the damage, gzipped or not.

Sitemaps come from strangers: entities of one's own are refused, no DTD is loaded, and what is
compressed counts up to a limit.

Source: SiteMapParser and MimeTypeDetector of crawler-commons 1.6, as Nutch's SitemapProcessor uses
them, which takes all XML for UTF-8 and refuses what is damaged; sitemaps.org.
"""

from __future__ import annotations

import re
import zlib
from typing import Final

from minutch.charsets import UTF_8, Charset
from minutch.cycle.parse.charset import byte_order_mark, from_header
from minutch.cycle.parse.xmltext import xml_text
from minutch.cycle.sitemap.sitemapurls import ListedUrls, Sitemap, SitemapIndex
from minutch.cycle.sitemap.sitemapxml import read_xml
from minutch.errors import ParseError

_PIECE: Final = 1 << 12
MAX_LINES: Final = 50_000
"""Lines of a text sitemap that are read."""

XML_TYPES: Final = frozenset(
    (
        "application/xml",
        "application/x-xml",
        "text/xml",
        "application/atom+xml",
        "application/rss+xml",
        "text/rss",
    )
) | {"application/rdf+xml"}
TEXT_TYPES: Final = frozenset(("text/plain",))
GZIP_TYPES: Final = frozenset(
    ("application/gzip", "application/gzip-compressed", "application/gzipped", "application/x-gzip")
) | {"application/x-gzip-compressed", "application/x-gunzip", "gzip/document"}

_XML_START: Final = re.compile(
    rb"<(?:\?xml|!--|!DOCTYPE\s+(?!html)|(?:[\w.-]+:)?(?:urlset|sitemapindex|rss|feed|rdf))",
    re.IGNORECASE,
)
_TEXT_START: Final = re.compile(rb"https?://", re.IGNORECASE)
_GZIP_START: Final = b"\x1f\x8b"
_MARK: Final = re.compile(rb"\xef\xbb\xbf|\xff\xfe|\xfe\xff|\0")
"""Byte order marks, and what UTF-16 has between the characters of ASCII."""
_SPACES: Final = b" \t\n\x0b\x0c\r"
_NOT_UTF8: Final = re.compile("[\udc80-\udcff]")


def read_sitemap(
    content_type: str,
    content: bytes,
    listed: ListedUrls,
    *,
    most_bytes: int,
    header: str = "",
    is_cut: bool = False,
) -> Sitemap | SitemapIndex:
    """Returns the sitemap or index with this media type and content; its `damage` says if there was
    more. Raises ParseError.

    `most_bytes` are read of gzipped content. `header` is the Content-Type that came with it;
    `is_cut` if not all of it came.
    """
    url = listed.url
    kind, damage = _kind(content_type, content), "cut off" if is_cut else ""
    if kind is _GZIP:
        content, wrong = _gunzip(content, most_bytes)
        damage = wrong or damage
        kind = _by_start(content)
        if kind not in (_TEXT, _XML):
            raise ParseError(f"{url}: {damage or 'neither XML nor text in gzipped content'}")
    if kind is None:
        raise ParseError(f"{url}: no sitemap, {content_type or 'of no known type'}")
    declared = from_header(header)
    if kind is _TEXT:
        found: Sitemap | SitemapIndex = _read_text(content, listed, declared, bool(damage))
    else:
        found = read_xml(xml_text(content, declared), listed)
    found.damage = damage or found.damage
    return found


_XML, _TEXT, _GZIP = "xml", "text", "gzip"


def _kind(content_type: str, content: bytes) -> str | None:
    """Returns the kind of a sitemap by its first bytes if they are known, else by its media
    type.
    """
    name = content_type.lower()
    for types, kind in ((XML_TYPES, _XML), (TEXT_TYPES, _TEXT), (GZIP_TYPES, _GZIP)):
        if name in types:
            return _by_start(content) or kind
    return _by_start(content)


def _by_start(content: bytes) -> str | None:
    if content.startswith(_GZIP_START):
        return _GZIP
    text = _MARK.sub(b"", content[:512]).lstrip(_SPACES)
    if _XML_START.match(text):
        return _XML
    return _TEXT if _TEXT_START.match(text) else None


def _gunzip(content: bytes, most: int) -> tuple[bytes, str]:
    """Returns what gzipped content has before its damage, `most` bytes of it, and the damage;
    members stand one after the other.
    """
    found, at = bytearray(), 0
    try:
        while content.startswith(_GZIP_START, at):
            member = zlib.decompressobj(wbits=31)
            while not member.eof:
                piece = content[at : at + _PIECE]
                if not piece:
                    return bytes(found), "gzipped content is cut off"
                _inflate(member, piece, found, most + 1)
                if len(found) > most:
                    return bytes(found[:most]), f"more than {most} bytes when decompressed"
                at += len(piece)
            at -= len(member.unused_data)
    except zlib.error as exc:
        return bytes(found), f"damaged gzipped content: {exc}"
    return bytes(found), "" if found else "not gzipped, or empty"


def _inflate(member: zlib._Decompress, piece: bytes, found: bytearray, most: int) -> None:
    """Adds the content of `piece` to `found`, up to `most` bytes, or to its damage: zlib.error."""
    before = member.copy()
    try:
        found += member.decompress(piece, most - len(found))
    except zlib.error:
        for number in range(len(piece)):
            found += before.decompress(piece[number : number + 1], max(1, most - len(found)))
        raise


def _read_text(
    content: bytes, listed: ListedUrls, declared: Charset | None, is_cut: bool
) -> Sitemap:
    """Returns a list of URLs; the last line of one that is cut off may be half a URL, and is none.

    Bytes that are not UTF-8 stand in the URL one by one, as they would reach the server.
    """
    sitemap = Sitemap(listed)
    charset = byte_order_mark(content) or declared
    if charset is None or charset == UTF_8:
        text = _NOT_UTF8.sub(
            lambda byte: f"%{ord(byte[0]) - 0xDC00:02X}", content.decode("utf-8", "surrogateescape")
        )
    else:
        text = charset.decode(content)
    lines = re.split(r"\r\n|\r|\n", text.lstrip("\ufeff"), maxsplit=MAX_LINES)
    for line in (lines[:-1] if is_cut else lines)[:MAX_LINES]:
        if line.strip():
            sitemap.add(line.strip())
    return sitemap
