"""Reads a sitemap: the URLs that it lists, or the sitemaps that an index lists. Pure: no I/O.

    sitemap   XML (urlset), RSS or Atom, or text with a URL per line; also gzipped
    index     XML (sitemapindex): sitemaps

XML is decoded and mended as that of feeds; text is UTF-8, if neither a byte order mark nor its
header say otherwise. What is cut off or damaged is read up to the damage, gzipped or not.

XML is read by expat as crawler-commons reads it. Elements go by their local names in the namespace
of the root, whatever that is, in none, or in one of sitemaps. Others, and what they contain, say
nothing: those of images, videos and pages in other languages list no pages. A `url` or `loc` that
is not closed ends where the next one begins.

Sitemaps come from strangers: entities of one's own are refused, no DTD is loaded, and what is
compressed counts up to a limit.

Source: SiteMapParser, MimeTypeDetector and the handlers of crawlercommons.sitemaps.sax
(DelegatorHandler, XMLHandler, XMLIndexHandler, RSSHandler, AtomHandler) of crawler-commons 1.6, as
Nutch's SitemapProcessor uses them, which takes all XML for UTF-8 and refuses what is damaged;
sitemaps.org; for links of Atom RFC 4287, sections 2 and 4.2.7.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final
from xml.parsers import expat

from minutch.charsets import UTF_8, Charset
from minutch.clock import http_time
from minutch.cycle.parse.charset import byte_order_mark, from_header, xml_text
from minutch.cycle.sitemap.sitemapurls import ListedUrls, Sitemap, SitemapIndex, iso_date
from minutch.errors import ParseError

MOST_NESTED: Final = 1000
"""Elements within elements; no sitemap has as many."""
_BLANKS: Final = "\u00a0\u2007\u202f"
_OF_SITEMAPS: Final = "/schemas/sitemap/"
"""Part of the namespaces of all versions of sitemaps, and of none of their extensions."""
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


def read_xml(text: str, listed: ListedUrls) -> Sitemap | SitemapIndex:
    """Returns the sitemap or index in `text`, up to the damage that it names. Raises ParseError if
    nothing stands before that, if `text` declares entities, or is something else.
    """
    reader = _Reader(listed)
    # `text` is decoded already: an encoding that it declares counts no more.
    parser = expat.ParserCreate("utf-8")
    # Without it expat gives text line by line, and apart at each reference.
    parser.buffer_text = True
    # Billion laughs, and files of this machine. An external DTD is not read by expat itself.
    parser.EntityDeclHandler = _refuse_entity
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    damage = ""
    try:
        # "replace": lone surrogates, which UTF-16 may have.
        parser.Parse(text.encode("utf-8", "replace"), True)
    except expat.ExpatError as exc:
        damage = f"not well-formed: {exc}"
    except ParseError as exc:
        raise ParseError(f"{listed.url}: {exc}") from exc
    if reader.handler is None:
        raise ParseError(f"{listed.url}: {damage or 'XML, but no sitemap'}")
    result = reader.handler.result
    if damage:
        # A loc that is closed is whole, though its url is not.
        reader.handler.cut_off()
        result.damage = damage
        if not result.urls:
            raise ParseError(f"{listed.url}: {damage}")
    return result


def _refuse_entity(name: str, *_: Any) -> None:
    raise ParseError(f"a declaration of an entity ({name}), which no sitemap needs")


class _Reader:
    """Keeps the elements that are open, and hands on what happens below the root of a sitemap."""

    def __init__(self, listed: ListedUrls) -> None:
        self._listed = listed
        self._namespaces: dict[str, str] = {}
        self._namespace = ""
        self._skipped = 0
        self.open: list[str] = []
        self.handler: _Handler | None = None

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if len(self.open) + self._skipped >= MOST_NESTED:
            raise ParseError(f"more than {MOST_NESTED} elements within each other")
        prefix, _, local = name.rpartition(":")
        for key, value in attributes.items():
            if key.startswith("xmlns"):
                # Of the whole document: a prefix that is declared twice, for two namespaces, is not
                # met.
                self._namespaces[key[6:]] = value
        if self.handler is None:
            kind = _HANDLERS.get(local)
            if kind is not None:
                self._namespace = self._namespace_of(prefix)
                self.handler = kind(self._listed, self.open)
        elif self._skipped or local not in self.handler.names or not self._belongs(prefix):
            self._skipped += 1
            return
        self.open.append(local)
        if self.handler is not None:
            self.handler.start(local, attributes)

    def _namespace_of(self, prefix: str) -> str:
        """Returns the namespace of a prefix; of one that is not declared, the prefix."""
        return self._namespaces.get(prefix, prefix)

    def _belongs(self, prefix: str) -> bool:
        namespace = self._namespace_of(prefix)
        return not prefix or namespace == self._namespace or _OF_SITEMAPS in namespace

    def end(self, name: str) -> None:
        if self._skipped:
            self._skipped -= 1
            return
        if self.handler is not None:
            self.handler.end(self.open[-1])
        self.open.pop()

    def text(self, data: str) -> None:
        if self.handler is not None and self.open and not self._skipped:
            self.handler.text(data)


class _Handler:
    """Handles the elements of a kind of document, `names`; the text of `taken` ones counts."""

    result: Sitemap | SitemapIndex
    names: tuple[str, ...]
    taken: tuple[str, ...] = ()

    def __init__(self, listed: ListedUrls, open_elements: list[str]) -> None:
        self.listed, self.open = listed, open_elements
        self._text: list[str] = []

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Handles the beginning of an element."""

    def end(self, name: str) -> None:
        """Handles the end of an element."""

    def text(self, data: str) -> None:
        """Handles text in the innermost element."""
        if self.open[-1] in self.taken:
            self._text.append(data)

    def cut_off(self) -> None:
        """Handles a document that ends early."""

    def collected(self) -> str:
        """Returns the text since the last call."""
        found = "".join(self._text)
        self._text.clear()
        return found


