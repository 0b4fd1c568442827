"""Walks over a page's tree in Python: the reference for the kernel `html`, and its substitute.

A page is walked here where the kernel can't be used or leaves the decision to Python's Unicode (see
`pages`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from minutch.hadoop.formats.writables import MapWritable, Text
from minutch.records.links import Outlink

from .elements import HEAD_ATTRIBUTES, NEEDS_CONTENT, SILENT, Elements, is_nofollow
from .tree import RENAMED

BLANKS: Final = " \t\n\x0b\f\r"
TRIMMED: Final = "".join(map(chr, range(0x21)))
"""The characters that java.lang.String.trim removes."""
BYTE_ORDER_MARK: Final = "\ufeff"

_MARK: Final = "\0"
"""A line end, or a separator by which texts are counted. No tree has this character: Lexbor drops
or replaces it.
"""
_MARK_BYTES: Final = _MARK.encode()
_MARK_WORD: Final = b" " + _MARK_BYTES + b" "
_BLANK_TEXT: Final = _MARK + " "
"""Stands for a text node of blanks only, also of a line end."""
_ORIGINAL: Final = {renamed: name for name, renamed in RENAMED.items()}


@dataclass(slots=True)
class ParsedMarkup:
    """The result of a walk over a tree."""

    text: bytes = b""
    """In UTF-8."""
    title: str = ""
    base: str | None = None
    """The target of the first base element that has one."""
    links: Sequence[Outlink] = field(default_factory=list)
    """Targets as they stand in the page, not resolved."""
    metas: list[Mapping[str, str]] = field(default_factory=list)
    """Attributes of the meta elements before the body."""
    bases: list[Mapping[str, str]] = field(default_factory=list)
    """Attributes of the base elements before the body."""


class Walk:
    """One walk over one tree."""

    def __init__(self, elements: Elements) -> None:
        self.elements = elements
        self.pieces: list[str] = []
        self.found: list[tuple[LexborNode, str, int]] = []
        """Link elements with the number of pieces before them."""
        self.head = ParsedMarkup()
        self.title: LexborNode | None = None
        self.in_head = True

    def page(self, document: LexborHTMLParser, *, marked: bool = False) -> ParsedMarkup:
        """Returns the content of the tree, after a byte order mark if the page was `marked`."""
        if marked:
            self.pieces.append(BYTE_ORDER_MARK)
        if document.root is not None:
            self._run(document.root)
        page = self.head
        page.text = fold(self.pieces).encode()
        page.title = fold([self.title.text()]).strip(TRIMMED) if self.title is not None else ""
        page.base = first_base(page.bases)
        page.links = list(self._links())
        return page

    def _run(self, root: LexborNode) -> None:  # noqa: C901, PLR0912 - one branch a case
        """Collects pieces of text, link elements, and the elements of the head."""
        elements = self.elements
        interesting, separators, attributes = (
            elements.interesting,
            elements.separators,
            elements.link_attributes,
        )
        add, found = self.pieces.append, self.found
        after_block: set[int] = set()
        silent: set[int] = set()
        broken = not self.pieces  # no line end at the start, and never two in a row
        for node in root.traverse(include_text=True):
            if after_block and not broken and node.mem_id in after_block:
                add(_MARK)
                broken = True
            tag = node.tag
            if tag == "-text":
                text = node.text_content or ""
                if silent and node.mem_id in silent:
                    add("")
                elif not text.isspace() or text.strip(
                    BLANKS
                ):  # isspace is faster, but matches no-break spaces too
                    add(text)
                    broken = False
                else:
                    add("" if broken else _BLANK_TEXT)
                    broken = True
            elif tag in interesting:
                if tag in separators:
                    if not broken:
                        add(_MARK)
                        broken = True
                    following = node.next
                    if following is not None:
                        after_block.add(following.mem_id)
                if tag in attributes:
                    found.append((node, tag, len(self.pieces)))
                if tag in SILENT:
                    silent.update(inner.mem_id for inner in node.traverse(include_text=True))
                elif self.in_head:
                    self._head_element(tag, node)

    def _head_element(self, tag: str, node: LexborNode) -> None:
        if tag == "body":
            self.in_head = False
        elif tag == "meta":
            self.head.metas.append(_head_attributes(node))
        elif tag == "base":
            self.head.bases.append(_head_attributes(node))
        elif tag == "title" and self.title is None:
            self.title = node

    def _links(self) -> Iterator[Outlink]:
        attributes = self.elements.link_attributes
        for node, tag, start in self.found:
            values = node.attributes
            name = attributes[tag]
            if name not in values:
                continue
            child = node.first_child
            if child is None and tag in NEEDS_CONTENT:
                continue
            if "rel" in values and is_nofollow(values["rel"] or ""):
                continue
            if "method" in values and (values["method"] or "").lower() == "post":
                continue
            if child is not None:
                anchor = self._anchor(node, child, start)
            else:
                anchor = (values.get("alt") or "").strip(TRIMMED) if tag == "img" else ""
            yield Outlink(values[name] or "", anchor, self._metadata(tag))

    def _metadata(self, tag: str) -> MapWritable | None:
        """Returns the name of a link's element, if it is wanted."""
        key = self.elements.element_key
        return MapWritable({Text(key): Text(_ORIGINAL.get(tag, tag))}) if key else None

    def _anchor(self, node: LexborNode, child: LexborNode, start: int) -> str:
        """Returns the text inside a link element, whose first child is `child`; else what its
        images say.
        """
        if child.next is None and child.tag == "-text":
            text = fold(self.pieces[start : start + 1])
        else:
            inside = node.text(separator=_MARK)
            text = self._text_of(start, inside.count(_MARK) + 1) if inside else ""
        return text.strip(TRIMMED) or " ".join(_alternatives(node)).strip(TRIMMED)

    def _text_of(self, start: int, count: int) -> str:
        """Returns the folded pieces from `start` on, up to the text node number `count`."""
        pieces, end = self.pieces, start
        while count and end < len(pieces):
            count -= pieces[end] != _MARK
            end += 1
        return fold(pieces[start:end])


