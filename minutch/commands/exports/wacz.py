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

from dataclasses import replace
from typing import Final

from minutch.archives.captures import find_segments
from minutch.archives.web.existingarchives import named_archives
from minutch.archives.web.webarchivejobs import export_wacz
from minutch.commands.arguments import Flag, parse
from minutch.commands.exports.segmentargs import FLAGS as COMMON
from minutch.commands.exports.segmentargs import (
    OPTIONS,
    archive_options,
    archives_among,
    given_segments,
)
from minutch.job import JobContext

USAGE: Final = f"""export wacz <segment>... [-dir <segments>] <out> [options]
       export wacz <archive>... <out> [-title <title>] [-text]
{OPTIONS}
\t<archive>\ta WARC file, or a folder of such files, taken as they are
\t-title <title>\twhat the archive is called
\t-text\twith the text of the pages, so that they can be searched; of archives, where they have it
\t<out>\tthe new file, whose name should end in .wacz"""
FLAGS: Final = (*COMMON, Flag("-title", value="title"), Flag("-text"))


def run(args: list[str], context: JobContext) -> int:
    """Runs the command; returns 0."""
    given = parse(args, FLAGS, usage=USAGE, least=1)
    paths, out = given_segments(given, USAGE)
    archives = named_archives(archives_among(paths, USAGE))
    options = replace(
        archive_options(given, USAGE),
        title=given.get("-title", ""),
        with_text=given["-text"],
    )
    segments = [] if archives else find_segments(paths)
    counters = export_wacz(segments, out, options, archives=archives, context=context)
    context.report("export wacz", counters)
    return 0
