"""parse-canonical: stores a page's canonical link, made absolute, in the parse metadata as
`minutch.canonical`.

It is that of the first `<link rel=canonical>` in the head, which is relative to the base element,
or else of the first Link header with that relation.

Where elements or headers name versions of the page in other languages (`rel=alternate hreflang`),
of these the languages are kept that the page itself is in (`HREFLANG_KEY`) and those that its
canonical link's is in, if that is another page (`VERSIONS_KEY`), with blanks between.
Sources: RFC 6596, section 3; RFC 8288, section 3.3 and 3.4.1; HTML standard, 4.6.7.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Final

from minutch.conf import Configuration
from minutch.errors import UrlError
from minutch.plugin.points import HTMLMetaTags, HtmlParseFilter, ParseResult
from minutch.records.metadata import CANONICAL_KEY, HREFLANG_KEY, VERSIONS_KEY
from minutch.records.protocol import Content
from minutch.urls.resolve import resolver_class
from minutch.urls.urlkeys import url_key

from ..lib_html.elements import in_link_header

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

_RELATION: Final = re.compile(r";\s*rel\s*=\s*(?:\"([^\"]*)\"|([^\s;,\"]+))", re.IGNORECASE)
_LANGUAGE: Final = re.compile(r";\s*hreflang\s*=\s*\"?([A-Za-z0-9-]+)", re.IGNORECASE)
_TAG: Final = re.compile(r"[a-z]{2,8}(-[a-z0-9]{1,8})*")
_CANONICAL, _ALTERNATE = "canonical", "alternate"
_LINKS: Final = f"link[href][rel*={_CANONICAL} i], link[href][rel*={_ALTERNATE} i]"
_MOST: Final = 1000
"""Links that are looked at, of a kind; sites have a version for each of some dozens of markets."""


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
        canonical, versions = None, set[tuple[str, str]]()
        for base, target, relations, language in self._links(content, metatags, document):
            is_canonical = canonical is None and _CANONICAL in relations
            is_version = _ALTERNATE in relations and _TAG.fullmatch(language)
            if not (is_canonical or is_version):
                continue
            try:
                url = self._resolver(base).resolve(target)
            except UrlError:
                continue
            canonical = url if is_canonical else canonical
            if is_version:
                versions.add((url_key(url), language))
        metadata = result[content.url].data.parse_meta
        if canonical is not None:
            metadata.set(CANONICAL_KEY, canonical)
        own = url_key(content.url)
        other = own if canonical is None else url_key(canonical)
        for name, key in {HREFLANG_KEY: own, VERSIONS_KEY: other}.items():
            if languages := sorted({language for url, language in versions if url == key}):
                metadata.set(name, " ".join(languages))
            if other == own:
                break
        return result

    @staticmethod
    def _links(
        content: Content, metatags: HTMLMetaTags, document: LexborHTMLParser
    ) -> Iterator[tuple[str, str, list[str], str]]:
        """Yields links with a relation: what they are relative to, where they lead, their relations
        and language. Elements come first.
        """
        head = document.head
        for node in islice([] if head is None else head.css(_LINKS), _MOST):
            attributes = node.attributes
            if target := (attributes["href"] or "").strip():
                relations = (attributes["rel"] or "").lower().split()
                language = (attributes.get("hreflang") or "").strip().lower()
                yield metatags.base_href or content.base, target, relations, language
        links = (
            one for value in content.metadata.field_values("Link") for one in in_link_header(value)
        )
        for target, rest in islice(links, _MOST):
            if found := _RELATION.search(rest):
                language = named[1].lower() if (named := _LANGUAGE.search(rest)) else ""
                yield content.url, target, (found[1] or found[2] or "").lower().split(), language
