"""parsefilter-debug: stores the tree of a page as HTML under `DOM` in the parse metadata, for
inspection.

Source: org.apache.nutch.parsefilter.debug.DebugParseFilter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minutch.plugin.points import HTMLMetaTags, HtmlParseFilter, ParseResult
from minutch.records.protocol import Content

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

DOM = "DOM"


class DebugParseFilter(HtmlParseFilter):
    """The filter; see the module."""

    def filter(
        self,
        content: Content,
        result: ParseResult,
        metatags: HTMLMetaTags,
        document: LexborHTMLParser,
    ) -> ParseResult:
        result[content.url].data.parse_meta.set(DOM, document.html or "")
        return result
