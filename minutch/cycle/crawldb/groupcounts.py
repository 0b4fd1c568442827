"""Counts the entries of CrawlDbs by name, and writes the counts to a folder of part files.

A line is `count<TAB>name`, or with -json an object; names go to parts by their hash and are sorted
within a part. Source: Hadoop's TextOutputFormat, as org.apache.nutch.util.DomainStatistics and its
like use it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

import polars as pl

from minutch.cycle.crawldb.store import CrawlDb
from minutch.job import Counters, JobContext, Progress
from minutch.records.crawldatum import STATUS_DB_FETCHED, STATUS_DB_NOTMODIFIED
from minutch.urls.domains import suffix_of
from minutch.urls.hostcolumns import domains_of, map_distinct
from minutch.work.engine import Engine, Task, engine_of
from minutch.work.tables.compression import text_codec
from minutch.work.tables.recordfiles import scan, scan_packed
from minutch.work.tables.shuffle import split
from minutch.work.tables.spans import InputSplit
from minutch.work.tables.textparts import output_folder, text_part

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


def write_counts(
    crawldbs: Sequence[Path],
    output: Path,
    count: Count,
    counters: Counters,
    *,
    context: JobContext,
    packed: bool = True,
    parts: int = 1,
    describe: Describe | None = None,
) -> None:
    """Counts the entries of `crawldbs` by name into `parts` files of the new folder `output`.

    `count` is called with one table of entries (`packed` or not) after the other, and adds to
    `counters`. Lines are as Nutch's or, with `describe`, JSON. Raises StoreError, FormatError.
    """
    dbs = [CrawlDb(path) for path in crawldbs]
    for db in dbs:
        db.require_parts()
    with context.progress("counting", lambda: sum(db.estimate() for db in dbs)) as progress:
        counts = _count_groups(
            dbs,
            count,
            counters,
            engine=engine_of(context.conf),
            progress=progress,
            read=scan_packed if packed else scan,
        )
    codec = text_codec(context.conf)
    with output_folder(output) as folder:
        for number, table in enumerate(split(counts, parts)):
            with text_part(folder, number, codec) as part:
                for name, size in table.iter_rows():
                    part.write(
                        b"%d\t%s\n" % (size, name)
                        if describe is None
                        else _json(name, size, describe)
                    )


def _count_groups(
    dbs: list[CrawlDb],
    count: Count,
    counters: Counters,
    *,
    engine: Engine,
    progress: Progress,
    read: Callable[[InputSplit], Iterator[pl.DataFrame]],
) -> Counts:
    """Counts each name; returns a table of `key` and `count`, sorted by key."""

    def count_in(task: Task, piece: InputSplit) -> Counts:
        return _summed(_counted(read(piece), count, task))

    pieces = engine.splits(path for db in dbs for path in db.parts())
    return _summed(engine.map(count_in, pieces, counters, progress)).sort("key")


def _counted(tables: Iterator[pl.DataFrame], count: Count, task: Task) -> Iterator[Counts]:
    for table in tables:
        yield from count(table, task.counters)
        task.advance(len(table))


def _summed(tables: Iterator[Counts]) -> Counts:
    """Adds up tables of counts; returns one with a row for each name."""
    total = pl.DataFrame(schema=_SCHEMA)
    while group := list(islice(tables, _MANY)):
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
