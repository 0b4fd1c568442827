"""protocolstats: how often each status code of HTTP stands in the crawldb; entries without one count as UNFETCHED.

The fetcher keeps the code of a page's last fetch in its metadata (`nutch.protocol.code`).
Source: org.apache.nutch.util.ProtocolStatusStatistics.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, Final

import polars as pl

from minutch.arguments import Flag, parse
from minutch.crawldb.store import CrawlDb
from minutch.crawldb.tallies import count_of, counts_of, crawldbs, positive, tally, write
from minutch.job import Counters, JobContext
from minutch.records.metadata import RESPONSE_CODE_KEY
from minutch.records.metadata_columns import text_values
from minutch.stores import as_path

log = logging.getLogger(__name__)

USAGE: Final = """ProtocolStatistics inputDirs outDir [numOfReducer] [-json]
\tinputDirs\tthe crawldbs, with commas between them
\t\t\tE.g.: crawl/crawldb/
\toutDir\t\tthe directory to write to, which may not exist yet
\t[numOfReducers]\tnumber of files to write, 1 if not given
\t[-json]\twrite an object of JSON for each line"""

FLAGS: Final = (Flag("-json"),)

UNFETCHED: Final = "UNFETCHED"
WITH_CODE: Final = "entries with a code"


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0, or 255 and an error; 0, as in Nutch, after a line that lacks arguments."""
    given = parse(args, FLAGS, usage=USAGE, least=2, most=3)
    inputs, out, *parts = given.positional
    number = positive("numOfReducer", parts[0]) if parts else 1
    counters = protocolstats(crawldbs(inputs), as_path(out), context, parts=number, as_json=given["-json"])
    context.report("ProtocolStatistics", counters)
    return 0


def protocolstats(
    dbs: list[CrawlDb], out: Path, context: JobContext, *, parts: int = 1, as_json: bool = False
) -> Counters:
    """Count the entries of `dbs` by status code into the new folder `out`. Raises StoreError, FormatError."""
    log.info("ProtocolStatistics: starting")
    counters = Counters({WITH_CODE: 0, UNFETCHED: 0})

    def count(table: pl.DataFrame, counters: Counters) -> list[pl.DataFrame]:
        codes = text_values(table["metadata"], table["key"], RESPONSE_CODE_KEY)
        counters.merge({WITH_CODE: len(codes) - codes.null_count(), UNFETCHED: codes.null_count()})
        return [counts_of(codes), count_of(UNFETCHED, codes.null_count())]

    def describe(name: str) -> dict[str, Any]:
        return {"status": name} if name == UNFETCHED else {"code": name}

    write(tally(dbs, count, counters, context, packed=False), out, parts, describe if as_json else None, context.conf)
    log.info("ProtocolStatistics: finished")
    return counters
