"""fsck: whether the folders of a crawl are whole and agree with each other; what is wrong where.

Looks at every record of the databases and segments: checksums, order and partition of keys,
repeated keys, indexes; then at the segments against each other and the CrawlDb, at half-done
rounds, locks and leftovers. With -repair it mends what can be mended without losing a record; with
-drop also what can't, and says what was dropped.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from minutch.commands.arguments import Flag, fail, parse
from minutch.inspect.fsck.crawlcheck import mend, problems
from minutch.job import Counters, JobContext

log = logging.getLogger(__name__)

USAGE: Final = """fsck <crawl_dir> [-repair] [-drop]
  <crawl_dir>  the folder of crawldb, linkdb, segments, hostdb and webgraphs, or some of them
  -repair      mend what can be mended without losing a record
  -drop        with -repair: also drop records that can't be read and older entries of one URL, and say which"""  # noqa: E501
FLAGS: Final = (Flag("-repair"), Flag("-drop"))
PROBLEMS, REPAIRED, LEFT = "problems", "repaired", "left"


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0 where nothing is wrong, or nothing any more; 1 where something
    is.
    """
    given = parse(args, FLAGS, usage=USAGE, least=1, most=1)
    if given["-drop"] and not given["-repair"]:
        fail("-drop is for -repair", USAGE)
    crawl = Path(given.positional[0])
    found = list(problems(crawl))
    for problem in found:
        context.print(problem)
    left = mend(found, context, dropping=given["-drop"]) if given["-repair"] else found
    if given["-repair"] and len(left) < len(found):
        left = list(problems(crawl))  # what shows only now
    counters = Counters(
        {PROBLEMS: len(found), REPAIRED: max(0, len(found) - len(left)), LEFT: len(left)}
    )
    context.report("fsck", counters)
    return 1 if left else 0
