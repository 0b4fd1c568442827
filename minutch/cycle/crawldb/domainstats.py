"""domainstats: how many pages of each host, domain, public suffix or top-level domain were fetched.

The lines FETCHED and NOT_FETCHED have the sums. Fetched pages of a host without a public suffix (an
address) count in these alone when counted by suffix or tld. Source:
org.apache.nutch.util.DomainStatistics.
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
    count_of,
    counts_of,
    write,
)
from minutch.cycle.crawldb.store import CrawlDb
from minutch.job import Counters, JobContext
from minutch.urls.hostcolumns import hosts_of
from minutch.work.tables.frame import decode_keys

log = logging.getLogger(__name__)
NOT_FETCHED: Final = "NOT_FETCHED"


def domainstats(
    dbs: list[CrawlDb],
    out: Path,
    mode: str,
    context: JobContext,
    *,
    parts: int = 1,
    as_json: bool = False,
) -> Counters:
    """Count the pages of `dbs` by `mode` into the new folder `out`. Raises StoreError,
    FormatError.
    """
    log.info("DomainStatistics: starting")
    counters = Counters({FETCHED: 0, NOT_FETCHED: 0, MALFORMED: 0})

    def count(table: pl.DataFrame, counters: Counters) -> list[pl.DataFrame]:
        fetched = table.filter(IS_FETCHED)
        hosts = hosts_of(decode_keys(fetched["key"]))
        known, others = len(hosts) - hosts.null_count(), len(table) - len(fetched)
        counters.merge({FETCHED: known, NOT_FETCHED: others, MALFORMED: hosts.null_count()})
        return [
            counts_of(MODES[mode](hosts)),
            count_of(FETCHED, known),
            count_of(NOT_FETCHED, others),
        ]

    def describe(name: str) -> dict[str, Any]:
        return (
            {"status": name} if name in {FETCHED, NOT_FETCHED} else {mode: name, "status": FETCHED}
        )

    write(
        count_groups(dbs, count, counters, context),
        out,
        parts,
        describe if as_json else None,
        context.conf,
    )
    log.info("DomainStatistics: finished")
    return counters
