"""`minutch linkrank`: scores the pages of a webgraph by their links (Nutch: LinkRank)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from minutch.commands.arguments import Flag, fail, parse
from minutch.cycle.webgraph.linkrank import linkrank
from minutch.job import JobContext

USAGE: Final = """LinkRank -webgraphdb <webgraphdb>
\t-webgraphdb <webgraphdb>\tthe webgraph whose nodes get scores"""
FLAGS: Final = (Flag("-webgraphdb", value="webgraphdb"),)


def run(args: list[str], context: JobContext) -> int:
    """Runs the job and reports its counters."""
    arguments = parse(args, FLAGS, usage=USAGE, most=0)
    if arguments["-webgraphdb"] is None:
        fail("", USAGE)
    context.report("LinkRank", linkrank(Path(arguments["-webgraphdb"]), context=context))
    return 0
