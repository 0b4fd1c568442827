"""`export wat`: what is known of each record of WARC files, as the Common Crawl publishes it:
metadata in JSON.

    <out>/<prefix>-NNNNN.warc.wat.gz     WARC 1.0; its records refer to those of
                                         <prefix>-NNNNN.warc.gz (`export warc`)

    Container    Filename, Compressed, Offset, Gzip-Metadata {Deflate-Length, Header-Length,
                 Footer-Length, Inflated- CRC, Inflated-Length}
    Envelope     Payload-Metadata {Actual-Content-Type, what there is of it, Actual-Content-Length,
                 Trailing-Slop- Length, Block-Digest}, Format, WARC-Header-Length,
                 WARC-Header-Metadata

Of a request and a response there are the first line, the headers, and length and digest of what
follows; of an HTML page its head and its links (`htmlfacts`), of fields the fields. Numbers are
strings; a header that comes more than once has a list.

Source: files of the Common Crawl of 2024 (the lengths of a request's headers, without the empty
line, are theirs), and org.archive.extract.WATExtractorOutput and
org.archive.resource.ResourceConstants, which made them.
"""

from __future__ import annotations

from typing import Final

from minutch.archives.captures import find_segments
from minutch.archives.web.webarchivejobs import export_wat
from minutch.commands.arguments import parse
from minutch.commands.exports.segmentargs import FLAGS as COMMON
from minutch.commands.exports.segmentargs import OPTIONS, archive_options, given_segments
from minutch.job import JobContext

USAGE: Final = f"""export wat <segment>... [-dir <segments>] <out> [options]
{OPTIONS}
\t<out>\tthe new folder of the WAT files"""
FLAGS: Final = COMMON


def run(args: list[str], context: JobContext) -> int:
    """Runs the command; returns 0."""
    given = parse(args, FLAGS, usage=USAGE, least=1)
    paths, out = given_segments(given, USAGE)
    options = archive_options(given, USAGE)
    context.report("export wat", export_wat(find_segments(paths), out, options, context=context))
    return 0
