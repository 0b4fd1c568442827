"""protocolstats: counts the entries of a CrawlDb by HTTP status code; those without one as
UNFETCHED.

The fetcher keeps the code of a page's last fetch in its metadata (`nutch.protocol.code`).
Source: org.apache.nutch.util.ProtocolStatusStatistics.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import polars as pl

from minutch.cycle.crawldb.groupcounts import count_of, counts_of, write_counts
from minutch.job import Counters, JobContext
from minutch.records.metadata import RESPONSE_CODE_KEY
from minutch.records.metadata_columns import text_values

log = logging.getLogger(__name__)
UNFETCHED: Final = "UNFETCHED"
WITH_CODE: Final = "entries with a code"


@dataclass(frozen=True, slots=True)
class ProtocolstatsOptions:
    """The options of protocolstats."""

    parts: int = 1
    """Number of files to write."""
    as_json: bool = False
    """Whether each line is an object of JSON."""


def protocolstats(
    crawldbs: Sequence[Path],
    output: Path,
    options: ProtocolstatsOptions = ProtocolstatsOptions(),
    *,
    context: JobContext,
) -> Counters:
    """Counts the entries of `crawldbs` by status code into the new folder `output`. Raises
    StoreError, FormatError.
    """
    log.info("ProtocolStatistics: starting")
    counters = Counters({WITH_CODE: 0, UNFETCHED: 0})

    def count(table: pl.DataFrame, counters: Counters) -> list[pl.DataFrame]:
        codes = text_values(table["metadata"], table["key"], RESPONSE_CODE_KEY)
        counters.merge({WITH_CODE: len(codes) - codes.null_count(), UNFETCHED: codes.null_count()})
        return [counts_of(codes), count_of(UNFETCHED, codes.null_count())]

    def describe(name: str) -> dict[str, Any]:
        return {"status": name} if name == UNFETCHED else {"code": name}

    write_counts(
        crawldbs,
        output,
        count,
        counters,
        context=context,
        packed=False,
        parts=options.parts,
        describe=describe if options.as_json else None,
    )
    log.info("ProtocolStatistics: finished")
    return counters
