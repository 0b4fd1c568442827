"""Reads the arguments of `minutch protocolstats`; `cycle.crawldb.groupcounts` does the work."""

from __future__ import annotations

import logging
from typing import Final

from minutch.commands.arguments import Flag, parse
from minutch.commands.countargs import paths, positive
from minutch.cycle.crawldb.groupcounts import ProtocolstatsOptions, protocolstats
from minutch.hadoop.stores import as_path
from minutch.job import JobContext

log = logging.getLogger(__name__)

USAGE: Final = """ProtocolStatistics inputDirs outDir [numOfReducer] [-json]
\tinputDirs\tthe crawldbs, with commas between them
\t\t\tE.g.: crawl/crawldb/
\toutDir\t\tthe directory to write to, which may not exist yet
\t[numOfReducers]\tnumber of files to write, 1 if not given
\t[-json]\twrite an object of JSON for each line"""
FLAGS: Final = (Flag("-json"),)


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0, or 255 and an error; 0, as in Nutch, after a line that lacks
    arguments.
    """
    arguments = parse(args, FLAGS, usage=USAGE, least=2, most=3)
    inputs, out, *parts = arguments.positional
    number = positive("numOfReducer", parts[0]) if parts else 1
    options = ProtocolstatsOptions(number, arguments["-json"])
    counters = protocolstats(paths(inputs), as_path(out), options, context=context)
    context.report("ProtocolStatistics", counters)
    return 0
