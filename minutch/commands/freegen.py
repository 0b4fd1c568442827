"""freegen: make a segment from a list of URLs, without a CrawlDb; to fetch pages once, or to try
something out.

The list is in text files with a URL per line; blank lines and comments (`#`) are skipped. Entries
have the default interval and the score that the scoring filters give to a seed.

Source: org.apache.nutch.tools.FreeGenerator.
"""

from __future__ import annotations

import logging
from typing import Final

from minutch.commands.arguments import Flag, parse
from minutch.cycle.fetchlist.freegen import FreegenOptions, freegen
from minutch.hadoop.stores import as_path
from minutch.job import JobContext

log = logging.getLogger(__name__)

USAGE: Final = """FreeGenerator <inputDir> <segmentsDir> [-filter] [-normalize] [-numFetchers <n>]
\tinputDir\tthe directory of the text files, one URL per line
\tsegmentsDir\tthe directory in which the segment is made
\t-filter\tapply the URL filters
\t-normalize\tnormalize the URLs
\t-numFetchers <n>\tparts of the fetch list; always one in local mode, unless minutch.engine=spark"""  # noqa: E501
FLAGS: Final = (Flag("-filter"), Flag("-normalize"), Flag("-numFetchers", value="n", convert=int))


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0, or 255 and an error."""
    given = parse(args, FLAGS, usage=USAGE, least=2, most=2)
    segment, counters = freegen(
        as_path(given.positional[0]),
        as_path(given.positional[1]),
        FreegenOptions(
            filtering=given["-filter"],
            normalize=given["-normalize"],
            fetchers=given["-numFetchers"],
        ),
        context=context,
    )
    log.info("FreeGenerator: segment: %s", segment)
    context.report("FreeGenerator", counters)
    return 0
