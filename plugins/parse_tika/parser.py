"""parse-tika: parses every type that no other parser handles, under the id that Nutch's
configurations name.

    HTML, XHTML                  as parse-html; with tika.extractor=boilerpipe only the main text
    RSS, Atom                    title; descriptions and titles for text; the entries' links
    sitemaps                     the URLs they list
    other XML                    all its text
    PDF                          text, title, links, outline (PDFium)
    OOXML, OpenDocument, EPUB    text, title, links
    .doc, .xls, .ppt, RTF        text, title, links
    documents inside of these    their texts behind that of the document (tika.parse.embedded)
    text/*, JSON, scripts        the text, blanks folded

A document without links of its own has those that stand in its text. Parse filters see each
document as a page of HTML with its title, and its lines as paragraphs. For other types the status
is a failure that says so, as Nutch's for a type that its Tika has no parser for.

What a document has before the place where it is damaged, or before parser.timeout, is its parse:
a success whose status says what is missing. Only a document without any text is a failure. Source:
org.apache.nutch.parse.tika.TikaParser.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any, Final, Self

from selectolax.lexbor import LexborHTMLParser

from minutch.conf import Configuration
from minutch.cycle.parse.charset import CharsetDetector, from_header
from minutch.cycle.parse.dispatch import ParseTimeout
from minutch.cycle.parse.mime import clean_type
from minutch.cycle.parse.outlinks import text_outlinks
from minutch.errors import ConfigError, ParseError, UrlError
from minutch.plugin.chains import HtmlParseFilters
from minutch.plugin.points import HTMLMetaTags, Parse, Parser, ParseResult
from minutch.records.links import Outlink
from minutch.records.metadata import CHAR_ENCODING_FOR_CONVERSION_KEY, CONTENT_TYPE_KEY
from minutch.records.parsedata import FAILED, SUCCESS, ParseData, ParseStatus
from minutch.records.protocol import Content
from minutch.urls.resolve import resolved_page, resolver_class

from ..lib_html.elements import header_links, in_css, kinds_of
from ..lib_html.pages import TYPE as XHTML
from ..lib_html.pages import Extractor, HtmlPages, as_html
from ..lib_html.walk import ParsedMarkup
from ..lib_xml.feeds import Feed, feed_of, is_feed
from ..lib_xml.reading import all_text, child, local_name, namespace, parse_xml, text_of
from .office import add_embedded, read_office
from .package import Document
from .richtext import SIGNATURE as RICH_TEXT
from .richtext import read_rich_text

# Extracts the main text of an HTML page, without navigation, advertisements and footers
# (tika.extractor=boilerpipe).
#
#     tika.extractor.boilerpipe.algorithm    one of ALGORITHMS
#     tika.extractor.boilerpipe.mime.types   the types it is for
#
# boilerpy3 has the algorithms of Java's boilerpipe (Kohlschütter, Fankhauser, Nejdl 2010), which
# Nutch gets with Tika. It is given the tree that the browser's rules make of a page, written out
# again. The text begins with the title; links, meta tags and all else come from the whole page.
# Source: TikaParser and BoilerpipeExtractorRepository.

ALGORITHMS: Final = (
    "ArticleExtractor", "ArticleSentencesExtractor", "CanolaExtractor", "DefaultExtractor",
    "KeepEverythingExtractor", "LargestContentExtractor", "NumWordsRulesExtractor",
)  # fmt: skip
EXTRACTORS: Final = ("none", "boilerpipe")
log = logging.getLogger(__name__)

_HEAD: Final = re.compile(rb"<head[\s>].*?</head\s*>", re.IGNORECASE | re.DOTALL)
_HTML = frozenset(("text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml"))
_XML = frozenset(("application/xml", "text/xml"))
_OFFICE = (
    "application/vnd.openxmlformats-officedocument.", "application/vnd.oasis.opendocument.",
    "application/vnd.sun.xml.", "application/vnd.ms-word.", "application/vnd.ms-excel.",
    "application/vnd.ms-powerpoint.", "application/x-tika-ooxml", "application/epub+zip",
    "application/zip",
)  # fmt: skip
"""Prefixes of the media types of zipped XML, which many servers call zip."""
_OLD_OFFICE: Final = frozenset((
    "application/msword", "application/rtf", "application/vnd.ms-excel",
    "application/vnd.ms-powerpoint", "application/x-tika-msoffice", "text/richtext", "text/rtf",
))  # fmt: skip
_TEXT = frozenset(("application/rtf", "text/rtf", "text/richtext"))
_TEXT = frozenset((
    "application/json", "application/javascript", "application/x-javascript",
    "application/ecmascript", "application/x-sh", "application/x-tex", "application/sql",
    "application/x-bat", "application/x-subrip", "application/yaml",
))  # fmt: skip


@dataclass
class MainText:
    """The algorithm for the main text, and the types that it is for; none at all by default."""

    algorithm: str
    types: frozenset[str]

    @classmethod
    def from_conf(cls, conf: Configuration) -> Self:
        """tika.extractor and what follows from it. Raises ConfigError."""
        extractor = conf.get_trimmed("tika.extractor") or "none"
        if extractor not in EXTRACTORS:
            raise ConfigError(
                f"tika.extractor: expected {' or '.join(EXTRACTORS)}, found {extractor!r}"
            )
        algorithm = conf.get_trimmed("tika.extractor.boilerpipe.algorithm") or "ArticleExtractor"
        if algorithm not in ALGORITHMS:
            known = ", ".join(ALGORITHMS)
            raise ConfigError(
                f"tika.extractor.boilerpipe.algorithm: expected one of {known}, found {algorithm!r}"
            )
        types = conf.get_trimmed_strings("tika.extractor.boilerpipe.mime.types")
        return cls(algorithm, frozenset(types if extractor == "boilerpipe" else ()))

    def of(self, media_type: str) -> Callable[[bytes, ParsedMarkup], str] | None:
        """Returns the extractor of main text for a page of this type; None to keep all text."""
        return self.text if media_type in self.types else None

    def text(self, markup: bytes, page: ParsedMarkup) -> str:
        """Title and main text of a page in UTF-8; all of its text where the algorithm fails."""
        try:
            found = self._extractor.get_doc(LexborHTMLParser(markup).html or "").content
        except Exception as error:  # noqa: BLE001 - whatever a page makes boilerpy3 raise
            log.warning("no main text: %s: %s", type(error).__name__, error)
            return page.text.decode()
        lines = (" ".join(line.split()) for line in [page.title, *found.split("\n")])
        return "\n".join(line for line in lines if line)

    @cached_property
    def _extractor(self) -> Any:
        from boilerpy3 import extractors

        logging.getLogger("boilerpy3").setLevel(logging.CRITICAL)
        return getattr(extractors, self.algorithm)(raise_on_failure=True)


class TikaParser(Parser):
    """The parser; see the module."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self._pages = HtmlPages(conf)
        self._resolver = resolver_class(conf)
        self._kinds = kinds_of(conf)
        self._charsets = CharsetDetector(conf)
        self._main_text = MainText.from_conf(conf)
        self._with_embedded = conf.get_boolean("tika.parse.embedded")

    def get_parse(self, content: Content) -> ParseResult:
        """Returns one document under the content's URL."""
        name = clean_type(content.content_type).strip().lower()
        if name in _HTML:
            return self._pages.parse(content, self._main_text.of(name))
        read = self._reader(name)
        if read is None:
            return _failed(
                content, f"Can't retrieve Tika parser for mime-type {content.content_type}"
            )
        document = Document()
        try:
            read(content, document)
            if self._with_embedded:
                add_embedded(content.content, document, self._book_page)
        except ParseError as error:
            if not document.text:
                return _failed(content, "; ".join(filter(None, [str(error), document.loss])))
            document.missing.append(str(error))
        except ParseTimeout:
            if not document.text:
                raise
            document.missing.append("the time for it was over (parser.timeout)")
        document.metadata.set(CONTENT_TYPE_KEY, content.content_type)
        outlinks = self._outlinks(content, document)
        status = ParseStatus(SUCCESS)
        if document.missing:
            log.info("%s: not all of it was read: %s", content.url, document.loss)
            status.args = [f"not all of it was read: {document.loss}"]
        data = ParseData(status, document.title, outlinks, content.metadata, document.metadata)
        result = ParseResult.of(content.url, Parse(document.text, data))
        return (
            self._filters.filter(content, result, HTMLMetaTags(), _page(document))
            if self._filters.filters
            else result
        )

    def markdown(
        self,
        content: Content,
        anchors: dict[int, str] | None = None,
        kept: Collection[int] | None = None,
    ) -> str | None:
        """Returns the Markdown of an HTML page; None for other types."""
        is_html = clean_type(content.content_type).strip().lower() in _HTML
        return self._pages.markdown(content, anchors, kept) if is_html else None

    def _outlinks(self, content: Content, document: Document) -> list[Outlink]:
        """Returns the links of a document, or the URLs in its text, and those of its headers."""
        found: list[Outlink] = []
        headers: list[Outlink] = []
        with suppress(UrlError):
            resolver = self._resolver(content.base)
            for target, anchor in document.links:
                with suppress(UrlError):
                    url = resolved_page(resolver, target)
                    found.append(Outlink(url, " ".join(anchor.split())))
            headers = header_links(content.metadata, resolver, self._kinds)
        return (found or text_outlinks(document.text)) + headers

    @cached_property
    def _filters(self) -> HtmlParseFilters:
        return HtmlParseFilters(self.conf)

    def _reader(self, name: str) -> Callable[[Content, Document], None] | None:
        if name in _XML or name.endswith("+xml"):
            return self._xml
        if name == "application/pdf":
            return _pdf
        if name in _OLD_OFFICE:
            return _old_office
        if name.startswith(_OFFICE):
            return self._office
        return (
            self._text
            if name.startswith("text/") or name.endswith("+json") or name in _TEXT
            else None
        )

    def _text(self, content: Content, document: Document) -> None:
        charset = self._charsets.charset_of(content)
        text = charset.decode(content.content)
        document.texts = [" ".join(text.split())]
        if "css" in self._kinds and clean_type(content.content_type).lower() == "text/css":
            document.links = [(target, "") for target in in_css(text)]
        document.metadata.set(CHAR_ENCODING_FOR_CONVERSION_KEY, charset.name)

    def _xml(self, content: Content, document: Document) -> None:
        declared = from_header(content.metadata.field(CONTENT_TYPE_KEY) or "")
        root = parse_xml(content.content, declared)
        if is_feed(root):
            _feed(feed_of(root, content.base), document)
            return
        document.texts = [all_text(root)]
        if local_name(root) in ("urlset", "sitemapindex"):
            locations = [text_of(child(entry, "loc", namespace(entry))) for entry in root]
            document.links = [(location, "") for location in locations if location]
        else:
            document.title = text_of(child(root, "title"))

    def _office(self, content: Content, document: Document) -> None:
        read_office(content.content, document, self._book_page)

    def _book_page(self, data: bytes) -> tuple[str, list[tuple[str, str]]]:
        """Reads a page of a book as one of the web, without the title that its head has."""
        markup = self._charsets.detect(data, None, XHTML).to_utf8(data)
        _, page = self._extractor.read(_HEAD.sub(b"", as_html(markup), count=1))
        return page.text.decode(), [(link.to_url, link.anchor) for link in page.links]

    @cached_property
    def _extractor(self) -> Extractor:
        return Extractor(self.conf)


