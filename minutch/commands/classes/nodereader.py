"""NodeReader: prints the node of a page. As in Nutch, a page that is not in the webgraph is shown
as a new node.

Source: org.apache.nutch.scoring.webgraph.NodeReader.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from minutch.commands.arguments import Flag, fail, parse
from minutch.cycle.webgraph.store import WebGraph
from minutch.hadoop.formats.javahash import float_to_string
from minutch.job import JobContext
from minutch.records.webgraph import Node

USAGE: Final = """NodeReader -webgraphdb <webgraphdb> -url <url>
\t-webgraphdb <webgraphdb>\tthe webgraph
\t-url <url>\tthe page"""

FLAGS: Final = (Flag("-webgraphdb", value="webgraphdb"), Flag("-url", value="url"))


def run(args: list[str], context: JobContext) -> int:
    """Runs the command; returns 0."""
    arguments = parse(args, FLAGS, usage=USAGE, most=0)
    if arguments["-webgraphdb"] is None or arguments["-url"] is None:
        fail("both -webgraphdb and -url are needed" if args else "", USAGE)
    url = arguments["-url"]
    node = WebGraph(Path(arguments["-webgraphdb"])).nodes.get(url) or Node()
    context.print(f"{url}:")
    context.print(f"  inlink score: {float_to_string(node.inlink_score)}")
    context.print(f"  outlink score: {float_to_string(node.outlink_score)}")
    context.print(f"  num inlinks: {node.num_inlinks}")
    context.print(f"  num outlinks: {node.num_outlinks}")
    return 0
