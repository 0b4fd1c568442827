"""Finds links that a browser follows or loads and Nutch does not, in a second pass over the tree,
if configured.

Each is one of the KINDS of `elements`. They come after the page's other links, each target once,
without an anchor. As in the first walk, an element with rel=nofollow is passed over, and so is one
that parser.html.outlinks.ignore_tags names. Pages within a page (srcdoc, conditional comments,
data: URLs) give all their links, `DEEPEST` levels down. Of Nutch's own, what `link` elements name
for programs is left out (`is_for_programs`), but with the kind `program`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from threading import Lock
from typing import Final

import numpy as np
from selectolax.lexbor import LexborHTMLParser, LexborNode

from minutch.conf import Configuration
from minutch.errors import ParseError
from minutch.hadoop.formats.javaio import encode_text
from minutch.kernels import occurrences as kernels
from minutch.kernels import tags
from minutch.kernels.hash import SEED
from minutch.kernels.html import SHORT_NAME
from minutch.kernels.outlinks import LinkTargets, join_targets
from minutch.records.links import Outlink, OutlinkRun, joined

from .elements import (
    BROWSER_LINKS,
    CSS,
    LIKELY,
    LINK_ATTRIBUTES,
    MARKUP,
    SRCSET,
    URL,
    URLS,
    Elements,
    LinkAttribute,
    in_conditional_comments,
    in_css,
    in_css_bytes,
    in_data_url,
    in_list,
    in_policy,
    in_srcset,
    is_for_programs,
    is_likely,
    is_nofollow,
    kinds_of,
    lost_frames,
    places_of_urls,
    read_refresh,
)
from .tree_reader import attribute_numbers, names_of
from .walk import ParsedMarkup

# Finds what may have a link that only browsers follow: by a kernel, in one walk over the tree, or
# by selectors where the kernel can't be used (`tree_reader`).

_EMPTY: Final = "a"
"""The element that counts by itself if there is nothing in it."""
_ALWAYS: Final = ("base", "form", "math", "meta", "style", "svg")
"""Those that do whatever they have."""
_DRAWINGS: Final = ("math", "svg")
"""Elements within which all others are looked at."""
_SPECIAL_ATTRIBUTES: Final = (
    *("rel", "href", "action", "method", "content", "http-equiv", "src", "data", "type"),
    "hreflang",
)
"""In the order of the kernel's places."""
_ROOM: Final = 1 << 16
"""Bytes of values, at first."""
_MOST_KEPT: Final = 1 << 22
_MOST_BESIDE: Final = 7
"""Bytes of a link beside its target: the target's size, no anchor, no metadata."""


def selectors_of(places: Mapping[str, LinkAttribute]) -> str:
    """Returns the selectors of all elements that may have links in these attributes; of what is in
    svg or math, those of the outermost element.
    """
    found = [f"{_EMPTY}:empty", *_ALWAYS, "[src^='data:' i]", "[data^='data:' i]"]
    for name, place in places.items():
        if ":" not in name:
            held = ("*='('", "*='@'") if place.holds == CSS else ("",)
            found += [
                f"{element}[{name}{value}]" for element in place.elements or ("",) for value in held
            ]
    return ", ".join(found)


