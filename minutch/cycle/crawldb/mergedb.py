"""mergedb: merges CrawlDbs into a new one.

Of a URL that is in more than one, the entry that was fetched last stays (of those never fetched,
the one with the later fetch time; of equals the first). The metadata of all its entries is merged,
in the order of the input: values of an entry newer than those before it replace theirs, values of
any other entry only fill gaps. So among the older entries the first counts. The order of the input
is that of the CrawlDbs on the command line. Source: org.apache.nutch.crawl.CrawlDbMerger.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Final

import polars as pl

from minutch.cycle.crawldb.matching import merge_sorted
from minutch.cycle.crawldb.partitions import EntryFilter, EntrySources, rewrite
from minutch.cycle.crawldb.schedule import AbstractFetchSchedule, fetch_schedule
from minutch.cycle.crawldb.store import CrawlDb
from minutch.errors import StoreError
from minutch.job import Counters, JobContext
from minutch.records.crawldatum_columns import CRAWLDB_SCHEMA
from minutch.records.rawmap import RawMap
from minutch.work.engine import engine_of
from minutch.work.tables.database import OutputSettings
from minutch.work.tables.frame import has_repeats, sort_by_key
from minutch.work.tables.install import mark_success

log = logging.getLogger(__name__)
ENTRIES: Final = "entries written"
MERGED: Final = "entries merged into others"


@dataclass(frozen=True, slots=True)
class MergeOptions:
    """The options of mergedb and mergelinkdb."""

    normalize: bool = False
    """Whether the URL normalizers apply."""
    filtering: bool = False
    """Whether the URL filters apply."""


def mergedb(
    output: Path,
    dbs: Sequence[Path],
    options: MergeOptions = MergeOptions(),
    *,
    context: JobContext,
) -> Counters:
    """Merges the CrawlDbs `dbs` into a new one at `output`.

    Paths that do not exist are skipped with a message. Raises StoreError if none is left,
    LockedError, FormatError.
    """
    log.info("CrawlDb merge: starting")
    sources = []
    for path in dbs:
        if path.exists():
            log.info("Adding %s", path)
            sources.append(CrawlDb(path))
            sources[-1].require_parts()
        else:
            log.warning("skipping %s, which does not exist", path)
    if not sources:
        raise StoreError(f"no CrawlDb to merge: {', '.join(map(str, dbs))} do not exist")
    conf, result = context.conf, CrawlDb(output)
    schedule = fetch_schedule(conf)
    entry_filter = EntryFilter.from_conf(
        conf, normalize=options.normalize, filtering=options.filtering
    )
    engine, settings = engine_of(conf), OutputSettings.from_conf(conf)
    with (
        result.lock(),
        EntrySources(sources, engine, entry_filter, spill=output) as entries,
        context.progress("mergedb", lambda: sum(db.estimate() for db in sources)) as progress,
    ):
        counters = rewrite(
            result,
            engine,
            settings,
            entries.sources,
            lambda frames: merge(frames, schedule),
            progress,
        )
        mark_success(conf, result.current)
    counters.merge(entries.counters)
    log.info("CrawlDb merge: finished")
    return counters


def merge(
    frames: Sequence[pl.DataFrame], schedule: AbstractFetchSchedule
) -> tuple[pl.DataFrame, Counters]:
    """Returns one entry per URL; each table is sorted by key, the first table's come first."""
    table = frames[0] if len(frames) == 1 else sort_by_key(pl.concat(frames))
    counters = Counters()
    if not has_repeats(table["key"]):
        counters.add(ENTRIES, len(table))
        return table, counters
    several = table["key"].is_duplicated()  # mostly few: the others are not sorted again
    merged = _newest(table.filter(several), schedule)
    result = merge_sorted(table.filter(~several), merged)
    counters.add(ENTRIES, len(result))
    counters.add(MERGED, len(table) - len(result))
    return result, counters


def _newest(table: pl.DataFrame, schedule: AbstractFetchSchedule) -> pl.DataFrame:
    """Returns the newest entry of each key, with the metadata of all its entries."""
    table = table.with_columns(last_fetch=schedule.calculate_last_fetch_time_columns(table))
    order = ["key", "last_fetch", "fetch_time"]
    # Stable: of equals the first.
    latest_first = table.sort(order, descending=[False, True, True], maintain_order=True)
    newest = latest_first.unique("key", keep="first", maintain_order=True).select(
        CRAWLDB_SCHEMA.names()
    )
    described = table.filter(pl.col("metadata").is_not_null().any().over("key"))
    if described.is_empty():
        return newest
    metadata = _merged_metadata(described)
    return newest.join(metadata, on="key", how="left", maintain_order="left").select(
        pl.exclude("metadata", "merged"), pl.coalesce("merged", "metadata").alias("metadata")
    )


def _merged_metadata(table: pl.DataFrame) -> pl.DataFrame:
    """key -> `merged`, the merged metadata of its entries."""
    keys, merged = [], []
    rows = table.select("key", "last_fetch", "fetch_time", "metadata").iter_rows()
    for key, entries in groupby(rows, key=lambda row: row[0]):
        # CrawlDbMerger.Merger.reduce: values of newer entries win, of older ones fill gaps.
        result, newest = RawMap(), (-1, -1)
        for _, last_fetch, fetch_time, data in entries:
            own = RawMap(data)
            if (last_fetch, fetch_time) > newest:
                newest = (last_fetch, fetch_time)
                result.put_all(own)
            else:
                own.put_all(result)
                result = own
        keys.append(key)
        merged.append(result.to_bytes())
    return pl.DataFrame(
        {"key": keys, "merged": merged}, schema={"key": pl.Binary, "merged": pl.Binary}
    )
