"""Lists the kinds of links that Nutch does not take, and the elements and attributes that have
them.

Properties: parser.html.outlinks.browser turns all kinds but `text` on, which no browser follows;
parser.html.outlinks.kinds names some
of them, or takes some away (`-ping`). Nutch's own links are those of `elements`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from minutch.conf import Configuration

BROWSER_PROPERTY: Final = "parser.html.outlinks.browser"
KINDS_PROPERTY: Final = "parser.html.outlinks.kinds"

URL, URLS, SRCSET, CSS, MARKUP, LIKELY = "url", "urls", "srcset", "css", "markup", "likely"
"""What an attribute holds: a URL; some of them, between blanks or commas; candidates with
descriptors; a style; a page; anything, that counts if it looks like a URL."""


class LinkAttribute(NamedTuple):
    """An attribute that holds links, in some elements or (without names) in all."""

    kind: str
    holds: str
    elements: frozenset[str]


def _place(kind: str, holds: str, elements: str = "") -> LinkAttribute:
    return LinkAttribute(kind, holds, frozenset(elements.split()))


LINK_ATTRIBUTES: Final[Mapping[str, LinkAttribute]] = {
    "action": _place("form", URL, "isindex"),
    "archive": _place("media", URLS, "applet object"),
    "background": _place("background", URL),
    "cite": _place("cite", URL, "blockquote q del ins"),
    "codebase": _place("media", URL, "applet object"),
    "data": _place("media", URL, "object"),
    "dynsrc": _place("media", URL, "img"),
    "formaction": _place("form", URL, "button input"),
    "href": _place("svg", URL, "feimage image use"),
    "imagesrcset": _place("srcset", SRCSET, "link"),
    "implementation": _place("media", URL, "import"),
    "longdesc": _place("longdesc", URL, "frame iframe img x-iframe"),
    "lowsrc": _place("media", URL, "img"),
    "manifest": _place("manifest", URL, "html"),
    "ping": _place("ping", URLS, "a area"),
    "poster": _place("media", URL, "video"),
    "profile": _place("profile", URLS, "head"),
    "src": _place("media", URL, "audio bgsound embed input track video"),
    "srcdoc": _place("srcdoc", MARKUP, "iframe x-iframe"),
    "srcset": _place("srcset", SRCSET, "img source"),
    "style": _place("css", CSS),
    "value": _place("media", LIKELY, "param"),
    "xlink:href": _place("svg", URL),
}
"""Attribute → what it may hold. Others need a look at their element: `browserlinks` has them."""

KINDS: Final = frozenset(attribute.kind for attribute in LINK_ATTRIBUTES.values()) | {
    "base",
    "comment",
    "data",
    "doctype",
    "empty",
    "frame",
    "header",
    "meta",
    "post",
    "text",
}
"""All kinds; conf/nutch-default.xml says what they are."""


def kinds_of(conf: Configuration) -> frozenset[str]:
    """Returns the kinds that a configuration asks for. Raises ConfigError for one that does not
    exist.
    """
    kinds = set(KINDS - {"text"}) if conf.get_boolean(BROWSER_PROPERTY) else set()
    for name in conf.get_trimmed_strings(KINDS_PROPERTY):
        kind = name.removeprefix("-")
        if kind not in KINDS:
            raise conf.wrong(KINDS_PROPERTY, f"some of {', '.join(sorted(KINDS))}", kind)
        (kinds.discard if name != kind else kinds.add)(kind)
    return frozenset(kinds)
