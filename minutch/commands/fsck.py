"""fsck: checks whether the folders of a crawl are whole and agree with each other.

Reads every record of the databases and segments: checksums, order and partition of keys, repeated
keys, indexes; then compares the segments with each other and with the CrawlDb, and looks for
unfinished rounds, locks and leftovers. -repair repairs what can be repaired without losing a
record; -drop also drops what can't be read, and says what was dropped.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from minutch.commands.arguments import Flag, fail, parse
from minutch.inspect.fsck.crawlcheck import FsckOptions, fsck
from minutch.job import JobContext

USAGE: Final = """fsck <crawl_dir> [-repair] [-drop]
  <crawl_dir>  the folder of crawldb, linkdb, segments, hostdb and webgraphs, or some of them
  -repair      repair what can be repaired without losing a record
  -drop        with -repair: also drop unreadable records and older entries of one URL,
               and say which"""
FLAGS: Final = (Flag("-repair"), Flag("-drop"))


def run(args: list[str], context: JobContext) -> int:
    """Runs the command. Exit code 0 if nothing is wrong, or nothing any more; otherwise 1."""
    arguments = parse(args, FLAGS, usage=USAGE, least=1, most=1)
    if arguments["-drop"] and not arguments["-repair"]:
        fail("-drop is for -repair", USAGE)
    options = FsckOptions(repair=arguments["-repair"], drop=arguments["-drop"])
    result = fsck(Path(arguments.positional[0]), options, context=context)
    context.report("fsck", result.counters)
    return 1 if result.left else 0
