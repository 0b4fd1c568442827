"""Reads the microdata of a page, as the HTML standard's algorithm for JSON has it (5.2.3, 5.4).

An item is {"type": [...], "id": ..., "properties": {name: [value, ...]}}; a value is text, or an
item, or "ERROR" for one that contains itself. One pass over the elements of items: those that
several items refer to (itemref) are read again for each, MOST_VISITS at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from minutch.errors import UrlError

MOST_ITEMS: Final = 1000
"""Items of a page; more are left out."""
MOST_VISITS: Final = 100_000
"""Nodes that are looked at."""
MOST_TEXT: Final = 1 << 20
"""Characters of all values; what is more is left out."""
DEEPEST: Final = 32
"""Items in each other; one that is deeper is "ERROR"."""
_URLS: Final = {
    **dict.fromkeys(
        ["audio", "embed", "iframe", "img", "source", "track", "video", "x-iframe"], "src"
    ),
    **dict.fromkeys(["a", "area", "link"], "href"),
    "object": "data",
}
_VALUES: Final = {"meta": "content", "data": "value", "meter": "value"}


def top_items(
    document: LexborHTMLParser, resolve: Callable[[str], str]
) -> Iterator[dict[str, Any]]:
    """Yields the items of a page that are no property of another one, in tree order; `resolve`
    makes URLs absolute or raises UrlError.
    """
    nodes = document.css("[itemscope]")[:MOST_ITEMS]
    if not nodes:
        return
    by_id: dict[str, LexborNode] = {}
    places: dict[int, int] = {}
    if document.css_first("[itemref]") is not None:
        for node in document.css("[id]"):
            by_id.setdefault(node.attributes["id"] or "", node)
        places = {node.mem_id: place for place, node in enumerate(document.css("[itemprop]"))}
    reader = _Reader(resolve, by_id, places)
    for node in nodes:
        if "itemprop" not in node.attributes:
            yield reader.item(node, ())


class _Reader:
    def __init__(
        self,
        resolve: Callable[[str], str],
        by_id: dict[str, LexborNode],
        places: dict[int, int],
    ) -> None:
        self._resolve, self._by_id, self._places = resolve, by_id, places
        self._visits = 0
        self._left = MOST_TEXT

    def item(self, node: LexborNode, memory: tuple[int, ...]) -> dict[str, Any]:
        """Returns an item; `memory` has the addresses of those that it is in ("get the object")."""
        attributes = node.attributes
        memory = (*memory, node.mem_id)
        found: dict[str, Any] = {}
        if types := (attributes.get("itemtype") or "").split():
            found["type"] = types
        if (name := (attributes.get("itemid") or "").strip()) and types:
            found["id"] = self._url(name)
        properties: dict[str, list[Any]] = {}
        for inner in self._properties(node):
            value: Any
            if "itemscope" not in inner.attributes:
                value = self._value(inner)
            elif inner.mem_id in memory or len(memory) > DEEPEST:
                value = "ERROR"
            else:
                value = self.item(inner, memory)
            for name in dict.fromkeys((inner.attributes["itemprop"] or "").split()):
                properties.setdefault(name, []).append(value)
        found["properties"] = properties
        return found

    def _properties(self, root: LexborNode) -> list[LexborNode]:
        """Returns the elements that are properties of an item: of its tree, and of those that it
        refers to, but not of items in it.
        """
        found: list[LexborNode] = []
        names = dict.fromkeys((root.attributes.get("itemref") or "").split())
        referred = [node for name in names if (node := self._by_id.get(name)) is not None]
        memory: set[int] = set()
        for start in (root, *referred):
            node = start
            while self._visits < MOST_VISITS:
                self._visits += 1
                following = None
                if node.mem_id not in memory:
                    memory.add(node.mem_id)
                    attributes, is_root = node.attributes, node.mem_id == root.mem_id
                    if attributes.get("itemprop") and not is_root:
                        found.append(node)
                    if is_root or "itemscope" not in attributes:
                        following = _element(node.first_child)
                while following is None and node.mem_id != start.mem_id:
                    following = _element(node.next)
                    if following is None:
                        parent = node.parent
                        assert parent is not None
                        node = parent
                if following is None:
                    break
                node = following
        if referred:
            found.sort(key=lambda node: self._places[node.mem_id])
        return found

    def _value(self, node: LexborNode) -> str:
        """Returns the value of a property (5.2.4)."""
        tag, attributes = node.tag or "", node.attributes
        if (name := _URLS.get(tag)) is not None:
            return self._url(attributes.get(name) or "") if name in attributes else ""
        if (name := _VALUES.get(tag)) is not None:
            return self._bounded(attributes.get(name) or "")
        if tag == "time" and "datetime" in attributes:
            return self._bounded(attributes["datetime"] or "")
        texts = []
        for inner in node.traverse(include_text=True):
            self._visits += 1
            if self._visits > MOST_VISITS:
                break
            if inner.is_text_node:
                texts.append(self._bounded(inner.text_content or ""))
        return "".join(texts)

    def _bounded(self, text: str) -> str:
        text = text[: self._left]
        self._left -= len(text)
        return text

    def _url(self, target: str) -> str:
        try:
            return self._bounded(self._resolve(target.strip()))
        except UrlError:
            return self._bounded(target)


def _element(node: LexborNode | None) -> LexborNode | None:
    while node is not None and not node.is_element_node:
        node = node.next
    return node
