"""feed: parses RSS and Atom; each entry whose link passes normalizers and filters becomes a
document.

An entry's text is parsed by the parser for its type, its links relative to what the feed says
(`xml:base`), and the place of content that is elsewhere is a link; author, tag, published,
updated and feed go into its metadata. The feed itself has its description for text and no links.
Unlike in Nutch, the content metadata of the feed and of the other entries stay as they are. The
index gets the fields author, tag, feed, publishedDate and updatedDate.

Source: org.apache.nutch.parse.feed.FeedParser, org.apache.nutch.indexer.feed.FeedIndexingFilter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property

import polars as pl

from minutch.conf import Configuration
from minutch.cycle.parse.charset import from_header
from minutch.cycle.parse.dispatch import ParserFactory, ParserNotFound, run_parsers
from minutch.errors import MinutchError, ParseError
from minutch.plugin.chains import SCOPE_OUTLINK, URLFilters, URLNormalizers
from minutch.plugin.columns import map_distinct
from minutch.plugin.documents import Documents, Pages
from minutch.plugin.points import IndexingFilter, Parse, Parser, ParseResult
from minutch.records.crawldatum import CrawlDatum
from minutch.records.document import Date, NutchDocument
from minutch.records.links import Inlinks, Outlink
from minutch.records.metadata import CONTENT_TYPE_KEY, Metadata
from minutch.records.parsedata import FAILED, FAILED_EXCEPTION, SUCCESS, ParseData, ParseStatus
from minutch.records.protocol import Content

from ..lib_xml.feeds import FeedEntry, read_feed

FEED, AUTHOR, TAG, PUBLISHED, UPDATED = "feed", "author", "tag", "published", "updated"
_DATES = {PUBLISHED: "publishedDate", UPDATED: "updatedDate"}
# Any 18 digits fit into 64 bits. Other parsers may leave other things under these names.
_MILLISECONDS = re.compile("-?[0-9]{1,18}")


class FeedParser(Parser):
    """The parser; see the module."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self._normalizers = URLNormalizers(conf, SCOPE_OUTLINK)
        self._filters = URLFilters(conf)

    @cached_property
    def _parsers(self) -> ParserFactory:
        # Not in __init__: a factory makes all parsers, this one among them.
        return ParserFactory(self.conf)

    def get_parse(self, content: Content) -> ParseResult:
        """Returns the feed's document and one for each entry."""
        declared = from_header(content.metadata.field(CONTENT_TYPE_KEY) or "")
        try:
            feed = read_feed(content.content, declared, content.base)
        except ParseError as error:
            status = ParseStatus.failed(FAILED_EXCEPTION, str(error))
            return ParseResult.of(content.url, Parse("", ParseData(status)))
        result = ParseResult(content.url)
        feed_link = self._accepted(feed.link)
        for entry in feed.entries:
            link = self._accepted(entry.link)
            # An entry that links to the feed would take the place of the feed's own document.
            if link is not None and link != content.url:
                result[link] = self._entry(link, entry, feed_link, content)
        result[content.url] = Parse(
            feed.description,
            ParseData(ParseStatus(SUCCESS), feed.title, [], content.metadata, Metadata()),
        )
        return result

    def _accepted(self, link: str) -> str | None:
        try:
            return self._filters.filter(self._normalizers.normalize(link)) if link else None
        except MinutchError:
            return None

    def _entry(self, link: str, entry: FeedEntry, feed_link: str | None, content: Content) -> Parse:
        metadata = _entry_metadata(entry, feed_link)
        content_metadata = Metadata(
            {
                name: list(values)
                for name, values in content.metadata.items()
                # The feed's type; the entry has its own.
                if name.lower() != CONTENT_TYPE_KEY.lower()
            }
        )
        parsed = self._parsed(link, entry, content_metadata)
        # It told the parser the type; FeedParser stores none for an entry.
        content_metadata.pop(CONTENT_TYPE_KEY, None)
        if parsed is None:
            data = ParseData(ParseStatus(FAILED), entry.title, [], content_metadata, metadata)
            return Parse(entry.content, data, is_original=False)
        parsed.data.parse_meta.add_all(metadata)
        outlinks = list(parsed.data.outlinks)
        if entry.source and entry.source != link:
            outlinks.insert(0, Outlink(entry.source, ""))
        data = ParseData(
            ParseStatus(SUCCESS), entry.title, outlinks, content_metadata, parsed.data.parse_meta
        )
        return Parse(parsed.text, data, is_original=False)

    def _parsed(self, link: str, entry: FeedEntry, metadata: Metadata) -> Parse | None:
        """Returns the entry's text as the first parser of its type reads it; None without one."""
        # The text is encoded two lines below: what the feed's header said holds for its bytes.
        content_type = f"{entry.content_type}; charset=UTF-8"
        metadata.set(CONTENT_TYPE_KEY, content_type)
        base = entry.base or link
        page = Content(link, base, entry.content.encode("utf-8", "replace"), content_type, metadata)
        try:
            # The first alone, as FeedParser: parsers that follow are for content that it can't
            # read.
            return run_parsers(self._parsers.parsers(content_type)[:1], page).get(link)
        except ParserNotFound:
            return None


def _entry_metadata(entry: FeedEntry, feed_link: str | None) -> Metadata:
    metadata = Metadata()
    if feed_link is not None:
        metadata.set(FEED, feed_link)
    for author in entry.authors:
        metadata.add(AUTHOR, author)
    for tag in entry.tags:
        metadata.add(TAG, tag)
    if entry.published is not None:
        metadata.set(PUBLISHED, str(entry.published))
    if entry.updated is not None:
        metadata.set(UPDATED, str(entry.updated))
    return metadata


class FeedIndexingFilter(IndexingFilter):
    """Adds the fields; see the module."""

    def filter(
        self, doc: NutchDocument, parse: Parse, url: str, datum: CrawlDatum, inlinks: Inlinks | None
    ) -> NutchDocument | None:
        metadata = parse.data.parse_meta
        for name in (AUTHOR, TAG):
            for value in metadata.get_values(name):
                doc.add(name, value)
        feed = metadata.get(FEED)
        if feed is not None:
            doc.add(FEED, feed)
        for name, target in _DATES.items():
            time = metadata.get(name)
            if time is not None and _MILLISECONDS.fullmatch(time):
                doc.add(target, Date(int(time)))
        return doc

    def filter_columns(self, documents: Documents, pages: Pages) -> pl.Series | None:
        for name in (AUTHOR, TAG):
            values = pages.parse_values(name)
            documents.add_rows(name, values["row"], values["value"])
        documents.add(FEED, pages.parse_meta(FEED))
        for name, target in _DATES.items():
            times = map_distinct(
                pages.parse_meta(name), lambda text: text if _MILLISECONDS.fullmatch(text) else None
            )
            documents.add(target, times.cast(pl.Int64).cast(pl.Datetime("ms")))
        return None
