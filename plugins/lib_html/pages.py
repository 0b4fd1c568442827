"""Parses the content of an HTML page: charset, tree, meta tags, text, links, parse filters.

Used by parse-html, and by parse-tika for HTML that no other parser takes. Source:
HtmlParser.getParse.
"""

from __future__ import annotations

import ctypes
import logging
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property, partial
from html import escape
from typing import Any, Final, NamedTuple

import numpy as np
from selectolax.lexbor import LexborHTMLParser

from minutch.charsets import Charset
from minutch.conf import Configuration
from minutch.cycle.parse.charset import CharsetDetector
from minutch.cycle.parse.robotsdirectives import Directives, agents_of, words_for
from minutch.errors import MinutchError, UrlError
from minutch.kernels.scan import is_utf8
from minutch.kernels.tags import BASE, REFRESH, marks_of
from minutch.mediatypes import essence
from minutch.plugin.chains import HtmlParseFilters
from minutch.plugin.points import HTMLMetaTags, Parse, ParseResult, TextExtractor
from minutch.plugin.repository import PluginRepository, instance_of
from minutch.records import parsedata
from minutch.records.links import Outlink, resolve_all
from minutch.records.metadata import (
    CACHING_FORBIDDEN_KEY,
    CHAR_ENCODING_FOR_CONVERSION_KEY,
    CONTENT_TYPE_KEY,
    ORIGINAL_CHAR_ENCODING_KEY,
    ROBOTS_KEY,
    Metadata,
)
from minutch.records.parsedata import ParseData, ParseStatus
from minutch.records.protocol import Content
from minutch.urls.resolve import Resolver, WhatwgResolver, resolved_page, resolver_class

from .browserlinks import BrowserLinks
from .elements import Elements, header_links, read_refresh
from .markdown import to_markdown
from .textblocks import Flattener, choice_of
from .tree import Limits, build_tree, plain_tree, rewritten
from .tree_reader import TreeReader, attribute_numbers, tree_reader
from .walk import ParsedMarkup, Walk, title_in_body

# Extracts text, title and links from an HTML tree, as Nutch's DOMContentUtils does.
#
# One walk over the tree collects everything:
#
#   text     every text node but those of script and style (the title's included), blanks folded,
#            joined by a blank; by a line end where a node is one of parser.html.line.separators or
#            follows one, and where a text node is nothing but blanks
#   title    the text of the first title before the body
#   links    the elements of `LINK_ATTRIBUTES`, with the text inside for an anchor, else the
#            alternative texts of its images; elements with rel=nofollow, method=post or (a, form)
#            without anything inside are left out
#
# The walk is the kernel of `tree_reader`. The one in Python (`walk`) takes its place where
# Lexbor's trees are not laid out as the kernel expects (`tree_reader`, asked once), and for what
# the kernel leaves to it: metadata of links (parser.html.outlinks.htmlnode_metadata_name) and
# `nofollow` beside characters that are not ASCII.

log = logging.getLogger(__name__)

PAGE: Final = "page"
"""parser.html.text: all of a page's text."""
_ALLOCATOR: Final = {-1: 256 << 20, -2: 16 << 20, -3: 32 << 20}
"""mallopt: M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD in bytes."""


class Extractor:
    """Makes trees and walks them as configured."""

    def __init__(self, conf: Configuration) -> None:
        self.elements = Elements.from_conf(conf)
        self._limits = Limits(conf)
        self.inert = not conf.get_boolean("parser.html.templates")

    @cached_property
    def _reader(self) -> TreeReader | None:
        """The kernel's side; None if pages are walked in Python. With it, memory is kept for the
        trees of all pages.
        """
        _keep_memory()
        return tree_reader(self.elements, inert=self.inert)

    def read(self, data: bytes, *, marked: bool = False) -> tuple[LexborHTMLParser, ParsedMarkup]:
        """Returns the tree of a page in UTF-8, and everything about it; `marked` pages had a byte
        order mark before it.

        The mark is a text of its own then, as it is for Nutch. Raises ParseError for a page beyond
        the limits.
        """
        self._limits.check(data)
        if self._reader is None:
            return self.read_in_python(data, marked=marked)
        return self.read_by_kernel(self._reader, data, marked=marked)

    def read_in_python(
        self, data: bytes, *, marked: bool = False
    ) -> tuple[LexborHTMLParser, ParsedMarkup]:
        """Reads the page by the walk in Python."""
        document = build_tree(data if data.isascii() else clean(data), inert=self.inert)
        return document, Walk(self.elements).page(document, marked=marked)

    def read_by_kernel(
        self, reader: TreeReader, data: bytes, *, marked: bool = False
    ) -> tuple[LexborHTMLParser, ParsedMarkup]:
        """Parses and reads a page by the kernel, or by a walk over the tree if the kernel can't."""
        if not data.isascii():
            data = clean(data)
        document = plain_tree(data)
        page = reader.read(document, marked=marked)
        if page is None:
            document = rewritten(document, data, inert=self.inert)
            page = reader.read(document, marked=marked, rewritten=True)
        return document, page or Walk(self.elements).page(document, marked=marked)


