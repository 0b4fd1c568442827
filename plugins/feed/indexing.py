"""Index fields from a feed's data on an entry: author, tag, feed, publishedDate, updatedDate.

Source: org.apache.nutch.indexer.feed.FeedIndexingFilter.
"""

from __future__ import annotations

from minutch.plugin.points import IndexingFilter, Parse
from minutch.records.crawldatum import CrawlDatum
from minutch.records.document import Date, NutchDocument
from minutch.records.links import Inlinks

from .parser import AUTHOR, FEED, PUBLISHED, TAG, UPDATED

_DATES = {PUBLISHED: "publishedDate", UPDATED: "updatedDate"}


class FeedIndexingFilter(IndexingFilter):
    """The filter; see the module."""

    def filter(
        self, doc: NutchDocument, parse: Parse, url: str, datum: CrawlDatum, inlinks: Inlinks | None
    ) -> NutchDocument | None:
        metadata = parse.data.parse_meta
        for name in (AUTHOR, TAG):
            for value in metadata.get(name, ()):
                doc.add(name, value)
        feed = metadata.first(FEED)
        if feed is not None:
            doc.add(FEED, feed)
        for name, target in _DATES.items():
            value = metadata.first(name) or ""
            if value.lstrip("-").isdecimal():
                doc.add(target, Date(int(value)))
        return doc
