"""`export wet`: the text of pages, as the Common Crawl publishes it: one conversion record a page.

    <out>/<prefix>-NNNNN.warc.wet.gz     WARC 1.0; its records refer to those of
                                         <prefix>-NNNNN.warc.gz (`export warc`)

Source: files of the Common Crawl of 2024, and org.archive.extract.WETExtractorOutput, which made
them.
"""

from __future__ import annotations

from typing import Final

from minutch.archives.captures import find_segments
from minutch.archives.web.webarchivejobs import export_wet
from minutch.commands.arguments import parse
from minutch.commands.exports.segmentargs import FLAGS as COMMON
from minutch.commands.exports.segmentargs import OPTIONS, archive_options, given_segments
from minutch.job import JobContext

USAGE: Final = f"""export wet <segment>... [-dir <segments>] <out> [options]
{OPTIONS}
\t<out>\tthe new folder of the WET files"""
FLAGS: Final = COMMON


def run(args: list[str], context: JobContext) -> int:
    """Runs the command; returns 0."""
    given = parse(args, FLAGS, usage=USAGE, least=1)
    paths, out = given_segments(given, USAGE)
    options = archive_options(given, USAGE)
    context.report("export wet", export_wet(find_segments(paths), out, options, context=context))
    return 0
