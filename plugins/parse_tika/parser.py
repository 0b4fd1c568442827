"""parse-tika: parses every type that no other parser handles, under the id that Nutch's
configurations name.

    HTML, XHTML                  as parse-html; with tika.extractor=boilerpipe only the main text
    RSS, Atom                    title; descriptions and titles for text; the entries' links
    sitemaps                     the URLs they list
    other XML                    all its text
    PDF                          text, title, links (pypdf)
    OOXML, OpenDocument, EPUB    text, title, links
    documents inside of PDF      their texts behind that of the document (tika.parse.embedded)
    and OOXML
    text/*, JSON, scripts        the text, blanks folded

A document without links of its own has those that stand in its text. Parse filters see each
document as a page of HTML with its title, and its lines as paragraphs. For other types the status
is a failure that says so, as Nutch's for a type that its Tika has no parser for. Source:
org.apache.nutch.parse.tika.TikaParser.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from html import escape

from selectolax.lexbor import LexborHTMLParser

from minutch.conf import Configuration
from minutch.cycle.parse.charset import CharsetDetector, from_header
from minutch.cycle.parse.mime import clean_type
from minutch.cycle.parse.textlinks import text_outlinks
from minutch.errors import ParseError, UrlError
from minutch.plugin.chains import HtmlParseFilters
from minutch.plugin.points import HTMLMetaTags, Parse, Parser, ParseResult
from minutch.records.content import Content
from minutch.records.links import Outlink
from minutch.records.metadata import CHAR_ENCODING_FOR_CONVERSION_KEY, CONTENT_TYPE_KEY, Metadata
from minutch.records.parsedata import ParseData
from minutch.records.parsestatus import FAILED, SUCCESS, ParseStatus
from minutch.urls.resolve import resolved_page, resolver_class

from ..lib_html.headerlinks import header_links
from ..lib_html.linkkinds import kinds_of
from ..lib_html.linkvalues import in_css
from ..lib_html.pages import HtmlPages
from ..lib_xml.feeds import Feed, feed_of, is_feed
from ..lib_xml.reading import all_text, child, local_name, namespace, parse_xml, text_of
from .embedded import embedded_texts
from .maintext import MainText
from .office import read_office
from .pdf import read_pdf

_HTML = frozenset(("text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml"))
_XML = frozenset(("application/xml", "text/xml"))
_OFFICE = (
    "application/vnd.openxmlformats-officedocument.",
    "application/vnd.oasis.opendocument.",
    "application/vnd.sun.xml.",
    "application/vnd.ms-word.",
    "application/vnd.ms-excel.",
    "application/vnd.ms-powerpoint.",
    "application/x-tika-ooxml",
    "application/epub+zip",
)
"""Prefixes of the media types of zipped XML."""
_TEXT = frozenset(
    (
        "application/json",
        "application/javascript",
        "application/x-javascript",
        "application/ecmascript",
        "application/x-sh",
        "application/x-tex",
        "application/sql",
        "application/x-bat",
        "application/x-subrip",
        "application/yaml",
    )
)


@dataclass(slots=True)
class ReadDocument:
    """The result of a reader: text, title, links as written with their anchors, metadata."""

    text: str
    title: str = ""
    links: list[tuple[str, str]] = field(default_factory=list)
    metadata: Metadata = field(default_factory=Metadata)


class TikaParser(Parser):
    """The parser; see the module."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self._pages = HtmlPages(conf)
        self._resolver = resolver_class(conf)
        self._kinds = kinds_of(conf)
        self._charsets = CharsetDetector(conf)
        self._main_text = MainText.from_conf(conf)
        self._with_embedded = conf.get_boolean("tika.parse.embedded", True)

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
        try:
            document = read(content)
            if self._with_embedded:
                document.text = "\n".join(
                    filter(None, [document.text, *embedded_texts(content.content)])
                )
        except ParseError as error:
            return _failed(content, str(error))
        document.metadata.set(CONTENT_TYPE_KEY, content.content_type)
        outlinks = self._absolute(document.links, content.base) or text_outlinks(document.text)
        if "header" in self._kinds:
            headers = [(link.to_url, link.anchor) for link in header_links(content.metadata)]
            outlinks += self._absolute(headers, content.base)
        data = ParseData(
            ParseStatus(SUCCESS), document.title, outlinks, content.metadata, document.metadata
        )
        result = ParseResult.of(content.url, Parse(document.text, data))
        return (
            self._filters.filter(content, result, HTMLMetaTags(), _page(document))
            if self._filters.filters
            else result
        )

    def _absolute(self, links: list[tuple[str, str]], base: str) -> list[Outlink]:
        result: list[Outlink] = []
        with suppress(UrlError):
            resolver = self._resolver(base)
            for target, anchor in links:
                with suppress(UrlError):
                    url = resolved_page(resolver, target)
                    result.append(Outlink(url, " ".join(anchor.split())))
        return result

    @cached_property
    def _filters(self) -> HtmlParseFilters:
        return HtmlParseFilters(self.conf)

    def _reader(self, name: str) -> Callable[[Content], ReadDocument] | None:
        if name in _XML or name.endswith("+xml"):
            return self._xml
        if name == "application/pdf":
            return _pdf
        if name.startswith(_OFFICE):
            return _office
        return (
            self._text
            if name.startswith("text/") or name.endswith("+json") or name in _TEXT
            else None
        )

    def _text(self, content: Content) -> ReadDocument:
        header = content.metadata.field(CONTENT_TYPE_KEY)
        charset = self._charsets.detect(content.content, header, content.content_type)
        text = charset.decode(content.content)
        document = ReadDocument(" ".join(text.split()))
        if "css" in self._kinds and clean_type(content.content_type).lower() == "text/css":
            document.links = [(target, "") for target in in_css(text)]
        document.metadata.set(CHAR_ENCODING_FOR_CONVERSION_KEY, charset.name)
        return document

    def _xml(self, content: Content) -> ReadDocument:
        declared = from_header(content.metadata.field(CONTENT_TYPE_KEY) or "")
        root = parse_xml(content.content, declared)
        if is_feed(root):
            return _feed(feed_of(root, content.base))
        if local_name(root) in ("urlset", "sitemapindex"):
            locations = [text_of(child(entry, "loc", namespace(entry))) for entry in root]
            return ReadDocument(
                all_text(root), links=[(location, "") for location in locations if location]
            )
        return ReadDocument(all_text(root), text_of(child(root, "title")))


def _page(document: ReadDocument) -> LexborHTMLParser:
    """Returns a document as a page of HTML, for parse filters."""
    lines = "".join(f"<p>{escape(line)}</p>" for line in document.text.split("\n"))
    return LexborHTMLParser(f"<!doctype html><title>{escape(document.title)}</title>{lines}")


def _feed(feed: Feed) -> ReadDocument:
    parts = [feed.title, feed.description]
    for entry in feed.entries:
        parts += [entry.title, entry.text]
    text = "\n".join(folded for part in parts if (folded := " ".join(part.split())))
    links = [
        (link, entry.title)
        for entry in feed.entries
        for link in dict.fromkeys((entry.link, entry.source))
        if link
    ]
    return ReadDocument(text, feed.title, links)


def _pdf(content: Content) -> ReadDocument:
    text, title, links = read_pdf(content.content)
    return ReadDocument(text, title, [(link, "") for link in links])


def _office(content: Content) -> ReadDocument:
    text, title, links = read_office(content.content)
    return ReadDocument(text, title, links)


def _failed(content: Content, message: str) -> ParseResult:
    return ParseResult.of(content.url, Parse("", ParseData(ParseStatus(FAILED, 0, [message]))))
