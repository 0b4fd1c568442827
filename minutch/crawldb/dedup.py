"""dedup: of pages with the same content, mark all but the best as db_duplicate.

Fetched pages (db_fetched, db_notmodified) are grouped by signature; with `-group host` or `domain`, within each host
or domain. `duplicates` decides which of a group are duplicates. Where a CrawlDb has two entries of one URL, the last
one counts.
Source: org.apache.nutch.crawl.DeduplicationJob.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import polars as pl

from minutch.arguments import Flag, fail, parse
from minutch.conf import Configuration
from minutch.crawldb import duplicates
from minutch.crawldb.matching import last_of_key, match
from minutch.crawldb.partitions import Entries, EntryFilter, patch
from minutch.crawldb.store import CrawlDb
from minutch.job import Counters, JobContext
from minutch.records import crawldatum as status
from minutch.tables.frame import decode_keys, empty
from minutch.tables.packed import Patched, take
from minutch.tables.parallel import memory_budget, number_of_parts, ordered
from minutch.tables.shuffle import Shuffle
from minutch.urls.hosts import domains_of, hosts_of

log = logging.getLogger(__name__)

MARKED: Final = "documents marked as duplicates"
_KEYS: Final = pl.Schema({"key": pl.Binary()})
_PAGES: Final = pl.Schema({"key": pl.Binary(), "url": pl.Binary(), "score": pl.Float32(), "fetch_time": pl.Int64()})
"""The group as key, and what `duplicates` compares."""
_WANTED: Final = (
    pl.col("status").is_in([status.STATUS_DB_FETCHED, status.STATUS_DB_NOTMODIFIED]) & pl.col("signature").is_not_null()
)
Group = Callable[[pl.Series], pl.Series]

USAGE: Final = """DeduplicationJob <crawldb> [-group <none|host|domain>] \
[-compareOrder <score>,<fetchTime>,<httpsOverHttp>,<urlLength>]
\t<crawldb>\tthe CrawlDb whose duplicates are marked
\t-group <none|host|domain>\tduplicates everywhere (none), or within a host or domain
\t-compareOrder <criteria>\twhat decides which page stays, most important first"""
FLAGS: Final = (Flag("-group", value="none|host|domain"), Flag("-compareOrder", value="criteria"))

GROUPS: Final[dict[str, Group | None]] = {
    "none": None,
    "host": lambda urls: hosts_of(urls).str.to_lowercase(),
    "domain": lambda urls: domains_of(hosts_of(urls).str.to_lowercase()),
}
"""Value of -group -> what a URL adds to its signature."""


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0; 1 for wrong arguments; 255 (and an error) where the CrawlDb stays as it was."""
    given = parse(args, FLAGS, usage=USAGE, least=1, most=1)
    group, order = given.get("-group", "none"), given.get("-compareOrder", duplicates.DEFAULT_ORDER)
    if group not in GROUPS:
        fail(f"-group: expected none, host or domain, found {group!r}", USAGE)
    if not all(name in order for name in duplicates.REQUIRED):
        fail("DeduplicationJob: compareOrder must contain score, fetchTime and urlLength.", USAGE)
    counters = dedup(Path(given.positional[0]), context, group=group, order=order.split(","))
    context.report("Deduplication", counters)
    return 0


def dedup(crawldb: Path, context: JobContext, *, group: str = "none", order: Sequence[str] = ()) -> Counters:
    """Mark the duplicates in the CrawlDb at `crawldb`.

    `group` is a key of GROUPS, `order` the criteria (by default score, fetchTime, urlLength). Returns the number of
    marked pages and of the others. Raises StoreError where there is no CrawlDb, LockedError, FormatError (damage).
    """
    log.info("DeduplicationJob: starting")
    db = CrawlDb(crawldb)
    db.require_parts()
    conf = context.conf
    with (
        db.lock(),
        Entries([db], conf, EntryFilter.from_conf(conf), spill=crawldb, packed=True) as entries,
        Shuffle(entries.parts, _KEYS, budget=memory_budget(conf), spill=crawldb) as found,
        context.progress("dedup") as progress,
    ):
        for keys in _find(db, conf, GROUPS[group], order or duplicates.DEFAULT_ORDER.split(",")):
            found.add(keys.to_frame("key"))
        log.info("Deduplication: %d documents marked as duplicates", found.rows)
        log.info("Deduplication: Updating status of duplicate urls into crawl db.")
        counters = patch(
            db, conf, lambda part: [*entries.streams(part), found.sorted(part)], lambda both: _mark(*both), progress
        )
    counters.merge(entries.counters)
    log.info("Deduplication finished")
    return counters


def _find(db: CrawlDb, conf: Configuration, group: Group | None, order: Sequence[str]) -> Iterator[pl.Series]:
    """The keys of the duplicates, in several columns. Groups that exceed the memory budget are sorted on disk."""
    parts, budget = number_of_parts(conf), memory_budget(conf) // 4
    with Shuffle(parts, _PAGES, budget=budget, spill=db.path) as spilled:
        held, size = [empty(_PAGES)], 0
        for pages in _candidates(db, group):
            held.append(pages)
            size += int(pages.estimated_size())
            if size > budget:
                spilled.add(pl.concat(held))
                held, size = [empty(_PAGES)], 0
        if not spilled.rows:
            yield duplicates.find(pl.concat(held), order)
            return
        spilled.add(pl.concat(held))
        for part in range(parts):
            for pages in spilled.sorted(part):
                yield duplicates.find(pages, order)


def _candidates(db: CrawlDb, group: Group | None) -> Iterator[pl.DataFrame]:
    """The pages that may be duplicates, in tables of `_PAGES`."""

    def candidates(frame: pl.DataFrame) -> pl.DataFrame:
        wanted = frame.select(_WANTED).to_series()
        pages = frame.select(pl.col("signature").alias("key"), pl.col("key").alias("url"), "score", "fetch_time")
        pages = pages.filter(wanted)
        if group is None:
            return pages
        names = group(decode_keys(pages["url"])).fill_null("").cast(pl.Binary)
        return pages.with_columns(key=pages["key"] + names)

    for part in range(len(db.parts())):
        yield from ordered(candidates, db.scan_part(part))


def _mark(frame: pl.DataFrame, found: pl.DataFrame) -> tuple[Patched, Counters]:
    """Mark the entries (packed) whose keys are in `found` as duplicates; both are sorted by key."""
    frame = last_of_key(frame)
    at = match(found["key"], frame["key"]).at
    at = at[at >= 0]
    counters = Counters()
    counters.add(MARKED, len(at))
    counters.add("other entries", len(frame) - len(at))
    marked = take(frame, at).with_columns(status=pl.lit(status.STATUS_DB_DUPLICATE, pl.UInt8))
    return Patched(frame, marked, at, at), counters