def _page(document: Document) -> LexborHTMLParser:
    """Returns a document as a page of HTML, for parse filters."""
    lines = "".join(f"<p>{escape(line)}</p>" for line in document.text.split("\n"))
    return LexborHTMLParser(f"<!doctype html><title>{escape(document.title)}</title>{lines}")


def _feed(feed: Feed, document: Document) -> None:
    document.title = feed.title
    document.texts = [feed.title, feed.description]
    for entry in feed.entries:
        # One line for each, whatever breaks lines in it.
        document.texts += [" ".join(part.split()) for part in (entry.title, entry.text)]
        links = dict.fromkeys((entry.link, entry.source))
        document.links += [(link, entry.title) for link in links if link]


def _pdf(content: Content, document: Document) -> None:
    from .pdf import read_pdf  # loads a library that few crawls need

    read_pdf(content.content, document)


def _old_office(content: Content, document: Document) -> None:
    """Whatever the type, as .doc is often RTF."""
    if content.content.startswith(RICH_TEXT):
        read_rich_text(content.content, document)
        return
    from .binaryoffice import read_binary_office  # loads a library that few crawls need

    read_binary_office(content.content, document)


def _failed(content: Content, message: str) -> ParseResult:
    return ParseResult.of(content.url, Parse("", ParseData(ParseStatus(FAILED, 0, [message]))))