def clean(data: bytes) -> bytes:
    """Returns the same with U+FFFD in place of invalid UTF-8."""
    is_good = is_utf8(np.frombuffer(data, np.uint8))
    return data if is_good else data.decode("utf-8", "replace").encode()


@cache
def _keep_memory() -> None:
    """Have the C library keep the memory of a tree for the next one: allocating it takes half of
    Lexbor's time.
    """
    with suppress(OSError, AttributeError):  # only glibc has this
        library = ctypes.CDLL(None)
        for parameter, value in _ALLOCATOR.items():
            library.mallopt(parameter, value)


# Writes pages of XML as pages of HTML, so that they are read as XML means them and one that is not
# well-formed is read all the same.
#
#     <script src="s.js"/>     gets an end tag, unless HTML knows the element as void
#     <![CDATA[a < b]]>        text
#     <?target …?>             nothing
#     <h:a>                    <a>, where the prefix h stands for XHTML
#
# Sources: XML 1.0, 2.6, 2.7 and 3.1; Namespaces in XML 1.0, 3; XHTML 1.0, C.2 and C.3.

TYPE: Final = "application/xhtml+xml"

_VOID: Final = frozenset(
    b"area base basefont bgsound br col embed frame hr img input keygen link meta param source"
    b" track wbr".split()
)
_FOREIGN: Final = (b"svg", b"math")
_TOKEN: Final = re.compile(
    rb"<!--.*?(?:-->|\Z)|<!\[CDATA\[(?P<text>.*?)(?:\]\]>|\Z)|<\?.*?(?:\?>|\Z)"
    rb"|<(?P<close>/?)(?P<prefix>(?:[^\s/<>:]++:)?)(?P<name>[A-Za-z_][^\s/<>:]*+)"
    rb"(?P<rest>(?:[^>\"'/]++|\"[^\"]*+\"|'[^']*+'|/(?!>)|[\"'])*+)(?P<empty>/?)>"
    rb"|<(?:/?(?:[^\s/<>:]++:)?)[A-Za-z_].*",
    re.DOTALL,
)
"""The last alternative is a tag without an end, which holds all that follows, for HTML, too."""
_PREFIX: Final = re.compile(rb"xmlns:([\w.-]+)\s*=\s*[\"']http://www\.w3\.org/1999/xhtml[\"']")


def is_xhtml(content: Content) -> bool:
    """Returns True for a page that is served as XHTML or, where nobody says, looks like it."""
    return essence(content.metadata.field(CONTENT_TYPE_KEY) or content.content_type) == TYPE


def as_html(data: bytes) -> bytes:
    """Returns a page of XML, in UTF-8, as one of HTML."""
    prefixes = {prefix + b":" for prefix in _PREFIX.findall(data)}
    inside: list[bytes] = []  # elements of svg or math that are open: HTML reads their "/>"

    def written(token: re.Match[bytes]) -> bytes:
        if token["text"] is not None:
            return escape(token["text"].decode("utf-8", "replace")).encode()
        name = token["name"]
        if name is None:
            return b"" if token[0].startswith(b"<?") else token[0]
        prefix = b"" if token["prefix"] in prefixes else token["prefix"]
        tag = b"<" + token["close"] + prefix + name + token["rest"]
        lower = name.lower()
        if lower in _FOREIGN and not token["empty"]:
            if not token["close"]:
                inside.append(lower)
            elif inside:
                inside.pop()
        if not token["empty"] or token["close"] or lower in _VOID:
            return tag + b">"
        return tag + (b"/>" if inside else b"></" + prefix + name + b">")

    return _TOKEN.sub(written, data)


