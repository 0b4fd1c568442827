"""Tables that lie beside the CrawlDb as Parquet files: `checks`, what `check` has found out about
links that are no pages of the crawl and those with a fragment; `sitemaps`, what the sitemaps list
that `sitemap` has read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Final

import polars as pl

from minutch.cycle.sitemap.processor import LISTING_SCHEMA, SitemapListing
from minutch.errors import StoreError
from minutch.inspect.query.columns import TIME
from minutch.inspect.query.pages import OUTCOMES
from minutch.inspect.query.table import Request, SqlColumn, Table
from minutch.work.tables.database import Database

CHECKS: Final = "checks"
"""The folder beside the CrawlDb."""
_TYPES: Final = {
    "url": pl.String(),
    "fragment": pl.String(),
    "from_url": pl.String(),
    "anchor": pl.String(),
    "external": pl.Boolean(),
    "outcome": pl.Enum(OUTCOMES),
    "code": pl.Int32(),
    "reason": pl.String(),
    "asked": TIME,
    "has_fragment": pl.Boolean(),
}


def _columns(types: Mapping[str, pl.DataType]) -> Mapping[str, SqlColumn]:
    return {
        name: SqlColumn(dtype, lambda rows, name=name, dtype=dtype: rows[name].cast(dtype))  # type: ignore[misc]
        for name, dtype in types.items()
    }


class Checks(Database):
    """What a check has found out, in a folder."""

    def parts(self) -> list[Path]:
        return sorted(self.current.glob("*.parquet"))


class _FilesTable(Table):
    def __init__(self, files: Checks | SitemapListing) -> None:
        self._files = files

    def partitions(self) -> Mapping[str, Table]:
        if not self._files.exists():
            raise StoreError(f"Input path does not exist: {self._files.path}")
        return super().partitions()

    def frames(self, request: Request) -> Iterator[pl.DataFrame]:
        for part in self._files.parts():
            yield self.make(pl.read_parquet(part), request)


class ChecksTable(_FilesTable):
    """A table with one row per link that was checked."""

    name = CHECKS
    columns: ClassVar = _columns(_TYPES)


class SitemapsTable(_FilesTable):
    """A table with one row per URL in a sitemap."""

    name = "sitemaps"
    columns: ClassVar = _columns(LISTING_SCHEMA)
