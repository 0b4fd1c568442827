"""parse-pagedata: stores what an HTML page says about itself in the parse metadata, as it is found.

    pagedata.title description author     of the elements title and meta; in this order all of them
      published modified language         that there are, each value once: SOURCES
    pagedata.canonical license            and rel=canonical, rel=license, absolute
    pagedata.og:title …                   OpenGraph: the property of each meta element
    pagedata.json-ld                      an object of JSON-LD, as JSON in one line
    pagedata.json-ld.broken               how many scripts are no JSON
    pagedata.microdata                    a top-level item, as JSON
    pagedata.cut                          true if more was found than `pagedata.bytes`

Nothing is interpreted: a date stays as the page spells it, an author may be a name or a URL, and
JSON-LD is not looked into. `index.parse.md=pagedata.author` (index-metadata) makes a field of it;
in SQL it is in the column `metadata` of `parses`. Sources: HTML standard, 4.2.5.1 and 4.6.7.4; The
Open Graph protocol; JSON-LD 1.1, 7.

Microdata is read as the HTML standard's algorithm for JSON has it (5.2.3, 5.4). An item is
{"type": [...], "id": ..., "properties": {name: [value, ...]}}; a value is text, or an item, or
"ERROR" for one that contains itself. One pass over the elements of items: those that several items
refer to (itemref) are read again for each, MOST_VISITS at most.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from minutch.conf import Configuration
from minutch.errors import UrlError
from minutch.plugin.points import HTMLMetaTags, HtmlParseFilter, ParseResult
from minutch.records.protocol import Content
from minutch.urls.resolve import resolver_class

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode


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
                    # Smaller values that come later may still fit.
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
                # Python's json takes NaN and Infinity, which RFC 8259, 6 does not permit.
                found = json.loads(text, parse_constant=_no_constant)
                values = found if isinstance(found, list) else [found]
                written = [_as_json(value) for value in values if isinstance(value, dict)]
            # RecursionError: `[[[[...`, of a few thousand bytes.
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


MOST_ITEMS: Final = 1000
"""Items of a page; more are left out."""
MOST_VISITS: Final = 100_000
"""Nodes that are looked at."""
MOST_TEXT: Final = 1 << 20
"""Characters of all values; what is more is left out."""
DEEPEST: Final = 32
"""Items in each other; one that is deeper is "ERROR"."""
_URLS: Final = {
    **dict.fromkeys(
        ["audio", "embed", "iframe", "img", "source", "track", "video", "x-iframe"], "src"
    ),
    **dict.fromkeys(["a", "area", "link"], "href"),
    "object": "data",
}
_VALUES: Final = {"meta": "content", "data": "value", "meter": "value"}


def top_items(
    document: LexborHTMLParser, resolve: Callable[[str], str]
) -> Iterator[dict[str, Any]]:
    """Yields the items of a page that are no property of another one, in tree order; `resolve`
    makes URLs absolute or raises UrlError.
    """
    nodes = document.css("[itemscope]")[:MOST_ITEMS]
    if not nodes:
        return
    by_id: dict[str, LexborNode] = {}
    places: dict[int, int] = {}
    # Few pages refer to elements elsewhere: others need no table of ids.
    if document.css_first("[itemref]") is not None:
        for node in document.css("[id]"):
            by_id.setdefault(node.attributes["id"] or "", node)
        places = {node.mem_id: place for place, node in enumerate(document.css("[itemprop]"))}
    reader = _Reader(resolve, by_id, places)
    for node in nodes:
        if "itemprop" not in node.attributes:
            yield reader.item(node, ())


class _Reader:
    def __init__(
        self, resolve: Callable[[str], str], by_id: dict[str, LexborNode], places: dict[int, int]
    ) -> None:
        self._resolve, self._by_id, self._places = resolve, by_id, places
        self._visits = 0
        self._left = MOST_TEXT

    def item(self, node: LexborNode, memory: tuple[int, ...]) -> dict[str, Any]:
        """Returns an item; `memory` has the addresses of those that it is in ("get the object")."""
        attributes = node.attributes
        memory = (*memory, node.mem_id)
        found: dict[str, Any] = {}
        if types := (attributes.get("itemtype") or "").split():
            found["type"] = types
        if (name := (attributes.get("itemid") or "").strip()) and types:
            found["id"] = self._url(name)
        properties: dict[str, list[Any]] = {}
        for inner in self._properties(node):
            value: Any
            if "itemscope" not in inner.attributes:
                value = self._value(inner)
            # 5.4: an item within itself is "ERROR".
            elif inner.mem_id in memory or len(memory) > DEEPEST:
                value = "ERROR"
            else:
                value = self.item(inner, memory)
            # An element may be several properties, each once.
            for name in dict.fromkeys((inner.attributes["itemprop"] or "").split()):
                properties.setdefault(name, []).append(value)
        found["properties"] = properties
        return found

    def _properties(self, root: LexborNode) -> list[LexborNode]:
        """Returns the elements that are properties of an item: of its tree, and of those that it
        refers to, but not of items in it.
        """
        found: list[LexborNode] = []
        names = dict.fromkeys((root.attributes.get("itemref") or "").split())
        referred = [node for name in names if (node := self._by_id.get(name)) is not None]
        memory: set[int] = set()
        for start in (root, *referred):
            node = start
            while self._visits < MOST_VISITS:
                self._visits += 1
                following = None
                if node.mem_id not in memory:
                    memory.add(node.mem_id)
                    attributes, is_root = node.attributes, node.mem_id == root.mem_id
                    if attributes.get("itemprop") and not is_root:
                        found.append(node)
                    # What is in an item of its own is that one's.
                    if is_root or "itemscope" not in attributes:
                        following = _element(node.first_child)
                while following is None and node.mem_id != start.mem_id:
                    following = _element(node.next)
                    if following is None:
                        parent = node.parent
                        assert parent is not None
                        node = parent
                if following is None:
                    break
                node = following
        if referred:
            # Tree order, also of elements that were referred to.
            found.sort(key=lambda node: self._places[node.mem_id])
        return found

    def _value(self, node: LexborNode) -> str:
        """Returns the value of a property (5.2.4)."""
        tag, attributes = node.tag or "", node.attributes
        if (name := _URLS.get(tag)) is not None:
            return self._url(attributes.get(name) or "") if name in attributes else ""
        if (name := _VALUES.get(tag)) is not None:
            return self._bounded(attributes.get(name) or "")
        if tag == "time" and "datetime" in attributes:
            return self._bounded(attributes["datetime"] or "")
        texts = []
        for inner in node.traverse(include_text=True):
            self._visits += 1
            if self._visits > MOST_VISITS:
                break
            if inner.is_text_node:
                texts.append(self._bounded(inner.text_content or ""))
        return "".join(texts)

    def _bounded(self, text: str) -> str:
        text = text[: self._left]
        self._left -= len(text)
        return text

    def _url(self, target: str) -> str:
        try:
            return self._bounded(self._resolve(target.strip()))
        except UrlError:
            return self._bounded(target)


def _element(node: LexborNode | None) -> LexborNode | None:
    while node is not None and not node.is_element_node:
        node = node.next
    return node
