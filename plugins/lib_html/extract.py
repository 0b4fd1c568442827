r"""Extracts text, title and links from an HTML tree, as Nutch's DOMContentUtils does.

One walk over the tree collects everything:

    text     every text node but those of script and style (the title's included), blanks folded,
             joined by a blank; by a line end where a node is one of parser.html.line.separators or
             follows one, and where a text node is nothing but blanks
    title    the text of the first title before the body
    links    the elements of `LINK_ATTRIBUTES`, with the text inside for an anchor, else the
             alternative texts of its images; elements with rel=nofollow, method=post or (a, form)
             without anything inside are left out

The walk is the kernel of `tree_reader`. The one in Python (`walk`) takes its place where Lexbor's
trees are not laid out as the kernel expects (`tree_layout`, asked once), and for what the kernel
leaves to it: metadata of links (parser.html.outlinks.htmlnode_metadata_name) and `nofollow` beside
characters that are not ASCII.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress
from functools import cache, cached_property
from typing import Final

from selectolax.lexbor import LexborHTMLParser

from minutch.conf import Configuration

from .elements import Elements
from .limits import Limits
from .tree import build_tree, plain_tree
from .tree_reader import TreeReader, tree_reader
from .walk import ParsedMarkup, Walk

_ALLOCATOR: Final = {-1: 256 << 20, -2: 16 << 20, -3: 32 << 20}
"""mallopt: M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD in bytes."""


class Extractor:
    """Makes trees and walks them as configured."""

    def __init__(self, conf: Configuration) -> None:
        self.elements = Elements.of(conf)
        self._limits = Limits(conf)
        self._inert = not conf.get_boolean("parser.html.templates")

    @cached_property
    def _reader(self) -> TreeReader | None:
        """The kernel's side; None if pages are walked in Python. With it, memory is kept for the
        trees of all pages.
        """
        _keep_memory()
        return tree_reader(self.elements)

    def read(self, data: bytes, *, marked: bool = False) -> tuple[LexborHTMLParser, ParsedMarkup]:
        """Returns the tree of a page in UTF-8, and everything about it; `marked` pages had a byte
        order mark before it.

        The mark is a text of its own then, as it is for Nutch. Raises ParseError for a page beyond
        the limits.
        """
        self._limits.check(data)
        if self._reader is None:
            return self.read_in_python(data, marked=marked)
        return self.read_by_kernel(self._reader, data, marked=marked)

    def read_in_python(
        self, data: bytes, *, marked: bool = False
    ) -> tuple[LexborHTMLParser, ParsedMarkup]:
        """Reads the page by the walk in Python."""
        document = build_tree(data if data.isascii() else clean(data), inert=self._inert)
        return document, Walk(self.elements).page(document, marked=marked)

    def read_by_kernel(
        self, reader: TreeReader, data: bytes, *, marked: bool = False
    ) -> tuple[LexborHTMLParser, ParsedMarkup]:
        """Parses and reads a page by the kernel, or by a walk over the tree if the kernel can't."""
        if not data.isascii():
            data = clean(data)
        document = plain_tree(data)
        page = reader.read(document, marked=marked)
        if page is None:
            document = build_tree(data, inert=self._inert)
            page = reader.read(document, marked=marked, rewritten=True)
        return document, page or Walk(self.elements).page(document, marked=marked)


def clean(data: bytes) -> bytes:
    """Returns the same with U+FFFD in place of invalid UTF-8."""
    return data.decode("utf-8", "replace").encode()


@cache
def _keep_memory() -> None:
    """Have the C library keep the memory of a tree for the next one: allocating it takes half of
    Lexbor's time.
    """
    with suppress(OSError, AttributeError):  # only glibc has this
        library = ctypes.CDLL(None)
        for parameter, value in _ALLOCATOR.items():
            library.mallopt(parameter, value)
