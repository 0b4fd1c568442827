"""Reads RSS (0.9 to 2.0, including RDF) and Atom as one kind of feed.

    RSS     channel: title, link, description; item: title, link (or an alternate atom:link, or
            guid), description, content:encoded, author or dc:creator, category, pubDate or dc:date
    Atom    feed: title, link, subtitle; entry: title, link rel=alternate, summary, content,
            author/name, category/@term, published, updated

An element belongs to a feed if it is in the namespace of the feed, whichever that is, or in that of
a module: `media:title` is no title, and `atom:link` no link of RSS. Links are made absolute against
`xml:base`, else the URL of the feed. Source: RFC 4287; XML Base, section 4; RSS 2.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from typing import Final

from lxml import etree
from selectolax.lexbor import LexborHTMLParser

from minutch.charsets import Charset
from minutch.clock import http_time
from minutch.errors import ParseError, UrlError
from minutch.urls.resolve import Resolver

from .reading import (
    ATOM,
    CONTENT,
    DUBLIN_CORE,
    child,
    children,
    local_name,
    namespace,
    parse_xml,
    text_of,
)

# Turns the markup of titles and descriptions into text.

_INVISIBLE = ["script", "style", "template", "noscript"]
_INLINE = re.findall(
    r"\w+",
    "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark q s samp"
    " small span strike strong sub sup time tt u var wbr",
)
PLAIN, HTML = "text/plain", "text/html"
_TYPES = {"html": HTML, "xhtml": HTML, "text": PLAIN, "": PLAIN}
_BASE: Final = "{http://www.w3.org/XML/1998/namespace}base"
_RELATIONS: Final = "http://www.iana.org/assignments/relation/"


def plain_text(markup: str) -> str:
    """Returns the text of markup, blanks folded; a blank between blocks; names as characters."""
    # Most titles: no tree is made for them.
    if "<" not in markup and "&" not in markup:
        return " ".join(markup.split())
    tree = LexborHTMLParser(markup)
    body = tree.body
    if body is None:
        return ""
    tree.strip_tags(_INVISIBLE)
    tree.unwrap_tags(_INLINE)
    # Where an inline element was, one word would be two.
    body.merge_text_nodes()
    return " ".join(body.text(separator=" ").split())


@dataclass(slots=True)
class FeedEntry:
    """One entry: `content_type` is that of `content`, whose links are relative to `base` (empty: to
    the entry's own); times in ms since the epoch.
    """

    link: str = ""
    title: str = ""
    content: str = ""
    content_type: str = PLAIN
    base: str = ""
    source: str = ""
    """Where the content lies if the feed only names it (Atom's `content src`)."""
    authors: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    published: int | None = None
    updated: int | None = None

    @property
    def text(self) -> str:
        """The content without markup."""
        return plain_text(self.content) if self.content_type == HTML else self.content


@dataclass(slots=True)
class Feed:
    """A feed with its entries."""

    link: str = ""
    title: str = ""
    description: str = ""
    entries: list[FeedEntry] = field(default_factory=list)


def is_feed(root: etree._Element) -> bool:
    """Returns True if an element is the root of a feed."""
    return local_name(root) in ("rss", "feed") or (
        local_name(root) == "RDF" and child(root, "channel") is not None
    )


def read_feed(data: bytes, declared: Charset | None, url: str) -> Feed:
    """Returns the feed at a URL, whose header says `declared`. ParseError if it is none."""
    return feed_of(parse_xml(data, declared), url)


def feed_of(root: etree._Element, url: str) -> Feed:
    """Returns the feed below a root element. Raises ParseError if it is none."""
    try:
        document = Resolver(url)
    except UrlError as error:
        raise ParseError(f"a feed without a base: {error}") from error
    if local_name(root) == "feed":
        subtitle = _own(root, "subtitle")
        return Feed(
            _alternate(children(root, "link", namespace(root)), document),
            _readable(_own(root, "title")),
            _readable(subtitle if subtitle is not None else _own(root, "tagline")),
            [_atom_entry(entry, document) for entry in children(root, "entry", namespace(root))],
        )
    if not is_feed(root):
        raise ParseError(f"not a feed: the root element is {local_name(root)}")
    channel = child(root, "channel")
    head = root if channel is None else channel
    # RSS 1.0 has items beside the channel, all others within it.
    items = [*children(root, "item"), *(children(channel, "item") if channel is not None else ())]
    usual = PLAIN if local_name(root) == "RDF" or root.get("version") == "0.91" else "html"
    return Feed(
        _rss_link(head, document),
        plain_text(_own_text(head, "title")),
        plain_text(_markup(_own(head, "description"))),
        [_rss_entry(item, usual, document) for item in items],
    )


def _rss_entry(item: etree._Element, usual: str, document: Resolver) -> FeedEntry:
    """Returns an item; `usual` is the type of descriptions that name none: markup from RSS 0.92 on,
    as in ROME.
    """
    encoded, description = child(item, "encoded", CONTENT), _own(item, "description")
    # FeedParser asks for the description first.
    body = description if text_of(description) else encoded
    declared = (
        body.get("type", usual if body is description else "html") if body is not None else ""
    )
    kind = _media_type(declared)
    return FeedEntry(
        link=_rss_link(item, document) or _permalink(item),
        title=plain_text(_own_text(item, "title") or text_of(child(item, "title", DUBLIN_CORE))),
        content=_markup(body) if kind == HTML else text_of(body),
        content_type=kind,
        base=_base(body, document).base if next(_scopes(body), None) is not None else "",
        authors=[*_own_texts(item, "author"), *_texts(children(item, "creator", DUBLIN_CORE))],
        tags=list(_own_texts(item, "category")),
        published=_time(_own_text(item, "pubDate") or text_of(child(item, "date", DUBLIN_CORE))),
    )


def _rss_link(element: etree._Element, document: Resolver) -> str:
    """Returns the link of a channel or an item; that of Atom where it has none."""
    for link in children(element, "link", namespace(element)):
        written = text_of(link) or link.get("href", "").strip()
        if written:
            return _absolute(link, written, document)
    return _alternate(children(element, "link", ATOM), document)


def _permalink(item: etree._Element) -> str:
    """Returns the guid of an item if it is a URL."""
    guid = _own(item, "guid")
    # RSS 2.0: a guid is a permalink unless it says not to be one.
    if guid is None or guid.get("isPermaLink", "true").strip().lower() != "true":
        return ""
    written = text_of(guid)
    return written if written.lower().startswith(("http:", "https:")) else ""


def _alternate(links: Iterable[etree._Element], document: Resolver) -> str:
    """Returns the URL of the page that is the same in HTML, else of the first that is the same."""
    found = [
        link
        for link in links
        if link.get("rel", "alternate").strip().lower().removeprefix(_RELATIONS) == "alternate"
        and link.get("href", "").strip()
    ]
    # Stable: of two such links the first.
    found.sort(key=lambda link: "html" not in link.get("type", HTML))
    return _absolute(found[0], found[0].get("href", ""), document) if found else ""


def _atom_entry(entry: etree._Element, document: Resolver) -> FeedEntry:
    summary, content = _own(entry, "summary"), _own(entry, "content")
    # As FeedParser: ROME's description before its contents.
    body = summary if summary is not None else content
    names = (_own_text(author, "name") for author in children(entry, "author", namespace(entry)))
    terms = (term.get("term", "") for term in children(entry, "category", namespace(entry)))
    written = content.get("src", "").strip() if content is not None else ""
    source = _absolute(content, written, document) if content is not None and written else ""
    kind = _media_type(body.get("type", "") if body is not None and not body.get("src") else "")
    return FeedEntry(
        link=_alternate(children(entry, "link", namespace(entry)), document) or source,
        title=_readable(_own(entry, "title")),
        content=_markup(body) if kind == HTML else text_of(body),
        content_type=kind,
        base=_base(body, document).base,
        source=source,
        authors=[name for name in names if name],
        tags=[term for term in terms if term],
        published=_time(_own_text(entry, "published") or _own_text(entry, "issued")),
        updated=_time(_own_text(entry, "updated") or _own_text(entry, "modified")),
    )


def _own(element: etree._Element, name: str) -> etree._Element | None:
    """Returns the first child of a name in the namespace of its parent."""
    return child(element, name, namespace(element))


def _own_texts(element: etree._Element, name: str) -> Iterator[str]:
    return _texts(children(element, name, namespace(element)))


def _own_text(element: etree._Element, name: str) -> str:
    return next(_own_texts(element, name), "")


def _texts(elements: Iterable[etree._Element]) -> Iterator[str]:
    return filter(None, map(text_of, elements))


def _media_type(declared: str) -> str:
    name = declared.strip().lower()
    return _TYPES.get(name, name)


def _readable(construct: etree._Element | None) -> str:
    """Returns a text construct of Atom without markup (RFC 4287, section 3.1.1)."""
    if construct is None:
        return ""
    html = _media_type(construct.get("type", "")) == HTML
    return plain_text(_markup(construct)) if html else text_of(construct)


def _markup(body: etree._Element | None) -> str:
    """Returns the content of an element as HTML, whether it is text or elements."""
    if body is None:
        return ""
    if not len(body):
        return text_of(body)
    for part in body.iterdescendants():
        # html:p is p: prefixes mean nothing to a parser of HTML.
        part.tag = local_name(part)
    inner = (str(etree.tostring(part, encoding="unicode", method="html")) for part in body)
    return escape(body.text or "", quote=False) + "".join(inner)


def _scopes(element: etree._Element | None) -> Iterator[str]:
    """Yields the `xml:base` of an element and of those around it, from the inside; what is alone in
    an element counts as the element (the `div` of XHTML).
    """
    if element is None:
        return
    # RFC 4287, 3.1.1.3: content of XHTML is a single div.
    if len(element) == 1 and (inner := element[0].get(_BASE)):
        yield inner
    for each in (element, *element.iterancestors()):
        if base := each.get(_BASE):
            yield base


def _base(element: etree._Element | None, document: Resolver) -> Resolver:
    """Returns the base of an element's links; an `xml:base` that is no URL says nothing."""
    found = document
    # From the outside: an inner base is relative to the outer one (XML Base, 4).
    for base in reversed(tuple(_scopes(element))):
        try:
            found = found.based(base)
        except UrlError:
            continue
    return found


def _absolute(element: etree._Element, link: str, document: Resolver) -> str:
    """Returns the URL of a link in an element; empty if it is none."""
    try:
        return _base(element, document).resolve(link)
    except UrlError:
        return ""


def _time(text: str) -> int | None:
    """RFC 822 or ISO 8601 in ms since the epoch; None for anything else."""
    if not text:
        return None
    if (found := http_time(text)) is not None:
        return found
    try:
        time = datetime.fromisoformat(text)
        return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None
