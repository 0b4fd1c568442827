r"""Text, title and links of an HTML tree, as Nutch's DOMContentUtils takes them from its own.

One walk over the tree collects everything:

    text     every text node but those of script and style (the title's included), blanks folded, joined by a blank;
             by a line end where a node is one of parser.html.line.separators or follows one, and where a text node
             is nothing but blanks
    title    the text of the first title before the body
    links    the elements of `link_attributes`, with the text inside for an anchor, else the alternative texts of its
             images; elements with rel=nofollow, method=post or (a, form) without anything inside are left out

"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from selectolax.lexbor import LexborHTMLParser

from minutch.conf import Configuration

from .tree import RENAMED, build_tree, plain_tree
from .walk import SILENT, Page, Walk

if TYPE_CHECKING:
    from .tree_reader import TreeReader

log = logging.getLogger(__name__)

MANY_PAGES: Final = 200
"""From here on the kernel is worth its loading."""
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
_ALLOCATOR: Final = {-1: 256 << 20, -2: 16 << 20, -3: 32 << 20}
"""mallopt: M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD in bytes."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What counts, as configured."""

    link_attributes: Mapping[str, str]
    separators: frozenset[str]
    interesting: frozenset[str]
    """All elements that mean something."""
    element_key: str
    """The key under which a link's metadata names its element; empty for none."""

    @classmethod
    def of(cls, conf: Configuration) -> Rules:
        """The rules of a configuration."""
        attributes = link_attributes(conf)
        separators = frozenset(conf.get_trimmed_strings("parser.html.line.separators"))
        names = {"base", "body", "meta", "title", *SILENT, *attributes}
        element_key = conf.get("parser.html.outlinks.htmlnode_metadata_name") or ""
        return cls(attributes, separators, frozenset(names | separators), element_key)


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


class Extractor:
    """Makes trees and walks them by the configured rules."""

    def __init__(self, conf: Configuration) -> None:
        self.rules = Rules.of(conf)
        self._reader: TreeReader | None = None
        self._pages = 0

    def warm(self) -> None:
        """Get ready for many pages: load (at the very first time: compile) the kernel, in about 0.4 s (3 s)."""
        self._pages = MANY_PAGES
        _keep_memory()
        if self.rules.element_key:
            return
        try:
            from .tree_reader import tree_reader

            self._reader = tree_reader(self.rules)
        except (ImportError, MemoryError) as error:
            log.warning("pages are walked in Python: %s", error or "no memory for the kernel")

    def read(self, data: bytes, *, marked: bool = False) -> tuple[LexborHTMLParser, Page]:
        """The tree of a page in UTF-8, and everything about it; `marked` pages had a byte order mark before it.

        The mark is a text of its own then, as it is for Nutch.
        """
        if self._pages < MANY_PAGES:
            self._pages += 1
            if self._pages == MANY_PAGES:
                self.warm()
        if self._reader is None:
            return self.read_slowly(data, marked=marked)
        return self.read_quickly(self._reader, data, marked=marked)

    def read_slowly(self, data: bytes, *, marked: bool = False) -> tuple[LexborHTMLParser, Page]:
        """By the walk in Python."""
        document = build_tree(data if data.isascii() else clean(data))
        return document, Walk(self.rules).page(document, marked=marked)

    def read_quickly(self, reader: TreeReader, data: bytes, *, marked: bool = False) -> tuple[LexborHTMLParser, Page]:
        """By the kernel."""
        if not data.isascii() and not reader.is_utf8(data):
            data = clean(data)
        document = plain_tree(data)
        page = reader.read(document, marked=marked)
        if page is None:
            document = build_tree(data)
            page = reader.read(document, marked=marked, rewritten=True)
        return document, page or Walk(self.rules).page(document, marked=marked)


def clean(data: bytes) -> bytes:
    """The same with U+FFFD for what is not UTF-8."""
    return data.decode("utf-8", "replace").encode()


@cache
def _keep_memory() -> None:
    """Have the C library keep the memory of a tree for the next one: asking for it anew is half of Lexbor's time."""
    with suppress(OSError, AttributeError):  # only glibc has this
        library = ctypes.CDLL(None)
        for parameter, value in _ALLOCATOR.items():
            library.mallopt(parameter, value)
