"""parse-ids: stores what a fragment may point to in the parse metadata of an HTML page, as
`minutch.ids`: each element's id, and the names of `a` elements, with blanks between them.

An id with a blank in it is none (HTML Standard, 3.2.6), and is left out. Source: HTML Standard,
7.4.6.4 ("select the indicated part").
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from minutch.plugin.points import HTMLMetaTags, HtmlParseFilter, ParseResult
from minutch.records.metadata import IDS_KEY
from minutch.records.protocol import Content

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser


class IdParseFilter(HtmlParseFilter):
    """The filter; see the module."""

    def filter(
        self,
        content: Content,
        result: ParseResult,
        metatags: HTMLMetaTags,
        document: LexborHTMLParser,
    ) -> ParseResult:
        found = " ".join(dict.fromkeys(self._ids(document)))
        result[content.url].data.parse_meta.set(IDS_KEY, found)
        return result

    @staticmethod
    def _ids(document: LexborHTMLParser) -> Iterator[str]:
        for selector, attribute in (("[id]", "id"), ("a[name]", "name")):
            for node in document.css(selector):
                value = node.attributes[attribute]
                if value and len(value.split()) == 1 and value == value.strip():
                    yield value
