"""Exports the tables of a crawl as Parquet files, for DuckDB, Spark, pandas and others.

    <out>/crawldb/part-00000.parquet       a file for each partition of a database, sorted by URL
    <out>/pages/20260101120000.parquet     a file for each segment, sorted by URL; parses likewise
    <out>/hosts/part-00000.parquet         sorted by host

Row groups have statistics, which let readers skip rows. A table whose files are missing is omitted.
The folder appears whole or not at all.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from minutch.errors import StoreError
from minutch.inspect.query.crawl import open_crawl
from minutch.inspect.query.parquet import count, sink
from minutch.inspect.query.table import Table
from minutch.job import Counters, JobContext
from minutch.work.tables.install import remove
from minutch.work.tables.textparts import output_folder

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ParquetOptions:
    """Options of export parquet."""

    tables: Sequence[str] = ()
    """Names of the tables to export; empty: all whose files exist, but `site`."""


def export_parquet(
    crawl: Path, out: Path, options: ParquetOptions = ParquetOptions(), *, context: JobContext
) -> Counters:
    """Writes the tables of the crawl in a folder to the new folder `out`; counts their rows.

    Raises StoreError for an unknown table, for one that is named but has no files, and if `out`
    exists.
    """
    tables = open_crawl(crawl).tables
    if unknown := [name for name in options.tables if name not in tables]:
        raise StoreError(f"unknown table {unknown[0]}: expected {', '.join(tables)}")
    counters = Counters()
    with (
        output_folder(out) as folder,
        context.progress("export parquet", None, unit="rows") as progress,
    ):
        for table in tables.values():
            if table.name in options.tables or not (options.tables or table.is_derived):
                rows = _write(table, folder / table.name, required=bool(options.tables))
                counters.add(f"rows of {table.name}", rows)
                progress.advance(rows)
    return counters


def _write(table: Table, folder: Path, *, required: bool) -> int:
    """Writes a table to a folder; returns the number of its rows, 0 if its files are missing."""
    try:
        parts = table.partitions()
        folder.mkdir()
        for name, part in parts.items():
            sink(part.scan(), folder / f"{name}.parquet")
    except StoreError:
        if required:
            raise
        log.info("%s is omitted: its files are missing", table.name)
        remove(folder)
        return 0
    return count(folder / "*.parquet") if parts else 0
