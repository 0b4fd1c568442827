"""Reads RSS (0.9 to 2.0, including RDF) and Atom as one kind of feed.

    RSS     channel: title, link, description; item: title, link (or guid), description,
            content:encoded, author or dc:creator, category, pubDate or dc:date
    Atom    feed: title, link, subtitle; entry: title, link rel=alternate, summary, content,
            author/name, category/@term, published, updated

Elements are recognized by their local names, since feeds in the wild use any namespace.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from lxml import etree

from minutch.errors import ParseError

from .reading import child, children, local_name, parse_xml, text_of

PLAIN, HTML = "text/plain", "text/html"
_TYPES = {"html": HTML, "xhtml": HTML, "text": PLAIN, "": PLAIN}


@dataclass(slots=True)
class FeedEntry:
    """One entry: `content_type` is that of `content`; times in ms since the epoch."""

    link: str = ""
    title: str = ""
    content: str = ""
    content_type: str = PLAIN
    authors: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    published: int | None = None
    updated: int | None = None


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


def read_feed(data: bytes, charset: str | None = None) -> Feed:
    """Returns the feed in a document. Raises ParseError if it is none."""
    return feed_of(parse_xml(data, charset))


def feed_of(root: etree._Element) -> Feed:
    """Returns the feed below a root element. Raises ParseError if it is none."""
    if local_name(root) == "feed":
        return _atom(root)
    if not is_feed(root):
        raise ParseError(f"not a feed: the root element is {local_name(root)}")
    channel = child(root, "channel")
    head = root if channel is None else channel
    items = [*children(root, "item"), *(children(channel, "item") if channel is not None else ())]
    feed = Feed(
        text_of(child(head, "link")),
        text_of(child(head, "title")),
        text_of(child(head, "description")),
    )
    usual = PLAIN if local_name(root) == "RDF" or root.get("version") == "0.91" else "html"
    feed.entries = [_rss_entry(item, usual) for item in items]
    return feed


def _rss_entry(item: etree._Element, usual: str) -> FeedEntry:
    """Returns an item; `usual` is the type of descriptions that name none: markup from RSS 0.92 on,
    as in ROME.
    """
    encoded, description = child(item, "encoded"), child(item, "description")
    body = description if text_of(description) else encoded
    declared = (
        body.get("type", usual if body is description else "html") if body is not None else ""
    )
    return FeedEntry(
        link=text_of(child(item, "link")) or _permalink(item),
        title=text_of(child(item, "title")),
        content=text_of(body),
        content_type=_TYPES.get(declared, declared),
        authors=[text for name in ("author", "creator") for text in _texts(item, name)],
        tags=list(_texts(item, "category")),
        published=_time(text_of(child(item, "pubDate")) or text_of(child(item, "date"))),
    )


def _permalink(item: etree._Element) -> str:
    guid = child(item, "guid")
    return text_of(guid) if guid is not None and guid.get("isPermaLink", "true") == "true" else ""


def _texts(element: etree._Element, name: str) -> Iterator[str]:
    return filter(None, (text_of(found) for found in children(element, name)))


def _atom(root: etree._Element) -> Feed:
    title = text_of(child(root, "title"))
    feed = Feed(
        _atom_link(root), title, text_of(child(root, "subtitle")) or text_of(child(root, "tagline"))
    )
    feed.entries = [_atom_entry(entry) for entry in children(root, "entry")]
    return feed


def _atom_link(element: etree._Element) -> str:
    links = (
        link for link in children(element, "link") if link.get("rel", "alternate") == "alternate"
    )
    return next((link.get("href", "").strip() for link in links), "")


def _atom_entry(entry: etree._Element) -> FeedEntry:
    summary, content = child(entry, "summary"), child(entry, "content")
    body = summary if summary is not None else content
    declared = body.get("type", "") if body is not None else ""
    names = (text_of(child(author, "name")) for author in children(entry, "author"))
    return FeedEntry(
        link=_atom_link(entry),
        title=text_of(child(entry, "title")),
        content=_markup(body) if declared == "xhtml" else text_of(body),
        content_type=_TYPES.get(declared, declared),
        authors=[name for name in names if name],
        tags=[
            tag
            for tag in (category.get("term", "") for category in children(entry, "category"))
            if tag
        ],
        published=_time(text_of(child(entry, "published")) or text_of(child(entry, "issued"))),
        updated=_time(text_of(child(entry, "updated")) or text_of(child(entry, "modified"))),
    )


def _markup(body: etree._Element | None) -> str:
    """Returns the content of an element, as markup."""
    if body is None:
        return ""
    inner = (str(etree.tostring(part, encoding="unicode", method="html")) for part in body)
    return (body.text or "") + "".join(inner)


def _time(text: str) -> int | None:
    """RFC 822 or ISO 8601 in ms since the epoch; None for anything else."""
    if not text:
        return None
    try:
        time = (
            parsedate_to_datetime(text)
            if text[:1].isalpha() or " " in text
            else datetime.fromisoformat(text)
        )
    except (ValueError, TypeError, IndexError):
        return None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return int(time.timestamp() * 1000)
