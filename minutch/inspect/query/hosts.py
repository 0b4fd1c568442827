"""The table `hosts`: the records of the HostDb, or, if there is none, counts of the CrawlDb by
host.

column         HostDb                                   CrawlDb: entries by status
redirects      temporary and permanent ones             db_redir_temp, db_redir_perm
duplicates     null: the HostDb does not count them     db_duplicate
homepage       null for none                            null
score          as in the HostDb                         null
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import ClassVar, Final

import polars as pl

from minutch.cycle.hostdb.store import HOST_DATUM, HostDb
from minutch.hadoop.formats.batch import Batch
from minutch.inspect.query.crawldb import CrawlDbTable
from minutch.inspect.query.table import Column, Request, Table
from minutch.records import hostdatum as hostdatum_columns
from minutch.work.tables.frame import decode_keys
from minutch.work.tables.spans import scan_all


def _nulls(rows: pl.DataFrame, dtype: pl.DataType) -> pl.Series:
    return pl.Series([None], dtype=dtype).new_from_index(0, len(rows))


class HostDbTable(Table):
    """A table of the records of a HostDb."""

    name = "hosts"
    cheapest = "host"
    key = "host"
    columns: ClassVar = {
        "host": Column(pl.String(), lambda rows: decode_keys(rows["key"])),
        "homepage": Column(
            pl.String(), lambda rows: decode_keys(rows["homepage_url"]).replace("", None)
        ),
        "fetched": Column(pl.Int64(), lambda rows: rows["fetched"]),
        "unfetched": Column(pl.Int64(), lambda rows: rows["unfetched"]),
        "gone": Column(pl.Int64(), lambda rows: rows["gone"]),
        "redirects": Column(pl.Int64(), lambda rows: rows["redir_temp"] + rows["redir_perm"]),
        "notmodified": Column(pl.Int64(), lambda rows: rows["not_modified"]),
        "duplicates": Column(pl.Int64(), lambda rows: _nulls(rows, pl.Int64())),
        "score": Column(pl.Float32(), lambda rows: rows["score"]),
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
        name: Column(column.dtype, itemgetter(name)) for name, column in HostDbTable.columns.items()
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
