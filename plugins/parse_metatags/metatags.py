"""parse-metatags: stores meta tags of HTML pages in the parse metadata as `metatag.NAME`, for
index-metadata.

`metatags.names` lists the names (of name= and http-equiv= alike), `*` or nothing means all.
Source: org.apache.nutch.parse.metatags.MetaTagsParser.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from minutch.conf import Configuration
from minutch.hadoop.formats.javahash import property_names_order
from minutch.plugin.points import HTMLMetaTags, HtmlParseFilter, ParseResult
from minutch.records.protocol import Content

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

PREFIX = "metatag."


class MetaTagsParser(HtmlParseFilter):
    """The filter; see the module."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self.names = {name.lower() for name in conf.get_strings("metatags.names")}

    def filter(
        self,
        content: Content,
        result: ParseResult,
        metatags: HTMLMetaTags,
        document: LexborHTMLParser,
    ) -> ParseResult:
        metadata = result[content.url].data.parse_meta
        for name, values in metatags.general_tags.items():
            if self._is_wanted(name):
                for value in values:
                    metadata.add(PREFIX + name, value)
        # HTMLMetaTags has these in a Properties, whose order is its hash's.
        named = [*metatags.http_equiv_tags]
        for name in property_names_order(named) if named else ():
            if self._is_wanted(name):
                metadata.add(PREFIX + name, metatags.http_equiv_tags[name])
        return result

    def _is_wanted(self, name: str) -> bool:
        return "*" in self.names or name in self.names
