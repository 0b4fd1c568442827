"""`export warc`: the pages of segments as a web archive that replay tools show and other crawlers
import.

    <out>/<prefix>-NNNNN.warc.gz
    <out>/index.cdxj                 with -cdxj

Beside what Nutch's exporter (`warc`) writes: WARC 1.1, the crawler in a warcinfo record, requests,
what is known of the fetch, the text; and pages that did not change from one round to the next are
written once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from minutch.archives.captures import find_segments
from minutch.archives.web.webarchivejobs import export_web_archive
from minutch.commands.arguments import Flag, parse
from minutch.commands.exports.segmentargs import FLAGS as COMMON
from minutch.commands.exports.segmentargs import OPTIONS, archive_options, given_segments
from minutch.job import JobContext

USAGE: Final = f"""export warc <segment>... [-dir <segments>] <out> [options]
{OPTIONS}
\t-cdxj\twith an index of the files, index.cdxj
\t<out>\tthe new folder of the WARC files"""
FLAGS: Final = (*COMMON, Flag("-cdxj"))


def run(args: list[str], context: JobContext) -> int:
    """Runs the command; returns 0."""
    given = parse(args, FLAGS, usage=USAGE, least=1)
    paths, out = given_segments(given, USAGE)
    options = replace(archive_options(given, USAGE), index=given["-cdxj"])
    counters = export_web_archive(find_segments(paths), out, options, context=context)
    context.report("export warc", counters)
    return 0