class LinkFinder:
    """Finds values that may have links; one page at a time."""

    def __init__(
        self,
        places: Mapping[str, LinkAttribute],
        ignored: Iterable[str],
        numbers: Mapping[str, int],
    ) -> None:
        """`places` are the attributes that hold links, `numbers` Lexbor's of attributes."""
        self.attributes = [*dict.fromkeys((*_SPECIAL_ATTRIBUTES, *places))]
        """In the order of the places in `kernels`."""
        named = sorted({name for place in places.values() for name in place.elements})
        groups = {name: 1 << number for number, name in enumerate(named, 1)}
        flags = dict.fromkeys(_ALWAYS, kernels.ALWAYS)
        for flag, names in (
            (kernels.IF_EMPTY | kernels.ANCHOR, [_EMPTY]),
            (kernels.STYLE, ["style"]),
            (kernels.FORM, ["form"]),
            (kernels.BASE, ["base"]),
            (kernels.META, ["meta"]),
            (kernels.LINK, ["link"]),
            (kernels.DRAWING, _DRAWINGS),
            (kernels.IGNORED, ignored),
            (0, named),
        ):
            for name in names:
                flags[name] = flags.get(name, 0) | flag
        document = LexborHTMLParser("")
        self._elements = names_of(
            flags,
            {name: document.create_node(name).tag_id for name in flags},
            {name: 1 | groups.get(name, 0) for name in flags},
        )
        self._attributes = names_of(
            {name: _kind_of(name, places) for name in self.attributes},
            numbers,
            {
                name: sum(groups[element] for element in place.elements) or 1
                for name, place in places.items()
            },
        )
        self._values = np.zeros((kernels.SPECIAL, 2), np.int64)
        self._lock = Lock()
        self._make_room(_ROOM)

    def _make_room(self, size: int) -> None:
        self._room, self._rows = np.empty(size, np.uint8), np.empty((size >> 4, 3), np.int64)

    def find(self, document: LexborHTMLParser) -> tuple[bytes, np.ndarray] | None:
        """Returns values, and what each is with its bounds, in the order of the page; None where
        that takes Python's Unicode.
        """
        root = document.root
        if root is None:
            return b"", self._rows[:0]
        tables = self._elements, self._attributes, self._values
        with self._lock:
            while (
                count := kernels.find_links(root.mem_id, *tables, self._room, self._rows)
            ) == kernels.FULL:
                self._make_room(2 * len(self._room))
            rows = self._rows[: max(count, 0)].copy()
            data = self._room[: rows[-1, 2] if count > 0 else 0].tobytes()
            if len(self._room) > _MOST_KEPT:
                self._make_room(_ROOM)
        return None if count == kernels.UNSURE else (data, rows)


def _kind_of(name: str, places: Mapping[str, LinkAttribute]) -> int:
    held = places[name].holds if name in places else ""
    flag = {CSS: kernels.IN_STYLE, SRCSET: kernels.IN_SET}.get(held, 0)
    return flag | kernels.ALONE * (":" in name)


DEEPEST: Final = 3
"""Levels of pages within pages."""
_HEAD: Final = 4096
"""Bytes in which a document type may stand."""

_DOCTYPE: Final = re.compile(
    rb"\s*+<!doctype\s++[^\s>]++\s++system\s*+([\"'])([^\"'>]++)\1", re.IGNORECASE
)
_READERS: Final[Mapping[str, Callable[[str], Iterable[str]]]] = {
    URL: lambda value: (value,),
    URLS: in_list,
    SRCSET: in_srcset,
    CSS: in_css,
    LIKELY: lambda value: (value,) if is_likely(value) else (),
}


def _alone(value: bytes) -> tuple[bytes]:
    return (value,)


_READERS_OF_BYTES: Final[Mapping[str, Callable[[bytes], Iterable[bytes]]]] = {
    URL: _alone,
    URLS: lambda value: map(encode_text, in_list(value.decode())),
    SRCSET: lambda value: map(encode_text, in_srcset(value.decode())),
    CSS: lambda value: map(encode_text, in_css_bytes(value)),
    LIKELY: lambda value: (value,) if is_likely(value.decode()) else (),
}
"""The same of UTF-8."""
_NAMES: Final = {*LINK_ATTRIBUTES.values(), *BROWSER_LINKS} - {"style"} | {
    *("content", "doctype", "&", "url", "import")
}
_WITHIN: Final = sorted(
    name.encode()
    for name in _NAMES
    if not any(other in name and other != name for other in _NAMES)  # that one is found, too
)
"""What is in every page that has links: icons, of which pages of our day have dozens in their
styles and sources, have nothing of the kind.
"""
_DRAWING: Final = re.compile(rb"\A\s*+<svg\s[^<>]*+>")
"""Its namespaces are URLs, but no text."""


