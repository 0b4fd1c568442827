"""LinkDumper: for each page of a webgraph the nodes that link to it, as a database to look into
(`linkdumpreader`).

    LinkNodes    int count | count × LinkNode
    LinkNode     short length | URL in Java's modified UTF-8 | Node

The nodes of a page are in the order of their URLs, at most 50,000. A dump that is there is
replaced.

Source: org.apache.nutch.scoring.webgraph.LinkDumper.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from minutch.commands.arguments import Flag, fail, parse
from minutch.cycle.webgraph.linkdumper import dump_links
from minutch.cycle.webgraph.store import WebGraph
from minutch.job import JobContext

log = logging.getLogger(__name__)

USAGE: Final = """LinkDumper -webgraphdb <webgraphdb>
\t-webgraphdb <webgraphdb>\tthe webgraph, which gets a folder `linkdump`"""
FLAGS: Final = (Flag("-webgraphdb", value="webgraphdb"),)


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0; 255 for wrong arguments, 254 and an error."""
    given = parse(args, FLAGS, usage=USAGE, most=0)
    if given["-webgraphdb"] is None:
        fail("", USAGE)
    context.report("LinkDumper", dump_links(WebGraph(Path(given["-webgraphdb"])), context))
    return 0
