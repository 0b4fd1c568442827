"""Exports the tables of a crawl as Parquet files, for DuckDB, Spark, pandas and others.

    <out>/crawldb/part-00000.parquet       a file for each partition of a database, sorted by URL
    <out>/pages/20260101120000.parquet     a file for each segment, sorted by URL; parses likewise
    <out>/hosts/part-00000.parquet         sorted by host

Row groups have statistics, which let readers skip rows. A table whose files are missing is omitted.
The folder appears whole or not at all.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from minutch.errors import StoreError
from minutch.inspect.query.crawl import open_crawl
from minutch.inspect.query.table import Table
from minutch.job import Counters, JobContext
from minutch.work.tables.install import remove
from minutch.work.tables.textparts import output_file, output_folder

log = logging.getLogger(__name__)
ROWS_PER_GROUP: Final = 122_880
"""Rows of a row group, each with its own statistics."""
_OS_ERROR: Final = re.compile(r"\(os error (\d+)\)")


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
    tables = open_crawl(crawl, context.conf).tables
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


def write_parquet(rows: pl.LazyFrame, path: Path) -> int:
    """Writes a file; returns the number of rows. StoreError if it exists, or as reading."""
    with output_file(path) as new:
        sink(rows, new)
        return count(new)


def sink(rows: pl.LazyFrame, path: Path) -> None:
    """Writes rows to a new file as they come. Raises OSError, and what reading them raises."""
    with _os_errors(path):
        rows.sink_parquet(
            path,
            compression="zstd",
            statistics="full",
            row_group_size=ROWS_PER_GROUP,
            engine="streaming",
        )


def count(path: Path) -> int:
    """Returns the number of rows in a file, or in those of a pattern. Raises OSError."""
    with _os_errors(path):
        return int(pl.scan_parquet(path).select(pl.len()).collect().item())


@contextmanager
def _os_errors(path: Path) -> Iterator[None]:
    """Turns Polars' errors about files into the system's."""
    try:
        yield
    except pl.exceptions.ComputeError as exc:
        if found := _OS_ERROR.search(str(exc)):
            raise OSError(int(found[1]), os.strerror(int(found[1])), str(path)) from exc
        raise