def first_base(bases: Sequence[Mapping[str, str]]) -> str | None:
    """Returns the target of the first base element that has one."""
    return next((base["href"] for base in bases if "href" in base), None)


def title_in_body(document: LexborHTMLParser) -> str:
    """Returns the title of a page without one in its head: that of the first title element, of
    HTML, in the page (HTML Standard, 3.1.5).
    """
    for node in document.css("title"):
        parent = node.parent
        while parent is not None and parent.tag not in ("math", "svg"):
            parent = parent.parent
        if parent is None:
            return fold([node.text()]).strip(TRIMMED)
    return ""


def _head_attributes(node: LexborNode) -> dict[str, str]:
    return {name: value or "" for name, value in node.attributes.items() if name in HEAD_ATTRIBUTES}


def _alternatives(node: LexborNode) -> Iterator[str]:
    """Alternative texts of the images in a link, and its text nodes (which are blank, or a
    script's).
    """
    for inner in node.traverse(include_text=True):
        text = inner.text_content if inner.tag == "-text" else None
        if inner.tag == "img":
            alternative = inner.attributes.get("alt") or ""
            text = alternative if alternative.strip(TRIMMED) else None
        if text:
            yield text


def fold(pieces: Sequence[str]) -> str:
    """Blanks folded to one, the texts joined by it; line ends where there are breaks, none at the
    start.
    """
    # bytes.split knows the same blanks as Java's `\\s`; str.split would take no-break spaces too.
    words = " ".join(pieces).encode().split()
    while words and words[0] == _MARK_BYTES:
        del words[0]
    text = b" ".join(words).replace(_MARK_WORD, b"\n")
    if text.endswith(_MARK_BYTES):
        text = text[: -len(_MARK_WORD) + 1] + b"\n"
    return text.decode()
