"""Problems of a crawl: the place, the problem, and its remedy; and those that are found without
reading part files: what segments and CrawlDb disagree on, what killed jobs left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final

import polars as pl

from minutch.conf import Configuration
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.crawldb.transitions import ADDITIONS_PROPERTY
from minutch.cycle.fetchlist.lists import RECORD as GENERATED
from minutch.cycle.segment.places import waiting
from minutch.cycle.segment.store import (
    CONTENT,
    CRAWL_FETCH,
    CRAWL_GENERATE,
    CRAWL_PARSE,
    FETCHED,
    FETCHING,
    LAYOUTS,
    PARSED,
    WARC,
    Segment,
)
from minutch.hadoop.formats.javaio import decode_text
from minutch.hadoop.formats.mapfile import DATA
from minutch.job import Counters
from minutch.plugin.chains import SCOPE_CRAWLDB
from minutch.plugin.urlrules import UrlRules
from minutch.processwide import command_line
from minutch.records.crawldatum import STATUS_DB_UNFETCHED, STATUS_FETCH_MAX, STATUS_FETCH_SUCCESS
from minutch.terminal import agreeing, counted
from minutch.work.tables.frame import decode_keys, empty
from minutch.work.tables.install import CURRENT, NEW, SPILL, beside, left_over
from minutch.work.tables.lock import LOCK_NAME, Owner, holder, left_candidates
from minutch.work.tables.recordfiles import scan

_ID: Final = pl.col("key").hash().alias("id")
_IS_FETCH: Final = pl.col("status").is_between(STATUS_FETCH_SUCCESS, STATUS_FETCH_MAX)
ROUND: Final = ".round"
"""The record that `minutch crawl` keeps while a round runs."""
_LOGS_OF_DONE: Final = "_fetch-done"


class Remedy(Enum):
    """The remedy of a problem."""

    NONE = "by hand"
    REMOVE = "remove it"
    PLACE = "put them in their places"
    INDEX = "make the index from the data"
    CHECKSUMS = "write the checksums again: all records can be read"
    REWRITE = "sort and partition the records again"
    DROP = "keep what can be read, drop the rest"

    @property
    def loses_records(self) -> bool:
        """True if it is applied only if the user asks for it by name."""
        return self is Remedy.DROP


@dataclass(frozen=True)
class Problem:
    """A problem. `folder` is the folder of parts that a rewrite replaces."""

    path: Path
    what: str
    remedy: Remedy = Remedy.NONE
    offset: int | None = None
    key: bytes | None = None
    folder: Path | None = None

    def __str__(self) -> str:
        where = str(self.path) if self.offset is None else f"{self.path} at offset {self.offset}"
        key = "" if self.key is None else f" (key {decode_text(self.key)})"
        return f"{where}: {self.what}{key}"


# Checks whether a crawl's segments and its CrawlDb agree on what was generated, fetched, parsed
# and merged.
#
# Keys are compared as columns, a segment's at a time.

_ROWS: Final = pl.Schema({"key": pl.Binary(), "status": pl.UInt8(), "fetch_time": pl.Int64()})


def within(segment: Segment, db: CrawlDb | None) -> Iterator[Problem]:
    """Yields folders of a segment that do not belong together. Fetches to be tried again, which
    mergesegs drops, are not lost if the CrawlDb has taken them in.
    """
    for group in (FETCHED, PARSED):
        missing = segment.missing(group)
        if (
            segment.has(group[-1]) and missing and missing != [CONTENT]
        ):  # fetcher.store.content=false
            yield Problem(segment.path, f"there is {group[-1]}, but no {', '.join(missing)}")
    if not segment.has(CRAWL_FETCH):
        if segment.has(CRAWL_GENERATE):
            yield Problem(
                segment.path,
                f"generated, but not fetched: `{command_line('fetch')}`, or remove the segment",
            )
        return
    if not segment.has(CRAWL_PARSE) and segment.has(CONTENT):
        yield Problem(segment.path, f"fetched, but not parsed: `{command_line('parse')}`")
    if segment.has(CRAWL_GENERATE):
        generated, fetched = (_rows(segment, name) for name in (CRAWL_GENERATE, CRAWL_FETCH))
        lost = generated.select("key").join(fetched, on="key", how="anti", maintain_order="left")
        since = fetched.filter(_IS_FETCH)["fetch_time"].min()  # None: nothing was asked for
        if len(lost) and db is not None and since is not None:
            lost = _not_updated(lost, db, since)
        if len(lost):
            what = (
                f"{len(lost)} of {len(generated)} URLs were generated, and are not in {CRAWL_FETCH}"
            )
            yield Problem(segment.path, what, key=lost["key"][0])


def _not_updated(lost: pl.DataFrame, db: CrawlDb, since: Any) -> pl.DataFrame:
    """Returns the URLs whose entries are due no later than `since`, and those that have none."""
    for part in range(len(db.parts())):
        for table in db.scan_part(part):
            later = table.filter(pl.col("fetch_time") > since)
            lost = lost.join(later, on="key", how="anti", maintain_order="left")
    return lost


class WithCrawlDb:
    """Finds segments whose pages the CrawlDb has not taken in: updatedb has not been run.

    Of a URL its newest fetch in all segments counts. An entry that waits for its first fetch since
    before that fetch knows nothing of it. One that waits since later was reset (a failure,
    `inject -overwrite`, an interval beyond the longest), or dropped and found again. Pages that
    have no entry may have been dropped, too (filters, purges, mergedb), or not let in; it is a
    problem only if nothing that a segment asked for has an entry, and the configuration would take
    some of its pages.
    """

    def __init__(self, db: CrawlDb, segments: Sequence[Segment], conf: Configuration) -> None:
        self._db, self._conf = db, conf
        times = [pl.DataFrame(schema={"id": pl.UInt64, "newest": pl.Int64})]
        for segment in segments:
            fetched = _rows(segment, CRAWL_FETCH, _IS_FETCH)
            times.append(fetched.select(_ID, newest="fetch_time"))
        self._newest = pl.concat(times).group_by("id").agg(pl.col("newest").max())

    def problems(self, segment: Segment) -> Iterator[Problem]:
        """Yields the problem of a segment."""
        asked = _rows(segment, CRAWL_FETCH, _IS_FETCH)
        every = asked.unique("key", keep="last", maintain_order=True)
        newest = every.with_columns(_ID).join(self._newest, on="id", maintain_order="left")
        is_page = pl.col("status") == STATUS_FETCH_SUCCESS
        fetched = newest.select(
            "key",
            pl.col("fetch_time").alias("fetched"),
            is_page=is_page & (pl.col("fetch_time") == pl.col("newest")),
        )
        found = [pl.DataFrame(schema={"key": pl.Binary, "waits": pl.Boolean})]
        for part in range(len(self._db.parts())):
            for table in self._db.scan_part(part):
                mine = fetched.join(table, on="key", maintain_order="left")
                since_before = pl.col("fetch_time") <= pl.col("fetched")
                is_new = pl.col("status") == STATUS_DB_UNFETCHED
                found.append(mine.select("key", waits=pl.col("is_page") & is_new & since_before))
        known, pages = pl.concat(found), fetched.filter("is_page")["key"]
        waiting = known.filter("waits")["key"]
        is_slice = "-" in segment.path.name  # of mergesegs: the entries may be those of others
        missing = pages.head(0) if is_slice or len(known) else self._taken(pages)
        for keys, what in (
            (missing, "not in the CrawlDb"),
            (waiting, "still unfetched in the CrawlDb"),
        ):
            if len(keys):
                text = (
                    f"{len(keys):,} of {counted(len(pages), 'pages')} {agreeing(len(keys), 'were')}"
                    f" fetched and {agreeing(len(keys), 'are')} {what}: has updatedb"
                    " been run?"
                )
                yield Problem(segment.path, text, key=keys[0])

    def _taken(self, keys: pl.Series) -> pl.Series:
        """Returns the URLs that updatedb would take as they are, as the configuration is now."""
        if not self._conf.get_boolean(ADDITIONS_PROPERTY):
            return keys.head(0)
        rules = UrlRules(
            self._conf, normalize=True, filtering=True, scope=SCOPE_CRAWLDB, keep_on_error=False
        )
        urls = decode_keys(keys)
        return keys.filter((rules.apply(urls, Counters()) == urls).fill_null(False))


def _rows(segment: Segment, folder: str, wanted: pl.Expr | None = None) -> pl.DataFrame:
    """Returns the columns of _ROWS of a folder of CrawlDatums, of the entries wanted."""
    found = [empty(_ROWS)]
    for path in segment.parts(folder) if segment.has(folder) else ():
        for table in scan(path / DATA if path.is_dir() else path):
            rows = table if wanted is None else table.filter(wanted)
            found.append(rows.select(_ROWS.names()))
    return pl.concat(found)


# Finds what killed jobs left in a crawl: work folders, half-installed databases, locks, unfinished
# rounds and fetches.


def locks(place: Path) -> Iterator[Problem]:
    """Yields the lock of a folder, and files of killed processes that waited for it."""
    path = place / LOCK_NAME
    if path.is_file():
        owner = Owner.parse(path.read_text(encoding="utf-8", errors="replace"))
        if owner is None:
            yield Problem(
                path,
                "locked by an unknown owner, perhaps Nutch:"
                f" `{command_line('unlock -force')}` if nobody is at work",
            )
        elif owner.is_gone():
            yield Problem(path, f"the lock of {owner}, which no longer runs", Remedy.REMOVE)
        else:
            yield Problem(path, f"in use by {owner}")
    for asked in sorted(left_candidates(place)):
        yield Problem(asked, "left by a process that no longer runs", Remedy.REMOVE)


def in_database(database: Path, names: Sequence[str] = (CURRENT,)) -> Iterator[Problem]:
    """Yields leftovers in the folder of a database, or of several with these names."""
    for prefix in (NEW, SPILL):
        yield from _work_folders(database, prefix)
    for name in names:
        others = list(beside(database, name))
        if name == CURRENT and not any(path.exists() for path in (database / name, *others)):
            yield Problem(database / name, "missing: its records are lost")
        for path in others:
            if path.exists() and (database / name).exists():
                yield Problem(
                    path,
                    "left by a job that was killed while it put a new database in place",
                    Remedy.REMOVE,
                )
            elif path.exists():
                yield Problem(
                    path,
                    "complete, but not in place: any job that writes the database makes it"
                    f" `{name}`",
                )
    if (database / GENERATED).exists():
        yield Problem(
            database / GENERATED, "generate was stopped before its marks: the next one makes them"
        )


def in_segments(folder: Path) -> Iterator[Problem]:
    """Yields entries of a folder of segments that are no segments."""
    yield from _work_folders(folder, NEW)
    for path in waiting(folder):
        yield Problem(
            path,
            "whole segments of a job that was killed before all were in their places",
            Remedy.PLACE,
        )
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.name.startswith((".", "_")) and not any(path.iterdir()):
            yield Problem(path, "an empty segment", Remedy.REMOVE)


def in_segment(segment: Segment) -> Iterator[Problem]:
    """Yields leftovers in a segment, and what is not finished there."""
    yield from _work_folders(segment.path, NEW)
    if segment.is_half_fetched():
        yield Problem(
            segment.path / FETCHING,
            f"the fetch is not finished: `{command_line('fetch')}` goes on with it",
        )
    if (segment.path / _LOGS_OF_DONE).is_dir():
        yield Problem(
            segment.path / _LOGS_OF_DONE, "the logs of a fetch that is done", Remedy.REMOVE
        )
    for path in sorted(segment.path.iterdir()):
        if not path.name.startswith((".", "_")) and path.name not in (*LAYOUTS, WARC):
            yield Problem(path, "not a folder of a segment")


def in_crawl(crawl: Path) -> Iterator[Problem]:
    """Yields what a round of `minutch crawl` left."""
    if (crawl / ROUND).exists() and holder(crawl) is None:
        yield Problem(
            crawl / ROUND, f"a round is not finished: `{command_line('crawl')}` goes on with it"
        )
    if (crawl / f"{ROUND}.new").exists():
        yield Problem(crawl / f"{ROUND}.new", "a record that was not finished", Remedy.REMOVE)


def checksums(folder: Path) -> Iterator[Problem]:
    """Yields checksums of missing files, in `folder` and below, and their work folders."""
    for path in sorted(folder.rglob(".*.crc")):
        if not (path.parent / path.name[1:-4]).exists():
            yield Problem(path, "checksums of a file that is not there", Remedy.REMOVE)
    for path in sorted(folder.rglob("[!.]*")):
        if path.is_file():
            yield from _work_folders(path.parent, f".{path.name}-")


def _work_folders(place: Path, prefix: str) -> Iterator[Problem]:
    for path in left_over(place, prefix):
        yield Problem(path, "the work folder of a process that no longer runs", Remedy.REMOVE)
