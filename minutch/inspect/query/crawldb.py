"""The table `crawldb`: every URL that a crawl knows, its status and due date; and files of segments
like it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from minutch.cycle.crawldb.store import CrawlDb
from minutch.hadoop.formats.batch import Batch, string_column
from minutch.hadoop.formats.sequencewriter import NONE
from minutch.inspect.query.columns import (
    METADATA,
    STATUS,
    TIME,
    hex_of,
    known_times,
    metadata_lists,
    statuses,
    times,
)
from minutch.inspect.query.skipping import piecewise
from minutch.inspect.query.table import Column, Request, Table, once, part_file
from minutch.kernels.maps import gather
from minutch.records import crawldatum_columns as crawldatum_fields
from minutch.records.crawldatum_columns import KEY, CrawlDatumFields
from minutch.urls.hostcolumns import hosts_at
from minutch.work.tables.frame import decode_keys
from minutch.work.tables.recordfiles import CRAWL_DATUM
from minutch.work.tables.spannedfile import Span, SpannedFile
from minutch.work.tables.spans import batchwise


class EntryRows:
    """CrawlDatums with their URLs, of which the requested fields are decoded."""

    def __init__(self, fields: CrawlDatumFields) -> None:
        self._fields = fields

    def filter(self, mask: pl.Series) -> EntryRows:
        """Returns the entries where `mask` is true."""
        return EntryRows(self._fields.filter(mask.to_numpy()))

    @once
    def key(self) -> pl.Series:
        """The URLs as bytes, in a buffer of their own, so that a row keeps no stretch of the file
        in memory.
        """
        (at, length), keys = self._fields.key_places, self._fields.keys
        out, out_at = (
            np.empty(int(length.sum(dtype=np.int64)), np.uint8),
            np.empty(len(at), np.int64),
        )
        gather(at + keys.ctypes.data, length, out, out_at)
        return string_column("key", out, out_at, length)

    @once
    def url(self) -> pl.Series:
        """The URLs."""
        return decode_keys(self.key)

    @property
    def host(self) -> pl.Series:
        """The hosts of the URLs, in lower case."""
        return hosts_at(self._fields.keys, *self._fields.key_places).str.to_lowercase()

    def field(self, name: str) -> pl.Series:
        """Returns a column of CRAWLDB_SCHEMA."""
        return self._fields.column(name)


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


_FROM: Final = {"url": (KEY,), "host": (KEY,), "metadata": (KEY, "metadata")}
"""Column -> the fields that it is made of, where that is not the one of its name."""


class EntriesTable(Table):
    """A table of the entries in files of <Text, CrawlDatum>, file by file."""

    columns = COLUMNS
    cheapest = "retries"

    def __init__(self, name: str, paths: Callable[[], list[Path]]) -> None:
        self.name = name
        self._paths = paths

    def partitions(self) -> Mapping[str, Table]:
        parts = self._paths()
        return {
            part_file(number): EntriesTable(self.name, [path].copy)
            for number, path in enumerate(parts)
        }

    def frames(self, request: Request) -> Iterator[pl.DataFrame]:
        fields = {field for column in request.needed for field in _FROM.get(column, (column,))}

        def decode(batch: Batch) -> CrawlDatumFields:
            return crawldatum_fields.decode_fields(batch, fields)

        def found(file: SpannedFile, span: Span) -> Iterable[CrawlDatumFields]:
            stretch = file.stretch(span) if file.compression == NONE else None
            whole = None if stretch is None else crawldatum_fields.scan(stretch, fields)
            return batchwise(decode)(file, span) if whole is None else [whole]

        def read(file: SpannedFile, span: Span) -> Iterable[pl.DataFrame]:
            return (self.make(EntryRows(some), request) for some in found(file, span))

        return piecewise(self._paths(), CRAWL_DATUM, read, request)


class CrawlDbTable(EntriesTable):
    """A table of the entries of a CrawlDb, partition by partition, sorted by URL in each."""

    key = "url"

    def __init__(self, db: CrawlDb) -> None:
        super().__init__("crawldb", db.require_parts)
