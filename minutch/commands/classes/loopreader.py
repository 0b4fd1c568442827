"""LoopReader: print the loop that a page is in, from a webgraph on which Nutch's Loops has run
(Nutch 1.0 to 1.11).

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
    """The command: exit code 0, as Nutch's also for wrong arguments; 255 and an error."""
    given = parse(args, FLAGS, usage=USAGE, most=0)
    if given["-webgraphdb"] is None or given["-url"] is None:
        fail("say both: -webgraphdb and -url" if args else "", USAGE)
    loops = WebGraph(Path(given["-webgraphdb"])).loops.get(given["-url"])
    context.print(f"{given['-url']}:")
    for url in loops.java_order() if loops is not None else ():
        context.print(f"  {url}")
    return 0
