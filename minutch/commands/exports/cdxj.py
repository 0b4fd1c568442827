"""`export cdxj`: the index of a web archive: of files that lie there, or of those that `export
warc` would write.

Of segments, it is the index of the files that `export warc` writes with the same options, which
have the same records at the same places. Of WARC and ARC files, it is theirs.
"""

from __future__ import annotations

from typing import Final

from minutch.archives.web.cdxjindex import IndexWriter, write_index
from minutch.archives.web.existingarchives import index_archives, named_archives
from minutch.archives.web.webarchive import DiscardedOutput, write_archive
from minutch.commands.arguments import parse
from minutch.commands.exports.segmentargs import FLAGS as COMMON
from minutch.commands.exports.segmentargs import (
    OPTIONS,
    archive_spec,
    archives_among,
    given_segments,
)
from minutch.job import JobContext
from minutch.work.tables.textparts import output_file

USAGE: Final = f"""export cdxj <segment>... [-dir <segments>] <out> [options]
       export cdxj <archive>... <out>
{OPTIONS}
\t<archive>\ta WARC or ARC file, or a folder of such files
\t<out>\tthe new file; it names archives as they lie below it, others by their names alone"""
FLAGS: Final = COMMON


def run(args: list[str], context: JobContext) -> int:
    """The command: 0 if done."""
    given = parse(args, FLAGS, usage=USAGE, least=1)
    paths, out = given_segments(given, USAGE)
    archives = archives_among(paths, USAGE)
    plan = None if archives else archive_spec(given, paths, USAGE)
    named = named_archives(archives, out.parent)
    with output_file(out) as path, IndexWriter(path.parent) as index:
        if plan is not None:
            counters = write_archive(plan, context, lambda name: DiscardedOutput(), [index])
        else:
            with context.progress("export", unit="records") as progress:
                counters = index_archives(named.items(), index.add, progress)
        write_index(path, index.sorted())
    context.report("export cdxj", counters)
    return 0
