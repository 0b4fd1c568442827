"""headings: stores the texts of HTML elements in the parse metadata under the element's name.

`headings` lists the elements (h1,h2); the first of each counts, all with `headings.multivalued`.
Source: org.apache.nutch.parse.headings.HeadingsParseFilter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property

from selectolax.lexbor import LexborHTMLParser

from minutch.conf import Configuration
from minutch.kernels.html import NUMBERED_NAMES
from minutch.kernels.occurrences import find_texts
from minutch.plugin.points import HTMLMetaTags, HtmlParseFilter, ParseResult
from minutch.records.protocol import Content

from ..lib_html.tree_reader import Copier, attribute_numbers

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_BLANKS = re.compile(r"[ \t\n\x0b\f\r]+")
_TRIMMED = "".join(map(chr, range(0x21)))


class HeadingsParseFilter(HtmlParseFilter):
    """The filter; see the module."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self.names = conf.get_strings("headings")
        self.multivalued = conf.get_boolean("headings.multivalued")
        self._copier = Copier()

    def filter(
        self,
        content: Content,
        result: ParseResult,
        metatags: HTMLMetaTags,
        document: LexborHTMLParser,
    ) -> ParseResult:
        metadata = result[content.url].data.parse_meta
        for name in self.names:
            for heading in self._texts(document, name):
                if heading:
                    metadata.add(name, heading)
        return result

    def _texts(self, document: LexborHTMLParser, name: str) -> Iterator[str]:
        """Yields the texts of the elements, blanks folded; all text counts, scripts', too."""
        # A kernel finds the elements that Lexbor numbers without an object for each node.
        number = self._numbers.get(name)
        if number is not None:
            found = self._copier.copied(find_texts, document.root, number)
            for text in found if self.multivalued else found[:1]:
                yield b" ".join(text.split()).decode().strip(_TRIMMED)
            return
        nodes = document.tags(name.lower()) if _NAME.fullmatch(name) else []
        for node in nodes if self.multivalued else nodes[:1]:
            yield _BLANKS.sub(" ", node.text()).strip(_TRIMMED)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """The elements that a kernel knows, with Lexbor's numbers."""
        # Another Lexbor than the kernels know: nodes are asked one by one.
        if attribute_numbers() is None:
            return {}
        names = [name for name in self.names if _NAME.fullmatch(name)]
        made = LexborHTMLParser("").create_node
        numbers = {name: made(name.lower()).tag_id for name in names}
        return {name: number for name, number in numbers.items() if number < NUMBERED_NAMES}
