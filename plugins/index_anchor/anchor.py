"""index-anchor: adds the field `anchor`, with the texts of the links to a page.

Each text counts once for each host that uses it; with anchorIndexingFilter.deduplicate once in all,
whatever its case. Source: org.apache.nutch.indexer.anchor.AnchorIndexingFilter,
org.apache.nutch.crawl.Inlinks.getAnchors.
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

_ODD = 0x9E37_79B9_7F4A_7C15
"""Makes different numbers of small ones that are different: the golden ratio in 64 bits."""


class AnchorIndexingFilter(IndexingFilter):
    """Adds anchors."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self.deduplicates = conf.get_boolean("anchorIndexingFilter.deduplicate")

    def filter(
        self, doc: NutchDocument, parse: Parse, url: str, datum: CrawlDatum, inlinks: Inlinks | None
    ) -> NutchDocument | None:
        for anchor in inlinks.anchors() if inlinks is not None else ():
            # Also anchors of a filter before this one.
            if not (self.deduplicates and anchor.lower() in _lower(doc)):
                doc.add("anchor", anchor)
        return doc

    def filter_columns(self, documents: Documents, pages: Pages) -> pl.Series | None:
        links = pages.inlinks().filter(pl.col("anchor").str.len_bytes() > 0)
        if links.is_empty():
            return None
        links = _once_a_host(links)
        if self.deduplicates:
            lower = pl.Series([anchor.lower() for anchor in links["anchor"]])
            links = links.with_columns(lower.alias("lower")).unique(
                ["row", "lower"], keep="first", maintain_order=True
            )
        documents.add_rows("anchor", links["row"], links["anchor"])
        return None


def _once_a_host(links: pl.DataFrame) -> pl.DataFrame:
    """Returns the links whose host has not said the same of the page; hosts of repeated texts."""
    # Hosts are parsed for texts that are there twice: mostly few. Two texts with one hash cost that
    # alone.
    text = pl.col("anchor").hash() ^ (pl.col("row").cast(pl.UInt64) * _ODD)
    repeats = links.select(text.is_duplicated()).to_series()
    if not repeats.any():
        return links
    some = links.with_row_index("nth").filter(repeats)
    some = some.with_columns(host_column(some["from_url"]).alias("host"))
    keeps = some.unique(["row", "host", "anchor"], keep="first")["nth"]
    return links.filter((~repeats).scatter(keeps, True))


def _lower(doc: NutchDocument) -> set[str]:
    """Returns the anchors that a document has, in lower case."""
    found = doc.fields.get("anchor")
    return {str(value).lower() for value in found.values} if found else set()
