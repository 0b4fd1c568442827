"""Finds links that a browser follows or loads and Nutch does not, in a second pass over the tree,
if configured.

Each is one of the KINDS of `elements`. They come after the page's other links, each target once,
without an anchor. As in the first walk, an element with rel=nofollow is passed over, and so is one
that parser.html.outlinks.ignore_tags names. Pages within a page (srcdoc, conditional comments,
data: URLs) give all their links, `DEEPEST` levels down. Of Nutch's own, hosts to connect to
(preconnect, dns-prefetch) are left out: no browser asks them for a page.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from typing import Final, NamedTuple
from urllib.parse import unquote_to_bytes

import numpy as np
from selectolax.lexbor import LexborHTMLParser, LexborNode

from minutch.conf import Configuration
from minutch.errors import ParseError
from minutch.hadoop.formats.javaio import encode_text
from minutch.kernels import occurrences as kernels
from minutch.kernels import scan
from minutch.kernels.html import NUMBERED_NAMES, SHORT_NAME
from minutch.records.links import Outlink, OutlinkRun

from .elements import (
    BROWSER_LINKS,
    CSS,
    LIKELY,
    MARKUP,
    SRCSET,
    URL,
    URLS,
    Elements,
    LinkAttribute,
    in_css,
    in_list,
    in_policy,
    in_srcset,
    in_text,
    is_hint,
    is_likely,
    is_nofollow,
    kinds_of,
    read_refresh,
)
from .tree_reader import attribute_numbers
from .walk import ParsedMarkup

# Finds the elements of a page that may have a link which only browsers follow.
#
# Lexbor takes as long to look for what a page has not as for what it has, and there are fifty
# selectors. So a kernel says in one walk over the tree which of their elements and attributes
# there are; then only the selectors of these are asked, in the head alone if there is nothing of
# the kind elsewhere. Where the kernel can't be used (`tree_reader`), all are.

_EMPTY: Final = "a"
"""The element that counts by itself if there is nothing in it."""
_IN_HEAD: Final = frozenset(("base", "meta", "style"))
"""Elements that count by themselves and hardly stand anywhere but in the head."""


class _Selector(NamedTuple):
    """A selector in CSS, with the element and the attribute that it needs ("": none)."""

    css: str
    element: str
    attribute: str = ""


class Candidates:
    """Finds the elements for some attributes that may have links."""

    def __init__(self, places: Mapping[str, LinkAttribute]) -> None:
        self._selectors = list(_selectors(places))
        self.all = ", ".join(selector.css for selector in self._selectors)
        self._elements = sorted({one.element for one in self._selectors} - {""})
        self._attributes = sorted({one.attribute for one in self._selectors} - {""})
        self._chosen = lru_cache(maxsize=1024)(self._choose)
        self._names: tuple[kernels.Names, kernels.Names] | None = None
        numbers = attribute_numbers()
        fits = all(len(name) <= SHORT_NAME for name in (*self._elements, *self._attributes))
        if numbers is not None and fits:
            self._names = (
                _names(self._elements, _element_numbers(self._elements)),
                _names(self._attributes, numbers),
            )

    def of(self, document: LexborHTMLParser) -> list[LexborNode]:
        """Returns the elements, in the order of the page."""
        root, body = document.root, document.body
        if root is None:
            return []
        if self._names is None:
            return document.css(self.all)
        selector, is_for_head = self._chosen(*self._seen(root))
        if not selector:
            return []
        if is_for_head and body is not None and not self._chosen(*self._seen(body))[0]:
            head = document.head
            return [] if head is None else head.css(selector)
        return document.css(selector)

    def _seen(self, node: LexborNode) -> tuple[bytes, bytes]:
        """Returns which of the names a subtree has, a word for each."""
        assert self._names is not None
        elements, attributes = (
            names._replace(seen=np.zeros(len(names.kinds), np.int64)) for names in self._names
        )
        kernels.mark_names(node.mem_id, elements, attributes)
        return elements.seen.tobytes(), attributes.seen.tobytes()

    def _choose(self, elements: bytes, attributes: bytes) -> tuple[str, bool]:
        """Returns the selectors for what occurs, and whether that is of the head by its nature."""
        seen = {""}
        for names, words in ((self._elements, elements), (self._attributes, attributes)):
            seen.update(
                name
                for name, is_there in zip(names, np.frombuffer(words, np.int64), strict=True)
                if is_there
            )
        chosen = [one for one in self._selectors if {one.element, one.attribute} <= seen]
        return (
            ", ".join(one.css for one in chosen),
            all(one.element in _IN_HEAD and not one.attribute for one in chosen),
        )


def _selectors(places: Mapping[str, LinkAttribute]) -> Iterator[_Selector]:
    """Yields the selectors of all elements that may have links; of what is in svg or math, those of
    the outermost element.
    """
    yield _Selector(f"{_EMPTY}:empty", _EMPTY)
    for name in ("base", "form", "math", "meta", "style", "svg"):
        yield _Selector(name, name)
    for name in ("src", "data"):
        yield _Selector(f"[{name}^='data:' i]", "", name)
    for name, place in places.items():
        if ":" not in name:
            held = ("*='('", "*='@'") if place.holds == CSS else ("",)
            for element in place.elements or ("",):
                for value in held:
                    css = f"{element}[{name}{value}]"
                    yield _Selector(css, "" if element == _EMPTY else element, name)


def _element_numbers(names: Sequence[str]) -> dict[str, int]:
    """Returns Lexbor's numbers of elements, where it has one."""
    document = LexborHTMLParser("")
    found = {name: document.create_node(name).tag_id for name in names}
    return {name: number for name, number in found.items() if number < NUMBERED_NAMES}


