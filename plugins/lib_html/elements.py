"""Reads which elements of a page count: those with links, those that end a line, those that are
skipped; and the links in values of attributes and headers, and pages within a page.

Properties: parser.html.form.use_action, parser.html.outlinks.ignore_tags,
parser.html.line.separators, parser.html.outlinks.htmlnode_metadata_name.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import unquote_to_bytes

import numpy as np
from selectolax.lexbor import LexborHTMLParser

from minutch.conf import Configuration, Settings, made_by, prop
from minutch.errors import UrlError
from minutch.kernels.textlinks import find_css_links, find_urls
from minutch.records.links import Outlink
from minutch.records.metadata import Metadata
from minutch.urls.resolve import Resolver, WhatwgResolver, resolved_page

from .tree import RENAMED

LINK_ATTRIBUTES: Final[Mapping[str, str]] = {
    "a": "href",
    "area": "href",
    "form": "action",
    "frame": "src",
    "iframe": "src",
    "script": "src",
    "link": "href",
    "img": "src",
    "source": "src",
}
"""Element → attribute that holds a link (LinkParams)."""
NEEDS_CONTENT: Final = frozenset(("a", "form"))
"""Elements whose link counts only if there is something inside."""
SILENT: Final = frozenset(("script", "style"))
"""Elements whose text is not the page's."""
NAME, CONTENT = "name", "content"
HEAD_ATTRIBUTES: Final = (NAME, CONTENT, "http-equiv", "href")
"""The attributes of meta and base elements that are read."""
_FOR_PROGRAMS: Final = {
    *("dns-prefetch", "preconnect"),  # hosts to connect to (HTML Standard, 4.6.7.3, 4.6.7.17)
    *("edituri", "https://api.w.org/", "hub", "pingback", "webmention", "wlwmanifest"),
    *("authorization_endpoint", "indieauth-metadata", "micropub", "microsub", "token_endpoint"),
    *("openid.delegate", "openid.server", "openid2.local_id", "openid2.provider"),
    *("edit", "edit-form", "edit-media"),
    *("self", "shortlink"),
}
"""Relations of a `link` to what is no page: interfaces of the site's software, editors, and other
addresses of the page itself. WordPress names six of them on each page.
"""
_DATA_TYPE: Final = re.compile(
    r"\s*(?:application/(?!feed\+json)(?:[\w.-]+\+)?json"
    r"|[\w.-]+/[\w.-]+\+oembed"
    r"|application/(?:opensearchdescription|rsd|wlwmanifest)\+xml|application/x-wiki)\s*(?:;|\Z)",
    re.IGNORECASE,
)
"""Media types in which only programs read a page: JSON that is no feed, oEmbed, the source of a
wiki's page to be edited, descriptions of services.
"""
_OTHER_FORM: Final = re.compile(
    r"\s*(?:application/xhtml\+xml|text/(?:html|markdown|plain))\s*(?:;|\Z)", re.I
)
"""Media types of an `alternate` that is the same page once more: a wiki's exports, versions to
print, Markdown. Of 1,497 pages of the open web 12 name one, and 346 name oEmbed.
"""
_NOFOLLOW: Final = re.compile(r"\bnofollow\b", re.IGNORECASE)


def link_attributes(conf: Configuration) -> dict[str, str]:
    """Returns the elements whose links count: parser.html.form.use_action,
    parser.html.outlinks.ignore_tags.
    """
    attributes = dict(LINK_ATTRIBUTES)
    use_action = conf.get_boolean("parser.html.form.use_action")
    forced = use_action and conf.get("parser.html.form.use_action") is not None
    if not use_action:
        del attributes["form"]
    for name in conf.get_strings("parser.html.outlinks.ignore_tags"):
        if not (forced and name == "form"):
            attributes.pop(name, None)
    return attributes | {RENAMED[name]: attributes[name] for name in RENAMED if name in attributes}


def _special(conf: Configuration) -> frozenset[str]:
    separators = conf.get_trimmed_strings("parser.html.line.separators")
    return frozenset(
        {"base", "body", "meta", "title", *SILENT, *link_attributes(conf), *separators}
    )


