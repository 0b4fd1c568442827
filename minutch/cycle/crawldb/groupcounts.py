"""Counts over the entries of CrawlDbs, and the folder of part files that they are written to.

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

from minutch.conf import Configuration
from minutch.cycle.crawldb.store import CrawlDb
from minutch.errors import MinutchError
from minutch.hadoop.stores import as_path
from minutch.job import Counters, JobContext
from minutch.records.crawldatum import STATUS_DB_FETCHED, STATUS_DB_NOTMODIFIED
from minutch.urls.domains import suffix_of
from minutch.urls.hostcolumns import domains_of, map_distinct
from minutch.work.engine import Task, engine_of
from minutch.work.tables.crawldata import scan
from minutch.work.tables.packed import scan_packed
from minutch.work.tables.shuffle import split
from minutch.work.tables.spans import FileOrSplit
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
"""What a name means, for -json."""


def _top_level(host: str) -> str | None:
    """The last label of the public suffix."""
    suffix = suffix_of(host)
    return None if suffix is None else suffix.rpartition(".")[2]


MODES: Final[dict[str, Callable[[pl.Series], pl.Series]]] = {
    "host": lambda hosts: hosts,
    "domain": domains_of,
    "suffix": lambda hosts: map_distinct(hosts, suffix_of, pl.String()),
    "tld": lambda hosts: map_distinct(hosts, _top_level, pl.String()),
}
"""What is counted, of a column of hosts."""


def crawldbs(words: str) -> list[CrawlDb]:
    """The CrawlDbs of a list with commas. Raises StoreError where one does not exist."""
    found = [CrawlDb(as_path(word)) for word in words.split(",") if word]
    for db in found:
        db.require_parts()
    return found


def positive(name: str, value: str) -> int:
    """The number of parts. Raises MinutchError for anything but a positive number."""
    if not value.isascii() or not value.isdecimal() or not int(value):
        raise MinutchError(f"{name}: expected a positive number, found {value!r}")
    return int(value)


def one_of(name: str, value: str, choices: tuple[str, ...]) -> str:
    """`value`, which is one of `choices`. Raises MinutchError."""
    if value not in choices:
        raise MinutchError(f"{name}: expected one of {', '.join(choices)}, found {value!r}")
    return value


def count_groups(
    dbs: list[CrawlDb],
    count: Count,
    counters: Counters,
    context: JobContext,
    *,
    packed: bool = True,
) -> Counts:
    """How often each name comes, as a table of `key` and `count`, sorted by key.

    `count` is given a table of entries after the other, which are `packed` or not, and adds to the
    counters.
    """
    engine, read = engine_of(context.conf), scan_packed if packed else scan

    def count_in(task: Task, place: FileOrSplit) -> Counts:
        return _summed(_counted(read(place), count, task))

    with context.progress("counting", lambda: sum(db.estimate() for db in dbs)) as progress:
        places = engine.splits(path for db in dbs for path in db.parts())
        return _summed(engine.map(count_in, places, counters, progress)).sort("key")


def _counted(tables: Iterator[pl.DataFrame], count: Count, task: Task) -> Iterator[Counts]:
    for table in tables:
        yield from count(table, task.counters)
        task.advance(len(table))


def _summed(tables: Iterator[Counts]) -> Counts:
    """Many tables of counts as one, a row a name."""
    total = pl.DataFrame(schema=_SCHEMA)
    while group := list(islice(tables, _MANY)):
        total = pl.concat([total, *group]).group_by("key").agg(pl.col("count").sum())
    return total


def counts_of(names: pl.Series) -> Counts:
    """How often each of `names` (String or Binary) comes; null counts nothing."""
    counted = names.drop_nulls().alias("key").value_counts(name="count")
    return counted.select(pl.col("key").cast(pl.Binary), pl.col("count").cast(pl.UInt64))


def count_of(name: str, count: int) -> Counts:
    """One name, if it comes at all."""
    return pl.DataFrame(
        {"key": [name.encode()], "count": [count]} if count else None, schema=_SCHEMA
    )


def write(
    counts: Counts, out: Path, parts: int, describe: Describe | None, conf: Configuration
) -> None:
    """Write counts to the new folder `out`, as Nutch does or, with `describe`, as JSON. StoreError
    where it exists.
    """
    with output_folder(out) as folder:
        for number, table in enumerate(split(counts, parts)):
            with text_part(folder, number, conf) as part:
                for name, count in table.iter_rows():
                    part.write(
                        b"%d\t%s\n" % (count, name)
                        if describe is None
                        else _json(name, count, describe)
                    )


def _json(name: bytes, count: int, describe: Describe) -> bytes:
    values = describe(name.decode("utf-8", "replace")) | {"count": count}
    return json.dumps(values, ensure_ascii=False).encode() + b"\n"
