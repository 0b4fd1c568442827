"""Makes the member `content` in the metadata of 2012 (HTML pages, feeds). Pure: no I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import unescape
from typing import Any, Final

from lxml import etree
from selectolax.lexbor import LexborHTMLParser, LexborNode

from minutch.clock import http_time
from minutch.cycle.sitemap.sitemapurls import iso_date
from minutch.errors import ParseError, UrlError
from minutch.urls.resolve import Resolver

# Makes the metadata of 2012 of an HTML page: title, meta elements, links with their attributes.
# Pure: no I/O.
#
#     a, area, link                 type, every other attribute, text, href
#     frame, iframe, img, script    the same; href is their src
#
# `type` is the element's name, or the attribute `type` of a link or script. URLs are absolute, in
# Nutch's form; links without a target (`javascript:`, `data:`, invalid URLs) are omitted. A meta
# element has all its attributes. An attribute without a value is "". As in the original files, a
# page without meta elements, links or title has no such member.

_TARGETS: Final = {
    "a": "href", "area": "href", "link": "href", "frame": "src", "iframe": "src", "img": "src",
    "script": "src",
}  # fmt: skip
"""Element → attribute that has the target."""
_LINKS: Final = ",".join(f"{tag}[{attribute}]" for tag, attribute in _TARGETS.items())
_TYPED: Final = ("link", "script")
_WITH_TEXT: Final = ("a", "iframe")
_OTHER_SCHEME: Final = re.compile(r"(?!https?:|ftp:|file:)[a-z][a-z0-9+.-]*:\S", re.IGNORECASE)
_NOWHERE: Final = ("javascript:", "data:", "about:")

Json = dict[str, Any]
_TAGS: Final = re.compile(r"<[^>]*>")
_ATOM_ROLES: Final = {"alternate": "link", "self": "self", "replies": "replies"}
_LINK_ATTRIBUTES: Final = ("type", "href", "rel", "title")
_ROOTS: Final = {"rss": "rss", "RDF": "rss", "feed": "atom"}


def html_doc(tree: LexborHTMLParser, url: str) -> Json:
    """Returns the member `content` of a page at `url`."""
    doc: Json = {"type": "html-doc"}
    title = tree.css_first("title")
    if title is not None:
        doc["title"] = title.text()
    meta_tags = [_attributes(node) for node in tree.css("meta")]
    if meta_tags:
        doc["meta_tags"] = meta_tags
    links = list(links_of(tree, url))
    if links:
        doc["links"] = links
    return doc


def description_of(doc: Json) -> str:
    """Returns the page's meta description."""
    for tag in doc.get("meta_tags", ()):
        if tag.get("name", "").lower() == "description":
            return str(tag.get("content", ""))
    return ""


def links_of(tree: LexborHTMLParser, url: str) -> Iterator[Json]:
    """Yields the links, in document order."""
    resolver = _resolver(tree, url)
    if resolver is None:
        return
    for node in tree.css(_LINKS):
        link = _link(node, resolver)
        if link is not None:
            yield link


def _resolver(tree: LexborHTMLParser, url: str) -> Resolver | None:
    try:
        resolver = Resolver(url)
    except UrlError:
        return None
    base = tree.css_first("base[href]")
    if base is not None:
        try:
            return resolver.based(base.attributes["href"] or "")
        except UrlError:
            pass
    return resolver


def _link(node: LexborNode, resolver: Resolver) -> Json | None:
    tag = node.tag or ""
    attributes = _attributes(node)
    target = attributes.pop(_TARGETS[tag], "").strip()
    if target[:11].lower().startswith(_NOWHERE):
        return None
    href = _absolute(target, resolver)
    if href is None:
        return None
    own_type = attributes.pop("type", "")
    link: Json = {"type": (own_type if tag in _TYPED else "") or tag}
    link.update(attributes)
    link["text"] = node.text() if tag in _WITH_TEXT else ""
    link["href"] = href
    return link


def _absolute(target: str, resolver: Resolver) -> str | None:
    """Resolves a target; unchanged if Java doesn't know its scheme, None if it is no URL."""
    try:
        return resolver.resolve(target)
    except UrlError:
        return target if _OTHER_SCHEME.match(target) else None


