"""microformats-reltag: `<a rel="tag" href="http://…/crawling">` tags a page with `crawling`.

The parse filter puts the tags, sorted, under `Rel-Tag` into the parse metadata; the indexing filter
makes fields `tag` of them. Only absolute URLs count. Source:
org.apache.nutch.microformats.reltag.{RelTagParser,RelTagIndexingFilter}.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import unquote_plus

from minutch.errors import UrlError
from minutch.plugin.points import HTMLMetaTags, HtmlParseFilter, IndexingFilter, Parse, ParseResult
from minutch.records.crawldatum import CrawlDatum
from minutch.records.document import NutchDocument
from minutch.records.links import Inlinks
from minutch.records.protocol import Content
from minutch.urls.parts import parse as parse_url

if TYPE_CHECKING:
    import polars as pl
    from selectolax.lexbor import LexborHTMLParser

    from minutch.plugin.documents import Documents, Pages

REL_TAG = "Rel-Tag"


class RelTagParser(HtmlParseFilter):
    """Tags into the parse metadata."""

    def filter(
        self,
        content: Content,
        result: ParseResult,
        metatags: HTMLMetaTags,
        document: LexborHTMLParser,
    ) -> ParseResult:
        metadata = result[content.url].data.parse_meta
        # RelTagParser holds them in a TreeSet.
        for tag in sorted(set(_tags(document))):
            metadata.add(REL_TAG, tag)
        return result


def _tags(document: LexborHTMLParser) -> Iterator[str]:
    for node in document.css("a[rel][href]"):
        values = node.attributes
        # RelTagParser compares the whole attribute: `rel="nofollow tag"` is none to it.
        if (values["rel"] or "").lower() != "tag":
            continue
        try:
            path = parse_url(values["href"] or "").path
        except UrlError:
            continue
        # URLDecoder.decode takes a plus for a blank.
        tag = unquote_plus(path.rpartition("/")[2])
        if tag:
            yield tag


class RelTagIndexingFilter(IndexingFilter):
    """Tags into the document."""

    def filter(
        self, doc: NutchDocument, parse: Parse, url: str, datum: CrawlDatum, inlinks: Inlinks | None
    ) -> NutchDocument | None:
        for tag in parse.data.parse_meta.get_values(REL_TAG):
            doc.add("tag", tag)
        return doc

    def filter_columns(self, documents: Documents, pages: Pages) -> pl.Series | None:
        tags = pages.parse_values(REL_TAG)
        documents.add_rows("tag", tags["row"], tags["value"])
        return None
