"""Reads the arguments of `minutch domainstats`; `cycle.crawldb.groupcounts` does the work."""

from __future__ import annotations

import logging
from typing import Final

from minutch.commands.arguments import Flag, parse
from minutch.commands.countargs import one_of, paths, positive
from minutch.cycle.crawldb.groupcounts import MODES, DomainstatsOptions, domainstats
from minutch.hadoop.stores import as_path
from minutch.job import JobContext

log = logging.getLogger(__name__)

USAGE: Final = """DomainStatistics inputDirs outDir mode [numOfReducer] [-json]
\tinputDirs\tthe crawldbs, with commas between them
\t\t\tE.g.: crawl/crawldb/
\toutDir\t\tthe directory to write to, which may not exist yet
\tmode\t\twhat is counted
\t\t\t\thost\thosts
\t\t\t\tdomain\tregistered domains
\t\t\t\tsuffix\tpublic suffixes
\t\t\t\ttld\ttop-level domains
\t[numOfReducers]\tnumber of files to write, 1 if not given
\t[-json]\twrite an object of JSON for each line"""
FLAGS: Final = (Flag("-json"),)


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0, or 255 and an error; 0, as in Nutch, after a line that lacks
    arguments.
    """
    arguments = parse(args, FLAGS, usage=USAGE, least=3, most=4)
    inputs, out, mode, *parts = arguments.positional
    one_of("mode", mode, tuple(MODES))
    number = positive("numOfReducers", parts[0]) if parts else 1
    options = DomainstatsOptions(mode, number, arguments["-json"])
    counters = domainstats(paths(inputs), as_path(out), options, context=context)
    context.report("DomainStatistics", counters)
    return 0
