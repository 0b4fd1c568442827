"""import warc, arc, wacz, cdxj: archives made into segments, as if their pages had been fetched.

Files of all these kinds are taken, each for what it is. A segment holds content and crawl_fetch, so
that parse, updatedb and index go on with it; updatedb makes entries of pages that the CrawlDb does
not know.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from minutch.archives.replay.archiveimport import replay
from minutch.archives.replay.replayer import ImportRules
from minutch.commands.arguments import Flag, fail, parse
from minutch.commands.imports.visitfilterargs import FLAGS as WANTED_FLAGS
from minutch.commands.imports.visitfilterargs import visit_filter
from minutch.errors import StoreError
from minutch.job import JobContext

log = logging.getLogger(__name__)

USAGE: Final = """import warc|arc|wacz|cdxj <file>... <segments> [options]
\t<file>\ta WARC, ARC, WACZ or CDXJ file, or a folder of such files
\t<segments>\tthe folder of segments that new ones are put into
\t-archives folder\twhere the archives lie that a CDXJ file names, if not beside it
\t-host host\tonly visits to this host, or to all of `*.example.org`
\t-mime type\tonly answers of this media type, or of all of `text/*`
\t-status status\tonly answers with this status, or with one of `3xx`
\t-from time\tonly visits from this time on: 2012, 2012-01-31, 20120131120000
\t-to time\tonly visits up to the end of this time
\t-normalize\tURL normalizers change the URLs
\t-filter\tURL filters choose among them"""
FLAGS: Final = (
    *WANTED_FLAGS,
    Flag("-normalize"),
    Flag("-filter"),
    Flag("-archives", value="folder", repeats=True),
)


def run(args: list[str], context: JobContext) -> int:
    """The command: 0 if done."""
    given = parse(args, FLAGS, usage=USAGE, least=2)
    *files, parent = map(Path, given.positional)
    try:
        wanted = visit_filter(given)
    except ValueError as exc:
        fail(str(exc), USAGE)
    rules = ImportRules(wanted, given["-normalize"], given["-filter"])
    folders = tuple(map(Path, given.get("-archives", [])))
    for folder in folders:
        if not folder.is_dir():
            raise StoreError(f"-archives {folder}: no such folder")
    context.report("import", replay("import", files, parent, rules, context, folders=folders))
    return 0