def _attributes(node: LexborNode) -> dict[str, str]:
    return {name: value or "" for name, value in node.attributes.items()}


# Makes the metadata of 2012 of a feed: `rss-feed` and `atom-feed`, with their items. Pure: no I/O.
#
#     rss-feed     title, link, description, updated, categories, generator, ttl, items
#       item       title, description, link, author, categories, comments, published, guid, content
#     atom-feed    title, link, authors, generator, updated, published, categories, items
#       item       title, description, published, updated, link, self, replies, authors, categories,
#                  content
#
# Times are milliseconds; `updated` of RSS is the later of lastBuildDate and pubDate. A link has
# type, href, rel, title; several of one kind are an array. `content` has the links in the item's
# text. Missing members are omitted, except items, and an Atom feed's categories. RSS is 0.9x, 2.0
# and 1.0 (RDF), where dc:subject, dc:creator and dc:date stand for categories, author and date.
# Members are those of both versions of Common Crawl's description, and of its samples.


def is_feed(data: bytes) -> bool:
    """Returns whether the root element of an XML document is that of a feed."""
    head = re.sub(rb"(?s)<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^>]*>", b"", data[:4096]).lstrip(
        b"\xef\xbb\xbf \t\r\n"
    )
    match = re.match(rb"<(?:[\w-]+:)?(\w+)", head)
    return match is not None and match[1].decode("ascii", "replace") in _ROOTS


def feed_doc(data: bytes, url: str) -> tuple[Json, str]:
    """Returns the member `content` of a feed in UTF-8, and its text. Raises ParseError."""
    parser = etree.XMLParser(
        encoding="utf-8",
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        recover=True,
        remove_comments=True,
    )
    try:
        root = etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise ParseError(f"not XML: {error}") from error
    kind = _ROOTS.get(_name(root)) if root is not None else None
    if kind is None:
        raise ParseError("no feed")
    doc = _rss(root, url) if kind == "rss" else _atom(root, url)
    return doc, _text(doc)


def _rss(root: etree._Element, url: str) -> Json:
    channel = next(_all(root, "channel"), root)
    dates = [
        date
        for name in ("lastBuildDate", "pubDate", "date")
        if (date := _date(_child_text(channel, name))) is not None
    ]
    ttl = _child_text(channel, "ttl")
    doc: Json = {
        "type": "rss-feed",
        "title": _child_text(channel, "title"),
        "link": _href(_child_text(channel, "link")),
        "description": _child_text(channel, "description"),
        "updated": max(dates, default=None),
        "categories": _texts(channel, "category", "subject") or None,
        "generator": _child_text(channel, "generator"),
        "ttl": int(ttl) if ttl and ttl.isascii() and ttl.isdigit() and len(ttl) < 10 else None,
    }
    items = [*_all(channel, "item"), *(_all(root, "item") if root is not channel else ())]
    doc["items"] = [_rss_item(item, url) for item in items]
    return _without_none(doc)


def _rss_item(item: etree._Element, url: str) -> Json:
    published = [_date(_child_text(item, name)) for name in ("pubDate", "date")]
    return _without_none(
        {
            "title": _child_text(item, "title"),
            "description": _stripped(_child_text(item, "description")),
            "link": _href(_child_text(item, "link")),
            "author": _child_text(item, "author") or _child_text(item, "creator"),
            "categories": _texts(item, "category", "subject") or None,
            "comments": _child_text(item, "comments"),
            "published": next((date for date in published if date is not None), None),
            "guid": _child_text(item, "guid"),
            "content": _content(
                [_child_text(item, "encoded"), _child_text(item, "description")], url
            ),
        }
    )


def _atom(root: etree._Element, url: str) -> Json:
    doc: Json = {
        "type": "atom-feed",
        "title": _stripped(_child_text(root, "title")),
        "link": _atom_links(root).get("link"),
        "authors": _people(root),
        "generator": _child_text(root, "generator"),
        "updated": _date(_child_text(root, "updated")),
        "categories": _terms(root),
        "published": _date(_child_text(root, "published")),
        "items": [_atom_item(entry, url) for entry in _all(root, "entry")],
    }
    return _without_none(doc)


