"""parse-pagedata: stores what an HTML page says about itself in the parse metadata, as it is found.

    pagedata.title description author     of the elements title and meta; in this order all of them
      published modified language         that there are, each value once: SOURCES
    pagedata.canonical license            and rel=canonical, rel=license, absolute
    pagedata.og:title …                   OpenGraph: the property of each meta element
    pagedata.json-ld                      an object of JSON-LD, as JSON in one line
    pagedata.json-ld.broken               how many scripts are no JSON
    pagedata.microdata                    a top-level item, as JSON: `microdata`
    pagedata.cut                          true if more was found than `pagedata.bytes`

Nothing is interpreted: a date stays as the page spells it, an author may be a name or a URL, and
JSON-LD is not looked into. `index.parse.md=pagedata.author` (index-metadata) makes a field of it;
in SQL it is in the column `metadata` of `parses`. Sources: HTML standard, 4.2.5.1 and 4.6.7.4; The
Open Graph protocol; JSON-LD 1.1, 7.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from minutch.conf import Configuration
from minutch.errors import UrlError
from minutch.plugin.points import HTMLMetaTags, HtmlParseFilter, ParseResult
from minutch.records.protocol import Content
from minutch.urls.resolve import resolver_class

from .microdata import top_items

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

PREFIX: Final = "pagedata."
SOURCES: Final[Mapping[str, tuple[str, ...]]] = {
    "title": ("og:title", "dc.title", "dcterms.title"),
    "description": ("description", "og:description", "dc.description", "dcterms.description"),
    "author": ("author", "article:author", "dc.creator", "dcterms.creator"),
    "published": (
        "article:published_time",
        "date",
        "dc.date",
        "dcterms.created",
        "dcterms.issued",
        "og:published_time",
        "pubdate",
    ),
    "modified": (
        "article:modified_time",
        "dcterms.modified",
        "last-modified",
        "og:updated_time",
        "revised",
    ),
    "language": ("content-language", "dc.language", "dcterms.language", "og:locale"),
}
"""Key → names (or properties, or http-equiv) of meta elements."""
_LINKS: Final = {
    "link[rel][href]": ("canonical", "license"),
    "a[rel][href], area[rel][href]": ("license",),
}
"""Selector -> relations of links that are kept (HTML standard, 4.6.7)."""
_OPEN_GRAPH: Final = ("og:", "article:", "book:", "music:", "profile:", "product:", "video:")
_MOST: Final = 1000
"""Elements of a kind that are looked at."""


class PageDataParseFilter(HtmlParseFilter):
    """The filter; see the module."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self._resolver = resolver_class(conf)
        self._bytes = conf.get_int("pagedata.bytes")

    def filter(
        self,
        content: Content,
        result: ParseResult,
        metatags: HTMLMetaTags,
        document: LexborHTMLParser,
    ) -> ParseResult:
        metadata = result[content.url].data.parse_meta
        base = metatags.base_href or content.base
        left, broken, seen = self._bytes, 0, set()
        for name, value in self._found(document, base):
            if name == "json-ld.broken":
                broken += 1
            elif value and (name, value) not in seen:
                size = len(name) + len(value.encode())
                if size > left:
                    metadata.set(PREFIX + "cut", "true")
                    continue
                left -= size
                seen.add((name, value))
                metadata.add(PREFIX + name, value)
        if broken:
            metadata.set(PREFIX + "json-ld.broken", str(broken))
        return result

    def _found(self, document: LexborHTMLParser, base: str) -> Iterator[tuple[str, str]]:
        """Yields keys and values, the most telling first."""
        title = document.css_first("title")
        if title is not None:
            yield "title", _folded(title.text())
        if document.root is not None:
            yield "language", _folded(document.root.attributes.get("lang") or "")
        metas = [
            (name, _folded(node.attributes["content"] or ""))
            for node in document.css("meta[content]")[:_MOST]
            for key in ("name", "property", "http-equiv")
            for name in (node.attributes.get(key) or "").lower().split()
        ]
        for key, names in SOURCES.items():
            for wanted in names:
                yield from ((key, value) for name, value in metas if name == wanted)
        resolve = self._resolver(base).resolve
        for selector, names in _LINKS.items():
            for node in document.css(selector)[:_MOST]:
                relations = (node.attributes["rel"] or "").lower().split()
                for name in names:
                    if name in relations:
                        with suppress(UrlError):
                            yield name, resolve((node.attributes["href"] or "").strip())
        yield from (pair for pair in metas if pair[0].startswith(_OPEN_GRAPH))
        yield from self._linked_data(document)
        for item in top_items(document, resolve):
            yield "microdata", _as_json(item)

    def _linked_data(self, document: LexborHTMLParser) -> Iterator[tuple[str, str]]:
        for node in document.css("script[type]")[:_MOST]:
            media_type = (node.attributes["type"] or "").partition(";")[0].strip().lower()
            if media_type != "application/ld+json":
                continue
            text = node.text()
            if len(text) > 4 * self._bytes:  # blanks do not count, but have to be read
                yield "json-ld", text
                continue
            try:
                found = json.loads(text, parse_constant=_no_constant)
                values = found if isinstance(found, list) else [found]
                written = [_as_json(value) for value in values if isinstance(value, dict)]
            except (ValueError, RecursionError):
                yield "json-ld.broken", ""
                continue
            yield from (("json-ld", value) for value in written)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _as_json(value: object) -> str:
    """Returns JSON in one line. Raises ValueError for a lone surrogate, which is no text."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    text.encode()
    return text


def _folded(text: str) -> str:
    return " ".join(text.split())