def _names(names: Sequence[str], numbers: Mapping[str, int]) -> kernels.Names:
    """Returns names as the kernel takes them."""
    slots = np.full(NUMBERED_NAMES, -1, np.int64)
    for place, name in enumerate(names):
        if name in numbers:
            slots[numbers[name]] = place
    padded = b"".join(name.encode().ljust(SHORT_NAME, b"\0") for name in names)
    return kernels.Names(
        slots,
        np.frombuffer(padded, np.uint8).reshape(-1, SHORT_NAME),
        np.array([*map(len, names)], np.int64),
        np.array(
            [kernels.IF_EMPTY if name == _EMPTY else kernels.ALWAYS for name in names], np.int64
        ),
        np.zeros(len(names), np.int64),
    )


DEEPEST: Final = 3
"""Levels of pages within pages."""
_HEAD: Final = 4096
"""Bytes in which a document type may stand."""

_DOCTYPE: Final = re.compile(
    rb"\s*+<!doctype\s++[^\s>]++\s++system\s*+([\"'])([^\"'>]++)\1", re.IGNORECASE
)
_FRAME: Final = re.compile(
    rb"<frame\s(?:[^<>\"']++|\"[^\"]*+\"|'[^']*+')*+(?:>|\Z|(?=<)|[\"'].*)",
    re.IGNORECASE | re.DOTALL,
)
_DATA: Final = re.compile(
    r"data:(?:image/svg\+xml|text/html)([^,]{0,99}+),(.*)", re.IGNORECASE | re.DOTALL
)
_READERS: Final[Mapping[str, Callable[[str], Iterable[str]]]] = {
    URL: lambda value: (value,),
    URLS: in_list,
    SRCSET: in_srcset,
    CSS: in_css,
    LIKELY: lambda value: (value,) if is_likely(value) else (),
}

Read = Callable[[bytes], tuple[LexborHTMLParser, ParsedMarkup]]
"""Reads a page in UTF-8."""


