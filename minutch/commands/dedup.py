"""Reads the arguments of `minutch dedup`; `cycle.crawldb.dedup` does the work."""

from __future__ import annotations

import logging
from typing import Final

from minutch.commands.arguments import Flag, fail, parse
from minutch.commands.dedupargs import criteria, near_bits
from minutch.cycle.crawldb.dedup import GROUPS, DedupOptions, dedup
from minutch.hadoop.stores import as_path
from minutch.job import JobContext

log = logging.getLogger(__name__)

USAGE: Final = """DeduplicationJob <crawldb> [-group <none|host|domain>] \
[-compareOrder <score>,<fetchTime>,<httpsOverHttp>,<urlLength>] [-near [bits]]
\t<crawldb>\tthe CrawlDb whose duplicates are marked
\t-group <none|host|domain>\tduplicates everywhere (none), or within a host or domain
\t-compareOrder <criteria>\twhat decides which page stays, most important first
\t-near [bits]\tnear-duplicates as well: pages whose SimHash signatures differ in at most so many \
bits (3)"""

FLAGS: Final = (
    Flag("-group", value="none|host|domain"),
    Flag("-compareOrder", value="criteria"),
    Flag("-near", value="[bits]", convert=int),
)


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0; 1 for wrong arguments; 255 (and an error) where the CrawlDb stays
    as it was.
    """
    arguments = parse(args, FLAGS, usage=USAGE, least=1, most=1)
    group, order = arguments.get("-group", "none"), criteria(arguments, USAGE)
    if group not in GROUPS:
        fail(f"-group: expected none, host or domain, found {group!r}", USAGE)
    options = DedupOptions(group, order, near_bits(arguments, USAGE))
    counters = dedup(as_path(arguments.positional[0]), options, context=context)
    context.report("Deduplication", counters)
    return 0