def _atom_item(entry: etree._Element, url: str) -> Json:
    links = _atom_links(entry)
    return _without_none(
        {
            "title": _child_text(entry, "title"),
            "description": _stripped(_child_text(entry, "summary")),
            "published": _date(_child_text(entry, "published") or _child_text(entry, "issued")),
            "updated": _date(_child_text(entry, "updated") or _child_text(entry, "modified")),
            **{role: links.get(role) for role in ("link", "self", "replies")},
            "authors": _people(entry),
            "categories": _terms(entry) or None,
            "content": _content([_markup(entry, "content"), _markup(entry, "summary")], url),
        }
    )


def _atom_links(element: etree._Element) -> Json:
    """Returns links by role; several of one role are a list."""
    found: dict[str, list[Json]] = {}
    for link in _all(element, "link"):
        attributes = {name: value for name in _LINK_ATTRIBUTES if (value := link.get(name))}
        role = _ATOM_ROLES.get(attributes.setdefault("rel", "alternate"))
        if role and "href" in attributes:
            found.setdefault(role, []).append(attributes)
    return {role: links[0] if len(links) == 1 else links for role, links in found.items()}


def _people(element: etree._Element) -> list[Json] | None:
    names = {"name": "name", "url": "uri", "email": "email"}
    people = [
        {
            key: value
            for key, name in names.items()
            if (value := _child_text(author, name) or (key == "url" and _child_text(author, "url")))
        }
        for author in _all(element, "author")
    ]
    return [person for person in people if person] or None


def _terms(element: etree._Element) -> list[str]:
    return [
        term
        for category in _all(element, "category")
        if (term := category.get("term") or _inner(category))
    ]


def _content(markups: Iterable[str | None], url: str) -> Json | list[Json] | None:
    """Returns the links in an item's texts; an array if both texts have some."""
    found = []
    for markup in dict.fromkeys(filter(None, markups)):
        if "<" in markup:
            links = list(links_of(LexborHTMLParser(markup), url))
            if links:
                found.append({"type": "html-doc", "links": links})
    return None if not found else found[0] if len(found) == 1 else found


def _text(doc: Json) -> str:
    """Returns the readable text of a feed."""
    lines = [doc.get("title"), doc.get("description")]
    for item in doc["items"]:
        lines += [item.get("title"), item.get("description")]
    return "\n".join(line for line in (_stripped(text) for text in lines) if line)


# -- XML -------------------------------------------------------------------------------------------


def _name(element: etree._Element) -> str:
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def _all(element: etree._Element, name: str) -> Iterator[Any]:
    return (child for child in element if _name(child) == name)


def _inner(element: etree._Element) -> str:
    return "".join(map(str, element.itertext())).strip()


def _child_text(element: etree._Element, name: str) -> str | None:
    """Returns the text of the first non-empty child of a name; None if there is none."""
    return next((text for child in _all(element, name) if (text := _inner(child))), None)


def _markup(element: etree._Element, name: str) -> str | None:
    """Returns the markup in the first child of a name, as text or elements (Atom's xhtml)."""
    child = next(_all(element, name), None)
    if child is None:
        return None
    if len(child):
        return "".join(etree.tostring(each, encoding="unicode") for each in child)
    return _inner(child) or None


def _texts(element: etree._Element, *names: str) -> list[str]:
    return [text for name in names for child in _all(element, name) if (text := _inner(child))]


def _date(text: str | None) -> int | None:
    """Parses a date of RSS or Atom; None for anything else."""
    if text is None:
        return None
    found = iso_date(text)
    return http_time(text) if found is None else found


def _href(url: str | None) -> Json | None:
    return {"href": url} if url else None


def _stripped(markup: str | None) -> str | None:
    """Removes tags from markup."""
    return unescape(_TAGS.sub("", markup)).strip() if markup else markup


def _without_none(members: Json) -> Json:
    """Removes members that are None."""
    return {name: value for name, value in members.items() if value is not None}
