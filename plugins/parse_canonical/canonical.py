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
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from minutch.conf import Configuration
from minutch.errors import UrlError
from minutch.plugin.points import HTMLMetaTags, HtmlParseFilter, ParseResult
from minutch.records.metadata import CANONICAL_KEY, HREFLANG_KEY, VERSIONS_KEY
from minutch.records.protocol import Content
from minutch.urls.resolve import Resolver, WhatwgResolver, resolver_class
from minutch.urls.urlkeys import url_key

from ..lib_html.elements import in_link_header, relation_of
from ..lib_html.tree_reader import ValueFinder

_LANGUAGE: Final = re.compile(r";\s*hreflang\s*=\s*\"?([A-Za-z0-9-]+)", re.IGNORECASE)
_TAG: Final = re.compile(r"[a-z]{2,8}(-[a-z0-9]{1,8})*")
_CANONICAL, _ALTERNATE = "canonical", "alternate"
_WANTED: Final = re.compile(rb"canonical|alternate", re.IGNORECASE)
_MOST: Final = 1000
"""Links that are looked at, of a kind; sites have a version for each of some dozens of markets."""


class CanonicalParseFilter(HtmlParseFilter):
    """The filter; see the module."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self._resolver = resolver_class(conf)
        self.finder = ValueFinder("link", "rel", "href", "hreflang")

    def filter(
        self,
        content: Content,
        result: ParseResult,
        metatags: HTMLMetaTags,
        document: LexborHTMLParser,
    ) -> ParseResult:
        canonical, versions = None, set[tuple[str, str]]()
        # RFC 8288, 3.1: a header's link is relative to the URL itself, whatever the page's base
        # says.
        base_of_elements = metatags.base_href or content.base
        found = chain(
            ((base_of_elements, *one) for one in self._elements(document.head)),
            # Behind the elements: the page itself is nearer than a server that adds headers.
            ((content.url, *one) for one in _headers(content)),
        )
        for url, is_canonical, language in self._wanted(found):
            canonical = url if is_canonical else canonical
            if language:
                versions.add((url_key(url), language))
        metadata = result[content.url].data.parse_meta
        if canonical is not None:
            metadata.set(CANONICAL_KEY, canonical)
        if not versions:
            return result
        own = url_key(content.url)
        other = own if canonical is None else url_key(canonical)
        for name, key in {HREFLANG_KEY: own, VERSIONS_KEY: other}.items():
            if languages := sorted({language for url, language in versions if url == key}):
                metadata.set(name, " ".join(languages))
            # One key is enough where the page is its own canonical link.
            if other == own:
                break
        return result

    def _wanted(
        self, found: Iterable[tuple[str, str, str, str]]
    ) -> Iterator[tuple[str, bool, str]]:
        """Yields the first canonical link and all versions: URL, whether it is canonical, and the
        language if it is a version.
        """
        has_canonical, resolvers = False, dict[str, Resolver | WhatwgResolver]()
        for base, target, relation, language in found:
            relations = relation.lower().split()
            is_canonical = not has_canonical and _CANONICAL in relations
            is_version = _ALTERNATE in relations and _TAG.fullmatch(language)
            if not (is_canonical or is_version):
                continue
            try:
                # A page may have dozens of versions: its base is parsed once.
                if base not in resolvers:
                    resolvers[base] = self._resolver(base)
                url = resolvers[base].resolve(target)
            except UrlError:
                continue
            has_canonical |= is_canonical
            yield url, is_canonical, language if is_version else ""

    def _elements(self, head: LexborNode | None) -> Iterator[tuple[str, str, str]]:
        """Yields target, relations and language of links in a head."""
        # In the head only: a link in the body may be a commenter's.
        found = self.finder.find(head, _WANTED)
        for relation, target, language in islice(found, _MOST):
            if target := target.strip():
                yield target, relation, language.strip().lower()


def _headers(content: Content) -> Iterator[tuple[str, str, str]]:
    """Yields target, relations and language of links in headers."""
    values = content.metadata.field_values("Link")
    for target, rest in islice(chain.from_iterable(map(in_link_header, values)), _MOST):
        if relation := relation_of(rest):
            language = named[1].lower() if (named := _LANGUAGE.search(rest)) else ""
            yield target, relation, language
