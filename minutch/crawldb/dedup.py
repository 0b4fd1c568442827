"""dedup: mark pages with the same content as db_duplicate, all but one of each kind.

Pages that were fetched (db_fetched, db_notmodified) are grouped by signature, with `-group host` or `domain` within
each host or domain. Which of a group are duplicates is decided in `duplicates`.
Matched: org.apache.nutch.crawl.DeduplicationJob.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import polars as pl

from minutch.arguments import fail
from minutch.crawldb import duplicates
from minutch.crawldb.filtering import EntryFilter, decode_keys
from minutch.crawldb.groups import is_first
from minutch.crawldb.partitions import Entries, rewrite
from minutch.crawldb.store import CrawlDb
from minutch.errors import UrlError
from minutch.job import Counters, JobContext
from minutch.records import crawldatum as status
from minutch.tables.parallel import ordered
from minutch.urls.domains import domain_name
from minutch.urls.parts import host_of

log = logging.getLogger(__name__)

MARKED: Final = "documents marked as duplicates"
_CANDIDATES: Final = (status.STATUS_DB_FETCHED, status.STATUS_DB_NOTMODIFIED)

USAGE: Final = (
    "DeduplicationJob <crawldb> [-group <none|host|domain>] "
    "[-compareOrder <score>,<fetchTime>,<httpsOverHttp>,<urlLength>]"
)


def _host(url: str) -> str:
    return (host_of(url) or "").lower()


def _domain(url: str) -> str:
    return domain_name(url) or ""


GROUPS: Final[dict[str, Callable[[str], str] | None]] = {"none": None, "host": _host, "domain": _domain}
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
    with db.lock(), context.progress("dedup") as progress:
        found = _find(db, GROUPS[group], order or duplicates.DEFAULT_ORDER.split(","))
        log.info("Deduplication: %d documents marked as duplicates", len(found))
        log.info("Deduplication: Updating status of duplicate urls into crawl db.")
        with Entries([db], context.conf, EntryFilter.from_conf(context.conf)) as entries:
            counters = rewrite(db, context.conf, entries.streams, lambda frames: _mark(frames[0], found), progress)
    counters.merge(entries.counters)
    log.info("Deduplication finished")
    return counters


def _find(db: CrawlDb, group: Callable[[str], str] | None, order: Sequence[str]) -> pl.Series:
    """The keys of the duplicates."""
    columns = ["key", "signature", "score", "fetch_time"]
    wanted = pl.col("status").is_in(_CANDIDATES) & pl.col("signature").is_not_null()
    frames = (frame for part in range(len(db.parts())) for frame in db.scan_part(part))
    pages = pl.concat(list(ordered(lambda frame: frame.filter(wanted).select(columns), frames)))
    if group is not None:
        pages = pages.with_columns(signature=pages["signature"] + _group_keys(pages["key"], group))
    pages = pages.filter(pages["signature"].is_duplicated())
    pages = pages.rename({"signature": "group"}).sort("group", maintain_order=True)
    return pages["key"].filter(duplicates.find(pages, order))


def _group_keys(keys: pl.Series, group: Callable[[str], str]) -> pl.Series:
    def safe(url: str) -> bytes:
        try:
            return group(url).encode("utf-8", "replace")
        except UrlError:
            return b""

    return pl.Series([safe(url) for url in decode_keys(keys)], dtype=pl.Binary)


def _mark(frame: pl.DataFrame, found: pl.Series) -> tuple[pl.DataFrame, Counters]:
    first = is_first(frame)
    frame = frame if first.all() else frame.filter(first)
    marked = frame["key"].is_in(found.implode())
    counters = Counters()
    counters.add(MARKED, int(marked.sum()))
    counters.add("other entries", len(frame) - int(marked.sum()))
    return frame.with_columns(status=frame["status"].set(marked, status.STATUS_DB_DUPLICATE)), counters
