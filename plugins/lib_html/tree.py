"""Trees of pages, as browsers build them, except that the content of iframe and template is markup like any other.

Nutch's parser does the same. In such a page these elements get names that mean nothing to HTML.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, SelectolaxError

from minutch.errors import ParseError

RENAMED: Final[Mapping[str, str]] = {"iframe": "x-iframe"}
"""Element with links → its name in a rewritten page, if it has content."""

_TEMPLATE: Final = re.compile(rb"(</?)template\b", re.IGNORECASE)
_FILLED_IFRAME: Final = re.compile(
    rb"<iframe\b([^>]*)>(?!\s*</)([^<]*(?:<(?!/iframe)[^<]*)*)</iframe\s*>", re.IGNORECASE
)


def build_tree(data: bytes) -> LexborHTMLParser:
    """The tree of a page in UTF-8, rewritten where it has to be."""
    document = plain_tree(data)
    return _rewritten_tree(data) if _is_to_be_rewritten(document) else document


def plain_tree(data: bytes) -> LexborHTMLParser:
    """The tree of a page as it stands. Raises ParseError where memory is short."""
    try:
        return LexborHTMLParser(data, options=LexborDocumentOptions.WO_EVENTS)
    except SelectolaxError as error:
        raise ParseError(f"no tree of {len(data)} bytes: {error}") from error


def _rewritten_tree(data: bytes) -> LexborHTMLParser:
    """The tree of a page with a template element, or an iframe with content."""
    data = _FILLED_IFRAME.sub(rb"<x-iframe\1>\2</x-iframe>", data)
    return plain_tree(_TEMPLATE.sub(rb"\1x-template", data))


def _is_to_be_rewritten(document: LexborHTMLParser) -> bool:
    return any(node.tag == "template" or node.first_child is not None for node in document.css("template, iframe"))
