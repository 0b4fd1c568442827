"""domainstats: counts the fetched pages of each host, domain, public suffix or top-level domain.

The lines FETCHED and NOT_FETCHED have the sums. Fetched pages of a host without a public suffix (an
address) count in these alone when counted by suffix or tld. Source:
org.apache.nutch.util.DomainStatistics.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import polars as pl

from minutch.cycle.crawldb.groupcounts import (
    FETCHED,
    IS_FETCHED,
    MALFORMED,
    MODES,
    count_of,
    counts_of,
    write_counts,
)
from minutch.job import Counters, JobContext
from minutch.urls.hostcolumns import hosts_of
from minutch.work.tables.frame import decode_keys

log = logging.getLogger(__name__)
NOT_FETCHED: Final = "NOT_FETCHED"


@dataclass(frozen=True, slots=True)
class DomainstatsOptions:
    """The options of domainstats."""

    mode: str = "host"
    """Names to count: a key of MODES."""
    parts: int = 1
    """Number of files to write."""
    as_json: bool = False
    """Whether each line is an object of JSON."""


def domainstats(
    crawldbs: Sequence[Path],
    output: Path,
    options: DomainstatsOptions = DomainstatsOptions(),
    *,
    context: JobContext,
) -> Counters:
    """Counts the pages of `crawldbs` into the new folder `output`. Raises StoreError,
    FormatError.
    """
    log.info("DomainStatistics: starting")
    mode, counters = options.mode, Counters({FETCHED: 0, NOT_FETCHED: 0, MALFORMED: 0})

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

    write_counts(
        crawldbs,
        output,
        count,
        counters,
        context=context,
        parts=options.parts,
        describe=describe if options.as_json else None,
    )
    log.info("DomainStatistics: finished")
    return counters
