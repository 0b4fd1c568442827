"""Reads the arguments of `minutch generate`; `cycle.fetchlist.generate` does the work."""

from __future__ import annotations

import logging
from typing import Final

from minutch.commands.arguments import Flag, parse
from minutch.cycle.fetchlist.generate import generate
from minutch.cycle.fetchlist.select import NO_LIMIT
from minutch.cycle.fetchlist.selector import HOSTDB_PROPERTY, GenerateOptions
from minutch.hadoop.stores import as_path
from minutch.job import JobContext

log = logging.getLogger(__name__)

USAGE: Final = """Generator <crawldb> <segments_dir> [-hostdb <hostdb>] [-force] [-topN N] \
[-numFetchers numFetchers] \
[-expr <expr>] [-adddays <numDays>] [-noFilter] [-noNorm] [-maxNumSegments <num>]
\t-hostdb <hostdb>\tthe HostDb whose facts generate.max.count.expr and generate.fetch.delay.expr use
\t-force\tgo past another's lock on the CrawlDb
\t-topN N\tat most N pages in each segment, those with the highest scores
\t-numFetchers numFetchers\tparts of a fetch list; always one in local mode, unless \
minutch.engine=spark
\t-expr <expr>\tonly pages for which the expression is true, such as "score > 0.5 && status == \
'db_unfetched'"
\t-adddays <numDays>\ttake the pages that will be due in so many days
\t-noFilter\tdon't apply URL filters
\t-noNorm\tdon't normalize URLs when counting the pages of a host
\t-maxNumSegments <num>\tmake up to so many segments"""

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
    arguments = parse(args, FLAGS, usage=USAGE, least=2, most=2)
    hostdb = arguments["-hostdb"] or context.conf.get_trimmed(HOSTDB_PROPERTY)
    options = GenerateOptions(
        top_n=arguments.get("-topN", NO_LIMIT),
        add_days=arguments.get("-adddays", 0),
        filtering=not arguments["-noFilter"],
        normalize=not arguments["-noNorm"],
        max_segments=arguments.get("-maxNumSegments", 1),
        expression=arguments["-expr"],
        hostdb=as_path(hostdb) if hostdb else None,
        force=arguments["-force"],
        fetchers=arguments["-numFetchers"],
    )
    crawldb, segments = map(as_path, arguments.positional)
    result = generate(crawldb, segments, options, context=context)
    context.report("Generator", result.counters)
    return 0 if result.segments else 1
