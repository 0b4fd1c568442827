"""Parses the content of an HTML page: charset, tree, meta tags, text, links, parse filters.

Used by parse-html, and by parse-tika for HTML that no other parser takes. Source:
HtmlParser.getParse.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property

from selectolax.lexbor import LexborHTMLParser

from minutch.conf import Configuration
from minutch.cycle.parse.charset import CharsetDetector
from minutch.cycle.parse.robotsdirectives import agents_of
from minutch.errors import UrlError
from minutch.plugin.chains import HtmlParseFilters
from minutch.plugin.points import HTMLMetaTags, Parse, ParseResult
from minutch.records import parsedata
from minutch.records.links import Outlink, as_run, joined, resolve_all
from minutch.records.metadata import (
    CACHING_FORBIDDEN_KEY,
    CHAR_ENCODING_FOR_CONVERSION_KEY,
    CONTENT_TYPE_KEY,
    ORIGINAL_CHAR_ENCODING_KEY,
    Metadata,
)
from minutch.records.parsedata import ParseData, ParseStatus
from minutch.records.protocol import Content
from minutch.urls.parts import parse as parse_url
from minutch.urls.resolve import Resolver, WhatwgResolver, hosted, resolver_class

from .browserlinks import BrowserLinks
from .extract import Extractor
from .headerlinks import header_links
from .metatags import read_metatags, read_refreshes_below
from .walk import ParsedMarkup, title_in_body
from .xhtml import as_html, is_xhtml


class HtmlPages:
    """Parses HTML pages as configured."""

    def __init__(self, conf: Configuration) -> None:
        self._conf = conf
        self._charsets = CharsetDetector(conf)
        self._extractor = Extractor(conf)
        self._more_links = BrowserLinks(conf, self._extractor.elements)
        self._caching_policy = conf.get_text("parser.caching.forbidden.policy")
        self._agents = agents_of(conf)
        self._resolver = resolver_class(conf)

    @cached_property
    def _filters(self) -> HtmlParseFilters:
        return HtmlParseFilters(self._conf)

    def parse(
        self, content: Content, text_of: Callable[[bytes, ParsedMarkup], str | bytes] | None = None
    ) -> ParseResult:
        """Returns the parse of a page; `text_of` its markup in UTF-8 takes the place of all of its
        text.
        """
        try:
            base = hosted(parse_url(content.base))
        except UrlError as error:
            return failed(content.url, error)
        header = content.metadata.field(CONTENT_TYPE_KEY)
        tld = base.host.rpartition(".")[2]
        charset = self._charsets.detect(content.content, header, content.content_type, tld)
        marked = content.content.startswith(BOM_UTF8)
        markup = charset.to_utf8(content.content)
        if is_xhtml(header, content.content_type):
            markup = as_html(markup)
        document, page = self._extractor.read(markup, marked=marked)
        own = self._resolver(content.base, charset)
        resolver = self._based(own, document, page)
        tags = read_metatags(
            page.metas, content.base, resolver, self._agents, self._conf.clock.now()
        )
        if isinstance(own, WhatwgResolver) and b"refresh" in markup.lower():
            nodes = document.css("body meta[http-equiv=refresh i]")
            contents = (node.attributes.get("content") or "" for node in nodes)
            read_refreshes_below(contents, tags, content.base, resolver)
        tags.base_href = None if resolver is own else resolver.base
        metadata = Metadata()
        metadata.set(ORIGINAL_CHAR_ENCODING_KEY, charset.name)
        metadata.set(CHAR_ENCODING_FOR_CONVERSION_KEY, charset.name)
        metadata.add_all(tags.general_tags)
        data = ParseData(
            status=_status(tags),
            title="" if tags.no_index else page.title or title_in_body(document),
            outlinks=[]
            if tags.no_follow
            else self._outlinks(content, own, resolver, markup, document, page),
            content_meta=content.metadata,
            parse_meta=metadata,
        )
        text = page.text if text_of is None or tags.no_index else text_of(markup, page)
        parse = Parse("" if tags.no_index else text, data)
        result = self._filters.filter(content, ParseResult.of(content.url, parse), tags, document)
        if tags.no_cache:
            for parse in result.values():
                parse.data.parse_meta.set(CACHING_FORBIDDEN_KEY, self._caching_policy)
        return result

    def _based(
        self, own: Resolver | WhatwgResolver, document: LexborHTMLParser, page: ParsedMarkup
    ) -> Resolver | WhatwgResolver:
        """Returns the resolver of a page's links. A base element that is not a URL is ignored; one
        in the body counts for browsers alone.
        """
        base = page.base
        if base is None and isinstance(own, WhatwgResolver):
            element = document.css_first("base[href]")
            base = None if element is None else element.attributes["href"] or ""
        with suppress(UrlError):
            return own if base is None else own.based(base)
        return own

    def _outlinks(
        self,
        content: Content,
        own: Resolver | WhatwgResolver,
        resolver: Resolver | WhatwgResolver,
        markup: bytes,
        document: LexborHTMLParser,
        page: ParsedMarkup,
    ) -> Sequence[Outlink]:
        """Returns the links of a page with absolute URLs, without those that can't be resolved."""
        if not self._more_links:
            return resolve_all(resolver, page.links)
        more = self._more_links.links(markup, document, page, self._extractor.read)
        nutchs = self._more_links.without_hints(markup, document, page.links)
        links = resolve_all(resolver, joined(nutchs, as_run(more)) if more else nutchs)
        headers = header_links(content.metadata) if "header" in self._more_links.kinds else []
        return joined(links, resolve_all(own, as_run(headers))) if headers else links


def _status(tags: HTMLMetaTags) -> ParseStatus:
    status = ParseStatus(parsedata.SUCCESS)
    if tags.refresh:
        status.minor = parsedata.SUCCESS_REDIRECT
        status.args = [tags.refresh_href, str(tags.refresh_time)]
    return status


def failed(url: str, error: Exception) -> ParseResult:
    """Returns the parse of a page that could not be parsed (ParseStatus.getEmptyParseResult)."""
    status = ParseStatus.failed(parsedata.FAILED_EXCEPTION, str(error))
    return ParseResult.of(url, Parse("", ParseData(status=status)))
