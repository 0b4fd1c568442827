"""headings: stores the texts of HTML elements in the parse metadata under the element's name.

`headings` lists the elements (h1,h2); the first of each counts, all with `headings.multivalued`.
Source: org.apache.nutch.parse.headings.HeadingsParseFilter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from minutch.conf import Configuration
from minutch.plugin.points import HTMLMetaTags, HtmlParseFilter, ParseResult
from minutch.records.protocol import Content

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

_BLANKS = re.compile(r"[ \t\n\x0b\f\r]+")
_TRIMMED = "".join(map(chr, range(0x21)))


class HeadingsParseFilter(HtmlParseFilter):
    """The filter; see the module."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self.names = conf.get_strings("headings")
        self.multivalued = conf.get_boolean("headings.multivalued")

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
        nodes = document.tags(name.lower()) if re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", name) else []
        for node in nodes if self.multivalued else nodes[:1]:
            yield _BLANKS.sub(" ", node.text()).strip(_TRIMMED)
