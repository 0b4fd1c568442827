"""`minutch scoreupdater`: copies the scores of a webgraph into a CrawlDb (Nutch: ScoreUpdater)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from minutch.commands.arguments import Flag, fail, parse
from minutch.cycle.webgraph.linkrank import scoreupdater
from minutch.job import JobContext

USAGE: Final = """ScoreUpdater -crawldb <crawldb> -webgraphdb <webgraphdb>
\t-crawldb <crawldb>\tthe CrawlDb whose entries get scores
\t-webgraphdb <webgraphdb>\tthe webgraph that has the scores"""
FLAGS: Final = (Flag("-crawldb", value="crawldb"), Flag("-webgraphdb", value="webgraphdb"))


def run(args: list[str], context: JobContext) -> int:
    """Runs the job and reports its counters."""
    arguments = parse(args, FLAGS, usage=USAGE, most=0)
    if arguments["-crawldb"] is None or arguments["-webgraphdb"] is None:
        fail("say both: -crawldb and -webgraphdb" if args else "", USAGE)
    counters = scoreupdater(
        Path(arguments["-crawldb"]), Path(arguments["-webgraphdb"]), context=context
    )
    context.report("ScoreUpdater", counters)
    return 0
