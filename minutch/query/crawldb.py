"""The table `crawldb`: every URL that a crawl knows, its status and when it is due. And files of segments like it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from minutch.crawldb.store import CrawlDb
from minutch.kernels.maps import gather
from minutch.query.columns import (
    METADATA,
    STATUS,
    TIME,
    hex_of,
    known_times,
    metadata_lists,
    statuses,
    times,
)
from minutch.query.skipping import piecewise
from minutch.query.table import Column, Request, Table, once, part_file
from minutch.records import crawldatum_columns
from minutch.records.batch import Batch, keys_of
from minutch.tables.crawldata import CRAWL_DATUM
from minutch.tables.frame import decode_keys
from minutch.urls.hosts import hosts_at


class Entries:
    """CrawlDatums with their URLs. What they hold is looked at when it is asked for."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch

    def filter(self, mask: pl.Series) -> Entries:
        """The entries where `mask` is true."""
        return Entries(self._batch.filter(mask.to_numpy()))

    @once
    def _keys(self) -> Batch:
        """The keys in a buffer of their own: a row that is kept does not keep a stretch of the file in memory."""
        batch = self._batch
        out, at = np.empty(int(batch.key_len.sum(dtype=np.int64)), np.uint8), np.empty(batch.size, np.int64)
        gather(batch.key_at + batch.keys.ctypes.data, batch.key_len, out, at)
        return batch._replace(keys=out, key_at=at)

    @once
    def key(self) -> pl.Series:
        """The URLs as bytes."""
        return keys_of(self._keys)

    @once
    def url(self) -> pl.Series:
        """The URLs."""
        return decode_keys(self.key)

    @property
    def host(self) -> pl.Series:
        """The hosts of the URLs."""
        batch = self.__dict__.get("_keys", self._batch)
        return hosts_at(batch.keys, batch.key_at, batch.key_len)

    def field(self, name: str) -> pl.Series:
        """A column of CRAWLDB_SCHEMA."""
        return crawldatum_columns.decode_fields(self._batch, [name])[0]


COLUMNS: Final = {
    "url": Column(pl.String(), lambda rows: rows.url),
    "host": Column(pl.String(), lambda rows: rows.host),
    "status": Column(STATUS, lambda rows: statuses(rows.field("status"))),
    "fetch_time": Column(TIME, lambda rows: times(rows.field("fetch_time"))),
    "modified_time": Column(TIME, lambda rows: known_times(rows.field("modified_time"))),
    "fetch_interval": Column(pl.Int32(), lambda rows: rows.field("fetch_interval")),
    "retries": Column(pl.Int8(), lambda rows: rows.field("retries")),
    "score": Column(pl.Float32(), lambda rows: rows.field("score")),
    "signature": Column(pl.String(), lambda rows: hex_of(rows.field("signature"))),
    "metadata": Column(METADATA, lambda rows: metadata_lists(rows.field("metadata"), rows.key)),
}


class EntriesTable(Table):
    """The entries in files of <Text, CrawlDatum>, file by file."""

    columns = COLUMNS
    cheapest = "retries"

    def __init__(self, name: str, paths: Callable[[], list[Path]]) -> None:
        self.name = name
        self._paths = paths

    def partitions(self) -> Mapping[str, Table]:
        parts = self._paths()
        return {part_file(number): EntriesTable(self.name, [path].copy) for number, path in enumerate(parts)}

    def frames(self, request: Request) -> Iterator[pl.DataFrame]:
        def decode(batch: Batch) -> pl.DataFrame:
            return self.make(Entries(batch), request)

        return piecewise(self._paths(), CRAWL_DATUM, decode, request)


class CrawlDbTable(EntriesTable):
    """The entries of a CrawlDb, partition by partition, sorted by URL in each."""

    key = "url"

    def __init__(self, db: CrawlDb) -> None:
        super().__init__("crawldb", db.require_parts)
