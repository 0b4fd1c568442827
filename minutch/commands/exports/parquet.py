"""`minutch export parquet`: the tables of a crawl as Parquet files, for DuckDB, Spark, pandas and
others.

    <out>/crawldb/part-00000.parquet       a file for each partition of the database, sorted by URL
    <out>/pages/20260101120000.parquet     a file for each segment, sorted by URL; parses likewise
    <out>/hosts/part-00000.parquet         sorted by host

Row groups have statistics, by which readers pass over what a condition excludes. A table whose
files are not there is left out. The folder appears whole or not at all.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from minutch.commands.arguments import Flag, fail, parse
from minutch.errors import StoreError
from minutch.inspect.query.crawl import Crawl, open_crawl
from minutch.inspect.query.parquet import count, sink
from minutch.inspect.query.table import Table
from minutch.job import Counters, JobContext
from minutch.work.tables.textparts import output_folder
from minutch.work.tables.workfolders import remove

log = logging.getLogger(__name__)

USAGE: Final = """export parquet <crawl> <out> [-tables <names>]
\tcrawl\tthe folder of a crawl
\tout\ta new folder: in it one for each table, with a file for each partition or segment
\t-tables <names>\twhich, with commas between them: crawldb, linkdb, links, pages, parses, hosts, duplicates;
\t\tall that are there, if not given"""  # noqa: E501
FLAGS: Final = (Flag("-tables", "names"),)


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0; 255 and an error."""
    given = parse(args, FLAGS, usage=USAGE, least=2, most=2)
    crawl, out = open_crawl(given.positional[0]), Path(given.positional[1])
    names = given["-tables"].split(",") if given["-tables"] else []
    if unknown := [name for name in names if name not in crawl.tables]:
        fail(f"unknown table {unknown[0]}: expected {', '.join(crawl.tables)}", USAGE)
    context.report("ParquetExport", export(crawl, out, context, names))
    return 0


def export(crawl: Crawl, out: Path, context: JobContext, names: list[str]) -> Counters:
    """Write the tables with these names (none: all that are there) to a new folder; returns their
    numbers of rows.
    """
    counters = Counters()
    with (
        output_folder(out) as folder,
        context.progress("export parquet", None, unit="rows") as progress,
    ):
        for table in crawl.tables.values():
            if not names or table.name in names:
                rows = _write(table, folder / table.name, required=bool(names))
                counters.add(f"rows of {table.name}", rows)
                progress.advance(rows)
    return counters


def _write(table: Table, folder: Path, *, required: bool) -> int:
    """Write a table into a folder; returns the number of its rows, 0 where its files are not
    there.
    """
    try:
        parts = table.partitions()
        folder.mkdir()
        for name, part in parts.items():
            sink(part.scan(), folder / f"{name}.parquet")
    except StoreError:
        if required:
            raise
        log.info("%s is left out: its files are not there", table.name)
        remove(folder)
        return 0
    return count(folder / "*.parquet") if parts else 0
