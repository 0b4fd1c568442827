"""Parses Markdown: its text without marks, its first heading as the title, its links."""

import re
from urllib.parse import urljoin

from minutch.plugin.points import Parse, Parser, ParseResult
from minutch.records.links import Outlink
from minutch.records.parsedata import SUCCESS, ParseData, ParseStatus
from minutch.records.protocol import Content

_LINK = re.compile(r"\[([^\]\n]*)\]\(([^)\s]+)\)")
_MARKS = re.compile(r"^#+\s*|[*_`]+", re.MULTILINE)


class MarkdownParser(Parser):
    """The parser of the types that `contentType` in plugin.xml names."""

    def get_parse(self, content: Content) -> ParseResult:
        """Returns the parse of a page. An exception is a failed parse of this page alone."""
        source = content.content.decode("utf-8", "replace")
        links = [
            Outlink(urljoin(content.base or content.url, target), words)
            for words, target in _LINK.findall(source)
        ]
        text = _MARKS.sub("", _LINK.sub(r"\1", source))
        title = next((line[2:].strip() for line in source.splitlines() if line[:2] == "# "), "")
        data = ParseData(ParseStatus(SUCCESS), title, links, content.metadata)
        return ParseResult.of(content.url, Parse(text, data))
