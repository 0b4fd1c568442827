"""index-anchor: the field `anchor`, with the texts of the links to a page.

Each text counts once for each host that uses it; with anchorIndexingFilter.deduplicate once in all, whatever its case.
Source: org.apache.nutch.indexer.anchor.AnchorIndexingFilter, org.apache.nutch.crawl.Inlinks.getAnchors.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from minutch.conf import Configuration
from minutch.plugin.columns import host_column
from minutch.plugin.documents import Documents, Pages
from minutch.plugin.points import IndexingFilter, Parse
from minutch.records.crawldatum import CrawlDatum
from minutch.records.document import NutchDocument
from minutch.records.links import Inlinks


class AnchorIndexingFilter(IndexingFilter):
    """Adds anchors."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self.deduplicates = conf.get_boolean("anchorIndexingFilter.deduplicate", False)

    def filter(
        self, doc: NutchDocument, parse: Parse, url: str, datum: CrawlDatum, inlinks: Inlinks | None
    ) -> NutchDocument | None:
        for anchor in inlinks.anchors() if inlinks is not None else ():
            if not (self.deduplicates and anchor.lower() in _lower(doc)):
                doc.add("anchor", anchor)
        return doc

    def filter_columns(self, documents: Documents, pages: Pages) -> pl.Series | None:
        links = pages.inlinks().filter(pl.col("anchor").str.len_bytes() > 0)
        if links.is_empty():
            return None
        links = links.with_columns(host_column(links["from_url"]).alias("host")).unique(
            ["row", "host", "anchor"], keep="first", maintain_order=True
        )
        if self.deduplicates:
            lower = pl.Series([anchor.lower() for anchor in links["anchor"]])
            links = links.with_columns(lower.alias("lower")).unique(["row", "lower"], keep="first", maintain_order=True)
        documents.add_rows("anchor", links["row"], links["anchor"])
        return None


def _lower(doc: NutchDocument) -> set[str]:
    """The anchors that a document has, in lower case."""
    found = doc.fields.get("anchor")
    return {str(value).lower() for value in found.values} if found else set()
