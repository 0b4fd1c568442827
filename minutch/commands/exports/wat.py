"""export wat: metadata of the records of an archive (`minutch/archives/web/companions.py`)."""

from __future__ import annotations

from typing import Final

from minutch.archives.web.webarchivejobs import export_wat
from minutch.commands.arguments import parse
from minutch.commands.exports.segmentargs import FLAGS as COMMON
from minutch.commands.exports.segmentargs import OPTIONS, archive_options, paths_and_output
from minutch.job import JobContext

USAGE: Final = f"""export wat <segment>... [-dir <segments>] <out> [options]
{OPTIONS}
\t<out>\tthe new folder of the WAT files"""
FLAGS: Final = COMMON


def run(args: list[str], context: JobContext) -> int:
    """Runs the command; returns 0."""
    arguments = parse(args, FLAGS, usage=USAGE, least=1)
    paths, out = paths_and_output(arguments, USAGE)
    options = archive_options(arguments, USAGE)
    context.report("export wat", export_wat(paths, out, options, context=context))
    return 0