def may_have_links(data: bytes) -> bool:
    """Tells whether a page within a page is to be parsed."""
    return any(map(data.lower().__contains__, _WITHIN))


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
    def _selectors(self) -> str:
        return selectors_of(self._attributes)

    @cached_property
    def _finder(self) -> LinkFinder | None:
        numbers = attribute_numbers()
        if numbers is None or any(len(name.encode()) > SHORT_NAME for name in self._ignored):
            return None
        return LinkFinder(self._attributes, self._ignored, numbers)

    @cached_property
    def _of_value(self) -> dict[int, Callable[[bytes], Iterable[bytes]]]:
        """What a value is, by the kernel → what yields its links."""
        assert self._finder is not None
        kinds, takes_forms = self.kinds, "form" in self._elements.link_attributes
        readers = {
            kernels.OTHERS + place: _READERS_OF_BYTES[self._attributes[name].holds]
            for place, name in enumerate(self._finder.attributes)
            if name in self._attributes and self._attributes[name].holds != MARKUP
        }
        for kind, value, is_wanted in (
            ("empty", kernels.OF_ANCHOR, "a" in self._elements.link_attributes),
            ("base", kernels.OF_BASE, True),
            ("form", kernels.OF_FORM, not takes_forms),
            ("form", kernels.OF_EMPTY_FORM, True),
            ("post", kernels.OF_POST, True),
        ):
            if kind in kinds and is_wanted:
                readers[value] = _READERS_OF_BYTES[URL]
        readers[kernels.OF_CANDIDATE] = _READERS_OF_BYTES[URL]
        if "css" in kinds:
            readers[kernels.OF_STYLE] = _READERS_OF_BYTES[CSS]
        return readers

    @cached_property
    def _is_target(self) -> np.ndarray:
        """Whether a value, by what it is, is a link as it stands."""
        assert self._finder is not None
        found = np.zeros(kernels.OTHERS + len(self._finder.attributes), np.bool_)
        found[[kind for kind, read in self._of_value.items() if read is _alone]] = True
        return found

    def links(
        self, data: bytes, document: LexborHTMLParser, page: ParsedMarkup, read: Read, marks: int
    ) -> Sequence[Outlink]:
        """Returns all links of a page: its bytes in UTF-8, its tree, what was found in it; `read`
        is for pages within it, `marks` are those of its bytes. Of Nutch's, those of `link` elements
        are left out that are for programs.
        """
        others: set[bytes] = set()
        found = self._targets(data, document, page, read, marks, 1, others)
        links: Sequence[Outlink] = page.links
        if others and "program" not in self.kinds:
            links = (
                links.without(others)
                if isinstance(links, OutlinkRun)
                else [one for one in links if one.anchor or encode_text(one.to_url) not in others]
            )
        return joined(links, found) if found else links

    def _targets(
        self,
        data: bytes,
        document: LexborHTMLParser,
        page: ParsedMarkup,
        read: Read,
        marks: int,
        level: int,
        others: set[bytes],
    ) -> OutlinkRun:
        """Returns links to what a page names, each once."""
        inside: list[bytes] = []
        kinds = self.kinds
        found: list[tuple[int, bytes]] = []
        if "doctype" in kinds and (match := _DOCTYPE.match(data[:_HEAD])):
            found.append((0, match[2].decode("utf-8", "replace").encode()))
        values = None if self._finder is None else self._finder.find(document)
        if values is not None:
            found += self._of_values(*values, inside, others)
        else:
            others.update(_for_programs(document))
            for node in _with_drawings(document.css(self._selectors)):
                found += [(0, encode_text(link)) for link in self._of_element(node, inside)]
        last = 0 if values is None else len(values[1])
        if "text" in kinds:
            found += [(last, page.text[start:end]) for start, end in places_of_urls(page.text)]
        if "comment" in kinds and marks & tags.CONDITION:
            inside += in_conditional_comments(data)
        if "frame" in kinds and marks & tags.FRAME:
            inside += lost_frames(data, document)
        # Each once: the icons of a list are all the same.
        for markup in dict.fromkeys(inside) if level < DEEPEST else ():
            found += [(last, link) for link in self._of_page_within(markup, read, level + 1)]
        if values is None:
            return run_of(b"", _NO_ROWS, _NO_KINDS, found)
        return run_of(*values, self._is_target, found)

    def _of_page_within(self, data: bytes, read: Read, level: int) -> Iterator[bytes]:
        has_urls = "text" in self.kinds and b"://" in _DRAWING.sub(b"", data)
        if not has_urls and not may_have_links(data):
            return
        with suppress(ParseError):
            document, page = read(data)
            yield from (encode_text(link.to_url) for link in page.links)
            marks = tags.marks_of(np.frombuffer(data, np.uint8))
            found = self._targets(data, document, page, read, marks, level, set())
            yield from (encode_text(link.to_url) for link in found)

    def _of_values(
        self, data: bytes, rows: np.ndarray, inside: list[bytes], others: set[bytes]
    ) -> list[tuple[int, bytes]]:
        """Returns the links within values, each with its value's row; pages in them are added to
        `inside`, what is for programs to `others`.
        """
        found: list[tuple[int, bytes]] = []
        readers = self._of_value
        for row, (kind, start, end) in enumerate(rows.tolist()):
            read = readers.get(kind)
            if read is _alone:
                continue
            value = data[start:end]
            if read is not None:
                found += [(row, link) for link in read(value)]
            elif kind == kernels.OF_LINK:
                relation, media_type, target = value.decode().split("\0", 2)
                if target and is_for_programs(relation, media_type):
                    others.add(target.encode())
            elif kind == kernels.OF_DATA:
                if "data" in self.kinds:
                    inside += in_data_url(value.decode())
            elif kind == kernels.OF_META:
                equivalent, content = value.decode().split("\0", 1)
                links = self._of_meta(equivalent, content, inside)
                found += [(row, encode_text(link)) for link in links]
            elif kind >= kernels.OTHERS:  # what is left holds a page
                inside.append(value)
        return found

    def _of_element(self, node: LexborNode, inside: list[bytes]) -> Iterator[str]:
        """Yields the links of one element; pages within it are added to `inside`."""
        tag = (node.tag or "").lower()
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
                inside += in_data_url(value)
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
        yield from self._of_meta(
            attributes.get("http-equiv", ""), attributes.get("content", ""), inside
        )

    def _of_meta(self, equivalent: str, content: str, inside: list[bytes]) -> Iterator[str]:
        if "meta" not in self.kinds or not content:
            return
        equivalent = equivalent.lower()
        if equivalent.startswith("content-security-policy"):
            yield from in_policy(content)
        elif equivalent == "refresh":
            refresh = read_refresh(content)
            yield refresh[1] if refresh else ""
        elif "<" in content:
            inside.append(content.encode("utf-8", "replace"))
        elif is_likely(content):
            yield content


