"""export edges: writes the links of a crawl to a CSV file
(`minutch/inspect/query/graphexport.py`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from minutch.commands.arguments import Flag, parse
from minutch.inspect.query.graphexport import GraphOptions, export_edges
from minutch.job import JobContext

USAGE: Final = """export edges <crawl> <file> [-hosts]
\tcrawl\tthe folder of a crawl that has a linkdb
\tfile\ta new CSV file: Source, Target and Label, the anchor text
\t-hosts\tlinks between hosts: Source, Target and Weight, the number of links"""
FLAGS: Final = (Flag("-hosts"),)


def run(args: list[str], context: JobContext) -> int:
    """Runs the command; returns 0."""
    arguments = parse(args, FLAGS, usage=USAGE, least=2, most=2)
    crawl, out = map(Path, arguments.positional)
    options = GraphOptions(by_host=arguments["-hosts"])
    context.report("EdgesExport", export_edges(crawl, out, options, context=context))
    return 0