class _UrlSet(_Handler):
    """A sitemap."""

    names = ("urlset", "url", "loc", "changefreq", "lastmod", "priority")
    taken = names[1:]

    def __init__(self, listed: ListedUrls, open_elements: list[str]) -> None:
        super().__init__(listed, open_elements)
        self.result: Sitemap = Sitemap(listed)
        self._loc: str | None = None
        self._said: dict[str, str] = {}

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name in ("loc", "url"):
            if self._loc is None:
                self._loc = self.collected()
            if _stripped(self._loc):
                self._add()
                return
            self._loc = None
            if name == "url":
                self._said.clear()
        self.collected()

    def end(self, name: str) -> None:
        if name == "url":
            # XMLHandler.endElement: a url within a url lists nothing.
            if len(self.open) > 1 and self.open[-2] == "urlset":
                self._add()
        elif name == "loc":
            self._loc = self.collected()
        elif name in ("changefreq", "lastmod", "priority"):
            self._said[name] = self.collected()

    def cut_off(self) -> None:
        self._add()

    def _add(self) -> None:
        url = _stripped(self._loc or "")
        if url:
            said, modified = self._said, iso_date(self._said.get("lastmod"))
            self.result.add(url, modified, said.get("changefreq"), said.get("priority", ""))
            self._loc = None
            self._said.clear()


class _Index(_Handler):
    """An index of sitemaps."""

    names = ("sitemapindex", "sitemap", "loc", "lastmod")

    def __init__(self, listed: ListedUrls, open_elements: list[str]) -> None:
        super().__init__(listed, open_elements)
        self.result: SitemapIndex = SitemapIndex()
        self._loc: str | None = None
        self._loc_closed = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        # XMLIndexHandler.startElement, of an element that was not closed.
        if self._loc and name in ("loc", "sitemap"):
            if _stripped(self._loc):
                self._add()
                return
            self._loc = None
            self._loc_closed = self._loc_closed and name != "sitemap"

    def text(self, data: str) -> None:
        if self.open[-1] in ("loc", "lastmod"):
            self._text.append(data)
        elif not self._loc_closed:  # text of a sitemap without a loc
            self._text.append(_stripped(data))

    def end(self, name: str) -> None:
        if name == "sitemap":
            if not self._loc_closed:
                self._loc = self.collected()
            self._add()
        elif name == "loc":
            self._loc, self._loc_closed = self.collected(), True
        elif name == "lastmod":
            self.collected()

    def cut_off(self) -> None:
        if self._loc_closed:
            self._add()

    def _add(self) -> None:
        if self._loc is None:
            return
        url = self.listed.read(_stripped(self._loc))
        if url is None:
            self.result.left_out += bool(_stripped(self._loc))
        else:
            self.result.urls.append(url)
        self._loc, self._loc_closed = None, False


