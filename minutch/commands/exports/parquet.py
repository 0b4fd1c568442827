"""export parquet: writes the tables of a crawl to Parquet files
(`minutch/inspect/query/parquetexport.py`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from minutch.commands.arguments import Flag, parse
from minutch.inspect.query.parquetexport import ParquetOptions, export_parquet
from minutch.job import JobContext

USAGE: Final = """export parquet <crawl> <out> [-tables <names>]
\tcrawl\tthe folder of a crawl
\tout\ta new folder, with a folder for each table, and a file for each partition or segment
\t-tables <names>\tthe tables, separated by commas (all that exist): crawldb, linkdb, links, \
pages, parses, hosts, duplicates"""
FLAGS: Final = (Flag("-tables", "names"),)


def run(args: list[str], context: JobContext) -> int:
    """Runs the command; returns 0."""
    arguments = parse(args, FLAGS, usage=USAGE, least=2, most=2)
    crawl, out = map(Path, arguments.positional)
    options = ParquetOptions(arguments["-tables"].split(",") if arguments["-tables"] else ())
    context.report("ParquetExport", export_parquet(crawl, out, options, context=context))
    return 0
