"""`export wacz`: a web archive with its index and a list of its pages in one file, which a browser
can replay.

    archive/<prefix>-NNNNN.warc.gz    the files of `export warc`, or those that were given, stored
                                      as they are
    indexes/index.cdx.gz, index.idx   CDXJ in gzip members of 300 lines, and where each of them
                                      begins
    pages/pages.jsonl                 the HTML pages: URL, time, title, with -text their text
    datapackage.json                  size and SHA-256 digest of each of these
    datapackage-digest.json           the digest of datapackage.json

Source: WACZ 1.1.1, and the ZipNum index of pywb.
"""

from __future__ import annotations

from typing import Final

from minutch.archives.web.cdxjindex import IndexWriter
from minutch.archives.web.existingarchives import named_archives
from minutch.archives.web.repack import take_archives, titled_by
from minutch.archives.web.waczfile import PageList, WaczPackage
from minutch.archives.web.webarchive import write_archive
from minutch.commands.arguments import Flag, parse
from minutch.commands.exports.segmentargs import FLAGS as COMMON
from minutch.commands.exports.segmentargs import (
    OPTIONS,
    archive_spec,
    archives_among,
    given_segments,
)
from minutch.job import JobContext
from minutch.work.tables.textparts import output_file

USAGE: Final = f"""export wacz <segment>... [-dir <segments>] <out> [options]
       export wacz <archive>... <out> [-title <title>] [-text]
{OPTIONS}
\t<archive>\ta WARC file, or a folder of such files, taken as they are
\t-title <title>\twhat the archive is called
\t-text\twith the text of the pages, so that they can be searched; of archives, where they have it
\t<out>\tthe new file, whose name should end in .wacz"""
FLAGS: Final = (*COMMON, Flag("-title", value="title"), Flag("-text"))


def run(args: list[str], context: JobContext) -> int:
    """The command: 0 if done."""
    given = parse(args, FLAGS, usage=USAGE, least=1)
    paths, out = given_segments(given, USAGE)
    archives = named_archives(archives_among(paths, USAGE))
    plan = None if archives else archive_spec(given, paths, USAGE)
    time, title = titled_by(archives) if plan is None else (plan.time, plan.prefix)
    with (
        output_file(out) as path,
        WaczPackage(path, time) as package,
        IndexWriter(path.parent) as index,
        PageList(path.parent, given["-text"]) as pages,
    ):
        if plan is not None:
            counters = write_archive(plan, context, package.open_archive, [index, pages])
        else:
            counters = take_archives(archives, package, index, pages, context)
        package.add_index(index.sorted())
        package.add("pages/pages.jsonl", pages.chunks(), compress=True)
        package.finish(given.get("-title", title), pages.first)
    context.report("export wacz", counters)
    return 0
