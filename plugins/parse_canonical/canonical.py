"""parse-canonical: stores a page's canonical link, made absolute, in the parse metadata as
`minutch.canonical`.

It is that of the first `<link rel=canonical>` in the head, which is relative to the base element,
or else of the first Link header with that relation. Sources: RFC 6596, section 3; RFC 8288, section
3.3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from minutch.conf import Configuration
from minutch.errors import UrlError
from minutch.plugin.points import HTMLMetaTags, HtmlParseFilter, ParseResult
from minutch.records.metadata import CANONICAL_KEY
from minutch.records.protocol import Content
from minutch.urls.resolve import resolver_class

from ..lib_html.elements import in_link_header

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

_RELATION: Final = re.compile(r";\s*rel\s*=\s*(?:\"([^\"]*)\"|([^\s;,\"]+))", re.IGNORECASE)
_CANONICAL: Final = "canonical"


class CanonicalParseFilter(HtmlParseFilter):
    """The filter; see the module."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self._resolver = resolver_class(conf)

    def filter(
        self,
        content: Content,
        result: ParseResult,
        metatags: HTMLMetaTags,
        document: LexborHTMLParser,
    ) -> ParseResult:
        for base, target in self._links(content, metatags, document):
            try:
                url = self._resolver(base).resolve(target)
            except UrlError:
                continue
            result[content.url].data.parse_meta.set(CANONICAL_KEY, url)
            break
        return result

    @staticmethod
    def _links(
        content: Content, metatags: HTMLMetaTags, document: LexborHTMLParser
    ) -> Iterator[tuple[str, str]]:
        """Yields canonical links, each with what it is relative to."""
        head = document.head
        for node in [] if head is None else head.css("link[href]"):
            relation = (node.attributes.get("rel") or "").lower().split()
            if _CANONICAL in relation and (target := (node.attributes["href"] or "").strip()):
                yield metatags.base_href or content.base, target
        for value in content.metadata.field_values("Link"):
            for target, rest in in_link_header(value):
                if (found := _RELATION.search(rest)) and _CANONICAL in (
                    found[1] or found[2] or ""
                ).lower().split():
                    yield content.url, target