class BrowserLinks:
    """Finds the links of the kinds that a configuration asks for."""

    def __init__(self, conf: Configuration, elements: Elements) -> None:
        self.kinds = kinds_of(conf)
        self._elements = elements
        self._ignored = frozenset(conf.get_strings("parser.html.outlinks.ignore_tags"))
        self._attributes = {
            name: attribute
            for name, attribute in BROWSER_LINKS.items()
            if attribute.kind in self.kinds
        }

    @cached_property
    def _candidates(self) -> Candidates:
        return Candidates(self._attributes)

    def __bool__(self) -> bool:
        return bool(self.kinds)

    @staticmethod
    def without_hints(
        marks: int, document: LexborHTMLParser, links: Sequence[Outlink]
    ) -> Sequence[Outlink]:
        """Returns the links of a page with these marks (`scan`) without those of `link` elements
        that name a host to connect to, which Nutch takes for a page.
        """
        if not marks & scan.HINT:
            return links
        nodes = [node.attributes for node in document.css("link[rel][href]")]
        hosts = {node["href"] for node in nodes if is_hint(node["rel"] or "")}
        if isinstance(links, OutlinkRun):
            return links.without({encode_text(host) for host in hosts if host is not None})
        return [link for link in links if link.anchor or link.to_url not in hosts]

    def links(
        self, data: bytes, document: LexborHTMLParser, page: ParsedMarkup, read: Read, marks: int
    ) -> Sequence[Outlink]:
        """Returns the links of a page: its bytes in UTF-8, its tree, what was found in it; `read`
        is for pages within it, `marks` are those of its bytes.
        """
        found = dict.fromkeys(self._targets(data, document, page, read, marks, 1))
        targets = [target for target in found if target and not target.startswith("#")]
        return OutlinkRun.to(targets)

    def _targets(
        self,
        data: bytes,
        document: LexborHTMLParser,
        page: ParsedMarkup,
        read: Read,
        marks: int,
        level: int,
    ) -> Iterator[str]:
        inside: list[bytes] = []
        kinds = self.kinds
        if "doctype" in kinds and (match := _DOCTYPE.match(data[:_HEAD])):
            yield match[2].decode("utf-8", "replace")
        for node in _with_drawings(self._candidates.of(document)):
            yield from self._of_element(node, inside)
        if "text" in kinds:
            yield from in_text(page.text)
        if "comment" in kinds and marks & scan.CONDITION:
            inside += _conditional_comments(data)
        if "frame" in kinds and marks & scan.FRAME:
            inside += _lost_frames(data, document)
        if level < DEEPEST:
            for markup in inside:
                yield from self._of_page_within(markup, read, level + 1)

    def _of_page_within(self, data: bytes, read: Read, level: int) -> Iterator[str]:
        with suppress(ParseError):
            document, page = read(data)
            yield from (link.to_url for link in page.links)
            marks = scan.marks_of(np.frombuffer(data, np.uint8))
            yield from self._targets(data, document, page, read, marks, level)

    def _of_element(self, node: LexborNode, inside: list[bytes]) -> Iterator[str]:
        """Yields the links of one element; pages within it are added to `inside`."""
        tag = node.tag or ""
        if tag == "style" and "css" in self.kinds:
            yield from in_css(node.text())
        attributes = node.attributes
        if not attributes or tag in self._ignored or is_nofollow(attributes.get("rel") or ""):
            return
        for name, value in attributes.items():
            if not value:
                continue
            attribute = self._attributes.get(name)
            if attribute is not None and (not attribute.elements or tag in attribute.elements):
                if attribute.holds == MARKUP:
                    inside.append(value.encode("utf-8", "replace"))
                else:
                    yield from _READERS[attribute.holds](value)
            if "data" in self.kinds and value[:5].lower() == "data:":
                inside += _page_in_url(value)
        special = _SPECIAL.get(tag)
        if special is not None:
            yield from special(
                self, node, {name: value or "" for name, value in attributes.items()}, inside
            )

    def of_anchor(
        self, node: LexborNode, attributes: Mapping[str, str], inside: list[bytes]
    ) -> Iterator[str]:
        if (
            "empty" in self.kinds
            and "a" in self._elements.link_attributes
            and node.first_child is None
        ):
            yield attributes.get("href", "")

    def of_form(
        self, node: LexborNode, attributes: Mapping[str, str], inside: list[bytes]
    ) -> Iterator[str]:
        posts = attributes.get("method", "").lower() == "post"
        is_known = (
            not posts and "form" in self._elements.link_attributes and node.first_child is not None
        )
        if not is_known and ("post" if posts else "form") in self.kinds:
            yield attributes.get("action", "")

    def of_base(
        self, node: LexborNode, attributes: Mapping[str, str], inside: list[bytes]
    ) -> Iterator[str]:
        if "base" in self.kinds:
            yield attributes.get("href", "")

    def of_meta(
        self, node: LexborNode, attributes: Mapping[str, str], inside: list[bytes]
    ) -> Iterator[str]:
        content = attributes.get("content", "")
        if "meta" not in self.kinds or not content:
            return
        equivalent = attributes.get("http-equiv", "").lower()
        if equivalent.startswith("content-security-policy"):
            yield from in_policy(content)
        elif equivalent == "refresh":
            refresh = read_refresh(content)
            yield refresh[1] if refresh else ""
        elif "<" in content:
            inside.append(content.encode("utf-8", "replace"))
        elif is_likely(content):
            yield content


def _with_drawings(nodes: Iterable[LexborNode]) -> Iterator[LexborNode]:
    """Yields the elements, and all that are in one of svg or math."""
    seen: set[int] = set()
    for node in nodes:
        for inner in node.traverse() if node.tag in ("math", "svg") else (node,):
            if inner.mem_id not in seen:
                seen.add(inner.mem_id)
                yield inner


_SPECIAL: Final[Mapping[str, Callable[..., Iterator[str]]]] = {
    "a": BrowserLinks.of_anchor,
    "form": BrowserLinks.of_form,
    "base": BrowserLinks.of_base,
    "meta": BrowserLinks.of_meta,
}
"""Elements whose links depend on more than one attribute."""


def _conditional_comments(data: bytes) -> Iterator[bytes]:
    """Yields the markup in comments that some browsers of old read: `<!--[if IE]>…<![endif]-->`."""
    start = data.find(b"<!--[if")
    while start >= 0:
        end = data.find(b"-->", start)
        if end < 0:
            return
        _, _, markup = data[start:end].partition(b"]>")
        yield markup.removesuffix(b"<![endif]")
        start = data.find(b"<!--[if", end)


def _lost_frames(data: bytes, document: LexborHTMLParser) -> Iterator[bytes]:
    """Yields the frames of a page whose frameset browsers ignore, as it comes too late."""
    frames = _FRAME.findall(data)
    if frames and document.css_first("frame") is None:
        yield b"<frameset>" + b"".join(frames)


def _page_in_url(url: str) -> Iterator[bytes]:
    """Yields the page, or the image of markup, that a data: URL holds (RFC 2397)."""
    match = _DATA.match(url)
    if match is None:
        return
    data = unquote_to_bytes(match[2])
    if match[1].lower().endswith(";base64"):
        with suppress(ValueError):
            yield b64decode(data)
    else:
        yield data
