"""LoopReader: prints the loop of a page, from a webgraph with the results of Nutch's Loops (Nutch
1.0 to 1.11).

Source: org.apache.nutch.scoring.webgraph.LoopReader, Loops.LoopSet.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from minutch.commands.arguments import Flag, fail, parse
from minutch.cycle.webgraph.store import WebGraph
from minutch.job import JobContext

USAGE: Final = """LoopReader -webgraphdb <webgraphdb> -url <url>
\t-webgraphdb <webgraphdb>\tthe webgraph, with a folder `loops`
\t-url <url>\tthe page"""

FLAGS: Final = (Flag("-webgraphdb", value="webgraphdb"), Flag("-url", value="url"))


def run(args: list[str], context: JobContext) -> int:
    """Runs the command; returns 0."""
    arguments = parse(args, FLAGS, usage=USAGE, most=0)
    if arguments["-webgraphdb"] is None or arguments["-url"] is None:
        fail("both -webgraphdb and -url are needed" if args else "", USAGE)
    loops = WebGraph(Path(arguments["-webgraphdb"])).loops.get(arguments["-url"])
    context.print(f"{arguments['-url']}:")
    for url in loops.java_order() if loops is not None else ():
        context.print(f"  {url}")
    return 0
