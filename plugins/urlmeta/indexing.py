"""Adds fields from the tags of a seed that have been carried to the page (`urlmeta.tags` names
them).

Source: org.apache.nutch.indexer.urlmeta.URLMetaIndexingFilter.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from minutch.conf import Configuration
from minutch.hadoop.formats.writables import Text
from minutch.plugin.documents import Documents, Pages
from minutch.plugin.points import IndexingFilter, Parse
from minutch.records.crawldatum import CrawlDatum
from minutch.records.document import NutchDocument
from minutch.records.links import Inlinks


class URLMetaIndexingFilter(IndexingFilter):
    """The indexing filter; see the module."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self.tags = conf.get_trimmed_strings("urlmeta.tags")

    def filter(
        self, doc: NutchDocument, parse: Parse, url: str, datum: CrawlDatum, inlinks: Inlinks | None
    ) -> NutchDocument | None:
        for tag in self.tags:
            value = datum.metadata.get(Text(tag))
            if value is not None:
                doc.add(tag, str(value))
        return doc

    def filter_columns(self, documents: Documents, pages: Pages) -> pl.Series | None:
        for tag in self.tags:
            documents.add(tag, pages.fetch_meta(tag))
        return None
