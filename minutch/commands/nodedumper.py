"""`minutch nodedumper`: dumps the pages, hosts or domains of a webgraph (Nutch: NodeDumper)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from minutch.commands.arguments import Flag, fail, parse
from minutch.cycle.webgraph.dumpers import ALL, NodeDumperOptions, nodedumper
from minutch.job import JobContext

USAGE: Final = """NodeDumper -webgraphdb <webgraphdb> -output <output> [-inlinks | -outlinks | \
-scores] [-topn <topn>] [-group <host|domain> <sum|max>] [-asEff] [-asSequenceFile]
\t-webgraphdb <webgraphdb>\tthe webgraph
\t-output <output>\tthe new directory to write to
\t-inlinks\tthe number of links to a page
\t-outlinks\tthe number of links of a page
\t-scores\tthe score that linkrank gave a page (the default)
\t-topn <topn>\tonly the first pages or groups, by the highest numbers
\t-group <host|domain> <sum|max>\tgroup the pages of a host or domain
\t-asEff\tname=number, as Solr's ExternalFileField reads it
\t-asSequenceFile\ta SequenceFile of Text and FloatWritable"""

FLAGS: Final = (
    Flag("-webgraphdb", value="webgraphdb"),
    Flag("-output", value="output"),
    Flag("-inlinks"),
    Flag("-outlinks"),
    Flag("-scores"),
    Flag("-topn", value="topn", convert=int),
    Flag("-group", value="host|domain sum|max"),
    Flag("-asEff"),
    Flag("-asSequenceFile"),
)


def run(args: list[str], context: JobContext) -> int:
    """Runs the job and reports its counters."""
    arguments = parse(args, FLAGS, usage=USAGE, most=0)
    if arguments["-webgraphdb"] is None or arguments["-output"] is None:
        fail("say what to read and where to write: -webgraphdb and -output" if args else "", USAGE)
    group = arguments["-group"]
    if group is not None and (group[0] not in ("host", "domain") or group[1] not in ("sum", "max")):
        fail(f"-group: expected host or domain, and sum or max, found {' '.join(group)}", USAGE)
    top = arguments.get("-topn", ALL)
    if top < 0:
        fail(f"-topn: expected a number from 0 on, found {top}", USAGE)
    options = NodeDumperOptions(
        number=(
            "inlinks"
            if arguments["-inlinks"]
            else "outlinks"
            if arguments["-outlinks"]
            else "scores"
        ),
        topn=top,
        group=group,
        as_eff=arguments["-asEff"],
        as_sequence_file=arguments["-asSequenceFile"],
    )
    graph, output = Path(arguments["-webgraphdb"]), Path(arguments["-output"])
    context.report("NodeDumper", nodedumper(graph, output, options, context=context))
    return 0
