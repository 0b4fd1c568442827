"""Collects a segment's records of each URL, for the entry in the CrawlDb.

Of several fetches the latest counts, of equally late ones the first; of signatures and parse
metadata the last; of the links only the db.update.max.inlinks with the *lowest* scores (which is
what Nutch's priority queue keeps), highest first, equal ones in the order of the input. The order
of the input is that of the segments on the command line, of crawl_fetch before crawl_parse, of the
names of files, of the records in them. Source: org.apache.nutch.crawl.CrawlDbReducer.reduce, its
first half; CrawlDatum.hasDbStatus, hasFetchStatus.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from minutch.cycle.crawldb.matching import Ints, Mask, by_score, first_of_each, last, latest, match
from minutch.kernels import keycolumns
from minutch.records import crawldatum as status
from minutch.work.tables.frame import sort_by_key
from minutch.work.tables.recordfiles import take

Codes = NDArray[np.uint8]


class FetchRecords(NamedTuple):
    """URLs that were fetched, one row each in every table and column.

    `new` is the fetch; `old` the entry before, null everywhere where there was none; `signature`
    comes from the parse or the fetch, as `is_parsed` says; `parsed` is metadata from the parse.
    """

    new: pl.DataFrame
    old: pl.DataFrame
    signature: pl.Series
    is_parsed: pl.Series
    parsed: pl.Series

    def filter(self, mask: pl.Series) -> FetchRecords:
        """Returns the rows where `mask` is true."""
        new, old = self.new.filter(mask), self.old.filter(mask)
        return FetchRecords(
            new,
            old,
            *(column.filter(mask) for column in (self.signature, self.is_parsed, self.parsed)),
        )

    @property
    def has_old(self) -> pl.Series:
        """The mask of the rows that had an entry."""
        return self.old["status"].is_not_null()

    @property
    def previous(self) -> tuple[pl.Series, pl.Series, pl.Series]:
        """Fetch time and modified time before (0 without an entry), and the fetch time now."""
        old = self.old
        return (
            old["fetch_time"].fill_null(0),
            old["modified_time"].fill_null(0),
            self.new["fetch_time"],
        )


class Updates:
    """The rows of a segment (packed) by URL; `keys` are the CrawlDb's; `matching` has numbers."""

    def __init__(self, segment: pl.DataFrame, keys: pl.Series, max_inlinks: int) -> None:
        self.segment = segment
        self.group, self.at, self.before = match(segment["key"], keys)
        codes = segment["status"].to_numpy()
        self.fetches = latest(
            np.flatnonzero(is_fetch(codes)), self.group, segment["fetch_time"].to_numpy()
        )
        links = np.flatnonzero(codes == status.STATUS_LINKED)
        # CrawlDbReducer.InlinkPriorityQueue.
        self.links = by_score(links, self.group, segment["score"].to_numpy(), max_inlinks)
        self.row = np.full(len(self.at), -1)
        """Of each URL, the row that counts: the latest fetch, else the link with the highest score
        of those kept.
        """
        heads = first_of_each(self.links, self.group)
        # Links first, so that a fetch takes their place.
        self.row[self.group[heads]] = heads
        self.row[self.group[self.fetches]] = self.fetches
        self.fetched = np.zeros(len(self.at), np.bool_)
        self.fetched[self.group[self.fetches]] = True
        self._codes = codes

    def fetched_pages(self, urls: Ints, old: pl.DataFrame) -> FetchRecords:
        """Returns the fetched URLs with these numbers, whose entries before were `old`."""
        count = len(urls)
        kinds = status.STATUS_SIGNATURE, status.STATUS_PARSE_META
        # Taken together: each time costs a millisecond, of a step's 60.
        rows = [self.row[urls], *(self._last(kind)[urls] for kind in kinds)]
        found = take(self.segment, np.concatenate(rows))
        new, signature = found[:count], found["signature"][count : 2 * count]
        is_parsed = signature.is_not_null()
        # The parse's signature counts, else the fetch's.
        signature = signature.zip_with(is_parsed, new["signature"])
        return FetchRecords(new, old, signature, is_parsed, found["metadata"][2 * count :])

    def _last(self, kind: int) -> Ints:
        """The last row of `kind` of each URL, -1 where there is none."""
        rows = last(np.flatnonzero(self._codes == kind), self.group)
        at = np.full(len(self.at), -1)
        at[self.group[rows]] = rows
        return at


def _is_db(codes: Codes) -> Mask:
    """CrawlDatum.hasDbStatus. Status codes are signed bytes in Nutch: above 0x7f means below 0."""
    found: Mask = (codes <= status.STATUS_DB_MAX) | (codes > 0x7F)
    return found


def is_fetch(codes: Codes) -> Mask:
    """CrawlDatum.hasFetchStatus."""
    found: Mask = ~_is_db(codes) & (
        (codes <= status.STATUS_FETCH_MAX) | (codes == status.STATUS_PARSE_FAILED)
    )
    return found


def split_by_status(old: pl.DataFrame, segment: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Separates entries from updates by their status, not by their file, as Nutch does."""
    entries, misplaced = (pl.Series(_is_db(frame["status"].to_numpy())) for frame in (old, segment))
    if entries.all() and not misplaced.any():
        return old, segment
    return (
        sort_by_key(pl.concat([old.filter(entries), segment.filter(misplaced)])),
        sort_by_key(pl.concat([old.filter(~entries), segment.filter(~misplaced)])),
    )


def untouched(old: pl.DataFrame, at: Ints) -> pl.Series:
    """Returns the mask of the old entries that the segment does not mention."""
    mask = np.ones(len(old), np.bool_)
    mask[at[at >= 0]] = False
    return pl.Series(mask)


def inlinked(updates: Updates, urls: Ints) -> pl.DataFrame:
    """Returns the links (packed) that are kept, best first, with the `row` each leads to."""
    row_of = np.full(len(updates.at), -1)  # -1: the URL is not asked about
    row_of[urls] = np.arange(len(urls))
    links, rows = np.empty(len(updates.links), np.int64), np.empty(len(updates.links), np.uint32)
    count = keycolumns.rows_led_to(updates.group, updates.links, row_of, links, rows)
    return updates.segment[links[:count]].with_columns(row=pl.Series(rows[:count]))
