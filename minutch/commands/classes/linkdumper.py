"""LinkDumper: writes a database of the nodes that link to each page of a webgraph."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from minutch.commands.arguments import Flag, fail, parse
from minutch.cycle.webgraph.dumpers import linkdumper
from minutch.job import JobContext

USAGE: Final = """LinkDumper -webgraphdb <webgraphdb>
\t-webgraphdb <webgraphdb>\tthe webgraph, which gets a folder `linkdump`"""
FLAGS: Final = (Flag("-webgraphdb", value="webgraphdb"),)


def run(args: list[str], context: JobContext) -> int:
    """Runs the job and reports its counters."""
    arguments = parse(args, FLAGS, usage=USAGE, most=0)
    if arguments["-webgraphdb"] is None:
        fail("", USAGE)
    context.report("LinkDumper", linkdumper(Path(arguments["-webgraphdb"]), context=context))
    return 0
