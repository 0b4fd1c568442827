"""export legacy: writes segments in the formats of Nutch 0.4 and 0.5
(`minutch/archives/legacy/legacyjobs.py`).
"""

from __future__ import annotations

from typing import Final

from minutch.archives.legacy.legacyjobs import LegacyExportOptions, export_legacy
from minutch.commands.arguments import Flag, parse
from minutch.commands.exports.segmentargs import DIR, SEGMENTS, paths_and_output
from minutch.job import JobContext

USAGE: Final = f"""export legacy <segment>... [-dir <segments>] <out> [-version 0.4|0.5]
{SEGMENTS}
\t<out>\tthe new folder, in which each segment gets a folder
\t-version 0.4|0.5\tthe version of Nutch whose format is written (0.5)"""
FLAGS: Final = (DIR, Flag("-version", value="version", choices=("0.4", "0.5")))


def run(args: list[str], context: JobContext) -> int:
    """Runs the command; returns 0."""
    arguments = parse(args, FLAGS, usage=USAGE, least=1)
    paths, out = paths_and_output(arguments, USAGE)
    options = LegacyExportOptions(arguments.get("-version", "0.5"))
    context.report("Export of old segments", export_legacy(paths, out, options, context=context))
    return 0
