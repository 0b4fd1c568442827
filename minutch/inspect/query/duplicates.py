"""The table `duplicates`: pages of the CrawlDb with the same content as others.

A row is an entry that has been fetched, and whose signature another such entry has, too. `kept`
tells those that dedup has not marked: all of them, where it has not run. Source:
org.apache.nutch.crawl.DeduplicationJob.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

import polars as pl

from minutch.inspect.query.columns import STATUS
from minutch.inspect.query.crawldb import CrawlDbTable
from minutch.inspect.query.table import Column, Request, Table

_DUPLICATE: Final = "db_duplicate"
_FETCHED: Final = ("db_fetched", "db_notmodified", _DUPLICATE)


class DuplicatesTable(Table):
    """A table of pages with equal signatures, sorted by signature and URL."""

    name = "duplicates"
    columns: ClassVar = {
        "signature": Column(pl.String(), lambda rows: rows["signature"]),
        "url": Column(pl.String(), lambda rows: rows["url"]),
        "status": Column(STATUS, lambda rows: rows["status"]),
        "group_size": Column(pl.UInt32(), lambda rows: rows["group_size"]),
        "kept": Column(pl.Boolean(), lambda rows: rows["status"] != _DUPLICATE),
    }

    def __init__(self, entries: CrawlDbTable) -> None:
        self._entries = entries

    def frames(self, request: Request) -> Iterator[pl.DataFrame]:
        fetched = self._entries.scan().filter(
            pl.col("status").is_in(_FETCHED) & pl.col("signature").is_not_null()
        )
        hashes = fetched.select(pl.col("signature").hash()).collect(engine="streaming").to_series()
        repeated = hashes.filter(hashes.is_duplicated()).unique()
        candidates = fetched.select("signature", "url", "status").filter(
            pl.col("signature").hash().is_in(repeated.implode())
        )
        rows = candidates.collect(engine="streaming").with_columns(
            group_size=pl.len().over("signature")
        )
        yield self.make(rows.filter(pl.col("group_size") > 1).sort("signature", "url"), request)
