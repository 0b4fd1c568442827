"""tld: adds the field `tld`, with the public suffix of the page's host: `co.uk` for
`www.example.co.uk`.

Hosts without one (addresses, localhost) have no such field. Source:
org.apache.nutch.indexer.tld.TLDIndexingFilter.
"""

from __future__ import annotations

import polars as pl

from minutch.plugin.columns import host_column, map_distinct
from minutch.plugin.documents import Documents, Pages
from minutch.plugin.points import IndexingFilter, Parse
from minutch.records.crawldatum import CrawlDatum
from minutch.records.document import NutchDocument
from minutch.records.links import Inlinks
from minutch.urls.domains import suffix_of
from minutch.urls.parts import host_of


class TLDIndexingFilter(IndexingFilter):
    """Adds the public suffix."""

    def filter(
        self, doc: NutchDocument, parse: Parse, url: str, datum: CrawlDatum, inlinks: Inlinks | None
    ) -> NutchDocument | None:
        host = host_of(url)
        suffix = None if host is None else suffix_of(host)
        if suffix is not None:
            doc.add("tld", suffix)
        return doc

    def filter_columns(self, documents: Documents, pages: Pages) -> pl.Series | None:
        # Hosts of a range are few: a suffix is looked for once for each.
        documents.add("tld", map_distinct(host_column(pages.urls).str.to_lowercase(), suffix_of))
        return None
