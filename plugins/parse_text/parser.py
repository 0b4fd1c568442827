"""parse-text: keeps plain text unchanged, with its URLs as links and no title.

Nutch had this plugin until 1.3 and leaves plain text to parse-tika today; `minutch` keeps it under
its old id.
"""

from __future__ import annotations

from collections.abc import Mapping

from minutch.conf import Configuration
from minutch.cycle.parse.charset import CharsetDetector
from minutch.cycle.parse.outlinks import text_outlinks
from minutch.plugin.points import Parse, Parser, ParseResult
from minutch.records.metadata import (
    CHAR_ENCODING_FOR_CONVERSION_KEY,
    ORIGINAL_CHAR_ENCODING_KEY,
    Metadata,
)
from minutch.records.parsedata import SUCCESS, ParseData, ParseStatus
from minutch.records.protocol import Content


class TextParser(Parser):
    """The parser; see the module."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self._charsets = CharsetDetector(conf)

    def get_parse(self, content: Content) -> ParseResult:
        """Returns one document, always a success."""
        charset = self._charsets.charset_of(content)
        text = charset.decode(content.content)
        metadata = Metadata()
        metadata.set(ORIGINAL_CHAR_ENCODING_KEY, charset.name)
        metadata.set(CHAR_ENCODING_FOR_CONVERSION_KEY, charset.name)
        data = ParseData(ParseStatus(SUCCESS), "", text_outlinks(text), content.metadata, metadata)
        return ParseResult.of(content.url, Parse(text, data))
