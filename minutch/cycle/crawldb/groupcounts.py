"""Counts the entries of CrawlDbs by a name that is made of each, and writes the counts to a folder
of part files.

    crawlcomplete    the fetched and unfetched pages of each host or domain
    domainstats      the fetched pages of each host, domain, public suffix or top-level domain; the
                     lines FETCHED and NOT_FETCHED have the sums. Fetched pages of a host without a
                     public suffix (an address) count in these alone when counted by suffix or tld
    protocolstats    entries by HTTP status code, which the fetcher keeps of a page's last fetch in
                     its metadata (`nutch.protocol.code`); those without one as UNFETCHED

A line is `count<TAB>name`, or with -json an object; names go to parts by their hash and are sorted
within a part. Different from Nutch on purpose: crawlcomplete's -numReducers gives the number of
files (Nutch reads another option's value in its place and fails), and an unknown mode is an error.
Source: org.apache.nutch.util.CrawlCompletionStats, DomainStatistics, ProtocolStatusStatistics;
Hadoop's TextOutputFormat.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

import polars as pl

from minutch.cycle.crawldb.store import CrawlDb
from minutch.job import Counters, JobContext, Progress
from minutch.records.crawldatum import STATUS_DB_FETCHED, STATUS_DB_NOTMODIFIED
from minutch.records.metadata import RESPONSE_CODE_KEY
from minutch.records.metadata_columns import text_values
from minutch.urls.domains import suffix_of
from minutch.urls.hostcolumns import domains_of, hosts_of, map_distinct
from minutch.work.engine import Engine, Task, engine_of
from minutch.work.tables.compression import text_codec
from minutch.work.tables.frame import decode_keys
from minutch.work.tables.recordfiles import scan, scan_packed
from minutch.work.tables.shuffle import split
from minutch.work.tables.spans import InputSplit
from minutch.work.tables.textparts import output_folder, text_part

log = logging.getLogger(__name__)

FETCHED: Final = "FETCHED"
MALFORMED: Final = "entries that are no URLs, not counted"

IS_FETCHED: Final = pl.col("status").is_in([STATUS_DB_FETCHED, STATUS_DB_NOTMODIFIED])

_SCHEMA = pl.Schema({"key": pl.Binary(), "count": pl.UInt64()})
_MANY = 64  # tables that are added up at a time

Counts = pl.DataFrame
"""A table of `key` and `count`."""
Count = Callable[[pl.DataFrame, Counters], Sequence[Counts]]
"""Counts the entries of a table; a name may be in several of its results."""
Describe = Callable[[str], dict[str, Any]]
"""Returns the fields of a name, for JSON."""


def _top_level(host: str) -> str | None:
    """Returns the last label of the public suffix."""
    suffix = suffix_of(host)
    return None if suffix is None else suffix.rpartition(".")[2]


MODES: Final[dict[str, Callable[[pl.Series], pl.Series]]] = {
    "host": lambda hosts: hosts,
    "domain": domains_of,
    "suffix": lambda hosts: map_distinct(hosts, suffix_of, pl.String()),
    "tld": lambda hosts: map_distinct(hosts, _top_level, pl.String()),
}
"""Mode -> function that makes a column of the names to count from one of hosts."""


@dataclass(frozen=True, slots=True)
class CountOptions:
    """The options of protocolstats."""

    parts: int = 1
    """Number of files to write."""
    as_json: bool = False
    """Whether each line is an object of JSON."""


@dataclass(frozen=True, slots=True)
class PageCountOptions(CountOptions):
    """The options of crawlcomplete and domainstats."""

    mode: str = "host"
    """Names to count: a key of MODES; of crawlcomplete `host` or `domain`."""


@dataclass(frozen=True, slots=True)
class _Statistics:
    """What a job counts."""

    name: str
    counters: Counters
    count: Count
    """Called with one table of entries after the other; adds to counters."""
    describe: Describe
    read: Callable[[InputSplit], Iterator[pl.DataFrame]] = scan_packed

    def write(
        self, crawldbs: Sequence[Path], output: Path, options: CountOptions, context: JobContext
    ) -> Counters:
        """Counts the entries by name into files of the new folder `output`. Raises StoreError,
        FormatError.
        """
        log.info("%s: starting", self.name)
        dbs = [CrawlDb(path) for path in crawldbs]
        for db in dbs:
            db.require_parts()
        with context.progress("counting", lambda: sum(db.estimate() for db in dbs)) as progress:
            counts = self._count(dbs, engine_of(context.conf), progress)
        codec = text_codec(context.conf)
        with output_folder(output) as folder:
            for number, table in enumerate(split(counts, options.parts)):
                with text_part(folder, number, codec) as part:
                    for name, size in table.iter_rows():
                        part.write(
                            _json(name, size, self.describe)
                            if options.as_json
                            else b"%d\t%s\n" % (size, name)
                        )
        log.info("%s: finished", self.name)
        return self.counters

    def _count(self, dbs: list[CrawlDb], engine: Engine, progress: Progress) -> Counts:
        """Counts each name; returns a table of `key` and `count`, sorted by key."""

        def count_in(task: Task, piece: InputSplit) -> Counts:
            return _summed(_counted(self.read(piece), self.count, task))

        pieces = engine.splits(path for db in dbs for path in db.parts())
        return _summed(engine.map(count_in, pieces, self.counters, progress)).sort("key")


def _counted(tables: Iterator[pl.DataFrame], count: Count, task: Task) -> Iterator[Counts]:
    for table in tables:
        yield from count(table, task.counters)
        task.advance(len(table))


def _summed(tables: Iterator[Counts]) -> Counts:
    """Adds up tables of counts; returns one with a row for each name."""
    total = pl.DataFrame(schema=_SCHEMA)
    while group := list(islice(tables, _MANY)):  # memory for the names, not for all tables
        total = pl.concat([total, *group]).group_by("key").agg(pl.col("count").sum())
    return total


def counts_of(names: pl.Series) -> Counts:
    """Counts each of `names` (String or Binary), except null."""
    counted = names.drop_nulls().alias("key").value_counts(name="count")
    return counted.select(pl.col("key").cast(pl.Binary), pl.col("count").cast(pl.UInt64))


def count_of(name: str, count: int) -> Counts:
    """Returns a table of one name, or of none where its count is 0."""
    return pl.DataFrame(
        {"key": [name.encode()], "count": [count]} if count else None, schema=_SCHEMA
    )


def _json(name: bytes, count: int, describe: Describe) -> bytes:
    values = describe(name.decode("utf-8", "replace")) | {"count": count}
    return json.dumps(values, ensure_ascii=False).encode() + b"\n"


UNFETCHED: Final = "UNFETCHED"


def crawlcomplete(
    crawldbs: Sequence[Path],
    output: Path,
    options: PageCountOptions = PageCountOptions(),
    *,
    context: JobContext,
) -> Counters:
    """Counts the pages of `crawldbs` by host or domain, and status, into the new folder `output`.
    Raises StoreError, FormatError.
    """

    def count(table: pl.DataFrame, counters: Counters) -> list[pl.DataFrame]:
        found = []
        for status, rows in (
            (FETCHED, table.filter(IS_FETCHED)),
            (UNFETCHED, table.filter(~IS_FETCHED)),
        ):
            hosts = hosts_of(decode_keys(rows["key"]))
            counters.merge({status: len(hosts) - hosts.null_count(), MALFORMED: hosts.null_count()})
            # Null, without a host, stays null.
            found.append(counts_of(MODES[options.mode](hosts) + f" {status}"))
        return found

    def describe(name: str) -> dict[str, Any]:
        host, _, status = name.rpartition(" ")
        return {options.mode: host, "status": status}

    counters = Counters({FETCHED: 0, UNFETCHED: 0, MALFORMED: 0})
    statistics = _Statistics("CrawlCompletionStats", counters, count, describe)
    return statistics.write(crawldbs, output, options, context)


NOT_FETCHED: Final = "NOT_FETCHED"


def domainstats(
    crawldbs: Sequence[Path],
    output: Path,
    options: PageCountOptions = PageCountOptions(),
    *,
    context: JobContext,
) -> Counters:
    """Counts the pages of `crawldbs` into the new `output`. Raises StoreError, FormatError."""

    def count(table: pl.DataFrame, counters: Counters) -> list[pl.DataFrame]:
        fetched = table.filter(IS_FETCHED)
        hosts = hosts_of(decode_keys(fetched["key"]))
        known, others = len(hosts) - hosts.null_count(), len(table) - len(fetched)
        counters.merge({FETCHED: known, NOT_FETCHED: others, MALFORMED: hosts.null_count()})
        return [
            counts_of(MODES[options.mode](hosts)),
            count_of(FETCHED, known),
            count_of(NOT_FETCHED, others),
        ]

    def describe(name: str) -> dict[str, Any]:
        is_sum = name in {FETCHED, NOT_FETCHED}
        return {"status": name} if is_sum else {options.mode: name, "status": FETCHED}

    counters = Counters({FETCHED: 0, NOT_FETCHED: 0, MALFORMED: 0})
    statistics = _Statistics("DomainStatistics", counters, count, describe)
    return statistics.write(crawldbs, output, options, context)


WITH_CODE: Final = "entries with a code"


def protocolstats(
    crawldbs: Sequence[Path],
    output: Path,
    options: CountOptions = CountOptions(),
    *,
    context: JobContext,
) -> Counters:
    """Counts the entries by status code into the new folder `output`. StoreError, FormatError."""

    def count(table: pl.DataFrame, counters: Counters) -> list[pl.DataFrame]:
        codes = text_values(table["metadata"], table["key"], RESPONSE_CODE_KEY)
        counters.merge({WITH_CODE: len(codes) - codes.null_count(), UNFETCHED: codes.null_count()})
        return [counts_of(codes), count_of(UNFETCHED, codes.null_count())]

    def describe(name: str) -> dict[str, Any]:
        return {"status": name} if name == UNFETCHED else {"code": name}

    counters = Counters({WITH_CODE: 0, UNFETCHED: 0})
    statistics = _Statistics("ProtocolStatistics", counters, count, describe, scan)
    return statistics.write(crawldbs, output, options, context)
