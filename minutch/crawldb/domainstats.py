"""domainstats: how many pages of each host, domain, public suffix or top-level domain were fetched.

The lines FETCHED and NOT_FETCHED have the sums. Fetched pages of a host without a public suffix (an address) count in
these alone when counted by suffix or tld.
Source: org.apache.nutch.util.DomainStatistics.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, Final

import polars as pl

from minutch.arguments import Flag, parse
from minutch.crawldb.store import CrawlDb
from minutch.crawldb.tallies import (
    FETCHED,
    IS_FETCHED,
    MALFORMED,
    MODES,
    count_of,
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

USAGE: Final = """DomainStatistics inputDirs outDir mode [numOfReducer] [-json]
\tinputDirs\tthe crawldbs, with commas between them
\t\t\tE.g.: crawl/crawldb/
\toutDir\t\tthe directory to write to, which may not exist yet
\tmode\t\twhat is counted
\t\t\t\thost\thosts
\t\t\t\tdomain\tregistered domains
\t\t\t\tsuffix\tpublic suffixes
\t\t\t\ttld\ttop-level domains
\t[numOfReducers]\tnumber of files to write, 1 if not given
\t[-json]\twrite an object of JSON for each line"""

FLAGS: Final = (Flag("-json"),)

NOT_FETCHED: Final = "NOT_FETCHED"


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0, or 255 and an error; 0, as in Nutch, after a line that lacks arguments."""
    given = parse(args, FLAGS, usage=USAGE, least=3, most=4)
    inputs, out, mode, *parts = given.positional
    one_of("mode", mode, tuple(MODES))
    number = positive("numOfReducers", parts[0]) if parts else 1
    counters = domainstats(crawldbs(inputs), as_path(out), mode, context, parts=number, as_json=given["-json"])
    context.report("DomainStatistics", counters)
    return 0


def domainstats(
    dbs: list[CrawlDb], out: Path, mode: str, context: JobContext, *, parts: int = 1, as_json: bool = False
) -> Counters:
    """Count the pages of `dbs` by `mode` into the new folder `out`. Raises StoreError, FormatError."""
    log.info("DomainStatistics: starting")
    counters = Counters({FETCHED: 0, NOT_FETCHED: 0, MALFORMED: 0})

    def count(table: pl.DataFrame, counters: Counters) -> list[pl.DataFrame]:
        fetched = table.filter(IS_FETCHED)
        hosts = hosts_of(decode_keys(fetched["key"]))
        known, others = len(hosts) - hosts.null_count(), len(table) - len(fetched)
        counters.merge({FETCHED: known, NOT_FETCHED: others, MALFORMED: hosts.null_count()})
        return [counts_of(MODES[mode](hosts)), count_of(FETCHED, known), count_of(NOT_FETCHED, others)]

    def describe(name: str) -> dict[str, Any]:
        return {"status": name} if name in {FETCHED, NOT_FETCHED} else {mode: name, "status": FETCHED}

    write(tally(dbs, count, counters, context), out, parts, describe if as_json else None, context.conf)
    log.info("DomainStatistics: finished")
    return counters
