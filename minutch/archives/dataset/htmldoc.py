"""Makes the metadata of 2012 of an HTML page: title, meta elements, links with their attributes.
Pure: no I/O.

    a, area, link                 type, every other attribute, text, href
    frame, iframe, img, script    the same; href is their src

`type` is the element's name, or the attribute `type` of a link or script. URLs are absolute, in
Nutch's form; links without a target (`javascript:`, `data:`, invalid URLs) are omitted. A meta
element has all its attributes. An attribute without a value is "". As in the original files, a page
without meta elements, links or title has no such member.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from minutch.errors import UrlError
from minutch.urls.resolve import Resolver

_TARGETS: Final = {
    "a": "href",
    "area": "href",
    "link": "href",
    "frame": "src",
    "iframe": "src",
    "img": "src",
    "script": "src",
}
"""Element → attribute that has the target."""
_LINKS: Final = ",".join(f"{tag}[{attribute}]" for tag, attribute in _TARGETS.items())
_TYPED: Final = ("link", "script")
_WITH_TEXT: Final = ("a", "iframe")
_OTHER_SCHEME: Final = re.compile(r"(?!https?:|ftp:|file:)[a-z][a-z0-9+.-]*:\S", re.IGNORECASE)
_NOWHERE: Final = ("javascript:", "data:", "about:")

Json = dict[str, Any]


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
    """Resolves a target; returns it unchanged if its scheme is unknown to Java, None if it is no
    URL.
    """
    try:
        return resolver.resolve(target)
    except UrlError:
        return target if _OTHER_SCHEME.match(target) else None


def _attributes(node: LexborNode) -> dict[str, str]:
    return {name: value or "" for name, value in node.attributes.items()}
