"""mergelinkdb: merge LinkDbs into a new one, with URLs normalized and filtered if wished.

A URL's links from all LinkDbs are put together, in the order of the LinkDbs, up to
linkdb.max.inlinks. With one LinkDb it filters that one.

Source: org.apache.nutch.crawl.LinkDbMerger.
"""

from __future__ import annotations

import logging
from typing import Final

from minutch.commands.arguments import Flag, parse
from minutch.cycle.crawldb.mergedb import MergeOptions
from minutch.cycle.linkdb.mergelinkdb import mergelinkdb
from minutch.hadoop.stores import as_path
from minutch.job import JobContext

log = logging.getLogger(__name__)

USAGE: Final = """LinkDbMerger <output_linkdb> <linkdb1> [<linkdb2> <linkdb3> ...] [-normalize] [-filter]
\toutput_linkdb\tthe LinkDb to make
\tlinkdb1 ...\tthe LinkDbs to merge; one will do
\t-normalize\tnormalize the URLs on both ends of the links (seldom needed)
\t-filter\tfilter the URLs on both ends of the links"""  # noqa: E501
FLAGS: Final = (Flag("-normalize"), Flag("-filter"))


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0, or 255 and an error."""
    given = parse(args, FLAGS, usage=USAGE, least=2)
    output, *sources = map(as_path, given.positional)
    options = MergeOptions(normalize=given["-normalize"], filtering=given["-filter"])
    counters = mergelinkdb(output, sources, options, context=context)
    context.report("LinkDb merge", counters)
    return 0