@dataclass(frozen=True, slots=True)
class Elements(Settings):
    """The elements that count, as configured."""

    link_attributes: Mapping[str, str] = made_by(link_attributes)
    separators: frozenset[str] = prop("parser.html.line.separators")
    interesting: frozenset[str] = made_by(_special)
    """All elements that are treated in a special way."""
    element_key: str = prop("parser.html.outlinks.htmlnode_metadata_name")
    """The key under which a link's metadata names its element; empty for none."""


@lru_cache(maxsize=1024)
def is_for_programs(relation: str, media_type: str) -> bool:
    """Returns True if what a `link` with this `rel` and `type` (empty where it has a language)
    names is no page of its own.
    """
    found = set(relation.lower().split())
    if not found or found == {"stylesheet"}:
        return False
    if found <= _FOR_PROGRAMS or _DATA_TYPE.match(media_type) is not None:
        return True
    # HTML Standard, 4.6.7.1: a type without a language is that of a reformulation.
    return found == {"alternate"} and _OTHER_FORM.match(media_type) is not None


def is_nofollow(relation: str) -> bool:
    """Returns True if a link with this `rel` must not be followed."""
    return _NOFOLLOW.search(relation) is not None


# Lists the kinds of links that Nutch does not take, and the elements and attributes that have
# them.
#
# Properties: parser.html.outlinks.browser turns all kinds but `program` and `text` on, which no
# browser follows; parser.html.outlinks.kinds names some of them, or takes some away (`-ping`).
# Nutch's own links are those of `elements`.

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


