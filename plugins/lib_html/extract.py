r"""Text, title and links of an HTML tree, as Nutch's DOMContentUtils takes them from its own.

One walk over the tree collects everything:

    text     every text node but those of script and style (the title's included), blanks folded, joined by a blank;
             by a line end where a node is one of parser.html.line.separators or follows one, and where a text node
             is nothing but blanks
    title    the text of the first title before the body
    links    the elements of `link_attributes`, with the text inside for an anchor, else the alternative texts of its
             images; elements with rel=nofollow, method=post or (a, form) without anything inside are left out

Blanks are Java's `\s`; a no-break space is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode

from minutch.conf import Configuration

BLANKS: Final = " \t\n\x0b\f\r"
_TRIMMED: Final = "".join(map(chr, range(0x21)))
"""What java.lang.String.trim takes off."""

_NODE: Final = "\ufdd0"
"""Between the texts of two nodes."""
_BREAK: Final = "\ufdd1"
"""A line end."""
_BREAK_BYTES: Final = _BREAK.encode()
_BREAK_WORD: Final = b" " + _BREAK_BYTES + b" "
_BLANK_TEXT: Final = _BREAK + " "
"""In the place of a text node that is nothing but blanks: a line end, too."""
_MARKS: Final = (_NODE.encode(), _BREAK.encode())
_MARK_START: Final = _BREAK_BYTES[:1]
"""One byte is found many times faster than three."""
_NOFOLLOW: Final = re.compile(r"\bnofollow\b", re.IGNORECASE)

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
RENAMED: Final[Mapping[str, str]] = {"iframe": "x-iframe"}
"""Element → the name it goes by in a tree of `build_tree` when it has content."""
_ORIGINAL: Final = {renamed: name for name, renamed in RENAMED.items()}
_IFRAME_STARTS: Final = (b"<iframe", b"<IFRAME")
_TEMPLATE_TAGS: Final = (b"<template", b"</template", b"<TEMPLATE", b"</TEMPLATE")
_FILLED_IFRAME: Final = re.compile(
    rb"<(?:iframe|IFRAME)\b([^>]*)>(?!\s*</)([^<]*(?:<(?!/iframe|/IFRAME)[^<]*)*)</(?:iframe|IFRAME)\s*>"
)
_NEEDS_CONTENT: Final = frozenset(("a", "form"))
_SILENT: Final = frozenset(("script", "style"))


@dataclass(slots=True)
class Link:
    """A link as it stands in the page: target not resolved, anchor text, name of the element."""

    target: str
    anchor: str
    element: str


@dataclass(slots=True)
class Page:
    """What the walk found."""

    text: str = ""
    title: str = ""
    base: str | None = None
    links: list[Link] = field(default_factory=list)
    metas: list[Mapping[str, str | None]] = field(default_factory=list)
    """Attributes of the meta elements before the body."""
    bases: list[Mapping[str, str | None]] = field(default_factory=list)
    """Attributes of the base elements before the body."""


class Extractor:
    """Walks trees by the configured rules; has no state of a page."""

    def __init__(self, conf: Configuration) -> None:
        self.link_attributes = link_attributes(conf)
        self.separators = frozenset(conf.get_trimmed_strings("parser.html.line.separators"))
        names = {"base", "body", "meta", "title", *_SILENT, *self.link_attributes}
        self.interesting = frozenset(names | self.separators)

    def extract(self, document: LexborHTMLParser) -> Page:
        """Everything about a page."""
        walk = _Walk(self)
        if document.root is not None:
            walk.run(document.root)
        return walk.page()


def link_attributes(conf: Configuration) -> dict[str, str]:
    """The elements whose links count: parser.html.form.use_action, parser.html.outlinks.ignore_tags."""
    attributes = dict(LINK_ATTRIBUTES)
    use_action = conf.get_boolean("parser.html.form.use_action", True)
    forced = use_action and conf.get("parser.html.form.use_action") is not None
    if not use_action:
        del attributes["form"]
    for name in conf.get_strings("parser.html.outlinks.ignore_tags"):
        if not (forced and name == "form"):
            attributes.pop(name, None)
    return attributes | {RENAMED[name]: attributes[name] for name in RENAMED if name in attributes}


class _Walk:
    """One walk over one tree."""

    def __init__(self, rules: Extractor) -> None:
        self.rules = rules
        self.pieces: list[str] = []
        self.found: list[tuple[LexborNode, str, int]] = []
        """Link elements with the number of pieces before them."""
        self.head = Page()
        self.title: LexborNode | None = None
        self.in_head = True

    def run(self, root: LexborNode) -> None:
        """Collect pieces of text, link elements, and what stands in the head."""
        interesting, separators, attributes = self.rules.interesting, self.rules.separators, self.rules.link_attributes
        add, found = self.pieces.append, self.found
        after_block: set[int] = set()
        silent = False
        broken = True  # no line end at the start, nor one after the other
        for node in root.traverse(include_text=True):
            if after_block and not broken and node.mem_id in after_block:
                add(_BREAK)
                broken = True
            tag = node.tag
            if tag == "-text":
                text = node.text_content or ""
                if silent:
                    add("")
                    silent = False
                elif not text.isspace() or text.strip(BLANKS):  # isspace is the quicker one, but takes no-break spaces
                    add(text)
                    broken = False
                else:
                    add("" if broken else _BLANK_TEXT)
                    broken = True
            elif tag in interesting:
                if tag in separators:
                    if not broken:
                        add(_BREAK)
                        broken = True
                    following = node.next
                    if following is not None:
                        after_block.add(following.mem_id)
                if tag in attributes:
                    found.append((node, tag, len(self.pieces)))
                if tag in _SILENT:
                    silent = node.first_child is not None
                elif self.in_head:
                    self._head_element(tag, node)

    def _head_element(self, tag: str, node: LexborNode) -> None:
        if tag == "body":
            self.in_head = False
        elif tag == "meta":
            self.head.metas.append(node.attributes)
        elif tag == "base":
            self.head.bases.append(node.attributes)
        elif tag == "title" and self.title is None:
            self.title = node

    def page(self) -> Page:
        """The page, from what `run` collected."""
        page = self.head
        page.text = fold(self.pieces)
        page.title = fold([self.title.text()]).strip(_TRIMMED) if self.title is not None else ""
        page.base = next((base["href"] or "" for base in page.bases if "href" in base), None)
        page.links = list(self._links())
        return page

    def _links(self) -> Iterator[Link]:
        attributes = self.rules.link_attributes
        for node, tag, start in self.found:
            values = node.attributes
            name = attributes[tag]
            if name not in values:
                continue
            child = node.first_child
            if child is None and tag in _NEEDS_CONTENT:
                continue
            if "rel" in values and _NOFOLLOW.search(values["rel"] or ""):
                continue
            if "method" in values and (values["method"] or "").lower() == "post":
                continue
            if child is not None:
                anchor = self._anchor(node, child, tag, start)
            else:
                anchor = (values.get("alt") or "").strip(_TRIMMED) if tag == "img" else ""
            yield Link(values[name] or "", anchor, _ORIGINAL.get(tag, tag))

    def _anchor(self, node: LexborNode, child: LexborNode, tag: str, start: int) -> str:
        """The text inside a link element, whose first child is `child`; else what its images say."""
        if tag in _SILENT:
            text = ""
        elif child.next is None and child.tag == "-text":
            text = fold_text(child.text_content or "")
        else:
            inside = node.text(separator=_NODE)
            text = self._text_of(start, inside.count(_NODE) + 1) if inside else ""
        return text or " ".join(_alternatives(node)).strip(_TRIMMED)

    def _text_of(self, start: int, count: int) -> str:
        """The folded pieces from `start` on, up to the text node number `count`."""
        pieces, end = self.pieces, start
        while count and end < len(pieces):
            count -= pieces[end] != _BREAK
            end += 1
        return fold(pieces[start:end]).strip(_TRIMMED)


def _alternatives(node: LexborNode) -> Iterator[str]:
    """Alternative texts of the images in a link, and its text nodes (which are blank, or a script's)."""
    for inner in node.traverse(include_text=True):
        text = inner.text_content if inner.tag == "-text" else None
        if inner.tag == "img":
            alternative = inner.attributes.get("alt") or ""
            text = alternative if alternative.strip(_TRIMMED) else None
        if text:
            yield text


def fold_text(text: str) -> str:
    """Blanks folded in the text of one node."""
    return " ".join(text.split()) if text.isascii() else fold((text,)).strip(_TRIMMED)


def fold(pieces: Sequence[str]) -> str:
    """Blanks folded to one, the texts joined by it; line ends where there are breaks, none at the start."""
    # bytes.split knows the same blanks as Java's `\s`; str.split would take no-break spaces too.
    words = " ".join(pieces).encode("utf-8", "surrogatepass").split()
    while words and words[0] == _BREAK_BYTES:
        del words[0]
    text = b" ".join(words).replace(_BREAK_WORD, b"\n")
    if text.endswith(_BREAK_BYTES):
        text = text[: -len(_BREAK_WORD) + 1] + b"\n"
    return text.decode("utf-8", "surrogatepass")


def build_tree(data: bytes) -> LexborHTMLParser:
    """The tree of a page in UTF-8, as browsers build it; but what iframe and template hold is markup like any other.

    That is how Nutch's parser takes it. The noncharacters that this module needs for marks are dropped; what is not
    UTF-8 becomes U+FFFD.
    """
    if _MARK_START in data:
        for mark in _MARKS:
            data = data.replace(mark, b"")
    if any(_has_filled_iframe(data, name) for name in _IFRAME_STARTS):
        data = _FILLED_IFRAME.sub(rb"<x-iframe\1>\2</x-iframe>", data)
    if b"template" in data or b"TEMPLATE" in data:
        for tag in _TEMPLATE_TAGS:
            data = data.replace(tag, tag[:-8] + b"x-template")
    return LexborHTMLParser(data, options=LexborDocumentOptions.WO_EVENTS)


def _has_filled_iframe(data: bytes, start: bytes) -> bool:
    """Whether an iframe is not closed at once."""
    at = data.find(start)
    while at >= 0:
        end = data.find(b">", at) + 1
        if end and not data[end : end + 40].lstrip().startswith(b"</"):
            return True
        at = data.find(start, at + 1)
    return False