class _Rss(_Handler):
    """RSS: the links of items, in their absence their guids."""

    names = ("channel", "item", "pubDate", "link", "guid")
    taken = names[2:]

    def __init__(self, listed: ListedUrls, open_elements: list[str]) -> None:
        super().__init__(listed, open_elements)
        self.result: Sitemap = Sitemap(listed)
        self._url: str | None = None
        self._modified: int | None = None

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "item":  # the links of the channel are behind
            self._url = self._modified = None
        self.collected()

    def end(self, name: str) -> None:
        if name == "link" or (name == "guid" and self._url is None):
            text = _stripped(self.collected())
            if text:
                # RSSHandler: a link that is none leaves a guid that was one before.
                self._url = self.listed.read(self.listed.joined(self.listed.url, text)) or self._url
        elif name == "guid":
            self.collected()
        elif name == "item":
            if self._url is not None:
                self.result.add(self._url, self._modified)
            self._url = self._modified = None
        elif name == "pubDate":
            self._modified = http_time(self.collected().strip())


class _Atom(_Handler):
    """Atom: of the links of an entry the first that is valid, one without `rel` before one with."""

    names = ("feed", "entry", "link", "updated")
    taken = names[3:]

    def __init__(self, listed: ListedUrls, open_elements: list[str]) -> None:
        super().__init__(listed, open_elements)
        self.result: Sitemap = Sitemap(listed)
        self._url: str | None = None
        self._rel: str | None = None
        self._valid = False
        self._modified: str | None = None
        self._base = self._feed_base = listed.url

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        # RFC 4287, 2: xml:base of an element holds for what is in it.
        base = self.listed.joined(self._base, attributes.get("xml:base", ""))
        if name == "feed":
            self._base = self._feed_base = base
        elif name == "entry":
            self._base, self._url, self._rel, self._modified = base, None, None, None
        elif name == "link" and "href" in attributes:
            href, rel = self.listed.joined(base, attributes["href"]), attributes.get("rel")
            # RFC 4287, 4.2.7.2: a link without `rel` is the alternate one.
            rel = None if rel == "alternate" else rel
            valid = self.listed.allows(href)
            if (
                self._url is None
                or (valid and not self._valid)
                or (self._rel is not None and rel is None)
            ):
                url = self.listed.read(href)
                if url is not None:
                    self._url, self._rel, self._valid = url, rel, valid

    def end(self, name: str) -> None:
        if name == "entry":
            if self._url is not None and self._valid:
                self.result.add(self._url, iso_date(self._modified))
            elif self._url is not None:
                self.result.left_out += 1
            self._base, self._url, self._modified = self._feed_base, None, None
        elif name == "updated":
            self._modified = self.collected()


_HANDLERS: Final[dict[str, Callable[[ListedUrls, list[str]], _Handler]]] = {
    "feed": _Atom,
    "channel": _Rss,
    "sitemapindex": _Index,
    "urlset": _UrlSet,
}


def _stripped(text: str) -> str:
    """Without blanks at both ends, those that don't break among them."""
    return text.strip().strip(_BLANKS).strip()


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
        # Gzip within gzip counts as none: each layer multiplies what a small file unpacks to.
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
    """Returns the kind of a sitemap by its first bytes if they are known, or by media type."""
    name = content_type.lower()
    for types, kind in ((XML_TYPES, _XML), (TEXT_TYPES, _TEXT), (GZIP_TYPES, _GZIP)):
        if name in types:
            # Servers name sitemap.xml.gz as they like: text/xml of gzipped bytes, text/plain of
            # XML.
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
        # RFC 1952, 2.2: a file is a series of members.
        while content.startswith(_GZIP_START, at):
            member = zlib.decompressobj(wbits=31)  # 16 for gzip, 15 for the window
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
            # zlib gives nothing of a call that ends in damage, which its bytes one by one do.
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
    # Not splitlines, for which U+2028 and form feeds end lines, too.
    lines = re.split(r"\r\n|\r|\n", text.lstrip("\ufeff"), maxsplit=MAX_LINES)
    for line in (lines[:-1] if is_cut else lines)[:MAX_LINES]:
        if line.strip():
            sitemap.add(line.strip())
    return sitemap
