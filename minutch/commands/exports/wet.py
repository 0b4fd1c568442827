"""export wet: writes the text of pages (`minutch/archives/web/companions.py`)."""

from __future__ import annotations

from typing import Final

from minutch.archives.web.webarchivejobs import export_wet
from minutch.commands.arguments import parse
from minutch.commands.exports.segmentargs import FLAGS as COMMON
from minutch.commands.exports.segmentargs import OPTIONS, archive_options, paths_and_output
from minutch.job import JobContext

USAGE: Final = f"""export wet <segment>... [-dir <segments>] <out> [options]
{OPTIONS}
\t<out>\tthe new folder of the WET files"""
FLAGS: Final = COMMON


def run(args: list[str], context: JobContext) -> int:
    """Runs the command; returns 0."""
    arguments = parse(args, FLAGS, usage=USAGE, least=1)
    paths, out = paths_and_output(arguments, USAGE)
    options = archive_options(arguments, USAGE)
    context.report("export wet", export_wet(paths, out, options, context=context))
    return 0
