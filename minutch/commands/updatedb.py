"""Reads the arguments of `minutch updatedb`; `cycle.crawldb.updatedb` does the work."""

from __future__ import annotations

import logging
from typing import Final

from minutch.commands.arguments import Flag, parse
from minutch.cycle.crawldb.updatedb import UpdateOptions, updatedb
from minutch.cycle.segment.store import segments_at
from minutch.hadoop.stores import as_path
from minutch.job import JobContext

log = logging.getLogger(__name__)

USAGE: Final = """CrawlDb <crawldb> (-dir <segments> | <seg1> <seg2> ...) [-force] [-normalize] \
[-filter] [-noAdditions]
\tcrawldb\tthe CrawlDb to update; made if there is none
\t-dir segments\tthe directory of the segments to update from
\tseg1 seg2 ...\tthe segments to update from
\t-force\tgo past another's lock on the CrawlDb
\t-normalize\tnormalize the URLs of the CrawlDb and the segments (seldom needed)
\t-filter\tfilter the URLs of the CrawlDb and the segments
\t-noAdditions\tupdate known URLs only, add none"""

FLAGS: Final = (
    Flag("-dir", value="segments", repeats=True),
    *map(Flag, ("-force", "-normalize", "-filter", "-noAdditions")),
)


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0, or 255 (and an error) where the CrawlDb stays as it was."""
    arguments = parse(args, FLAGS, usage=USAGE, least=1)
    crawldb, *segments = map(as_path, arguments.positional)
    given = segments_at(segments, map(as_path, arguments.get("-dir", ())))
    counters = updatedb(
        crawldb,
        list(dict.fromkeys(segment.path for segment in given)),
        UpdateOptions(
            normalize=arguments["-normalize"] or None,
            filtering=arguments["-filter"] or None,
            additions=False if arguments["-noAdditions"] else None,
            force=arguments["-force"],
        ),
        context=context,
    )
    context.report("CrawlDb update", counters)
    return 0
