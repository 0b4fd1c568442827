"""generate: make segments with the lists of pages that are due, best first.

Every entry of the CrawlDb leaves through one counter: selected, or the reason why not. Where
nothing is selected the job says so, with the reasons, and exits with 1. Entries are read partition
by partition; `due` finds those that may be fetched, `select` gives them places, `lists` writes
them.

Source: org.apache.nutch.crawl.Generator.
"""

from __future__ import annotations

import logging
from typing import Final

from minutch.commands.arguments import Flag, parse
from minutch.cycle.fetchlist import select
from minutch.cycle.fetchlist.generate import generate
from minutch.cycle.fetchlist.selector import HOSTDB_PROPERTY
from minutch.hadoop.stores import as_path
from minutch.job import JobContext

log = logging.getLogger(__name__)

USAGE: Final = """Generator <crawldb> <segments_dir> [-hostdb <hostdb>] [-force] [-topN N] [-numFetchers numFetchers] \
[-expr <expr>] [-adddays <numDays>] [-noFilter] [-noNorm] [-maxNumSegments <num>]
\t-hostdb <hostdb>\tthe HostDb whose facts generate.max.count.expr and generate.fetch.delay.expr use
\t-force\tgo past another's lock on the CrawlDb
\t-topN N\tat most N pages in each segment, those with the highest scores
\t-numFetchers numFetchers\tparts of a fetch list; always one in local mode, unless minutch.engine=spark
\t-expr <expr>\tonly pages for which the expression is true, such as "score > 0.5 && status == 'db_unfetched'"
\t-adddays <numDays>\ttake the pages that will be due in so many days
\t-noFilter\tdon't apply URL filters
\t-noNorm\tdon't normalize URLs when counting the pages of a host
\t-maxNumSegments <num>\tmake up to so many segments"""  # noqa: E501

FLAGS: Final = (
    Flag("-hostdb", value="hostdb"),
    Flag("-force"),
    Flag("-topN", value="N", convert=int),
    Flag("-numFetchers", value="numFetchers", convert=int),
    Flag("-expr", value="expr"),
    Flag("-adddays", value="numDays", convert=int),
    Flag("-noFilter"),
    Flag("-noNorm"),
    Flag("-maxNumSegments", value="num", convert=int),
)


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0, 1 where nothing is due (no segment is made), 255 for an error."""
    given = parse(args, FLAGS, usage=USAGE, least=2, most=2)
    result = generate(
        as_path(given.positional[0]),
        as_path(given.positional[1]),
        context,
        top_n=given.get("-topN", select.NO_LIMIT),
        add_days=given.get("-adddays", 0),
        filtering=not given["-noFilter"],
        normalize=not given["-noNorm"],
        force=given["-force"],
        max_segments=given.get("-maxNumSegments", 1),
        expression=given["-expr"],
        fetchers=given["-numFetchers"],
        hostdb=given["-hostdb"] or context.conf.get_trimmed(HOSTDB_PROPERTY) or None,
    )
    context.report("Generator", result.counters)
    return 0 if result.segments else 1
