"""Finds the elements of a page that may have a link which only browsers follow.

Lexbor takes as long to look for what a page has not as for what it has, and there are fifty
selectors. So a kernel says in one walk over the tree which of their elements and attributes there
are; then only the selectors of these are asked, in the head alone if there is nothing of the kind
elsewhere. Where the kernel can't be used (`tree_layout`), all are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from selectolax.lexbor import LexborHTMLParser, LexborNode

from minutch.kernels import occurrences as kernels
from minutch.kernels.html import NUMBERED_NAMES, SHORT_NAME

from .linkkinds import LinkAttribute
from .tree_layout import attribute_numbers

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
            for element in place.elements or ("",):
                yield _Selector(f"{element}[{name}]", "" if element == _EMPTY else element, name)


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
