"""Reads the arguments of `minutch mergedb`; `cycle.crawldb.mergedb` does the work."""

from __future__ import annotations

import logging
from typing import Final

from minutch.commands.arguments import Flag, parse
from minutch.cycle.crawldb.mergedb import MergeOptions, mergedb
from minutch.hadoop.stores import as_path
from minutch.job import JobContext

log = logging.getLogger(__name__)
FLAGS: Final = (Flag("-normalize"), Flag("-filter"))

USAGE: Final = """CrawlDbMerger <output_crawldb> <crawldb1> [<crawldb2> <crawldb3> ...] \
[-normalize] [-filter]
\toutput_crawldb\tthe CrawlDb to write; one that is there is replaced
\tcrawldb1 ...\tthe CrawlDbs to merge (one will do)
\t-normalize\tnormalize the URLs of the CrawlDbs (seldom needed)
\t-filter\tfilter the URLs of the CrawlDbs"""


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0, or 255 (and an error) where nothing has changed."""
    arguments = parse(args, FLAGS, usage=USAGE, least=2)
    output, *dbs = map(as_path, arguments.positional)
    options = MergeOptions(normalize=arguments["-normalize"], filtering=arguments["-filter"])
    counters = mergedb(output, dbs, options, context=context)
    context.report("CrawlDb merge", counters)
    return 0
