"""Reads the arguments of `minutch mergelinkdb`; `cycle.linkdb.invertlinks` does the work."""

from __future__ import annotations

import logging
from typing import Final

from minutch.commands.arguments import Flag, parse
from minutch.cycle.crawldb.mergedb import MergeOptions
from minutch.cycle.linkdb.invertlinks import mergelinkdb
from minutch.hadoop.stores import as_path
from minutch.job import JobContext

log = logging.getLogger(__name__)

USAGE: Final = """LinkDbMerger <output_linkdb> <linkdb1> [<linkdb2> <linkdb3> ...] [-normalize] \
[-filter]
\toutput_linkdb\tthe LinkDb to make
\tlinkdb1 ...\tthe LinkDbs to merge; one will do
\t-normalize\tnormalize the URLs on both ends of the links (seldom needed)
\t-filter\tfilter the URLs on both ends of the links"""
FLAGS: Final = (Flag("-normalize"), Flag("-filter"))


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0, or 255 and an error."""
    arguments = parse(args, FLAGS, usage=USAGE, least=2)
    output, *sources = map(as_path, arguments.positional)
    options = MergeOptions(normalize=arguments["-normalize"], filtering=arguments["-filter"])
    counters = mergelinkdb(output, sources, options, context=context)
    context.report("LinkDb merge", counters)
    return 0
