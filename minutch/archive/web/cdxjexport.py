"""`export cdxj`: the index of a web archive, without the archive.

The files that it names are those that `export warc` writes with the same options, which have the same records at the
same places.
"""

from __future__ import annotations

from typing import Final

from minutch.archive.sources import given_segments
from minutch.archive.web.cdxj import Index, write_index
from minutch.archive.web.webarchive import FLAGS as COMMON
from minutch.archive.web.webarchive import OPTIONS, Nowhere, planned, write_archive
from minutch.arguments import parse
from minutch.job import JobContext
from minutch.tables.textparts import output_file

USAGE: Final = f"""export cdxj <segment>... [-dir <segments>] <out> [options]
{OPTIONS}
\t<out>\tthe new file"""
FLAGS: Final = COMMON


def run(args: list[str], context: JobContext) -> int:
    """The command: 0 if done."""
    given = parse(args, FLAGS, usage=USAGE, least=1)
    paths, out = given_segments(given, USAGE)
    plan = planned(given, paths, USAGE)
    with output_file(out) as path, Index(path.parent) as index:
        counters = write_archive(plan, context, lambda name: Nowhere(), [index])
        write_index(path, index.sorted())
    context.report("export cdxj", counters)
    return 0
