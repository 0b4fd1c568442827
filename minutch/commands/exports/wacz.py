"""export wacz: writes a web archive with its index and page list in one file
(`minutch/archives/web/waczfile.py`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from minutch.archives.web.webarchivejobs import export_wacz
from minutch.commands.arguments import Flag, parse
from minutch.commands.exports.segmentargs import FLAGS as COMMON
from minutch.commands.exports.segmentargs import OPTIONS, archive_options, paths_and_output
from minutch.job import JobContext

USAGE: Final = f"""export wacz <segment>... [-dir <segments>] <out> [options]
       export wacz <archive>... <out> [-title <title>] [-text]
{OPTIONS}
\t<archive>\ta WARC file, or a folder of such files, taken unchanged
\t-title <title>\tthe title of the archive
\t-text\tinclude the text of pages, for full-text search; that of archives, if they contain it
\t<out>\tthe new file, whose name should end in .wacz"""
FLAGS: Final = (*COMMON, Flag("-title", value="title"), Flag("-text"))


def run(args: list[str], context: JobContext) -> int:
    """Runs the command; returns 0."""
    arguments = parse(args, FLAGS, usage=USAGE, least=1)
    paths, out = paths_and_output(arguments, USAGE)
    options = replace(
        archive_options(arguments, USAGE),
        title=arguments.get("-title", ""),
        with_text=arguments["-text"],
    )
    context.report("export wacz", export_wacz(paths, out, options, context=context))
    return 0
