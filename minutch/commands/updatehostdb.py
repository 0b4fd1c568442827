"""`minutch updatehostdb`: updates a HostDb from a CrawlDb, and looks up hosts (UpdateHostDb)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from minutch.commands.arguments import Flag, fail, parse
from minutch.cycle.hostdb.update import UpdateHostDbOptions, updatehostdb
from minutch.job import JobContext

USAGE: Final = """UpdateHostDb -hostdb <hostdb> [-tophosts <tophosts>] [-crawldb <crawldb>] \
[-checkAll] [-checkFailed] [-checkNew] [-checkKnown] [-force] [-filter] [-normalize] [-urlLimit <N>]
\t-hostdb <hostdb>\tthe HostDb to update; it is created if it does not exist
\t-crawldb <crawldb>\tcount the pages of this CrawlDb by host and status
\t-tophosts <tophosts>\tread the scores of hosts from text files: host, a tab, the score
\t-checkAll\tlook up all hosts that are due in the DNS
\t-checkFailed\tlook up those that had no address the last time
\t-checkNew\tlook up those that were never looked up
\t-checkKnown\tlook up those that had an address
\t-force\tlook up hosts that are not due yet as well
\t-filter\tdrop hosts if the URL filters reject http://host/
\t-normalize\tnormalize http://host/ for each host
\t-urlLimit <N>\tonly hosts with at least N pages"""

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
    """Runs the job and reports its counters."""
    arguments = parse(args, FLAGS, usage=USAGE, most=0)
    if arguments["-hostdb"] is None:
        fail("hostDb is mandatory" if args else "", USAGE)
    sources = {
        name: None if arguments[f"-{name}"] is None else Path(arguments[f"-{name}"])
        for name in ("crawldb", "tophosts")
    }
    options = UpdateHostDbOptions(
        check=frozenset(
            kind for kind, switch in CHECKS.items() if arguments["-checkAll"] or arguments[switch]
        ),
        force=arguments["-force"],
        filtering=arguments["-filter"],
        normalize=arguments["-normalize"],
        url_limit=arguments["-urlLimit"],
        **sources,
    )
    context.report(
        "UpdateHostDb", updatehostdb(Path(arguments["-hostdb"]), options, context=context)
    )
    return 0