BROWSER_LINKS: Final[Mapping[str, LinkAttribute]] = {
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

KINDS: Final = frozenset(attribute.kind for attribute in BROWSER_LINKS.values()) | {
    "base",
    "comment",
    "data",
    "doctype",
    "empty",
    "frame",
    "header",
    "meta",
    "post",
    "program",
    "text",
}
"""All kinds; conf/nutch-default.xml says what they are."""


def kinds_of(conf: Configuration) -> frozenset[str]:
    """Returns the kinds that a configuration asks for. Raises ConfigError for one that does not
    exist.
    """
    kinds = set(KINDS - {"program", "text"}) if conf.get_boolean(BROWSER_PROPERTY) else set()
    for name in conf.get_trimmed_strings(KINDS_PROPERTY):
        kind = name.removeprefix("-")
        if kind not in KINDS:
            raise conf.wrong(KINDS_PROPERTY, f"some of {', '.join(sorted(KINDS))}", kind)
        (kinds.discard if name != kind else kinds.add)(kind)
    return frozenset(kinds)


# Finds links in the values of attributes and headers, in style sheets and in text, in linear time.
#
# Sources: HTML standard (srcset), CSS Syntax Level 3 (strings, url(), comments), RFC 8288 section
# 3 (Link).

LONGEST: Final = 8192
"""Characters of a link that is taken from a style sheet or a header."""

_SHORT: Final = 512
"""Bytes of a style that is looked through for a word before a kernel is called."""
_ROWS: Final = 64
"""Links of a style sheet that are found at a time."""
_BLANKS: Final = " \t\n\f\r"
_WIDTH, _HEIGHT = (rf"0*+[1-9][0-9]*+{letter}" for letter in "wh")
_DENSITY: Final = r"(?:[0-9]++(?:\.[0-9]++)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?x"
_DESCRIPTORS: Final = (
    rf"(?a:\s*+(?:{_WIDTH}(?:\s++{_HEIGHT})?|{_HEIGHT}\s++{_WIDTH}|{_DENSITY})?\s*+)(?=,|\Z)"
)
_CANDIDATE: Final = re.compile(
    rf"[\s,]*+(?:(\S++)(?:(?<=,)|{_DESCRIPTORS})|\S++(?:[^,(]|\([^)]*+(?:\)|\Z))*+)"
)
"""Without a URL if its descriptors are in error."""
_ESCAPE: Final = re.compile(r"\\(?:([0-9a-f]{1,6})\s?|(.))", re.IGNORECASE | re.DOTALL)
_IN_LINK_HEADER: Final = re.compile(
    rf"\s*+<([^<>]{{0,{LONGEST}}}+)>((?:[^,\"]++|\"(?:[^\"\\]++|\\.)*+(?:\"|\Z))*+),?", re.DOTALL
)
_LIKELY: Final = re.compile(r"(?:https?://|//?|\.\.?/)[\w~%-][^\s<>\"']*+", re.IGNORECASE)
_REFRESH: Final = re.compile(
    r"[ \t\n\f\r]*(?=[0-9.])(?P<seconds>[0-9]*)[0-9.]*"
    r"(?P<separator>[ \t\n\f\r]*[;,]|[ \t\n\f\r]+|)[ \t\n\f\r]*(?P<rest>.*)",
    re.DOTALL,
)
_REFRESH_URL: Final = re.compile(
    r"url[ \t\n\f\r]*=[ \t\n\f\r]*(?P<url>.*)", re.IGNORECASE | re.DOTALL
)
_MAX_INT: Final = (1 << 31) - 1
_MOST_DIGITS: Final = 11
_QUOTES: Final = ("'", '"')


def in_srcset(value: str) -> Iterator[str]:
    """Yields the URLs of the candidates; one whose descriptors are in error is none."""
    for url in _CANDIDATE.findall(value):
        if url:
            yield url.rstrip(",")


def in_list(value: str) -> Iterator[str]:
    """URLs between blanks or commas."""
    return iter(value.replace(",", " ").split())


def in_css(style: str) -> Iterator[str]:
    """Finds the links of url() and @import, not those in comments and other strings."""
    return in_css_bytes(style.encode("utf-8", "surrogatepass"))


def in_css_bytes(data: bytes) -> Iterator[str]:
    """The same of a style in UTF-8."""
    if b"(" not in data and b"@" not in data:
        return
    if len(data) <= _SHORT and b"@" not in data and b"url" not in data.lower():
        return
    page, place = np.frombuffer(data, np.uint8), np.zeros(1, np.int64)
    rows = np.empty((_ROWS, 2), np.int64)
    count = _ROWS
    while count == _ROWS:
        count = find_css_links(page, place, rows)
        for start, end in rows[:count].tolist():
            text = data[start:end].decode("utf-8", "surrogatepass")
            if len(text) <= LONGEST:
                yield _unescaped(text).strip(_BLANKS)


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(match: re.Match[str]) -> str:
    code = int(match[1] or "0", 16)
    if not match[1]:
        return "" if match[2] == "\n" else match[2]
    return chr(code) if 0 < code < 0xD800 or 0xDFFF < code < 0x110000 else "\ufffd"


def in_link_header(value: str) -> Iterator[tuple[str, str]]:
    """Target and parameters of each link in a Link header."""
    at = 0
    while (match := _IN_LINK_HEADER.match(value, at)) is not None:
        yield match[1].strip(), match[2]
        at = match.end()


def read_refresh(value: str) -> tuple[int, str] | None:
    """Seconds and target (empty for the page itself) of a refresh, in an element or a header; None
    if it is none.

    Source: HTML standard, "shared declarative refresh steps".
    """
    match = _REFRESH.fullmatch(value)
    if match is None or (match["rest"] and not match["separator"]):
        return None
    target = match["rest"]
    named = _REFRESH_URL.match(target)
    target = named["url"] if named else target
    if target[:1] in _QUOTES:
        target = target[1:].partition(target[0])[0]
    seconds = match["seconds"].lstrip("0")[:_MOST_DIGITS] or "0"
    return min(int(seconds), _MAX_INT), target.strip()


def is_likely(value: str) -> bool:
    """Returns True if an arbitrary value looks like a URL or a path."""
    return _LIKELY.fullmatch(value) is not None


def in_policy(policy: str) -> Iterator[str]:
    """Finds the URLs that a Content-Security-Policy has reports sent to."""
    for directive in policy.split(";"):
        name, *values = directive.split() or [""]
        if name.lower() == "report-uri":
            yield from values


def in_text(text: bytes) -> Iterator[str]:
    """URLs of the web in running text, in UTF-8; a path without a scheme is hardly ever meant as
    one.
    """
    for start, end in places_of_urls(text):
        yield text[start:end].decode()


def places_of_urls(text: bytes | bytearray) -> Iterator[list[int]]:
    """Where they begin and end. Only what stands around `://` is looked at, up to characters that
    no link has.
    """
    if b"://" not in text:
        return
    page, place = np.frombuffer(text, np.uint8), np.zeros(1, np.int64)
    rows = np.empty((_ROWS, 2), np.int64)
    while place[0] < len(text):
        count = find_urls(page, place, rows)
        if count < 0:
            rows = np.empty((2 * len(rows), 2), np.int64)
        yield from rows[: max(count, 0)].tolist()


# Finds pages within a page.

_FRAMES: Final = re.compile(
    rb"<frame\s(?:[^<>\"']++|\"[^\"]*+\"|'[^']*+')*+(?:>|\Z|(?=<)|[\"'].*)",
    re.IGNORECASE | re.DOTALL,
)
_PAGE: Final = re.compile(
    r"data:(?:image/svg\+xml|text/html)([^,]{0,99}+),(.*)", re.IGNORECASE | re.DOTALL
)


def in_conditional_comments(data: bytes) -> Iterator[bytes]:
    """Yields the markup in comments that some browsers of old read: `<!--[if IE]>…<![endif]-->`."""
    start = data.find(b"<!--[if")
    while start >= 0:
        end = data.find(b"-->", start)
        if end < 0:
            return
        _, _, markup = data[start:end].partition(b"]>")
        yield markup.removesuffix(b"<![endif]")
        start = data.find(b"<!--[if", end)


def lost_frames(data: bytes, document: LexborHTMLParser) -> Iterator[bytes]:
    """Yields the frames of a page whose frameset browsers ignore, as it comes too late."""
    frames = _FRAMES.findall(data)
    if frames and document.css_first("frame") is None:
        yield b"<frameset>" + b"".join(frames)


def in_data_url(url: str) -> Iterator[bytes]:
    """Yields the page, or the image of markup, that a data: URL holds (RFC 2397)."""
    match = _PAGE.match(url)
    if match is None:
        return
    data = unquote_to_bytes(match[2])
    if match[1].lower().endswith(";base64"):
        with suppress(ValueError):
            yield b64decode(data)
    else:
        yield data


# Finds links in the headers that came with a page: Link, Refresh and Content-Location.
#
# They are relative to the page's URL, whatever its base element says. Sources: RFC 8288 section
# 3.2, RFC 9110 section 8.7, HTML standard ("shared declarative refresh steps").

_RELATION, _TYPE, _TONGUE = (
    re.compile(rf";\s*{name}\s*=\s*(?:\"([^\"]*)\"|([^\s;,\"]+))", re.IGNORECASE)
    for name in ("rel", "type", "hreflang")
)


def header_links(
    metadata: Metadata, own: Resolver | WhatwgResolver, kinds: Container[str]
) -> list[Outlink]:
    """Returns the links with absolute URLs, each target once, if these are among the `kinds` that
    are wanted; `own` knows the page's URL.
    """
    if "header" not in kinds:
        return []
    links = []
    for target in filter(None, dict.fromkeys(_targets(metadata, takes_all="program" in kinds))):
        with suppress(UrlError):
            links.append(Outlink(resolved_page(own, target)))
    return links


def relation_of(parameters: str) -> str:
    """Returns the relations among the parameters of a link in a header; "" if it has none."""
    return _parameter(_RELATION, parameters)


def _parameter(name: re.Pattern[str], parameters: str) -> str:
    match = name.search(parameters)
    return (match[1] or match[2] or "") if match else ""


def _targets(metadata: Metadata, *, takes_all: bool) -> Iterator[str]:
    headers, refreshes, places = map(metadata.field_values, ("Link", "Refresh", "Content-Location"))
    for value in headers:
        for target, rest in in_link_header(value):
            relation = relation_of(rest)
            media_type = "" if _TONGUE.search(rest) else _parameter(_TYPE, rest)
            if (takes_all or not is_for_programs(relation, media_type)) and not is_nofollow(rest):
                yield target
    for value in refreshes:
        if (found := read_refresh(value)) is not None:
            yield found[1]
    yield from map(str.strip, places)
