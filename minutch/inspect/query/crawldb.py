"""The table `crawldb`: every URL that a crawl knows, its status and due date; and files of segments
like it. And what is counted in it:

duplicates    entries that have been fetched, and whose signature another such entry has, too;
              `kept` tells those that dedup has not marked: all of them, where it has not run.
              Source: org.apache.nutch.crawl.DeduplicationJob
near_duplicates
              pages near each other, as `dedup -near` has them, with the one that stays
hosts         the records of the HostDb, or, if there is none, counts of the CrawlDb by host; then
              homepage and score are null, while the HostDb does not count duplicates
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import itemgetter
from pathlib import Path
from typing import ClassVar, Final

import numpy as np
import polars as pl

from minutch.cycle.crawldb.dedup import group_table
from minutch.cycle.crawldb.duplicates import DEFAULT_CRITERIA, TEXTS
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.hostdb.store import HOST_DATUM, HostDb
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
from minutch.inspect.query.table import Request, SqlColumn, Table, once, part_file
from minutch.kernels.maps import gather
from minutch.records import crawldatum_columns as crawldatum_fields
from minutch.records import hostdatum_columns
from minutch.records.crawldatum_columns import KEY, CrawlDatumFields
from minutch.urls.hostcolumns import hosts_at
from minutch.work.tables.frame import decode_keys
from minutch.work.tables.recordfiles import CRAWL_DATUM
from minutch.work.tables.spannedfile import Span, SpannedFile
from minutch.work.tables.spans import batchwise, scan_all

COLUMNS: Final = {
    "url": SqlColumn(pl.String(), lambda rows: rows.url),
    "host": SqlColumn(pl.String(), lambda rows: rows.host),
    "status": SqlColumn(STATUS, lambda rows: statuses(rows.field("status"))),
    "fetch_time": SqlColumn(TIME, lambda rows: times(rows.field("fetch_time"))),
    "modified_time": SqlColumn(TIME, lambda rows: known_times(rows.field("modified_time"))),
    "fetch_interval": SqlColumn(pl.Int32(), lambda rows: rows.field("fetch_interval")),
    "retries": SqlColumn(pl.Int8(), lambda rows: rows.field("retries")),
    "score": SqlColumn(pl.Float32(), lambda rows: rows.field("score")),
    "signature": SqlColumn(pl.String(), lambda rows: hex_of(rows.field("signature"))),
    "metadata": SqlColumn(METADATA, lambda rows: metadata_lists(rows.field("metadata"), rows.key)),
}


_FROM: Final = {"url": (KEY,), "host": (KEY,), "metadata": (KEY, "metadata")}
"""Column -> the fields that it is made of, where that is not the one of its name."""
_DUPLICATE: Final = "db_duplicate"
_FETCHED: Final = ("db_fetched", "db_notmodified", _DUPLICATE)


class EntryRows:
    """CrawlDatums with their URLs, of which the requested fields are decoded."""

    def __init__(self, fields: CrawlDatumFields) -> None:
        self._fields = fields

    def filter(self, mask: pl.Series) -> EntryRows:
        """Returns the entries where `mask` is true."""
        return EntryRows(self._fields.filter(mask.to_numpy()))

    @once
    def key(self) -> pl.Series:
        """The URLs as bytes, in a buffer of their own: a row keeps no stretch of the file."""
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
            # A function, as the whole table has: parts are listed when they are read.
            part_file(number): EntriesTable(self.name, [path].copy)
            for number, path in enumerate(parts)
        }

    def frames(self, request: Request) -> Iterator[pl.DataFrame]:
        # A CrawlDatum is decoded as far as the query asks: a count of statuses needs one byte of
        # each.
        fields = {field for column in request.needed for field in _FROM.get(column, (column,))}

        def decode(batch: Batch) -> CrawlDatumFields:
            return crawldatum_fields.decode_fields(batch, fields)

        def found(file: SpannedFile, span: Span) -> Iterable[CrawlDatumFields]:
            # Fields are read where they lie in the mapped file; compressed records are made first.
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


class DuplicatesTable(Table):
    """A table of pages with equal signatures, sorted by signature and URL."""

    name = "duplicates"
    columns: ClassVar = {
        "signature": SqlColumn(pl.String(), lambda rows: rows["signature"]),
        "url": SqlColumn(pl.String(), lambda rows: rows["url"]),
        "status": SqlColumn(STATUS, lambda rows: rows["status"]),
        "group_size": SqlColumn(pl.UInt32(), lambda rows: rows["group_size"]),
        "kept": SqlColumn(pl.Boolean(), lambda rows: rows["status"] != _DUPLICATE),
    }

    def __init__(self, entries: CrawlDbTable) -> None:
        self._entries = entries

    def frames(self, request: Request) -> Iterator[pl.DataFrame]:
        fetched = self._entries.scan().filter(
            pl.col("status").is_in(_FETCHED) & pl.col("signature").is_not_null()
        )
        # Eight bytes for each page, not URL and signature: only repeated ones are read again.
        hashes = fetched.select(pl.col("signature").hash()).collect(engine="streaming").to_series()
        repeated = hashes.filter(hashes.is_duplicated()).unique()
        candidates = fetched.select("signature", "url", "status").filter(
            pl.col("signature").hash().is_in(repeated.implode())
        )
        rows = candidates.collect(engine="streaming").with_columns(
            # By signatures: two may have one hash.
            group_size=pl.len().over("signature")
        )
        yield self.make(rows.filter(pl.col("group_size") > 1).sort("signature", "url"), request)


class NearDuplicatesTable(Table):
    """A table of the groups of near-duplicates, the largest first; the page that stays in each is a
    row, too.
    """

    name = "near_duplicates"
    is_derived = True
    columns: ClassVar = {
        "url": SqlColumn(pl.String(), lambda rows: rows["url"]),
        "stays": SqlColumn(pl.String(), lambda rows: rows["stays"]),
        "distance": SqlColumn(pl.UInt8(), lambda rows: rows["bits"]),
        "group_size": SqlColumn(pl.UInt32(), lambda rows: rows["size"] + 1),
    }

    def __init__(self, db: CrawlDb) -> None:
        self._db = db

    def frames(self, request: Request) -> Iterator[pl.DataFrame]:
        members = group_table(self._db, "none", DEFAULT_CRITERIA, TEXTS)
        stay = members.unique("stays", maintain_order=True)
        stay = stay.with_columns(pl.col("stays").alias("url"), pl.lit(0, pl.UInt8).alias("bits"))
        rows = pl.concat([stay, members]).sort(
            "size", "stays", descending=[True, False], maintain_order=True
        )
        yield self.make(rows, request)


def _nulls(rows: pl.DataFrame, dtype: pl.DataType) -> pl.Series:
    return pl.Series([None], dtype=dtype).new_from_index(0, len(rows))


class HostDbTable(Table):
    """A table of the records of a HostDb."""

    name = "hosts"
    cheapest = "host"
    key = "host"
    columns: ClassVar = {
        "host": SqlColumn(pl.String(), lambda rows: decode_keys(rows["key"])),
        "homepage": SqlColumn(
            pl.String(), lambda rows: decode_keys(rows["homepage_url"]).replace("", None)
        ),
        "fetched": SqlColumn(pl.Int64(), lambda rows: rows["fetched"]),
        "unfetched": SqlColumn(pl.Int64(), lambda rows: rows["unfetched"]),
        "gone": SqlColumn(pl.Int64(), lambda rows: rows["gone"]),
        "redirects": SqlColumn(pl.Int64(), lambda rows: rows["redir_temp"] + rows["redir_perm"]),
        "notmodified": SqlColumn(pl.Int64(), lambda rows: rows["not_modified"]),
        "duplicates": SqlColumn(pl.Int64(), lambda rows: _nulls(rows, pl.Int64())),
        "score": SqlColumn(pl.Float32(), lambda rows: rows["score"]),
    }

    def __init__(self, db: HostDb) -> None:
        self._db = db

    def frames(self, request: Request) -> Iterator[pl.DataFrame]:
        def decode(batch: Batch) -> pl.DataFrame:
            return self.make(hostdatum_columns.decode(batch), request)

        return scan_all(self._db.require_parts(), HOST_DATUM, decode)


_COUNTED: Final = {
    "fetched": ("db_fetched",),
    "unfetched": ("db_unfetched",),
    "gone": ("db_gone",),
    "redirects": ("db_redir_temp", "db_redir_perm"),
    "notmodified": ("db_notmodified",),
    "duplicates": ("db_duplicate",),
}
"""Column -> the statuses that it counts."""


class CountedHostsTable(Table):
    """A table of the hosts of a CrawlDb's URLs, sorted by name."""

    name = "hosts"
    cheapest = "host"
    key = "host"
    columns: ClassVar = {
        name: SqlColumn(column.dtype, itemgetter(name))
        for name, column in HostDbTable.columns.items()
    }

    def __init__(self, entries: CrawlDbTable) -> None:
        self._entries = entries

    def frames(self, request: Request) -> Iterator[pl.DataFrame]:
        counts = [
            pl.col("status").is_in(names).sum().cast(pl.Int64).alias(to)
            for to, names in _COUNTED.items()
        ]
        wanted = [count for count in counts if count.meta.output_name() in request.needed]
        every = (
            self._entries.scan().filter(pl.col("host").is_not_null()).group_by("host").agg(wanted)
        )
        rows = every.sort("host").collect(engine="streaming")
        nulls = {name: _nulls(rows, self.columns[name].dtype) for name in ("homepage", "score")}
        yield self.make(rows.with_columns(**nulls), request)
