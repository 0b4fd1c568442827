"""crawlcomplete: how many pages of each host or domain are fetched, and how many are not yet.

Different from Nutch on purpose: -numReducers gives the number of files (Nutch reads another option's value in its
place and fails), and an unknown mode is an error.
Source: org.apache.nutch.util.CrawlCompletionStats.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, Final

import polars as pl

from minutch.arguments import Flag, fail, parse
from minutch.crawldb.store import CrawlDb
from minutch.crawldb.tallies import (
    FETCHED,
    IS_FETCHED,
    MALFORMED,
    MODES,
    counts_of,
    crawldbs,
    one_of,
    positive,
    tally,
    write,
)
from minutch.job import Counters, JobContext
from minutch.stores import as_path
from minutch.tables.frame import decode_keys
from minutch.urls.hosts import hosts_of

log = logging.getLogger(__name__)

USAGE: Final = """CrawlCompletionStats [-h] -inputDirs <inputDirs> -mode <mode>
       [-numReducers <numReducers>] -outputDir <outputDir> [-json]
 -h,--help                    this text
 -inputDirs <inputDirs>       the crawldbs, with commas between them
                              (e.g., "./crawl1/crawldb,./crawl2/crawldb")
 -json                        write an object of JSON for each line
 -mode <mode>                 what is counted: 'host' or 'domain'
 -numReducers <numReducers>   number of files to write, 1 if not given
 -outputDir <outputDir>       the directory to write to, which may not
                              exist yet"""

FLAGS: Final = (
    Flag("-inputDirs", "inputDirs"),
    Flag("-outputDir", "outputDir"),
    Flag("-mode", "mode"),
    Flag("-numReducers", "numReducers"),
    Flag("-json"),
)

UNFETCHED: Final = "UNFETCHED"


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0, or 255 and an error; 0, as in Nutch, after a line that lacks options."""
    given = parse(args, FLAGS, usage=USAGE, most=0)
    lacking = [name for name in ("-inputDirs", "-outputDir", "-mode") if given[name] is None]
    if lacking:
        fail(f"missing: {', '.join(lacking)}" if args else "", USAGE)
    mode = one_of("-mode", given["-mode"], ("host", "domain"))
    parts = positive("-numReducers", given.get("-numReducers", "1"))
    dbs, out = crawldbs(given["-inputDirs"]), as_path(given["-outputDir"])
    context.report("CrawlCompletionStats", crawlcomplete(dbs, out, mode, context, parts=parts, as_json=given["-json"]))
    return 0


def crawlcomplete(
    dbs: list[CrawlDb], out: Path, mode: str, context: JobContext, *, parts: int = 1, as_json: bool = False
) -> Counters:
    """Count the pages of `dbs` by `mode` and status into the new folder `out`. Raises StoreError, FormatError."""
    log.info("CrawlCompletionStats: starting")
    counters = Counters({FETCHED: 0, UNFETCHED: 0, MALFORMED: 0})

    def count(table: pl.DataFrame, counters: Counters) -> list[pl.DataFrame]:
        found = []
        for status, rows in ((FETCHED, table.filter(IS_FETCHED)), (UNFETCHED, table.filter(~IS_FETCHED))):
            hosts = hosts_of(decode_keys(rows["key"]))
            counters.merge({status: len(hosts) - hosts.null_count(), MALFORMED: hosts.null_count()})
            found.append(counts_of(MODES[mode](hosts) + f" {status}"))
        return found

    def describe(name: str) -> dict[str, Any]:
        host, _, status = name.rpartition(" ")
        return {mode: host, "status": status}

    write(tally(dbs, count, counters, context), out, parts, describe if as_json else None, context.conf)
    log.info("CrawlCompletionStats: finished")
    return counters
