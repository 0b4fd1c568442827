"""Sitemaps, indexes of sitemaps, and feeds in XML, read by expat as crawler-commons reads them.

Elements go by their local names, whatever their namespace. A `url` or `loc` that is not closed ends
where the next one begins. Source: the handlers of crawlercommons.sitemaps.sax (DelegatorHandler,
XMLHandler, XMLIndexHandler, RSSHandler, AtomHandler).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urljoin
from xml.parsers import expat

from minutch.cycle.sitemap.sitemapdates import feed_date, iso_date
from minutch.cycle.sitemap.sitemapurls import Sitemap, SitemapIndex, checked_url
from minutch.errors import ParseError

MOST_NESTED: Final = 1000
"""Elements within elements; no sitemap has as many."""
_BLANKS: Final = "\u00a0\u2007\u202f"


def read_xml(text: bytes, url: str, strict: bool, encoding: str | None) -> Sitemap | SitemapIndex:
    """Returns the sitemap or index in `text`. Raises ParseError if it is not well-formed, has a
    DTD, or is something else.
    """
    reader = _Reader(url, strict)
    parser = expat.ParserCreate(encoding, namespace_separator=" ")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = _refuse_doctype
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    try:
        parser.Parse(text, True)
    except expat.ExpatError as exc:
        raise ParseError(f"{url}: not well-formed: {exc}") from exc
    except (LookupError, ValueError, ParseError) as exc:
        raise ParseError(f"{url}: {exc}") from exc
    if reader.handler is None:
        raise ParseError(f"{url}: XML, but no sitemap")
    return reader.handler.result


def _refuse_doctype(name: str, *_: Any) -> None:
    raise ParseError(f"a document type declaration ({name}), which no sitemap needs")


class _Reader:
    """Keeps the elements that are open, and hands on what happens below the root of a sitemap."""

    def __init__(self, url: str, strict: bool) -> None:
        self._url, self._strict = url, strict
        self.open: list[str] = []
        self.handler: _Handler | None = None

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        local = name.rpartition(" ")[2]
        self.open.append(local)
        if len(self.open) > MOST_NESTED:
            raise ParseError(f"more than {MOST_NESTED} elements within each other")
        if self.handler is None:
            kind = _HANDLERS.get(local)
            if kind is None:
                return
            self.handler = kind(self._url, self._strict, self.open)
        self.handler.start(local, attributes)

    def end(self, name: str) -> None:
        if self.handler is not None:
            self.handler.end(name.rpartition(" ")[2])
        self.open.pop()

    def text(self, data: str) -> None:
        if self.handler is not None:
            self.handler.text(data)


class _Handler:
    """Handles the elements of one kind of document. `taken` are those whose text counts."""

    result: Sitemap | SitemapIndex
    taken: tuple[str, ...] = ()

    def __init__(self, url: str, strict: bool, open_elements: list[str]) -> None:
        self.url, self.open = url, open_elements
        self._text: list[str] = []

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""

    def end(self, name: str) -> None:
        """An element ends."""

    def text(self, data: str) -> None:
        """Text in the innermost element."""
        if self.open[-1] in self.taken:
            self._text.append(data)

    def collected(self) -> str:
        """Returns the text since the last call."""
        found = "".join(self._text)
        self._text.clear()
        return found


class _UrlSet(_Handler):
    """A sitemap."""

    taken = ("loc", "url", "changefreq", "lastmod", "priority")

    def __init__(self, url: str, strict: bool, open_elements: list[str]) -> None:
        super().__init__(url, strict, open_elements)
        self.result: Sitemap = Sitemap.at(url, strict=strict)
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
            if len(self.open) > 1 and self.open[-2] == "urlset":
                self._add()
        elif name == "loc":
            self._loc = self.collected()
        elif name in ("changefreq", "lastmod", "priority"):
            self._said[name] = self.collected()

    def _add(self) -> None:
        url = _stripped(self._loc or "")
        if url:
            said, modified = self._said, iso_date(self._said.get("lastmod"))
            self.result.add(url, modified, said.get("changefreq"), said.get("priority", ""))
            self._loc = None
            self._said.clear()


class _Index(_Handler):
    """An index of sitemaps."""

    def __init__(self, url: str, strict: bool, open_elements: list[str]) -> None:
        super().__init__(url, strict, open_elements)
        self.result: SitemapIndex = SitemapIndex()
        self._loc: str | None = None
        self._loc_closed = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
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

    def _add(self) -> None:
        if self._loc is None:
            return
        url = checked_url(_stripped(self._loc))
        if url is None:
            self.result.left_out += bool(_stripped(self._loc))
        else:
            self.result.urls.append(url)
        self._loc, self._loc_closed = None, False


class _Rss(_Handler):
    """RSS: the links of items, in their absence their guids."""

    taken = ("pubDate", "link", "guid")

    def __init__(self, url: str, strict: bool, open_elements: list[str]) -> None:
        super().__init__(url, strict, open_elements)
        self.result: Sitemap = Sitemap.at(url, strict=strict)
        self._url: str | None = None
        self._modified: int | None = None

    def end(self, name: str) -> None:
        if name == "link" or (name == "guid" and self._url is None):
            text = _stripped(self.collected())
            if text:
                self._url = checked_url(urljoin(self.url, text)) or self._url
        elif name == "guid":
            self.collected()
        elif name == "item":
            if self._url is not None:
                self.result.add(self._url, self._modified)
            self._url = self._modified = None
        elif name == "pubDate":
            self._modified = feed_date(self.collected())


class _Atom(_Handler):
    """Atom: of the links of an entry the first that is valid, one without `rel` before one with."""

    taken = ("updated",)

    def __init__(self, url: str, strict: bool, open_elements: list[str]) -> None:
        super().__init__(url, strict, open_elements)
        self.result: Sitemap = Sitemap.at(url, strict=strict)
        self._url: str | None = None
        self._rel: str | None = None
        self._valid = False
        self._modified: str | None = None

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "entry":
            self._url = self._rel = self._modified = None
        elif name == "link" and "href" in attributes:
            href, rel = attributes["href"], attributes.get("rel")
            valid = self.result.allows(href)
            if (
                self._url is None
                or (valid and not self._valid)
                or (self._rel is not None and rel is None)
            ):
                url = checked_url(href)
                if url is not None:
                    self._url, self._rel, self._valid = url, rel, valid

    def end(self, name: str) -> None:
        if name == "entry":
            if self._url is not None and self._valid:
                self.result.add(self._url, iso_date(self._modified))
            elif self._url is not None:
                self.result.left_out += 1
            self._url = self._modified = None
        elif name == "updated":
            self._modified = self.collected()


_HANDLERS: Final[dict[str, Callable[[str, bool, list[str]], _Handler]]] = {
    "feed": _Atom,
    "channel": _Rss,
    "sitemapindex": _Index,
    "urlset": _UrlSet,
}


def _stripped(text: str) -> str:
    """Without blanks at both ends, those that don't break among them."""
    return text.strip().strip(_BLANKS).strip()
