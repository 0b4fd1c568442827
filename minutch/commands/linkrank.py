"""linkrank: give every page of a webgraph a score, by the scores of the pages that link to it.

    share of a link   the score of its page / the number of the page's outlinks
    score of a page   (1 - damping) + damping * (1 / nodes + the sum of the shares of the links to
                      it)

    link.analyze.initial.score    every page's score before the first round (1)
    link.analyze.num.iterations   rounds (10)
    link.analyze.damping.factor   damping (0.85)
    link.ignore.limit.page, link.ignore.limit.domain   of links from one page or domain the first
                                                       counts, in the order of URLs

A page without outlinks gives nothing. Numbers are 32-bit floats as in Nutch, sums are made in 64
bits: they depend on no order.

Source: org.apache.nutch.scoring.webgraph.LinkRank.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from minutch.commands.arguments import Flag, fail, parse
from minutch.cycle.webgraph.linkrank import linkrank
from minutch.cycle.webgraph.store import WebGraph
from minutch.job import JobContext

log = logging.getLogger(__name__)

USAGE: Final = """LinkRank -webgraphdb <webgraphdb>
\t-webgraphdb <webgraphdb>\tthe webgraph whose nodes get scores"""
FLAGS: Final = (Flag("-webgraphdb", value="webgraphdb"),)


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0; 255 for wrong arguments, 254 (and an error) where the webgraph
    stays as it was.
    """
    given = parse(args, FLAGS, usage=USAGE, most=0)
    if given["-webgraphdb"] is None:
        fail("", USAGE)
    context.report("LinkRank", linkrank(WebGraph(Path(given["-webgraphdb"])), context))
    return 0
