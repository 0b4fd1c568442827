"""dedup: marks all but the best of the pages with the same content as db_duplicate.

Fetched pages (db_fetched, db_notmodified) are grouped by signature; with `-group host` or `domain`,
within each host or domain. `duplicates` decides which of a group are duplicates. Where a CrawlDb
has two entries of one URL, the last one counts. With `-near`, pages whose signature is a SimHash
are compared by how many bits differ (`nearduplicates`); the others are grouped as ever. Source:
org.apache.nutch.crawl.DeduplicationJob.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from minutch.cycle.crawldb import duplicates, nearduplicates
from minutch.cycle.crawldb.matching import last_of_key, match
from minutch.cycle.crawldb.pagesignatures import (
    FETCHED,
    IS_SIMHASH,
    compared,
    pages_in,
    pages_with_signature,
)
from minutch.cycle.crawldb.partitions import EntryFilter, EntrySources, patch
from minutch.cycle.crawldb.store import CrawlDb
from minutch.job import Counters, JobContext
from minutch.records import crawldatum as status
from minutch.work.engine import Engine, Partition, Shuffled, Task, engine_of
from minutch.work.tables.database import OutputSettings
from minutch.work.tables.frame import sort_by_key
from minutch.work.tables.recordfiles import Patched, take
from minutch.work.tables.shuffle import Shuffle
from minutch.work.tables.spans import InputSplit

log = logging.getLogger(__name__)
MARKED: Final = "documents marked as duplicates"
_KEYS: Final = pl.Schema({"key": pl.Binary()})
_PAGES: Final = pl.Schema(
    {"key": pl.Binary(), "url": pl.Binary(), "score": pl.Float32(), "fetch_time": pl.Int64()}
)
"""The group as key, and what `duplicates` compares."""


@dataclass(frozen=True, slots=True)
class DedupOptions:
    """The options of dedup."""

    group: str = "none"
    """A key of GROUPS: only pages of one group are compared."""
    order: Sequence[str] = duplicates.DEFAULT_CRITERIA
    """The criteria by which the page to keep is found, the first one first."""
    near: int | None = None
    """Bits in which SimHash signatures may differ; None: only equal ones count."""


def dedup(
    crawldb: Path,
    options: DedupOptions = DedupOptions(),
    *,
    context: JobContext,
) -> Counters:
    """Marks the duplicates in the CrawlDb at `crawldb`.

    Returns the number of marked pages and of the others. Raises StoreError where there
    is no CrawlDb, LockedError, FormatError (damage).
    """
    log.info("DeduplicationJob: starting")
    db = CrawlDb(crawldb)
    db.require_parts()
    entry_filter = EntryFilter.from_conf(context.conf)
    engine, output = engine_of(context.conf), OutputSettings.from_conf(context.conf)
    group, order, near = options.group, options.order, options.near
    where = FETCHED if near is None else FETCHED & ~IS_SIMHASH
    with (
        db.lock(),
        EntrySources([db], engine, entry_filter, spill=crawldb, packed=True) as entries,
        _found(db, engine, group, order, where) as found,
        Shuffle(engine.parts, _KEYS, budget=engine.memory // 4, spill=crawldb) as found_near,
        context.progress("dedup") as progress,
    ):
        for keys in _find_near(db, group, order, near) if near is not None else ():
            found_near.add(keys.to_frame("key"))
        log.info("Deduplication: %d documents marked as duplicates", found.rows + found_near.rows)
        log.info("Deduplication: Updating status of duplicate urls into crawl db.")
        sources = [
            *entries.sources,
            found,
            *([] if near is None else [engine.local_source(found_near)]),
        ]
        counters = patch(
            db, engine, output, sources, lambda tables: _mark(tables[0], tables[1:]), progress
        )
    counters.merge(entries.counters)
    log.info("Deduplication finished")
    return counters


@contextmanager
def _found(
    db: CrawlDb, engine: Engine, group: str, order: Sequence[str], where: pl.Expr
) -> Iterator[Shuffled]:
    """Yields the keys of the duplicates. All pages with one signature come together to be
    compared.
    """

    def pages(task: Task, piece: InputSplit) -> Iterator[pl.DataFrame]:
        for table in pages_in(piece, group, where):
            yield table.select(
                key=pl.col("signature") + pl.col("group"),
                url="url",
                score="score",
                fetch_time="fetch_time",
            )

    def find(task: Task, partition: Partition) -> Iterator[pl.DataFrame]:
        return (duplicates.find(table, order).to_frame("key") for table in partition.grouped())

    pieces = engine.splits(db.require_parts())
    with (
        engine.shuffle(pages, pieces, _PAGES, None, spill=db.path, share=4) as signed,
        engine.regroup(find, signed, _KEYS, spill=db.path, share=4) as found,
    ):
        yield found


def _find_near(db: CrawlDb, group: str, order: Sequence[str], bits: int) -> Iterator[pl.Series]:
    """Yields the keys of pages near a better one. Some 100 bytes of each page are held in memory,
    but not its URL.
    """
    where = FETCHED & IS_SIMHASH
    pages = compared(pages_with_signature(db, group, where), grouped=group != "none")
    if pages.is_empty():
        log.warning(
            "no page has a SimHash: see db.signature.class, and fetch or parse again; equal"
            " ones are marked"
        )
    rows, ranks = nearduplicates.best_first(pages, order)
    words, groups = pages["word"].to_numpy()[rows], pages["group"].to_numpy()[rows]
    leaders = nearduplicates.leaders(words, groups if group != "none" else groups[:0], ranks, bits)
    goes = np.zeros(len(pages), np.bool_)
    goes[rows[leaders != nearduplicates.NO_LEADER]] = True
    at = 0
    for table in pages_with_signature(db, group, where):
        yield table["url"].filter(pl.Series(goes[at : at + len(table)]))
        at += len(table)


def _mark(frame: pl.DataFrame, found: Sequence[pl.DataFrame]) -> tuple[Patched, Counters]:
    """Marks the entries (packed) whose keys are in one of `found` as duplicates; all are sorted by
    key.
    """
    frame = last_of_key(frame)
    keys = found[0] if len(found) == 1 else sort_by_key(pl.concat(found))
    at = match(keys["key"], frame["key"]).at
    at = at[at >= 0]
    counters = Counters()
    counters.add(MARKED, len(at))
    counters.add("other entries", len(frame) - len(at))
    marked = take(frame, at).with_columns(status=pl.lit(status.STATUS_DB_DUPLICATE, pl.UInt8))
    return Patched(frame, marked, at, at), counters
