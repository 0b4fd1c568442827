"""mergedb: merges CrawlDbs into a new one.

Of a URL that is in more than one, the entry that was fetched last stays (of those never fetched,
the one with the later fetch time; of equals the first). The metadata of all its entries is merged,
in the order of the input: values of an entry newer than those before it replace theirs, values of
any other entry only fill gaps. So among the older entries the first counts. The order of the input
is that of the CrawlDbs on the command line. Source: org.apache.nutch.crawl.CrawlDbMerger.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from minutch.cycle.crawldb.matching import Ints, first_of_each, match
from minutch.cycle.crawldb.partitions import EntryFilter, EntrySources, rewrite
from minutch.cycle.crawldb.schedule import AbstractFetchSchedule, fetch_schedule
from minutch.cycle.crawldb.store import CrawlDb
from minutch.errors import StoreError
from minutch.job import Counters, JobContext
from minutch.records.rawmap import RawMap
from minutch.work.engine import engine_of
from minutch.work.tables.database import OutputSettings
from minutch.work.tables.frame import sort_by_key
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
    keys, counters = table["key"], Counters()
    group, at, _ = match(keys, keys.clear())
    counters.add(ENTRIES, len(at))
    if len(at) == len(table):
        return table, counters
    counters.add(MERGED, len(table) - len(at))
    is_one_of_many = np.bincount(group)[group] > 1
    rows = np.flatnonzero(is_one_of_many)
    several, own = table[rows], group[rows]
    last_fetch = schedule.calculate_last_fetch_time_columns(several).to_numpy()
    fetch_time = several["fetch_time"].to_numpy()
    order = np.lexsort((~fetch_time, ~last_fetch, own))  # stable: of equals the first
    newest = first_of_each(order, own)
    if several["metadata"].null_count() < len(several):
        told = _merged_metadata(several["metadata"], own, last_fetch, fetch_time)
        metadata = table["metadata"].scatter(rows[newest], told)
        table = table.with_columns(metadata)
    stays = ~is_one_of_many
    stays[rows[newest]] = True
    return table.filter(pl.Series(stays)), counters


def _merged_metadata(
    metadata: pl.Series, group: Ints, last_fetch: Ints, fetch_time: Ints
) -> pl.Series:
    """Returns the merged metadata of each URL; `group` has the URLs' numbers, ascending.

    Only where entries of a URL have different metadata are these taken apart.
    """
    url = np.cumsum(np.diff(group, prepend=group[:1]) != 0)
    rows = metadata.is_not_null().arg_true().to_numpy()
    own, held = url[rows], metadata.gather(rows)
    first = np.full(url[-1] + 1, -1)
    first[own[::-1]] = rows[::-1]
    merged = metadata.gather(pl.Series(first).replace(-1, None))
    is_other = (held != held.shift()).fill_null(False).to_numpy()
    is_other[1:] &= own[1:] == own[:-1]
    differing = np.unique(own[is_other])
    if not len(differing):
        return merged
    mine = np.flatnonzero(np.isin(url, differing))
    entries = zip(url[mine], last_fetch[mine], fetch_time[mine], metadata.gather(mine), strict=True)
    told = [
        _merged_map(entry[1:] for entry in of_url)
        for _, of_url in groupby(entries, key=itemgetter(0))
    ]
    return merged.scatter(differing, pl.Series(told, dtype=pl.Binary))


def _merged_map(entries: Iterable[tuple[int, int, bytes | None]]) -> bytes | None:
    """Merges the metadata of a URL's entries (last fetch, fetch time, metadata) in their order.

    Values of newer entries win, those of older ones fill gaps. Source:
    org.apache.nutch.crawl.CrawlDbMerger.Merger.reduce.
    """
    result, newest = RawMap(), (-1, -1)
    for last_fetch, fetch_time, data in entries:
        own = RawMap(data)
        if (last_fetch, fetch_time) > newest:
            newest = (last_fetch, fetch_time)
            result.put_all(own)
        else:
            own.put_all(result)
            result = own
    return result.to_bytes()
