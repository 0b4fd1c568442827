"""export arc: writes the pages of segments to ARC files (`minutch/archives/exporters.py`)."""

from __future__ import annotations

from typing import Final

from minutch.archives.exporters import CRAWL_001, PARSE_OUTPUT, ArcExportOptions, export_arc
from minutch.commands.arguments import Flag, parse
from minutch.commands.exports.segmentargs import DIR, SEGMENTS, paths_and_output
from minutch.job import JobContext
from minutch.warc.warcfile import ARC_LIMIT

USAGE: Final = f"""export arc <segment>... [-dir <segments>] <out> [options]
{SEGMENTS}
\t<out>\tthe new folder of the ARC files
\t-layout name\tparse-output: segment/<millis>/ (default), or crawl-001: yyyy/MM/dd/<number>/
\t-size bytes\tthe size at which the next file begins (100000000)"""
FLAGS: Final = (
    DIR,
    Flag("-layout", value="name", choices=(PARSE_OUTPUT, CRAWL_001)),
    Flag("-size", value="bytes", convert=int),
)


def run(args: list[str], context: JobContext) -> int:
    """Runs the command; returns 0."""
    arguments = parse(args, FLAGS, usage=USAGE, least=1)
    paths, out = paths_and_output(arguments, USAGE)
    options = ArcExportOptions(
        arguments.get("-layout", PARSE_OUTPUT), arguments.get("-size", ARC_LIMIT)
    )
    context.report("export arc", export_arc(paths, out, options, context=context))
    return 0
