"""Adds fields from a feed's data on an entry: author, tag, feed, publishedDate, updatedDate.

Source: org.apache.nutch.indexer.feed.FeedIndexingFilter.
"""

from __future__ import annotations

import re

import polars as pl

from minutch.plugin.columns import map_distinct
from minutch.plugin.documents import Documents, Pages
from minutch.plugin.points import IndexingFilter, Parse
from minutch.records.crawldatum import CrawlDatum
from minutch.records.document import Date, NutchDocument
from minutch.records.links import Inlinks

from .parser import AUTHOR, FEED, PUBLISHED, TAG, UPDATED

_DATES = {PUBLISHED: "publishedDate", UPDATED: "updatedDate"}
# Any 18 digits fit into 64 bits. Other parsers may leave other things under these names.
_MILLISECONDS = re.compile("-?[0-9]{1,18}")


class FeedIndexingFilter(IndexingFilter):
    """The filter; see the module."""

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
