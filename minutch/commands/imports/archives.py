"""import warc, arc, wacz, cdxj: makes segments of archives
(`minutch/archives/replay/archiveimport.py`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from minutch.archives.replay.archiveimport import import_archives
from minutch.archives.replay.replayer import ImportOptions
from minutch.commands.arguments import Flag, fail, parse
from minutch.commands.imports.visitfilterargs import FLAGS as FILTER_FLAGS
from minutch.commands.imports.visitfilterargs import visit_filter
from minutch.job import JobContext

USAGE: Final = """import warc|arc|wacz|cdxj <file>... <segments> [options]
\t<file>\ta WARC, ARC, WACZ or CDXJ file, or a folder of such files
\t<segments>\tthe folder in which segments are created
\t-archives folder\tthe folder of the archives that a CDXJ file names, if not its own
\t-host host\tonly visits to this host; `*.example.org` includes all hosts below
\t-mime type\tonly responses of this media type; `text/*` includes all text types
\t-status status\tonly responses with this status; `3xx` includes all redirects
\t-from time\tonly visits from this time on: 2012, 2012-01-31, 20120131120000
\t-to time\tonly visits until the end of this time
\t-normalize\tapply URL normalizers
\t-filter\tapply URL filters"""
FLAGS: Final = (
    *FILTER_FLAGS,
    Flag("-normalize"),
    Flag("-filter"),
    Flag("-archives", value="folder", repeats=True),
)


def run(args: list[str], context: JobContext) -> int:
    """Runs the command; returns 0."""
    arguments = parse(args, FLAGS, usage=USAGE, least=2)
    *paths, parent = map(Path, arguments.positional)
    try:
        wanted = visit_filter(arguments)
    except ValueError as exc:
        fail(str(exc), USAGE)
    folders = tuple(map(Path, arguments.get("-archives", [])))
    options = ImportOptions(wanted, arguments["-normalize"], arguments["-filter"], folders)
    context.report("import", import_archives(paths, parent, options, context=context))
    return 0
