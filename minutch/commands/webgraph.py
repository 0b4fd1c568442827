"""`minutch webgraph`: makes a graph of links, or adds segments to it (Nutch: WebGraph)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from minutch.commands.arguments import Flag, fail, parse
from minutch.cycle.segment.store import segments_at
from minutch.cycle.webgraph.build import WebGraphOptions, webgraph
from minutch.job import JobContext

USAGE: Final = """WebGraph -webgraphdb <webgraphdb> (-segment <segment> ... | \
-segmentDir <segmentDir>) [-normalize] [-filter]
\t-webgraphdb <webgraphdb>\tthe webgraph to make or to add to
\t-segment <segment> ...\tthe segments
\t-segmentDir <segmentDir>\tthe directory of the segments
\t-n, -normalize\tnormalize the URLs of links, existing ones too
\t-f, -filter\tfilter the URLs of links, existing ones too"""

FLAGS: Final = (
    Flag("-webgraphdb", value="webgraphdb"),
    Flag("-segment", value="segment", many=True),
    Flag("-segmentDir", value="segmentDir", many=True),
    Flag("-normalize", aliases=("-n", "--normalize")),
    Flag("-filter", aliases=("-f", "--filter")),
)


def run(args: list[str], context: JobContext) -> int:
    """Runs the job and reports its counters."""
    arguments = parse(args, FLAGS, usage=USAGE, most=0)
    names, folders = arguments.get("-segment", []), arguments.get("-segmentDir", [])
    segments = segments_at(map(Path, names), map(Path, folders))
    if arguments["-webgraphdb"] is None or (
        arguments["-segment"] is None and arguments["-segmentDir"] is None
    ):
        fail(
            (
                "say which webgraph, and which segments: -webgraphdb, -segment or -segmentDir"
                if args
                else ""
            ),
            USAGE,
        )
    options = WebGraphOptions(normalize=arguments["-normalize"], filtering=arguments["-filter"])
    counters = webgraph(
        Path(arguments["-webgraphdb"]), [one.path for one in segments], options, context=context
    )
    context.report("WebGraph", counters)
    return 0
