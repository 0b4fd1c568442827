"""updatehostdb: bring what the CrawlDb knows of hosts into the HostDb, and look hosts up in the
DNS.

One walk over the CrawlDb: each stretch of it becomes a few rows per host (`statistics`), which are
sorted by host, partition by partition, and put together with the record that the host had
(`merged`). Hosts that are to be looked up (`checks`) are asked for many at a time (`lookups`).
Nothing is changed before all is done.

Nutch takes the hostdb.check.* of the configuration for nothing: only the switches count. Here they
count, too, where somebody has set them; the shipped `true` alone asks nobody.

Source: org.apache.nutch.hostdb.UpdateHostDb, UpdateHostDbReducer.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from minutch.commands.arguments import Flag, fail, parse
from minutch.cycle.hostdb.update import UpdateHostDbOptions, updatehostdb
from minutch.job import JobContext

log = logging.getLogger(__name__)

USAGE: Final = """UpdateHostDb -hostdb <hostdb> [-tophosts <tophosts>] [-crawldb <crawldb>] [-checkAll] [-checkFailed] \
[-checkNew] [-checkKnown] [-force] [-filter] [-normalize] [-urlLimit <N>]
\t-hostdb <hostdb>\tthe HostDb to update; made if it is not there
\t-crawldb <crawldb>\tcount the pages of this CrawlDb by host and status
\t-tophosts <tophosts>\ttake the scores of hosts from text files: host, a tab, the score
\t-checkAll\tlook hosts up in the DNS: all that are due
\t-checkFailed\tthose that had no address the last time
\t-checkNew\tthose that were never looked up
\t-checkKnown\tthose that had an address
\t-force\tlook up those that are not due yet, too
\t-filter\tleave out hosts whose http://host/ the URL filters reject
\t-normalize\tnormalize http://host/ for each host
\t-urlLimit <N>\tonly hosts with at least N pages"""  # noqa: E501

FLAGS: Final = (
    Flag("-hostdb", value="hostdb"),
    Flag("-tophosts", value="tophosts"),
    Flag("-crawldb", value="crawldb"),
    Flag("-checkAll"),
    Flag("-checkFailed"),
    Flag("-checkNew"),
    Flag("-checkKnown"),
    Flag("-force"),
    Flag("-filter"),
    Flag("-normalize"),
    Flag("-urlLimit", value="N", convert=int),
)
CHECKS: Final = {"new": "-checkNew", "known": "-checkKnown", "failed": "-checkFailed"}


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0, or 255 and an error."""
    given = parse(args, FLAGS, usage=USAGE, most=0)
    if given["-hostdb"] is None:
        fail("hostDb is mandatory" if args else "", USAGE)
    sources = {
        name: None if given[f"-{name}"] is None else Path(given[f"-{name}"])
        for name in ("crawldb", "tophosts")
    }
    options = UpdateHostDbOptions(
        check=frozenset(
            kind for kind, switch in CHECKS.items() if given["-checkAll"] or given[switch]
        ),
        force=given["-force"],
        filtering=given["-filter"],
        normalize=given["-normalize"],
        url_limit=given["-urlLimit"],
        **sources,
    )
    context.report("UpdateHostDb", updatehostdb(Path(given["-hostdb"]), options, context=context))
    return 0
