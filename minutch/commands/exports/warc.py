"""export warc: writes the pages of segments as a web archive for replay tools and other crawlers.

    <out>/<prefix>-NNNNN.warc.gz
    <out>/index.cdxj                 with -cdxj

In contrast to Nutch's exporter (`warc`), it writes WARC 1.1, a warcinfo record about the crawler,
requests, metadata of fetches, and texts; and a page that did not change between rounds only once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from minutch.archives.web.webarchivejobs import export_warc
from minutch.commands.arguments import Flag, parse
from minutch.commands.exports.segmentargs import FLAGS as COMMON
from minutch.commands.exports.segmentargs import OPTIONS, archive_options, paths_and_output
from minutch.job import JobContext

USAGE: Final = f"""export warc <segment>... [-dir <segments>] <out> [options]
{OPTIONS}
\t-cdxj\talso write an index of the files, index.cdxj
\t<out>\tthe new folder of the WARC files"""
FLAGS: Final = (*COMMON, Flag("-cdxj"))


def run(args: list[str], context: JobContext) -> int:
    """Runs the command; returns 0."""
    arguments = parse(args, FLAGS, usage=USAGE, least=1)
    paths, out = paths_and_output(arguments, USAGE)
    options = replace(archive_options(arguments, USAGE), index=arguments["-cdxj"])
    context.report("export warc", export_warc(paths, out, options, context=context))
    return 0
