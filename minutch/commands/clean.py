"""clean: delete from the index what the CrawlDb knows to be gone (db_gone) or a duplicate
(db_duplicate).

Redirects are deleted by `index -deleteGone` alone, as in Nutch. Deletions go out in the order of
the CrawlDb's files. Source: org.apache.nutch.indexer.CleaningJob.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from minutch.commands.arguments import Flag, parse
from minutch.cycle.index.clean import clean
from minutch.job import JobContext

log = logging.getLogger(__name__)

USAGE: Final = """CleaningJob <crawldb> [-noCommit]
\tcrawldb\tthe CrawlDb whose db_gone and db_duplicate entries are deleted from the index
\t-noCommit\tdo not call the commit method of indexer plugins"""
FLAGS: Final = (Flag("-noCommit"),)


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0, or 255."""
    given = parse(args, FLAGS, usage=USAGE, least=1, most=1)
    counters = clean(Path(given.positional[0]), context, commit=not given["-noCommit"])
    context.report("CleaningJob", counters)
    return 0
