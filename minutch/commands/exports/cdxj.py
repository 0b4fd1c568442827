"""`export cdxj`: the index of a web archive: of files that lie there, or of those that `export
warc` would write.

Of segments, it is the index of the files that `export warc` writes with the same options, which
have the same records at the same places. Of WARC and ARC files, it is theirs.
"""

from __future__ import annotations

from typing import Final

from minutch.archives.captures import find_segments
from minutch.archives.web.existingarchives import named_archives
from minutch.archives.web.webarchivejobs import export_cdxj, index_existing
from minutch.commands.arguments import parse
from minutch.commands.exports.segmentargs import FLAGS as COMMON
from minutch.commands.exports.segmentargs import (
    OPTIONS,
    archive_options,
    archives_among,
    given_segments,
)
from minutch.job import JobContext

USAGE: Final = f"""export cdxj <segment>... [-dir <segments>] <out> [options]
       export cdxj <archive>... <out>
{OPTIONS}
\t<archive>\ta WARC or ARC file, or a folder of such files
\t<out>\tthe new file; it names archives as they lie below it, others by their names alone"""
FLAGS: Final = COMMON


def run(args: list[str], context: JobContext) -> int:
    """Runs the command; returns 0."""
    given = parse(args, FLAGS, usage=USAGE, least=1)
    paths, out = given_segments(given, USAGE)
    archives = archives_among(paths, USAGE)
    if archives:
        counters = index_existing(named_archives(archives, out.parent), out, context=context)
    else:
        options = archive_options(given, USAGE)
        counters = export_cdxj(find_segments(paths), out, options, context=context)
    context.report("export cdxj", counters)
    return 0
