"""nodedumper: the pages, hosts or domains of a webgraph by inlinks, outlinks or score, as text.

    <url, host or domain> TAB <number> LF       with -asEff an equals sign for the tab

Pages come with the highest number first, equals in the order of their URLs; groups in the order of
their names, with the sum or the greatest of their pages' numbers. -topn N leaves the first N pages,
or the N groups with the highest numbers, these first. Nutch counts to N anew for each number, and
within each group: nodedumper.topn.per.value=true.

Source: org.apache.nutch.scoring.webgraph.NodeDumper.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from minutch.commands.arguments import Flag, fail, parse
from minutch.cycle.webgraph.nodedumper import ALL, Wish, nodedumper
from minutch.cycle.webgraph.store import WebGraph
from minutch.job import JobContext

log = logging.getLogger(__name__)

USAGE: Final = """NodeDumper -webgraphdb <webgraphdb> -output <output> [-inlinks | -outlinks | -scores] [-topn <topn>] \
[-group <host|domain> <sum|max>] [-asEff] [-asSequenceFile]
\t-webgraphdb <webgraphdb>\tthe webgraph
\t-output <output>\tthe new directory to write to
\t-inlinks\thow many links lead to a page
\t-outlinks\thow many links a page has
\t-scores\tthe score that linkrank gave a page (so if none of the three is given)
\t-topn <topn>\tonly so many pages or groups, the highest
\t-group <host|domain> <sum|max>\tput the pages of a host or domain together
\t-asEff\tname=number, as Solr's ExternalFileField wants it
\t-asSequenceFile\ta SequenceFile of Text and FloatWritable"""  # noqa: E501

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
    """The command: exit code 0; 255 for wrong arguments, 254 and an error."""
    given = parse(args, FLAGS, usage=USAGE, most=0)
    if given["-webgraphdb"] is None or given["-output"] is None:
        fail("say what to read and where to write: -webgraphdb and -output" if args else "", USAGE)
    group = given["-group"]
    if group is not None and (group[0] not in ("host", "domain") or group[1] not in ("sum", "max")):
        fail(f"-group: expected host or domain, and sum or max, found {' '.join(group)}", USAGE)
    top = given.get("-topn", ALL)
    if top < 0:
        fail(f"-topn: expected a number from 0 on, found {top}", USAGE)
    wish = Wish(
        (
            "num_inlinks"
            if given["-inlinks"]
            else "num_outlinks"
            if given["-outlinks"]
            else "inlink_score"
        ),
        top,
        group,
        "=" if given["-asEff"] else "\t",
        given["-asSequenceFile"],
    )
    context.report(
        "NodeDumper",
        nodedumper(WebGraph(Path(given["-webgraphdb"])), Path(given["-output"]), wish, context),
    )
    return 0