_NO_ROWS: Final = np.empty((0, 3), np.int64)
_NO_KINDS: Final = np.empty(0, np.bool_)


def run_of(
    data: bytes, rows: np.ndarray, is_target: np.ndarray, found: Sequence[tuple[int, bytes]]
) -> OutlinkRun:
    """Returns links to values that are targets, and to those found before the values of rows."""
    if not found and not is_target[rows[:, 0]].any():
        return OutlinkRun(0, b"")
    most = len(rows) + len(found)
    more = b"".join([link for _, link in found])
    places = np.array([(len(link), row) for row, link in found], np.int64).reshape(-1, 2)
    np.cumsum(places[:, 0], out=places[:, 0])
    out = np.empty(len(data) + len(more) + _MOST_BESIDE * most, np.uint8)
    slots, size = np.zeros(1 << most.bit_length() + 1, np.int64), np.zeros(1, np.int64)
    others = np.frombuffer(more, np.uint8)
    given = LinkTargets(np.frombuffer(data, np.uint8), rows, is_target, others, places)
    count = join_targets(given, SEED, slots, out, size)
    return OutlinkRun(count, out[: int(size[0])].tobytes())


def _for_programs(document: LexborHTMLParser) -> Iterator[bytes]:
    """Yields the targets of `link` elements that are no pages."""
    for node in document.css("link[rel][href]"):
        attributes = node.attributes
        target = attributes["href"]
        media_type = "" if "hreflang" in attributes else attributes.get("type") or ""
        if target and is_for_programs(attributes["rel"] or "", media_type):
            yield encode_text(target)


def _with_drawings(nodes: Iterable[LexborNode]) -> Iterator[LexborNode]:
    """Yields the elements, and all that are in one of svg or math."""
    seen: set[int] = set()
    for node in nodes:
        for inner in node.traverse() if node.tag in _DRAWINGS else (node,):
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
