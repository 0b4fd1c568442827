"""Checks whether a crawl's segments and its CrawlDb agree on what was generated, fetched, parsed
and merged.

Keys are compared as columns, a segment's at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import polars as pl

from minutch.cycle.crawldb.store import CrawlDb
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
from minutch.records.crawldatum import STATUS_DB_UNFETCHED, STATUS_FETCH_SUCCESS
from minutch.work.tables.crawldata import scan
from minutch.work.tables.frame import empty

_KEYS: Final = pl.Schema({"key": pl.Binary()})


def within(segment: Segment) -> Iterator[Problem]:
    """Yields folders of a segment that do not belong together."""
    for group in (FETCHED, PARSED):
        missing = segment.missing(group)
        if (
            segment.has(group[-1]) and missing and missing != [CONTENT]
        ):  # fetcher.store.content=false
            yield Problem(segment.path, f"there is {group[-1]}, but no {', '.join(missing)}")
    if not segment.has(CRAWL_FETCH):
        if segment.has(CRAWL_GENERATE):
            yield Problem(
                segment.path, "generated, but not fetched: `minutch fetch`, or remove the segment"
            )
        return
    if not segment.has(CRAWL_PARSE) and segment.has(CONTENT):
        yield Problem(segment.path, "fetched, but not parsed: `minutch parse`")
    if segment.has(CRAWL_GENERATE):
        generated, fetched = _keys(segment, CRAWL_GENERATE), _keys(segment, CRAWL_FETCH)
        lost = generated.join(fetched, on="key", how="anti", maintain_order="left")
        if len(lost):
            what = (
                f"{len(lost)} of {len(generated)} URLs were generated, and are not in {CRAWL_FETCH}"
            )
            yield Problem(segment.path, what, key=lost["key"][0])


def with_crawldb(segment: Segment, db: CrawlDb) -> Iterator[Problem]:
    """Yields the problem if the CrawlDb does not know pages that a segment has fetched."""
    if not segment.has(CRAWL_FETCH) or not db.exists():
        return
    fetched = _keys(segment, CRAWL_FETCH, pl.col("status") == STATUS_FETCH_SUCCESS).unique(
        maintain_order=True
    )
    known, unfetched = [empty(_KEYS)], [empty(_KEYS)]
    for part in range(len(db.parts())):
        for table in db.scan_part(part):
            mine = table.select("key", "status").join(
                fetched, on="key", how="semi", maintain_order="left"
            )
            known.append(mine.select("key"))
            unfetched.append(mine.filter(pl.col("status") == STATUS_DB_UNFETCHED).select("key"))
    missing = fetched.join(pl.concat(known), on="key", how="anti", maintain_order="left")
    for found, what in (
        (missing, "not in the CrawlDb"),
        (pl.concat(unfetched), "still unfetched in the CrawlDb"),
    ):
        if len(found):
            text = (
                f"{len(found)} of {len(fetched)} pages were fetched and are {what}: has updatedb"
                " been run?"
            )
            yield Problem(segment.path, text, key=found["key"][0])


def _keys(segment: Segment, folder: str, wanted: pl.Expr | None = None) -> pl.DataFrame:
    """Returns the keys of a folder of CrawlDatums, of the entries wanted."""
    found = [empty(_KEYS)]
    for path in segment.parts(folder):
        for table in scan(path / DATA if path.is_dir() else path):
            found.append((table if wanted is None else table.filter(wanted)).select("key"))
    return pl.concat(found)
