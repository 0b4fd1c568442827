"""LinkDumper$Reader: print the nodes that link to a page, from the dump that LinkDumper made.

Source: org.apache.nutch.scoring.webgraph.LinkDumper.Reader.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from minutch.commands.arguments import parse
from minutch.cycle.webgraph.store import WebGraph
from minutch.job import JobContext

USAGE: Final = """LinkDumper$Reader <webgraphdb> <url>
\t<webgraphdb>\tthe webgraph that LinkDumper has made a dump of
\t<url>\tthe page"""


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0, also for a page that nothing links to and, as Nutch's, for wrong
    arguments.
    """
    given = parse(args, (), usage=USAGE, least=2)
    graph, url = given.positional[:2]
    found = WebGraph(Path(graph)).linkdump.get(url)
    context.print(f"{url}:")
    for link in found.links if found is not None else ():
        context.print(f"  {link.url} - {link.node}")
    return 0
