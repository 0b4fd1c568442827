"""crawlcomplete: how many pages of each host or domain are fetched, and how many are not yet.

Different from Nutch on purpose: -numReducers gives the number of files (Nutch reads another
option's value in its place and fails), and an unknown mode is an error. Source:
org.apache.nutch.util.CrawlCompletionStats.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, Final

import polars as pl

from minutch.cycle.crawldb.groupcounts import (
    FETCHED,
    IS_FETCHED,
    MALFORMED,
    MODES,
    count_groups,
    counts_of,
    write,
)
from minutch.cycle.crawldb.store import CrawlDb
from minutch.job import Counters, JobContext
from minutch.urls.hostcolumns import hosts_of
from minutch.work.tables.frame import decode_keys

log = logging.getLogger(__name__)
UNFETCHED: Final = "UNFETCHED"


def crawlcomplete(
    dbs: list[CrawlDb],
    out: Path,
    mode: str,
    context: JobContext,
    *,
    parts: int = 1,
    as_json: bool = False,
) -> Counters:
    """Count the pages of `dbs` by `mode` and status into the new folder `out`. Raises StoreError,
    FormatError.
    """
    log.info("CrawlCompletionStats: starting")
    counters = Counters({FETCHED: 0, UNFETCHED: 0, MALFORMED: 0})

    def count(table: pl.DataFrame, counters: Counters) -> list[pl.DataFrame]:
        found = []
        for status, rows in (
            (FETCHED, table.filter(IS_FETCHED)),
            (UNFETCHED, table.filter(~IS_FETCHED)),
        ):
            hosts = hosts_of(decode_keys(rows["key"]))
            counters.merge({status: len(hosts) - hosts.null_count(), MALFORMED: hosts.null_count()})
            found.append(counts_of(MODES[mode](hosts) + f" {status}"))
        return found

    def describe(name: str) -> dict[str, Any]:
        host, _, status = name.rpartition(" ")
        return {mode: host, "status": status}

    write(
        count_groups(dbs, count, counters, context),
        out,
        parts,
        describe if as_json else None,
        context.conf,
    )
    log.info("CrawlCompletionStats: finished")
    return counters
