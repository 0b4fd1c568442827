"""Checks whether a crawl's segments and its CrawlDb agree on what was generated, fetched, parsed
and merged.

Keys are compared as columns, a segment's at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import polars as pl

from minutch.conf import Configuration
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.crawldb.transitions import ADDITIONS_PROPERTY
from minutch.cycle.segment.store import (
    CONTENT,
    CRAWL_FETCH,
    CRAWL_GENERATE,
    CRAWL_PARSE,
    FETCHED,
    PARSED,
    Segment,
)
from minutch.hadoop.formats.mapfile import DATA
from minutch.inspect.fsck.problems import Problem
from minutch.job import Counters
from minutch.plugin.chains import SCOPE_CRAWLDB
from minutch.plugin.urlrules import UrlRules
from minutch.processwide import command_line
from minutch.records.crawldatum import STATUS_DB_UNFETCHED, STATUS_FETCH_MAX, STATUS_FETCH_SUCCESS
from minutch.terminal import agreeing, counted
from minutch.work.tables.frame import decode_keys, empty
from minutch.work.tables.recordfiles import scan

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
        generated, fetched = _keys(segment, CRAWL_GENERATE), _rows(segment, CRAWL_FETCH)
        lost = generated.join(fetched, on="key", how="anti", maintain_order="left")
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


_ID: Final = pl.col("key").hash().alias("id")
_IS_FETCH: Final = pl.col("status").is_between(STATUS_FETCH_SUCCESS, STATUS_FETCH_MAX)


def _keys(segment: Segment, folder: str) -> pl.DataFrame:
    return _rows(segment, folder).select("key")


def _rows(segment: Segment, folder: str, wanted: pl.Expr | None = None) -> pl.DataFrame:
    """Returns the columns of _ROWS of a folder of CrawlDatums, of the entries wanted."""
    found = [empty(_ROWS)]
    for path in segment.parts(folder) if segment.has(folder) else ():
        for table in scan(path / DATA if path.is_dir() else path):
            rows = table if wanted is None else table.filter(wanted)
            found.append(rows.select(_ROWS.names()))
    return pl.concat(found)
