"""Reads the arguments of `minutch freegen`; `cycle.fetchlist.generate` does the work."""

from __future__ import annotations

import logging
from typing import Final

from minutch.commands.arguments import Flag, parse
from minutch.cycle.fetchlist.generate import FreegenOptions, freegen
from minutch.hadoop.stores import as_path
from minutch.job import JobContext

log = logging.getLogger(__name__)

USAGE: Final = """FreeGenerator <inputDir> <segmentsDir> [-filter] [-normalize] [-numFetchers <n>]
\tinputDir\tthe directory of the text files, one URL per line
\tsegmentsDir\tthe directory in which the segment is made
\t-filter\tapply the URL filters
\t-normalize\tnormalize the URLs
\t-numFetchers <n>\tparts of the fetch list; always one in local mode, unless \
minutch.engine=spark"""
FLAGS: Final = (Flag("-filter"), Flag("-normalize"), Flag("-numFetchers", value="n", convert=int))


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0, or 255 and an error."""
    arguments = parse(args, FLAGS, usage=USAGE, least=2, most=2)
    segment, counters = freegen(
        as_path(arguments.positional[0]),
        as_path(arguments.positional[1]),
        FreegenOptions(
            filtering=arguments["-filter"],
            normalize=arguments["-normalize"],
            fetchers=arguments["-numFetchers"],
        ),
        context=context,
    )
    log.info("FreeGenerator: segment: %s", segment)
    context.report("FreeGenerator", counters)
    return 0