class _Read(NamedTuple):
    """A page with its tree."""

    charset: Charset
    own: Resolver | WhatwgResolver
    markup: bytes
    marks: int
    document: LexborHTMLParser
    page: ParsedMarkup
    resolver: Resolver | WhatwgResolver
    tags: HTMLMetaTags


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
        self._text_of = _extractor_of(conf)

    @cached_property
    def _flattener(self) -> Flattener:
        return Flattener(attribute_numbers() or {})

    @cached_property
    def _filters(self) -> HtmlParseFilters:
        return HtmlParseFilters(self._conf)

    def parse(
        self, content: Content, text_of: Callable[[bytes, ParsedMarkup], str | bytes] | None = None
    ) -> ParseResult:
        """Returns the parse of a page; `text_of` its markup in UTF-8 takes the place of all of its
        text. Raises UrlError if its URL is none, ParseError beyond the limits.
        """
        charset, own, markup, marks, document, page, resolver, tags = self._read(content)
        metadata = Metadata()
        metadata.set(ORIGINAL_CHAR_ENCODING_KEY, charset.name)
        metadata.set(CHAR_ENCODING_FOR_CONVERSION_KEY, charset.name)
        metadata.add_all(tags.general_tags)
        text: str | bytes = "" if tags.no_index else page.text
        if text_of is not None and not tags.no_index:
            text = text_of(markup, page)
        elif self._text_of is not None and not tags.no_index:
            found = self._main_text(self._text_of, content.base, markup, document, metadata)
            text = found or text
        data = ParseData(
            status=_status(tags),
            title="" if tags.no_index else page.title or title_in_body(document),
            outlinks=[]
            if tags.no_follow
            else self._outlinks(content, own, resolver, markup, marks, document, page),
            content_meta=content.metadata,
            parse_meta=metadata,
        )
        result = ParseResult.of(content.url, Parse(text, data))
        result = self._filters.filter(content, result, tags, document)
        if tags.no_cache:
            for parse in result.values():
                parse.data.parse_meta.set(CACHING_FORBIDDEN_KEY, self._caching_policy)
        return result

    def markdown(
        self,
        content: Content,
        anchors: dict[int, str] | None = None,
        kept: Collection[int] | None = None,
    ) -> str:
        """Returns the Markdown of what parser.html.text takes for a page's text; of all of the page
        where that finds nothing, or writes no Markdown. With `kept`, of these lines of a text that
        has a line a block. Raises UrlError, ParseError.
        """
        _, _, markup, _, document, _, resolver, tags = self._read(content)
        if tags.no_index:
            return ""
        write = partial(to_markdown, document, resolver.resolve, anchors=anchors)
        found = None
        if kept is not None and (blocks := self._flattener.read(document)) is not None:
            found = write(choice_of(blocks, kept))
        elif self._text_of is not None:
            found = self._text_of.markdown(content.base, markup, document, write)
        return write() if found is None else found

    def _read(self, content: Content) -> _Read:
        """Returns the tree of a page, and what its head says. Raises UrlError, ParseError."""
        charset = self._charsets.charset_of(content)
        own = self._resolver.of_page(content.base, charset)
        marked = content.content.startswith(BOM_UTF8)
        markup = charset.to_utf8(content.content)
        if is_xhtml(content):
            markup = as_html(markup)
        is_like_browser = self._more_links.kinds or isinstance(own, WhatwgResolver)
        # Before the tree, which drives the page out of the caches.
        marks = marks_of(np.frombuffer(markup, np.uint8)) if is_like_browser else 0
        document, page = self._extractor.read(markup, marked=marked)
        resolver = self._based(own, marks, document, page)
        tags = read_metatags(page.metas, own, resolver, self._agents, self._conf.clock.now())
        if isinstance(own, WhatwgResolver) and marks & REFRESH:
            for node in document.css("body meta[http-equiv=refresh i]"):
                # where browsers look, too, and Nutch does not
                _refresh(tags, node.attributes.get("content") or "", own, resolver)
        tags.base_href = None if resolver is own else resolver.base
        return _Read(charset, own, markup, marks, document, page, resolver, tags)

    @staticmethod
    def _main_text(extractor: TextExtractor, url: str, *page: Any) -> str | bytes | None:
        """Returns the main text of a page; None where there is none or the extractor fails."""
        try:
            return extractor.extract(url, *page)
        except MinutchError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a page makes other people's code raise
            name = type(extractor).__name__
            log.warning("%s: %s: no main text: %s: %s", url, name, type(error).__name__, error)
            return None

    def _based(
        self,
        own: Resolver | WhatwgResolver,
        marks: int,
        document: LexborHTMLParser,
        page: ParsedMarkup,
    ) -> Resolver | WhatwgResolver:
        """Returns the resolver of a page's links. A base element that is not a URL is ignored; one
        in the body counts for browsers alone.
        """
        base = page.base
        if base is None and marks & BASE and isinstance(own, WhatwgResolver):
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
        marks: int,
        document: LexborHTMLParser,
        page: ParsedMarkup,
    ) -> Sequence[Outlink]:
        """Returns the links of a page with absolute URLs, without those that can't be resolved."""
        if not self._more_links.kinds:
            return resolve_all(resolver, page.links)
        found = self._more_links.links(markup, document, page, self._extractor.read, marks)
        links = resolve_all(resolver, found)
        headers = header_links(content.metadata, own, self._more_links.kinds)
        return [*links, *headers] if headers else links


