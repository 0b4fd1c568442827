"""dedup: mark pages with the same content as db_duplicate, all but one of each kind.

Pages that were fetched (db_fetched, db_notmodified) are grouped by signature, with `-group host` or `domain` within
each host or domain. Which of a group are duplicates is decided in `duplicates`.
Matched: org.apache.nutch.crawl.DeduplicationJob.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import polars as pl

from minutch.arguments import fail
from minutch.conf import Configuration
from minutch.crawldb import duplicates
from minutch.crawldb.filtering import EntryFilter
from minutch.crawldb.groups import first_of_key
from minutch.crawldb.matching import has_repeats, match
from minutch.crawldb.partitions import Entries, file_size, number_of_parts, patch
from minutch.crawldb.store import CrawlDb
from minutch.crawldb.ties import FOLLOWED, job_order, text_sizes
from minutch.crawldb.ties import take as take_rows
from minutch.job import Counters, JobContext
from minutch.records import crawldatum as status
from minutch.tables.frame import decode_keys
from minutch.tables.merge import sort_by_key
from minutch.tables.packed import Patched, take
from minutch.tables.parallel import memory_budget, ordered
from minutch.tables.shuffle import Shuffle
from minutch.urls.columns import domain_column, host_column

log = logging.getLogger(__name__)

MARKED: Final = "documents marked as duplicates"
_DATUM_SIZE: Final = 29  # bytes of a CrawlDatum without signature and metadata
_EMPTY_MAP_SIZE: Final = 5
_URL_ENTRY_SIZE: Final = 15  # class ids and the key `_URLTEMPKEY_`
_KEYS: Final = pl.Schema({"key": pl.Binary()})
_SPILLED: Final = pl.Schema(
    {"key": pl.Binary(), "page": pl.Binary(), "score": pl.Float32(), "fetch_time": pl.Int64()}
)  # the group as key, and what the decision needs
_AS_SPILLED: Final = {"key": "page", "group": "key"}
_AS_PAGES: Final = {"key": "group", "page": "key"}
_WANTED: Final = (
    pl.col("status").is_in([status.STATUS_DB_FETCHED, status.STATUS_DB_NOTMODIFIED]) & pl.col("signature").is_not_null()
)
_COLUMNS: Final = (
    pl.col("key", "signature", "score", "fetch_time"),
    pl.col("metadata").bin.size().alias("described"),
)
Group = Callable[[pl.Series], pl.Series]

USAGE: Final = (
    "DeduplicationJob <crawldb> [-group <none|host|domain>] "
    "[-compareOrder <score>,<fetchTime>,<httpsOverHttp>,<urlLength>]"
)


GROUPS: Final[dict[str, Group | None]] = {
    "none": None,
    "host": host_column,
    "domain": lambda urls: domain_column(host_column(urls)),
}
"""Value of -group -> what a URL adds to its signature."""


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0; 1 for wrong arguments; 255 (and an error) where the CrawlDb stays as it was."""
    if not args:
        fail("", USAGE, exit_code=1)
    crawldb, group, order = Path(args[0]), "none", duplicates.DEFAULT_ORDER
    words = iter(args[1:])
    for word in words:
        if word == "-group":
            group = next(words, "")
        elif word == "-compareOrder":
            order = next(words, "")
        else:
            fail(f"unknown option {word}", USAGE, exit_code=1)
    if group not in GROUPS:
        fail(f"-group: expected none, host or domain, found {group!r}", USAGE, exit_code=1)
    if not all(name in order for name in duplicates.REQUIRED):
        fail("DeduplicationJob: compareOrder must contain score, fetchTime and urlLength.", USAGE, exit_code=1)
    counters = dedup(crawldb, context, group=group, order=order.split(","))
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
        Entries([db], conf, EntryFilter.from_conf(conf), packed=True) as entries,
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
    """The keys of the duplicates, in several columns."""
    parts, budget = number_of_parts(conf), memory_budget(conf) // 2
    with Shuffle(parts, _SPILLED, budget=budget, spill=db.path) as spilled:
        tasks = _candidates(db, group, budget, spilled)
        if tasks:
            several = pl.concat(tasks)
            several = several.filter(may_repeat(several["group"])).rename(_AS_SPILLED)
            several = sort_by_key(several).rename(_AS_PAGES)
            if sum(map(len, tasks)) <= FOLLOWED and duplicates.has_ties(several, order):
                several = _in_hadoop_order(tasks, parts)
            yield several["key"].filter(duplicates.find(several, order))
        for part in range(parts):
            for frame in spilled.sorted(part):
                several = frame.filter(may_repeat(frame["key"])).rename(_AS_PAGES)
                yield several["key"].filter(duplicates.find(several, order))


