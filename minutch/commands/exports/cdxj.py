"""export cdxj: writes the index of a web archive (`minutch/archives/web/cdxjindex.py`).

For segments, it is the index of the files that `export warc` writes with the same options, which
have the same records at the same offsets. For WARC and ARC files, it is the index of these.
"""

from __future__ import annotations

from typing import Final

from minutch.archives.web.webarchivejobs import export_cdxj
from minutch.commands.arguments import parse
from minutch.commands.exports.segmentargs import FLAGS as COMMON
from minutch.commands.exports.segmentargs import OPTIONS, archive_options, paths_and_output
from minutch.job import JobContext

USAGE: Final = f"""export cdxj <segment>... [-dir <segments>] <out> [options]
       export cdxj <archive>... <out>
{OPTIONS}
\t<archive>\ta WARC or ARC file, or a folder of such files
\t<out>\tthe new file; it names archives by their paths below its folder, others by their names"""
FLAGS: Final = COMMON


def run(args: list[str], context: JobContext) -> int:
    """Runs the command; returns 0."""
    arguments = parse(args, FLAGS, usage=USAGE, least=1)
    paths, out = paths_and_output(arguments, USAGE)
    options = archive_options(arguments, USAGE)
    context.report("export cdxj", export_cdxj(paths, out, options, context=context))
    return 0
