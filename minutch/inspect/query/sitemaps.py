"""The table `sitemaps`: what the sitemaps list that `sitemap` has read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

import polars as pl

from minutch.cycle.sitemap.processor import SitemapListing
from minutch.errors import StoreError
from minutch.inspect.query.columns import TIME
from minutch.inspect.query.table import Column, Request, Table


class SitemapsTable(Table):
    """A table with one row per URL in a sitemap."""

    name = "sitemaps"
    columns: ClassVar = {
        "sitemap": Column(pl.String(), lambda rows: rows["sitemap"]),
        "url": Column(pl.String(), lambda rows: rows["url"]),
        "lastmod": Column(TIME, lambda rows: rows["lastmod"].cast(TIME)),
        "priority": Column(pl.Float32(), lambda rows: rows["priority"]),
    }

    def __init__(self, listing: SitemapListing) -> None:
        self._listing = listing

    def partitions(self) -> Mapping[str, Table]:
        if not self._listing.exists():
            raise StoreError(f"Input path does not exist: {self._listing.path}")
        return super().partitions()

    def frames(self, request: Request) -> Iterator[pl.DataFrame]:
        for part in self._listing.parts():
            yield self.make(pl.read_parquet(part), request)
