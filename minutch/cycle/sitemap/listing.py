"""What sitemaps list, beside the CrawlDb: the folder `sitemaps` with Parquet files of sitemap, url,
lastmod and priority.

A run replaces the rows of the sitemaps that it has read, and leaves those of others.
"""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import Final

import polars as pl

from minutch.cycle.sitemap.sitemapurls import Sitemap
from minutch.work.tables.database import Database, part_name

LISTING_SCHEMA: Final = pl.Schema(
    {
        "sitemap": pl.String(),
        "url": pl.String(),
        "lastmod": pl.Datetime("ms", "UTC"),
        "priority": pl.Float32(),
    }
)
LISTINGS: Final = "sitemaps"
"""The folder beside the CrawlDb."""
_ROWS: Final = 500_000
"""Rows of a file, at least."""


class Listing(Database):
    """The listings in a folder."""

    def parts(self) -> list[Path]:
        return sorted(self.current.glob("*.parquet"))

    def scan(self) -> pl.LazyFrame:
        """Returns all rows."""
        parts = self.parts()
        return pl.scan_parquet(parts) if parts else pl.LazyFrame(schema=LISTING_SCHEMA)


class ListingWriter:
    """Takes the sitemaps of a run, from several threads, into a new folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files = 0
        self._rows: list[pl.DataFrame] = []
        self._count = 0
        self._read: set[str] = set()
        self._lock = Lock()

    def add(self, sitemap: Sitemap, urls: pl.Series) -> None:
        """Adds a sitemap; `urls` are its URLs as the CrawlDb has them, null where it has not."""
        listed = sitemap.urls
        raw = pl.Series([page.url for page in listed], dtype=pl.String)
        rows = pl.DataFrame(
            [
                pl.Series("sitemap", [sitemap.listed.url], pl.String).new_from_index(
                    0, len(listed)
                ),
                urls.zip_with(urls.is_not_null(), raw).alias("url"),
                pl.Series("lastmod", [page.modified for page in listed], pl.Int64).cast(
                    LISTING_SCHEMA["lastmod"]
                ),
                pl.Series("priority", [page.priority for page in listed], pl.Float32),
            ]
        )
        with self._lock:
            self._read.add(sitemap.listed.url)
            self._rows.append(rows)
            self._count += len(rows)
            if self._count >= _ROWS:
                self._flush()

    def finish(self, before: Listing) -> None:
        """Writes what is left, and the rows of sitemaps that were not read now."""
        self._flush()
        others = before.scan().filter(~pl.col("sitemap").is_in(list(self._read)))
        others.sink_parquet(self._next())

    def _flush(self) -> None:
        if self._rows:
            pl.concat(self._rows).write_parquet(self._next())
            self._rows, self._count = [], 0

    def _next(self) -> Path:
        self._files += 1
        return self._folder / f"{part_name(self._files - 1)}.parquet"