# Reads the meta elements of a head: robots, refresh, and everything by name.
#
# Source: org.apache.nutch.parse.html.HTMLMetaProcessor; but directives are whole words
# (`robotsdirectives`), and a refresh is read as the HTML standard says (Nutch leaves quotes in its
# URL).


def read_metatags(
    metas: Iterable[Mapping[str, str]],
    own: Resolver | WhatwgResolver,
    resolver: Resolver | WhatwgResolver,
    agents: frozenset[str],
    now: int,
) -> HTMLMetaTags:
    """Returns the tags of a page from the attributes of its meta elements; `own` knows its URL,
    `resolver` its base URL. Directives for one of the `agents` hold like those for all robots, at
    the time `now`.
    """
    tags = HTMLMetaTags()
    by_name = tags.general_tags
    for attributes in metas:  # some twenty of a page
        content = attributes.get("content")
        if content is None:
            continue
        if (name := attributes.get("name")) is not None:
            name = name.lower()
            by_name.setdefault(name, []).append(content)
            if name == ROBOTS_KEY or name in agents:
                _forbid(tags, name, content, agents, now)
        if (equivalent := attributes.get("http-equiv")) is not None:
            _equivalent(tags, equivalent.lower(), content, own, resolver)
    return tags


def _forbid(tags: HTMLMetaTags, name: str, content: str, agents: frozenset[str], now: int) -> None:
    forbidden = Directives.of(words_for(content, agents), now)
    tags.no_index |= forbidden.no_index
    tags.no_follow |= forbidden.no_follow
    tags.no_cache |= forbidden.no_cache
    if name != ROBOTS_KEY and forbidden.noted:
        tags.general_tags.setdefault(ROBOTS_KEY, [])[:0] = forbidden.noted


def _equivalent(
    tags: HTMLMetaTags,
    name: str,
    content: str,
    own: Resolver | WhatwgResolver,
    resolver: Resolver | WhatwgResolver,
) -> None:
    tags.http_equiv_tags[name] = content
    if name == "pragma":
        tags.no_cache |= "no-cache" in content.lower()
    elif name == "refresh":
        _refresh(tags, content, own, resolver)


def _refresh(
    tags: HTMLMetaTags,
    content: str,
    own: Resolver | WhatwgResolver,
    resolver: Resolver | WhatwgResolver,
) -> None:
    """Takes a refresh. In browsers the first one counts, and none to what is no page's URL; in
    Nutch the last one does, which is one of the page itself then.
    """
    found, is_browsers = read_refresh(content), isinstance(resolver, WhatwgResolver)
    if found is None or (is_browsers and tags.refresh):
        return
    seconds, target = found
    try:
        href = resolved_page(resolver, target) if target else own.base
    except UrlError:
        if is_browsers:
            return
        href = own.base
    tags.refresh, tags.refresh_time, tags.refresh_href = True, seconds, href


def _extractor_of(conf: Configuration) -> TextExtractor | None:
    """Returns what parser.html.text names; None for all of a page's text. Raises ConfigError."""
    wanted = conf.get_trimmed("parser.html.text") or PAGE
    if wanted == PAGE:
        return None
    found = PluginRepository.of(conf).extensions(TextExtractor.point_id)
    by_name = {extension.parameters.get("text", ""): extension for extension in found}
    if wanted not in by_name:
        raise conf.wrong("parser.html.text", " or ".join([PAGE, *sorted(by_name)]), wanted)
    return instance_of(by_name[wanted], TextExtractor)


def _status(tags: HTMLMetaTags) -> ParseStatus:
    status = ParseStatus(parsedata.SUCCESS)
    if tags.refresh:
        status.minor = parsedata.SUCCESS_REDIRECT
        status.args = [tags.refresh_href, str(tags.refresh_time)]
    return status
