"""Calls the kernel `html` for a page: passes the elements as tables and its buffers, and returns
the strings found.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from threading import Lock
from typing import Any, Final

import numpy as np
from selectolax.lexbor import LexborHTMLParser, LexborNode

from minutch.hadoop.formats.javaio import encode_text
from minutch.kernels import blocks
from minutch.kernels import html as kernels
from minutch.kernels.occurrences import FULL, Names, find_values
from minutch.records.links import OutlinkRun

from .elements import BROWSER_LINKS, CONTENT, HEAD_ATTRIBUTES, NAME, NEEDS_CONTENT, SILENT, Elements
from .tree import REWRITTEN, REWRITTEN_IF_FILLED
from .walk import ParsedMarkup, first_base

# Checks that Lexbor's trees are laid out in memory as the kernel `html` expects.
#
# A small page is read twice: by selectolax, and by the kernel's offsets through /proc/self/mem,
# which answers a wrong address with an error where a kernel would crash the process. The kernel is
# used only if both agree on every node, text and attribute; so a version of selectolax with
# another layout costs speed and nothing else.

log = logging.getLogger(__name__)

_NAMES: Final = (
    *kernels.ATTRIBUTES,
    *(name for name in BROWSER_LINKS if name not in kernels.ATTRIBUTES and ":" not in name),
    *(name for name in blocks.ATTRIBUTES if name not in {*kernels.ATTRIBUTES, *BROWSER_LINKS}),
    *("hreflang", "lang", "type"),
)
"""Attributes that kernels look for."""
_MARKUP: Final = (
    "".join(f"<i {name}=={name}></i>" for name in _NAMES)
    + "<p class=one id alt='' name='a&amp;b' lang>text é<b> </b><!-- c -->\n<x-iframe src=s>in"
    " it</x-iframe><svg><a xlink:href=x"
    " href=y>z</a><![CDATA[data]]></svg><a-name-of-its-own-that-is-long>end</a-name-of-its-own>"
)
_MOST_ATTRIBUTES: Final = 8


@cache
def attribute_numbers() -> dict[str, int] | None:
    """Lexbor's numbers of the attributes that kernels look for, where it has one; None if trees are
    laid out otherwise.
    """
    try:
        memory = os.open("/proc/self/mem", os.O_RDONLY)
    except OSError as error:
        log.info("pages are walked in Python: %s", error)
        return None
    try:
        if sys.byteorder != "little" or sys.maxsize < 1 << 32:
            raise _OtherLayout("a machine of another kind")
        return _Check(memory).run()
    except (_OtherLayout, OSError, OverflowError, ValueError) as error:
        log.warning(
            "pages are walked in Python: selectolax's trees are not as expected (%s)", error
        )
        return None
    finally:
        os.close(memory)


class _OtherLayout(Exception):
    """Something is not where it should be."""


class _Check:
    """Compares a page with what is in memory."""

    def __init__(self, memory: int) -> None:
        self._memory = memory

    def run(self) -> dict[str, int]:
        """Raises _OtherLayout or OSError at the first difference."""
        document = LexborHTMLParser(_MARKUP)
        attributes = {}
        for node in document.css("i"):
            [(name, value)] = self._attributes(node.mem_id)
            _same("attribute", value, f"={next(iter(node.attributes))}")
            if isinstance(name, int):
                attributes[value[1:]] = name
        root = document.root
        assert root is not None
        for node in root.traverse(include_text=True):
            self._node(node, attributes)
        return attributes

    def _node(self, node: LexborNode, attributes: dict[str, int]) -> None:
        address = node.mem_id
        for offset, other in (
            (kernels.NEXT, node.next),
            (kernels.PARENT, node.parent),
            (kernels.FIRST_CHILD, node.first_child),
        ):
            if other is not None or offset != kernels.PARENT:
                _same(
                    "node", self._word(address + offset), other.mem_id if other is not None else 0
                )
        _same("name", self._word(address + kernels.LOCAL_NAME), node.tag_id)
        kind = self._word(address + kernels.TYPE) & 0xFFFF_FFFF
        _same("text", kind == kernels.TEXT, node.is_text_node)
        _same("element", kind == kernels.ELEMENT, node.is_element_node)
        if node.is_text_node:
            _same("text", self._string(address + kernels.TEXT_STRING), node.text_content)
        elif node.is_element_node:
            if node.tag_id >= kernels.NUMBERED_NAMES:
                _same(
                    "name",
                    self._name(node.tag_id),
                    node.tag if len(node.tag or "") <= kernels.SHORT_NAME else None,
                )
            known = {number: name for name, number in attributes.items()}
            for (name, value), (expected, text) in zip(
                self._attributes(address), node.attributes.items(), strict=True
            ):
                _same("attribute", value, text or "")
                if expected in _NAMES:
                    _same("attribute", known.get(name) if isinstance(name, int) else name, expected)
                else:
                    _same("attribute", name in known, False)

    def _attributes(self, element: int) -> Iterator[tuple[int | str | None, str]]:
        """Number or name, and value, of each attribute."""
        attribute = self._word(element + kernels.FIRST_ATTRIBUTE)
        for _ in range(_MOST_ATTRIBUTES):
            if not attribute:
                return
            number = self._word(attribute + kernels.ATTRIBUTE_QUALIFIED) or self._word(
                attribute + kernels.LOCAL_NAME
            )
            value = self._word(attribute + kernels.ATTRIBUTE_VALUE)
            name = number if number < kernels.NUMBERED_NAMES else self._name(number)
            yield name, self._string(value) if value else ""
            attribute = self._word(attribute + kernels.ATTRIBUTE_NEXT)

    def _name(self, entry: int) -> str | None:
        """Returns a name that Lexbor has no number for; None if it is long."""
        size = self._word(entry + kernels.ENTRY_LENGTH)
        return self._bytes(entry, size).decode() if size <= kernels.SHORT_NAME else None

    def _string(self, address: int) -> str:
        data, size = (
            self._word(address + kernels.STRING_DATA),
            self._word(address + kernels.STRING_LENGTH),
        )
        return self._bytes(data, size).decode() if data else ""

    def _word(self, address: int) -> int:
        return int.from_bytes(self._bytes(address, 8), "little")

    def _bytes(self, address: int, size: int) -> bytes:
        if not 0 <= size <= len(_MARKUP):
            raise _OtherLayout(f"a size of {size}")
        data = os.pread(self._memory, size, address)
        _same("memory", len(data), size)
        return data


def _same(what: str, found: object, expected: object) -> None:
    if found != expected:
        raise _OtherLayout(f"{what}: expected {expected!r}, found {found!r}")


_ROOM: Final = 1 << 18
"""Bytes for a page's text, at first."""
_MOST_KEPT: Final = 1 << 24
"""Bytes beyond which room is not kept for the next page."""
_BYTES_PER_LINK: Final = 64
_BYTES_PER_HEAD: Final = 1024


