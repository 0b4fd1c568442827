"""The table `crawldb`: every URL that a crawl knows, its status and when it is due."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property
from typing import Final

import polars as pl

from minutch.crawldb.store import CrawlDb
from minutch.query.columns import (
    METADATA,
    STATUS,
    TIME,
    hex_of,
    hosts,
    known_times,
    metadata_lists,
    statuses,
    times,
    urls_of,
)
from minutch.query.table import Column, Table
from minutch.records import crawldatum_columns
from minutch.records.batch import Batch
from minutch.tables.crawldata import CRAWL_DATUM
from minutch.tables.spans import scan_all


class Entries:
    """CrawlDatums with their URLs. Each property is made when it is asked for."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch

    @cached_property
    def frame(self) -> pl.DataFrame:
        """As a table of CRAWLDB_SCHEMA."""
        return crawldatum_columns.decode(self._batch)

    @cached_property
    def url(self) -> pl.Series:
        """The URLs."""
        return urls_of(self.frame["key"])


COLUMNS: Final = {
    "url": Column(pl.String(), lambda rows: rows.url),
    "host": Column(pl.String(), lambda rows: hosts(rows.url)),
    "status": Column(STATUS, lambda rows: statuses(rows.frame["status"])),
    "fetch_time": Column(TIME, lambda rows: times(rows.frame["fetch_time"])),
    "modified_time": Column(TIME, lambda rows: known_times(rows.frame["modified_time"])),
    "fetch_interval": Column(pl.Int32(), lambda rows: rows.frame["fetch_interval"]),
    "retries": Column(pl.Int8(), lambda rows: rows.frame["retries"]),
    "score": Column(pl.Float32(), lambda rows: rows.frame["score"]),
    "signature": Column(pl.String(), lambda rows: hex_of(rows.frame["signature"])),
    "metadata": Column(METADATA, lambda rows: metadata_lists(rows.frame["metadata"], rows.frame["key"])),
}


class CrawlDbTable(Table):
    """The entries of a CrawlDb, partition by partition, sorted by URL in each."""

    name = "crawldb"
    columns = COLUMNS

    def __init__(self, db: CrawlDb) -> None:
        self._db = db

    def frames(self, columns: Collection[str]) -> Iterator[pl.DataFrame]:
        return scan_all(self._db.require_parts(), CRAWL_DATUM, lambda batch: self.make(Entries(batch), columns))