def may_repeat(groups: pl.Series) -> pl.Series:
    """The mask of the rows whose group, or another with the same hash, has more rows: numbers are faster compared."""
    return groups.hash().is_duplicated()


def _candidates(db: CrawlDb, group: Group | None, budget: int, spilled: Shuffle) -> list[pl.DataFrame]:
    """The pages that may be duplicates, a table per part file, the largest first; none if all had to be `spilled`."""

    def candidates(frame: pl.DataFrame) -> pl.DataFrame:
        wanted = frame.select(_WANTED).to_series()
        pages = frame.select(*_COLUMNS, group=pl.col("signature")).filter(wanted)
        if group is None:
            return pages
        names = group(decode_keys(pages["key"])).fill_null("").cast(pl.Binary)
        return pages.with_columns(group=pages["group"] + names)

    sources = db.parts()
    tasks: list[list[pl.DataFrame]] = []
    held = 0
    for part in sorted(range(len(sources)), key=lambda part: -file_size(sources[part])):
        tasks.append([])
        for pages in ordered(candidates, db.scan_part(part)):
            tasks[-1].append(pages)
            held += int(pages.estimated_size())
            if held > budget:
                for frame in (frame for task in tasks for frame in task):
                    spilled.add(frame.rename(_AS_SPILLED).select(_SPILLED.names()))
                tasks = [[]]  # from now on `held` is above the budget, and every table goes the same way
    return [] if spilled.rows else [pl.concat(task) for task in tasks]


def _in_hadoop_order(tasks: Sequence[pl.DataFrame], parts: int) -> pl.DataFrame:
    """The pages as Nutch's reduce tasks get them, with the URL as one more entry of their metadata."""
    url_sizes = [text_sizes(task["key"]) + _URL_ENTRY_SIZE for task in tasks]
    described = [task["described"].fill_null(_EMPTY_MAP_SIZE).cast(pl.Int64).to_numpy() for task in tasks]
    sizes = [
        _DATUM_SIZE + task["signature"].bin.size().cast(pl.Int64).to_numpy() + map_size + url_size
        for task, map_size, url_size in zip(tasks, described, url_sizes, strict=True)
    ]
    keys = [task["group"] for task in tasks]
    key_sizes = [4 + key.bin.size().cast(pl.Int64).to_numpy() for key in keys]
    return pl.concat([take_rows(tasks, rows) for rows in job_order(keys, sizes, key_sizes, parts)])


def _mark(frame: pl.DataFrame, found: pl.DataFrame) -> tuple[Patched, Counters]:
    """The entries (packed), those with the keys in `found` as duplicates; both sorted by key."""
    if has_repeats(frame["key"]):
        frame = first_of_key(frame)
    at = match(found["key"], frame["key"]).at
    at = at[at >= 0]
    counters = Counters()
    counters.add(MARKED, len(at))
    counters.add("other entries", len(frame) - len(at))
    marked = take(frame, at).with_columns(status=pl.lit(status.STATUS_DB_DUPLICATE, pl.UInt8))
    return Patched(frame, marked, at, at), counters
