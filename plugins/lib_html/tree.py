"""Parses pages to trees as browsers do, after `rewriting` has changed some markup as Nutch's parser
reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, SelectolaxError

from minutch.errors import ParseError

from .rewriting import rewrite

RENAMED: Final[Mapping[str, str]] = {"iframe": "x-iframe"}
"""Element with links → its name in a rewritten page."""
REWRITTEN: Final = ("template",)
_SHADOWS: Final = ("template[shadowrootmode]",)
REWRITTEN_IF_FILLED: Final = ("iframe", "noembed", "noframes", "xmp")
"""Elements for which a page may have to be rewritten; the latter if they have content."""


def build_tree(data: bytes, *, inert: bool = False) -> LexborHTMLParser:
    """Returns the tree of a page in UTF-8, rewritten where it has to be. `inert`: what templates
    hold is not in it.
    """
    document = plain_tree(data)
    wanted = _is_to_be_rewritten(document, _SHADOWS if inert else REWRITTEN)
    return plain_tree(rewrite(data, inert=inert)) if wanted else document


def plain_tree(data: bytes) -> LexborHTMLParser:
    """Returns the tree of a page as it stands. Raises ParseError where memory is short."""
    try:
        return LexborHTMLParser(data, options=LexborDocumentOptions.WO_EVENTS)
    except SelectolaxError as error:
        raise ParseError(f"no tree of {len(data)} bytes: {error}") from error


def _is_to_be_rewritten(document: LexborHTMLParser, rewritten: Sequence[str]) -> bool:
    found = document.css(", ".join((*rewritten, *REWRITTEN_IF_FILLED)))
    return any(node.tag in REWRITTEN or node.first_child is not None for node in found)
