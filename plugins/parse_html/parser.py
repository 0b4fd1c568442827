"""parse-html: parses pages as browsers do (selectolax, Lexbor), and stores them as Nutch does.

Source: org.apache.nutch.parse.html.HtmlParser. noindex leaves text and title empty, nofollow the
links; a meta refresh makes the status a redirect; noarchive (or Pragma: no-cache) sets
caching.forbidden for the index.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from minutch.conf import Configuration
from minutch.plugin.points import Parser, ParseResult
from minutch.records.protocol import Content

from ..lib_html.pages import HtmlPages


class HtmlParser(Parser):
    """The parser; see the module."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self._pages = HtmlPages(conf)

    def get_parse(self, content: Content) -> ParseResult:
        """One document under the content's URL. Raises UrlError where its base is none."""
        return self._pages.parse(content)

    def markdown(
        self,
        content: Content,
        anchors: dict[int, str] | None = None,
        kept: Collection[int] | None = None,
    ) -> str:
        """Returns the Markdown of the page's text."""
        return self._pages.markdown(content, anchors, kept)
