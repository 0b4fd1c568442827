"""dedup: of pages with the same content, mark all but the best as db_duplicate.

Fetched pages (db_fetched, db_notmodified) are grouped by signature; with `-group host` or `domain`,
within each host or domain. `duplicates` decides which of a group are duplicates. Where a CrawlDb
has two entries of one URL, the last one counts. With `-near`, pages whose signature is a SimHash
are compared by how many bits differ (`nearduplicates`); the others are grouped as ever. Source:
org.apache.nutch.crawl.DeduplicationJob.
"""

from __future__ import annotations

import logging
from typing import Final

from minutch.commands.arguments import Flag, fail, parse
from minutch.commands.dedupargs import bits_given, criteria_given
from minutch.cycle.crawldb.dedup import dedup
from minutch.cycle.crawldb.pagesignatures import GROUPS
from minutch.hadoop.stores import as_path
from minutch.job import JobContext

log = logging.getLogger(__name__)

USAGE: Final = """DeduplicationJob <crawldb> [-group <none|host|domain>] \
[-compareOrder <score>,<fetchTime>,<httpsOverHttp>,<urlLength>] [-near [bits]]
\t<crawldb>\tthe CrawlDb whose duplicates are marked
\t-group <none|host|domain>\tduplicates everywhere (none), or within a host or domain
\t-compareOrder <criteria>\twhat decides which page stays, most important first
\t-near [bits]\tnear-duplicates as well: pages whose SimHash signatures differ in at most so many bits (3)"""  # noqa: E501

FLAGS: Final = (
    Flag("-group", value="none|host|domain"),
    Flag("-compareOrder", value="criteria"),
    Flag("-near", value="[bits]", convert=int),
)


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0; 1 for wrong arguments; 255 (and an error) where the CrawlDb stays
    as it was.
    """
    given = parse(args, FLAGS, usage=USAGE, least=1, most=1)
    group, order = given.get("-group", "none"), criteria_given(given, USAGE)
    if group not in GROUPS:
        fail(f"-group: expected none, host or domain, found {group!r}", USAGE)
    near = bits_given(given, USAGE)
    counters = dedup(as_path(given.positional[0]), context, group=group, order=order, near=near)
    context.report("Deduplication", counters)
    return 0