def tree_reader(elements: Elements, *, inert: bool = False) -> TreeReader | None:
    """Returns a reader for these elements; None where pages have to be walked in Python. `inert`:
    what templates hold is not the page's.

    That is where Lexbor's trees are laid out in another way, for a line separator with a long name,
    and where links get metadata.
    """
    numbers = attribute_numbers()
    fits = all(len(name.encode()) <= kernels.SHORT_NAME for name in elements.separators)
    if numbers is None or not fits or elements.element_key:
        return None
    reader = TreeReader(elements, numbers, inert=inert)
    reader.read(LexborHTMLParser(""))  # loads the kernel
    return reader


class TreeReader:
    """Reads pages by the kernel. It runs without Python's lock, but has one set of buffers: one
    page at a time.
    """

    def __init__(self, elements: Elements, numbers: Mapping[str, int], *, inert: bool) -> None:
        self._elements = _element_tables(elements, inert)
        self._attributes = _attribute_tables(numbers)
        self._lock = Lock()
        self._found = np.zeros(kernels.SIDE_SIZE + 1, np.int64)
        self._make_room(_ROOM)

    def _make_room(self, size: int) -> None:
        """Room for a page with `size` bytes of text."""
        self._size = size
        text, side, spare = (np.empty(size, np.uint8) for _ in range(3))
        rows = np.empty((size // _BYTES_PER_LINK, kernels.ROW), np.int64)
        heads = np.empty((size // _BYTES_PER_HEAD, kernels.HEAD_ROW), np.int64)
        self._room = kernels.Room(text, side, spare, rows, heads)

    def read(
        self, document: LexborHTMLParser, *, marked: bool = False, rewritten: bool = False
    ) -> ParsedMarkup | None:
        """Returns the content of a page's tree; None if that takes Python, or if the page has to be
        rewritten first.
        """
        root = document.root
        if root is None:
            return ParsedMarkup()
        elements = self._elements
        if rewritten:
            unwanted = kernels.REWRITE | kernels.REWRITE_FILLED | kernels.REWRITE_SHADOW
            elements = elements._replace(kinds=elements.kinds & ~unwanted)
        tables = elements, self._attributes
        with self._lock:
            while True:
                end = kernels.walk(root.mem_id, *tables, self._room, self._found, marked)
                if end != kernels.FULL:
                    break
                self._make_room(2 * self._size)
            page = self._page() if end == kernels.DONE else None
            if self._size > _MOST_KEPT:
                self._make_room(_ROOM)
        return page

    def _page(self) -> ParsedMarkup:
        """Returns the page, from the kernel's buffers."""
        text_size, run_size, links, heads, title, title_end, side_size = self._found.tolist()
        text, side, run, _, rows = self._room
        page = ParsedMarkup(
            text[:text_size].tobytes(),
            text[title:title_end].tobytes().decode(),
            links=OutlinkRun(links, run[:run_size].tobytes()),
        )
        if heads:
            values = side[:side_size].tobytes()
            for row in rows[:heads].tolist():
                (page.bases if row[0] else page.metas).append(_head_attributes(values, row))
            page.base = first_base(page.bases)
        return page


def _head_attributes(values: bytes, row: Sequence[int]) -> dict[str, str]:
    """Returns the attributes of an element of the head, whose values lie between a row's bounds."""
    _, name, name_end, content, content_end, equivalent, _, target, _ = row
    if name >= 0 and content >= 0 and equivalent < 0 and target < 0:  # nearly all
        return {NAME: values[name:name_end].decode(), CONTENT: values[content:content_end].decode()}
    attributes = zip(HEAD_ATTRIBUTES, row[1::2], row[2::2], strict=True)
    return {key: values[start:end].decode() for key, start, end in attributes if start >= 0}


def _element_tables(elements: Elements, inert: bool) -> kernels.ElementRows:
    """Returns the elements as the kernel's argument."""
    flags = _flags(elements, inert)
    document = LexborHTMLParser("")
    numbers = {name: document.create_node(name).tag_id for name in flags}
    unknown = [name for name, number in numbers.items() if number >= kernels.NUMBERED_NAMES]
    numbers |= {name: kernels.NUMBERED_NAMES + index for index, name in enumerate(unknown)}
    kinds, targets = np.zeros((2, kernels.NUMBERED_NAMES + len(unknown)), np.int64)
    for name, number in numbers.items():
        kinds[number] = flags[name]
        if name in elements.link_attributes:
            targets[number] = kernels.ATTRIBUTES.index(elements.link_attributes[name])
    return kernels.ElementRows(kinds, targets, *_names(unknown))


def _flags(elements: Elements, inert: bool) -> dict[str, int]:
    """Element → what is special about it."""
    flags: dict[str, int] = {}
    for flag, names in (
        (kernels.LINK, elements.link_attributes),
        (kernels.SEPARATOR, elements.separators),
        (kernels.SILENT, SILENT),
        (kernels.NEEDS_CONTENT, NEEDS_CONTENT),
        (kernels.BODY, ("body",)),
        (kernels.META, ("meta",)),
        (kernels.BASE, ("base",)),
        (kernels.TITLE, ("title",)),
        (kernels.IMAGE, ("img",)),
        (kernels.REWRITE_SHADOW if inert else kernels.REWRITE, REWRITTEN),
        (kernels.REWRITE_FILLED, REWRITTEN_IF_FILLED),
    ):
        for name in names:
            flags[name] = flags.get(name, 0) | flag
    return flags


def _attribute_tables(numbers: Mapping[str, int]) -> kernels.Attributes:
    """Returns the attributes that matter as the kernel's argument."""
    slots = np.full(kernels.NUMBERED_NAMES, -1, np.int64)
    for slot, name in enumerate(kernels.ATTRIBUTES):
        if name in numbers:
            slots[numbers[name]] = slot
    values = np.zeros((len(kernels.ATTRIBUTES), 2), np.int64)
    return kernels.Attributes(slots, *_names(kernels.ATTRIBUTES), values)


def _names(names: Sequence[str]) -> tuple[Any, Any]:
    """Names as an array of bytes, and their sizes."""
    data = [name.encode() for name in names]
    padded = b"".join(name[: kernels.SHORT_NAME].ljust(kernels.SHORT_NAME, b"\0") for name in data)
    return np.frombuffer(padded, np.uint8).reshape(-1, kernels.SHORT_NAME), np.array(
        [*map(len, data)], np.int64
    )


class Copier:
    """Room for texts that a kernel copies out of a tree, those of one page at a time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._room, self._ends = np.empty(_ROOM, np.uint8), np.empty(_ROOM >> 6, np.int64)

    def copied(
        self, kernel: Callable[..., int], root: LexborNode | None, *asked: Any
    ) -> list[bytes]:
        """Returns what a kernel copies of a tree, which is given its root, `asked` and room."""
        if root is None:
            return []
        with self._lock:
            room, ends = self._room, self._ends
            while (count := kernel(root.mem_id, *asked, room, ends)) == FULL:
                room, ends = np.empty(2 * len(room), np.uint8), np.empty(2 * len(ends), np.int64)
            if len(room) <= _MOST_KEPT:
                self._room, self._ends = room, ends
            if not count:
                return []
            bounds = ends[:count].tolist()
            data = room[: bounds[-1]].tobytes()
        return [data[start:end] for start, end in zip([0, *bounds], bounds, strict=False)]


def names_of(
    flags: Mapping[str, int], numbers: Mapping[str, int], groups: Mapping[str, int]
) -> Names:
    """Returns names as the kernel takes them."""
    slots = np.full(kernels.NUMBERED_NAMES, -1, np.int64)
    for place, name in enumerate(flags):
        if numbers.get(name, kernels.NUMBERED_NAMES) < kernels.NUMBERED_NAMES:
            slots[numbers[name]] = place
    return Names(
        slots,
        *_names([*flags]),
        np.array([*flags.values()], np.int64),
        np.array([groups.get(name, 0) for name in flags], np.int64),
    )


_ANY: Final = re.compile(b"")


class ValueFinder:
    """Finds what elements of a kind, or all, have in a few attributes, if they have the first of
    these: by a kernel, or by a selector where trees are laid out otherwise.
    """

    def __init__(self, tag: str, *attributes: str) -> None:
        self._selector, self._attributes = f"{tag}[{attributes[0]}]", attributes
        self._copier = Copier()
        self.asked: tuple[int, Names] | None = None
        if (numbers := attribute_numbers()) is not None:
            number = LexborHTMLParser("").create_node(tag).tag_id if tag else 0
            self.asked = number, names_of(dict.fromkeys(attributes, 0), numbers, {})

    def find(
        self, root: LexborNode | None, wanted: re.Pattern[bytes] = _ANY
    ) -> Iterator[tuple[str, ...]]:
        """Yields the values of each element, in order; those that are not there are empty. `wanted`
        finds something in the first of those that count.
        """
        if self.asked is not None:
            found = self._copier.copied(find_values, root, *self.asked)
            for values in zip(*[iter(found)] * len(self._attributes), strict=True):
                if wanted.search(values[0]):
                    yield tuple(map(bytes.decode, values))
        elif root is not None:
            for node in root.css(self._selector):
                own, first = node.attributes, self._attributes[0]
                if first in own and wanted.search(encode_text(own[first] or "")):
                    yield tuple(own.get(name) or "" for name in self._attributes)
