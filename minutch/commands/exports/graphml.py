"""export graphml: writes the links of a crawl to a GraphML file
(`minutch/inspect/query/graphexport.py`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from minutch.commands.arguments import Flag, parse
from minutch.inspect.query.graphexport import GraphOptions, export_graphml
from minutch.job import JobContext

USAGE: Final = """export graphml <crawl> <file> [-hosts]
\tcrawl\tthe folder of a crawl that has a linkdb
\tfile\ta new GraphML file: pages, and the links between them with their anchor texts
\t-hosts\thosts, and the numbers of links between them"""
FLAGS: Final = (Flag("-hosts"),)


def run(args: list[str], context: JobContext) -> int:
    """Runs the command; returns 0."""
    arguments = parse(args, FLAGS, usage=USAGE, least=2, most=2)
    crawl, out = map(Path, arguments.positional)
    options = GraphOptions(by_host=arguments["-hosts"])
    context.report("GraphmlExport", export_graphml(crawl, out, options, context=context))
    return 0
