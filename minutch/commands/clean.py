"""`minutch clean`: deletes gone pages and duplicates from the index (CleaningJob)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from minutch.commands.arguments import Flag, parse
from minutch.cycle.index.indexing import CleanOptions, clean
from minutch.job import JobContext

USAGE: Final = """CleaningJob <crawldb> [-noCommit]
\tcrawldb\tthe CrawlDb whose db_gone and db_duplicate entries are deleted from the index
\t-noCommit\tdo not call the commit method of indexer plugins"""
FLAGS: Final = (Flag("-noCommit"),)


def run(args: list[str], context: JobContext) -> int:
    """Runs the job and reports its counters."""
    arguments = parse(args, FLAGS, usage=USAGE, least=1, most=1)
    options = CleanOptions(no_commit=arguments["-noCommit"])
    counters = clean(Path(arguments.positional[0]), options, context=context)
    context.report("CleaningJob", counters)
    return 0
