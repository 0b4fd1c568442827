"""webgraph: make the graph of links that linkrank works on, or add segments to it.

Three databases come of it (see `store`): the links of each page's newest version, as `rules` lets
them count; the same links by the page that they lead to; and a node for each page at either end,
with its numbers of links and score 0.

A page is as old as its fetch: the time that stands in its parse (fetcher.parse=true leaves one),
else that of the job. With link.delete.gone, pages that were gone or redirected are taken out,
unless a later segment has links of them. The three databases are all written before the first takes
its place.

Source: org.apache.nutch.scoring.webgraph.WebGraph.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from minutch.commands.arguments import Flag, fail, parse
from minutch.cycle.segment.store import segments_in
from minutch.cycle.webgraph.build import webgraph
from minutch.cycle.webgraph.store import WebGraph
from minutch.job import JobContext

log = logging.getLogger(__name__)

USAGE: Final = """WebGraph -webgraphdb <webgraphdb> (-segment <segment> ... | -segmentDir <segmentDir>) \
[-normalize] [-filter]
\t-webgraphdb <webgraphdb>\tthe webgraph to make or to add to
\t-segment <segment> ...\tthe segments
\t-segmentDir <segmentDir>\tthe directory of the segments
\t-n, -normalize\tnormalize the URLs of links, old ones too
\t-f, -filter\tfilter the URLs of links, old ones too"""  # noqa: E501

FLAGS: Final = (
    Flag("-webgraphdb", value="webgraphdb"),
    Flag("-segment", value="segment", many=True),
    Flag("-segmentDir", value="segmentDir", many=True),
    Flag("-normalize", aliases=("-n", "--normalize")),
    Flag("-filter", aliases=("-f", "--filter")),
)


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0; 255 for wrong arguments, 254 (and an error) where the webgraph
    stays as it was.
    """
    given = parse(args, FLAGS, usage=USAGE, most=0)
    segments = [Path(name) for name in given.get("-segment", [])]
    segments += [
        segment.path
        for folder in given.get("-segmentDir", [])
        for segment in segments_in(Path(folder))
    ]
    if given["-webgraphdb"] is None or (given["-segment"] is None and given["-segmentDir"] is None):
        fail(
            (
                "say which webgraph, and which segments: -webgraphdb, -segment or -segmentDir"
                if args
                else ""
            ),
            USAGE,
        )
    graph = WebGraph(Path(given["-webgraphdb"]))
    counters = webgraph(
        graph, segments, context, normalize=given["-normalize"], filtering=given["-filter"]
    )
    context.report("WebGraph", counters)
    return 0
