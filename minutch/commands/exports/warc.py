"""`export warc`: the pages of segments as a web archive that replay tools show and other crawlers
import.

    <out>/<prefix>-NNNNN.warc.gz
    <out>/index.cdxj                 with -cdxj

Beside what Nutch's exporter (`warc`) writes: WARC 1.1, the crawler in a warcinfo record, requests,
what is known of the fetch, the text; and pages that did not change from one round to the next are
written once.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Final

from minutch.archives.web.cdxjindex import IndexWriter, write_index
from minutch.archives.web.webarchive import write_archive
from minutch.commands.arguments import Flag, parse
from minutch.commands.exports.segmentargs import FLAGS as COMMON
from minutch.commands.exports.segmentargs import OPTIONS, archive_spec, given_segments
from minutch.job import JobContext
from minutch.warc.warcfile import Output
from minutch.work.tables.textparts import output_folder

USAGE: Final = f"""export warc <segment>... [-dir <segments>] <out> [options]
{OPTIONS}
\t-cdxj\twith an index of the files, index.cdxj
\t<out>\tthe new folder of the WARC files"""
FLAGS: Final = (*COMMON, Flag("-cdxj"))
INDEX: Final = "index.cdxj"


def run(args: list[str], context: JobContext) -> int:
    """The command: 0 if done."""
    given = parse(args, FLAGS, usage=USAGE, least=1)
    paths, out = given_segments(given, USAGE)
    plan = archive_spec(given, paths, USAGE)
    with output_folder(out) as work, ExitStack() as stack:
        index = [stack.enter_context(IndexWriter(work))] if given["-cdxj"] else []

        def open_file(name: str) -> Output:
            return (work / name).open("wb", buffering=1 << 18)

        counters = write_archive(plan, context, open_file, index)
        for each in index:
            write_index(work / INDEX, each.sorted())
    context.report("export warc", counters)
    return 0
