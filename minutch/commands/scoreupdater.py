"""scoreupdater: put the scores of a webgraph's nodes into a CrawlDb.

Entries of pages that are no node get link.score.updater.clear.score (0). The CrawlDb before it
stays as `old`, unless db.preserve.backup is false.

Source: org.apache.nutch.scoring.webgraph.ScoreUpdater.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from minutch.commands.arguments import Flag, fail, parse
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.webgraph.scoreupdater import scoreupdater
from minutch.cycle.webgraph.store import WebGraph
from minutch.job import JobContext

log = logging.getLogger(__name__)

USAGE: Final = """ScoreUpdater -crawldb <crawldb> -webgraphdb <webgraphdb>
\t-crawldb <crawldb>\tthe CrawlDb whose entries get scores
\t-webgraphdb <webgraphdb>\tthe webgraph that has them"""
FLAGS: Final = (Flag("-crawldb", value="crawldb"), Flag("-webgraphdb", value="webgraphdb"))


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0, or 255 (and an error) where the CrawlDb stays as it was."""
    given = parse(args, FLAGS, usage=USAGE, most=0)
    if given["-crawldb"] is None or given["-webgraphdb"] is None:
        fail("say both: -crawldb and -webgraphdb" if args else "", USAGE)
    counters = scoreupdater(
        CrawlDb(Path(given["-crawldb"])), WebGraph(Path(given["-webgraphdb"])), context
    )
    context.report("ScoreUpdater", counters)
    return 0
