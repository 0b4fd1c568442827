"""import legacy: converts segments of Nutch 0.4 to 0.7
(`minutch/archives/legacy/legacyjobs.py`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from minutch.archives.legacy.legacyjobs import LegacyImportOptions, import_legacy
from minutch.commands.arguments import Flag, parse
from minutch.job import JobContext

USAGE: Final = """import legacy <segment>... <segments> [-crawldb <crawldb>]
\t<segment>...\tsegments of Nutch 0.4 to 0.7: folders with fetchlist, fetcher and so on
\t<segments>\tthe folder for the new segments
\t-crawldb <crawldb>\tthe CrawlDb to update, created if missing (crawldb, beside <segments>)"""
FLAGS: Final = (Flag("-crawldb", value="crawldb"),)


def run(args: list[str], context: JobContext) -> int:
    """Runs the command; returns 0. If it fails, segments that it has finished stay."""
    arguments = parse(args, FLAGS, usage=USAGE, least=2)
    *paths, target = map(Path, arguments.positional)
    crawldb = arguments["-crawldb"]
    options = LegacyImportOptions(None if crawldb is None else Path(crawldb))
    context.report("Import of old segments", import_legacy(paths, target, options, context=context))
    return 0
