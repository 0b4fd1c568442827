"""Finds what links within a page lead to: footnotes, with the links that refer to them, and the
anchors of headings.

A reference is a link to an element of the page that is raised or says that it is one: by its role
(doc-noteref), its class (`footnote-ref`, as generators of sites write it) or data-footnote-ref.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final
from urllib.parse import unquote

from selectolax.lexbor import LexborHTMLParser, LexborNode

_MOST: Final = 10_000
_REACH: Final = 12
"""Elements around one that are looked at for what it is in."""
_NOTES: Final = frozenset(["li", "p", "div", "aside", "dd", "section"])
_NOT_IN: Final = ("td", "th", "dt", "pre", "h1", "h2", "h3", "h4", "h5", "h6")
_CLASS: Final = re.compile(r"footnote-?ref|noteref", re.IGNORECASE)
_WORDS: Final = re.compile(r"\S")
_LABEL: Final = re.compile(r"\W*(\w{1,8})\W*")


class Footnotes:
    """The footnotes of a page; `is_kept` says of an element whether it is written."""

    def __init__(self, document: LexborHTMLParser, is_kept: Callable[[LexborNode], bool]) -> None:
        self._references: dict[int, str] = {}
        self._notes: dict[int, str] = {}
        self._cited: set[str] = set()
        self._passed: set[str] = set()
        """Labels of elements that came before all references: they are no notes, and may be
        around them.
        """
        wanted: dict[str, list[LexborNode]] = {}
        for node in document.css('a[href^="#"]'):
            target = (node.attributes["href"] or "")[1:]
            if target and _is_reference(node) and len(wanted) < _MOST:
                wanted.setdefault(target, []).append(node)
        labels: set[str] = set()
        for node in document.css("[id]") if wanted else []:
            found = wanted.pop(node.attributes["id"] or "", None)
            if found is None or node.tag not in _NOTES or not is_kept(node):
                continue
            if around(node, *_NOT_IN) is not None:
                continue
            named = _LABEL.fullmatch(found[0].text())
            label = named[1] if named and named[1] not in labels else f"note{len(labels) + 1}"
            labels.add(label)
            self._notes[node.mem_id] = label
            self._references.update((one.mem_id, label) for one in found)

    def cited(self, link: LexborNode) -> str | None:
        """Returns the label of the note that a link refers to, in the order of the page."""
        label = self._references.get(link.mem_id)
        if label is None or label in self._passed:
            return None
        self._cited.add(label)
        return label

    def started(self, node: LexborNode) -> str | None:
        """Returns the label of the note that an element is."""
        label = self._notes.get(node.mem_id)
        if label is None or label in self._cited:
            return label
        self._passed.add(label)
        return None


def _is_reference(node: LexborNode) -> bool:
    attributes = node.attributes
    if attributes.get("role") == "doc-noteref" or "data-footnote-ref" in attributes:
        return True
    if _CLASS.search(attributes.get("class") or ""):
        return True
    inside = node.first_child
    return any(one is not None and one.tag == "sup" for one in (node.parent, inside))


def around(node: LexborNode, *tags: str) -> int | None:
    """Returns the address of the nearest of these around an element, not far away."""
    outer = node.parent
    for _ in range(_REACH):
        if outer is None:
            break
        if outer.tag in tags:
            return int(outer.mem_id)
        outer = outer.parent
    return None


def is_inside(node: LexborNode, name: str) -> bool:
    """Returns True if an element near around a node has this id, spelled as in a fragment."""
    outer = node.parent
    for _ in range(_REACH):
        if outer is None:
            break
        if outer.is_element_node and _name_of(outer) == unquote(name):
            return True
        outer = outer.parent
    return False


_SECTIONS: Final = frozenset(["section", "article", "div", "header", "hgroup", "details"])


def fragment_of(heading: LexborNode) -> str:
    """Returns the id by which a heading is linked to, "" if there is none: its own, one in it, what
    its own link names, an empty anchor's beside it, or that of the section that it begins.
    """
    named = [heading, *heading.css("[id], a[name]")]
    links = [unquote((node.attributes["href"] or "")[1:]) for node in heading.css('a[href^="#"]')]
    after = _beside(heading, lambda node: node.next)
    if after is not None and after.tag == "a":
        links.append(_name_of(after))
    found = next(filter(None, [*map(_name_of, named), *links]), "")
    node = heading
    for _ in range(_REACH):  # back to what comes before it, out of what it begins
        before, outer = _beside(node, lambda one: one.prev), node.parent
        nearest = before or outer
        is_empty = before is not None and not _WORDS.search(before.text())
        is_first = before is None and outer is not None and outer.tag in _SECTIONS
        if found or nearest is None or not (is_empty or is_first):
            break
        node, found = nearest, _name_of(nearest)
    return found


def _name_of(node: LexborNode) -> str:
    attributes = node.attributes
    return attributes.get("id") or (node.tag == "a" and attributes.get("name")) or ""


def _beside(node: LexborNode, step: Callable[[LexborNode], LexborNode | None]) -> LexborNode | None:
    """Returns the next node in a direction that is an element or has words."""
    other = step(node)
    while other is not None and not (other.is_element_node or _WORDS.search(other.text() or "")):
        other = step(other)
    return other
