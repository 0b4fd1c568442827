"""LinkDumper$Reader: prints the nodes that link to a page, from the dump of LinkDumper.

Source: org.apache.nutch.scoring.webgraph.LinkDumper.Reader.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from minutch.commands.arguments import Flag, parse
from minutch.cycle.webgraph.store import WebGraph
from minutch.job import JobContext

USAGE: Final = """LinkDumper$Reader <webgraphdb> <url>
\t<webgraphdb>\tthe webgraph, with the dump of LinkDumper
\t<url>\tthe page"""
FLAGS: Final[tuple[Flag, ...]] = ()


def run(args: list[str], context: JobContext) -> int:
    """Runs the command; returns 0, also for a page without links to it."""
    arguments = parse(args, FLAGS, usage=USAGE, least=2)
    graph, url = arguments.positional[:2]
    found = WebGraph(Path(graph)).linkdump.get(url)
    context.print(f"{url}:")
    for link in found.links if found is not None else ():
        context.print(f"  {link.url} - {link.node}")
    return 0
