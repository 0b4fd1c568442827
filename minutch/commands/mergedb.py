"""mergedb: make one CrawlDb of several.

Of a URL that is in more than one, the entry that was fetched last stays (of those never fetched,
the one with the later fetch time; of equals the first). The metadata of all its entries is merged,
in the order of the input: values of an entry newer than those before it replace theirs, values of
any other entry only fill gaps. So among the older entries the first counts. The order of the input
is that of the CrawlDbs on the command line. Source: org.apache.nutch.crawl.CrawlDbMerger.
"""

from __future__ import annotations

import logging
from typing import Final

from minutch.commands.arguments import Flag, parse
from minutch.cycle.crawldb.mergedb import MergeOptions, mergedb
from minutch.hadoop.stores import as_path
from minutch.job import JobContext

log = logging.getLogger(__name__)
FLAGS: Final = (Flag("-normalize"), Flag("-filter"))

USAGE: Final = """CrawlDbMerger <output_crawldb> <crawldb1> [<crawldb2> <crawldb3> ...] [-normalize] [-filter]
\toutput_crawldb\tthe CrawlDb to write; one that is there is replaced
\tcrawldb1 ...\tthe CrawlDbs to merge (one will do)
\t-normalize\tnormalize the URLs of the CrawlDbs (seldom needed)
\t-filter\tfilter the URLs of the CrawlDbs"""  # noqa: E501


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0, or 255 (and an error) where nothing has changed."""
    given = parse(args, FLAGS, usage=USAGE, least=2)
    output, *dbs = map(as_path, given.positional)
    options = MergeOptions(normalize=given["-normalize"], filtering=given["-filter"])
    counters = mergedb(output, dbs, options, context=context)
    context.report("CrawlDb merge", counters)
    return 0
