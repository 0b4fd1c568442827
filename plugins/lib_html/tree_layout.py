"""Checks that Lexbor's trees are laid out in memory as the kernel `html` expects.

A small page is read twice: by selectolax, and by the kernel's offsets through /proc/self/mem, which
answers a wrong address with an error where a kernel would crash the process. The kernel is used
only if both agree on every node, text and attribute; so a version of selectolax with another layout
costs speed and nothing else.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from functools import cache
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from minutch.kernels import html as kernels

from .linkkinds import LINK_ATTRIBUTES

log = logging.getLogger(__name__)

_NAMES: Final = (
    *kernels.ATTRIBUTES,
    *(name for name in LINK_ATTRIBUTES if name not in kernels.ATTRIBUTES and ":" not in name),
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
