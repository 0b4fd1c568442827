"""crawlcomplete: counts the fetched and unfetched pages of each host or domain.

Different from Nutch on purpose: -numReducers gives the number of files (Nutch reads another
option's value in its place and fails), and an unknown mode is an error. Source:
org.apache.nutch.util.CrawlCompletionStats.
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
    counts_of,
    write_counts,
)
from minutch.job import Counters, JobContext
from minutch.urls.hostcolumns import hosts_of
from minutch.work.tables.frame import decode_keys

log = logging.getLogger(__name__)
UNFETCHED: Final = "UNFETCHED"


@dataclass(frozen=True, slots=True)
class CrawlcompleteOptions:
    """The options of crawlcomplete."""

    mode: str = "host"
    """Names to count: `host` or `domain`."""
    parts: int = 1
    """Number of files to write."""
    as_json: bool = False
    """Whether each line is an object of JSON."""


def crawlcomplete(
    crawldbs: Sequence[Path],
    output: Path,
    options: CrawlcompleteOptions = CrawlcompleteOptions(),
    *,
    context: JobContext,
) -> Counters:
    """Counts the pages of `crawldbs` by host or domain, and status, into the new folder `output`.
    Raises StoreError, FormatError.
    """
    log.info("CrawlCompletionStats: starting")
    mode, counters = options.mode, Counters({FETCHED: 0, UNFETCHED: 0, MALFORMED: 0})

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

    write_counts(
        crawldbs,
        output,
        count,
        counters,
        context=context,
        parts=options.parts,
        describe=describe if options.as_json else None,
    )
    log.info("CrawlCompletionStats: finished")
    return counters
