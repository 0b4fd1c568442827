"""Reads a sitemap: the URLs that it lists, or the sitemaps that an index lists. Pure: no I/O.

    sitemap   XML (urlset), RSS or Atom, or text with a URL per line; also gzipped
    index     XML (sitemapindex): sitemaps

Sitemaps come from strangers: a document type declaration is refused, so that there are no entities
of one's own, and what is compressed may not grow beyond a limit. What is not well-formed is not
used at all.

Source: SiteMapParser and MimeTypeDetector of crawler-commons 1.6, as Nutch's SitemapProcessor uses
them; sitemaps.org.
"""

from __future__ import annotations

import re
import zlib
from typing import Final

from minutch.cycle.sitemap.sitemapurls import Sitemap, SitemapIndex
from minutch.cycle.sitemap.sitemapxml import read_xml
from minutch.errors import ParseError

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

_XML_STARTS: Final = (
    b"<?xml",
    b"<?XML",
    b"<!--",
    b"<urlset",
    b"<sitemapindex",
    b"<rss",
    b"<feed",
    b"<rdf",
)
_TEXT_STARTS: Final = (b"http://", b"https://")
_GZIP_START: Final = b"\x1f\x8b"
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_SPACES: Final = b" \t\n\x0b\x0c\r"


def read_sitemap(
    content_type: str, content: bytes, url: str, *, strict: bool, most_bytes: int
) -> Sitemap | SitemapIndex:
    """Returns the sitemap or index with this media type and content at `url`. Raises ParseError.

    `most_bytes` bounds what gzipped content may grow to.
    """
    kind = _kind(content_type, content)
    if kind is _GZIP:
        content = _gunzip(content, url, most_bytes)
        kind = _by_start(content)
        if kind is _TEXT:
            return _read_text(content, url, strict)
        if kind is _XML:
            return _read_xml(content, url, strict, None)
        raise ParseError(f"{url}: neither XML nor text in gzipped content")
    if kind is None:
        raise ParseError(f"{url}: no sitemap, {content_type or 'of no known type'}")
    return (
        _read_text(content, url, strict)
        if kind is _TEXT
        else _read_xml(content, url, strict, "UTF-8")
    )


_XML, _TEXT, _GZIP = "xml", "text", "gzip"


def _kind(content_type: str, content: bytes) -> str | None:
    """Returns the kind of a sitemap by its media type if that is known, else by its first bytes."""
    name = content_type.lower()
    for types, kind in ((XML_TYPES, _XML), (TEXT_TYPES, _TEXT), (GZIP_TYPES, _GZIP)):
        if name in types:
            return kind
    return _by_start(content)


def _by_start(content: bytes) -> str | None:
    text = content[:256].removeprefix(_BYTE_ORDER_MARK).lstrip(_SPACES)
    if text.startswith(_XML_STARTS):
        return _XML
    if text.startswith(_TEXT_STARTS):
        return _TEXT
    return _GZIP if content.startswith(_GZIP_START) else None


def _gunzip(content: bytes, url: str, most: int) -> bytes:
    """Gzipped content, members one after the other. Raises ParseError for damage, and if it grows
    beyond `most`.
    """
    found, rest = b"", content
    try:
        while rest.startswith(_GZIP_START):
            member = zlib.decompressobj(wbits=31)
            found += member.decompress(rest, most - len(found) + 1)
            if len(found) > most:
                raise ParseError(f"{url}: more than {most} bytes when decompressed")
            if not member.eof:
                raise ParseError(f"{url}: gzipped content is cut off")
            rest = member.unused_data
    except zlib.error as exc:
        raise ParseError(f"{url}: damaged gzipped content: {exc}") from exc
    if not found:
        raise ParseError(f"{url}: not gzipped, or empty")
    return found


def _read_text(content: bytes, url: str, strict: bool) -> Sitemap:
    sitemap = Sitemap.at(url, strict=strict)
    text = content.removeprefix(_BYTE_ORDER_MARK).decode("utf-8", "replace")
    for line in re.split(r"\r\n|\r|\n", text, maxsplit=MAX_LINES)[:MAX_LINES]:
        if line.strip():
            sitemap.add(line.strip())
    return sitemap


def _read_xml(
    content: bytes, url: str, strict: bool, encoding: str | None
) -> Sitemap | SitemapIndex:
    text = content.removeprefix(_BYTE_ORDER_MARK).lstrip(b" \t\n\x0b\r")
    if encoding is not None:
        text = text.decode("utf-8", "replace").encode()
    return read_xml(text, url, strict, encoding)
