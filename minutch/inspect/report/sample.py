"""Samples the pages of a simulation from a CrawlDb, and reads what fetches saw of them from the
segments.

If there are more pages than requested, those with the lowest hashes are taken: the same at each
run, and in bounded memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.fetchlist.select import descending, ranks_of, url_hashes
from minutch.cycle.fetchlist.select import mixed as mixed_32
from minutch.inspect.query.crawl import Crawl
from minutch.inspect.report.rates import Bits, Observations
from minutch.inspect.report.seededrandom import mixed_bits
from minutch.records import crawldatum as status
from minutch.work.engine.selection import Ranks
from minutch.work.tables.frame import decode_keys

HELD: Final = (status.STATUS_DB_FETCHED, status.STATUS_DB_NOTMODIFIED, status.STATUS_DB_DUPLICATE)
"""Statuses of entries of whose page a crawl has a copy."""
DAY: Final = 86_400_000
_SPARE: Final = 2
"""Multiple of the requested pages that is kept before some are dropped."""
_SEEN: Final = ("fetch_success", "fetch_notmodified")


@dataclass(frozen=True)
class Sample:
    """Entries of a CrawlDb (CRAWLDB_SCHEMA without signatures), and how many there are."""

    entries: pl.DataFrame
    hashes: Bits
    ranks: Ranks
    """The order in which generate takes them: ascending."""
    pages: int
    """All entries that have a copy."""
    others: int
    """Number of entries without a copy."""

    @property
    def share(self) -> float:
        """Share of all pages that the sample is."""
        return len(self.entries) / self.pages if self.pages else 1.0


def sample_pages(db: CrawlDb, most: int) -> Sample:
    """Returns at most so many pages of a CrawlDb. Raises StoreError, FormatError."""
    kept: list[pl.DataFrame] = []
    count = pages = others = 0
    for index in range(len(db.require_parts())):
        for frame in db.scan_part(index):
            held = frame.filter(pl.col("status").is_in(HELD))
            pages, others = pages + len(held), others + len(frame) - len(held)
            kept.append(_lean(held))
            count += len(held)
            if count > _SPARE * most:
                kept = [_lowest(pl.concat(kept), most)]
                count = len(kept[0])
    entries = _lowest(pl.concat(kept), most) if kept else _lean(pl.DataFrame())
    hashes = entries["hash"].to_numpy()
    ranks = ranks_of(descending(entries["score"]), mixed_32(url_hashes(entries["key"])))
    return Sample(entries.drop("hash"), hashes, ranks, pages, others)


def _lean(held: pl.DataFrame) -> pl.DataFrame:
    """Adds a hash, and drops what a simulation does not need."""
    java = url_hashes(held["key"]).astype(np.uint64)
    sizes = held["key"].bin.size().to_numpy().astype(np.uint64)
    hashes = mixed_bits(java | sizes << np.uint64(32))
    return held.with_columns(signature=pl.lit(None, pl.Binary), hash=pl.Series(hashes))


def _lowest(entries: pl.DataFrame, most: int) -> pl.DataFrame:
    """Returns the entries with the lowest hashes, in their order."""
    if len(entries) <= most:
        return entries
    rows = entries.with_row_index("row").sort("hash", "key").head(most).sort("row")
    return rows.drop("row")


@dataclass(frozen=True)
class PageHistory:
    """The segments' observations of the pages of a sample."""

    watched: Observations
    last: NDArray[np.int64]
    """The time each page was seen last (ms); 0 if the segments do not tell."""


def history(crawl: Crawl, sample: Sample) -> PageHistory:
    """Returns the fetches of the pages of a sample, each compared with the one before. Raises
    FormatError.

    A fetch counts if it tells one version of a page from another: it was answered with 304, or its
    page was parsed and has a digest.
    """
    keys = pl.DataFrame({"url": decode_keys(sample.entries["key"])}).with_row_index("page")
    fetches = crawl.tables["pages"].scan().select("url", "status", "fetch_time", "digest")
    seen = fetches.filter(pl.col("status").is_in(_SEEN)).join(keys.lazy(), on="url", how="inner")
    same = (pl.col("status") == "fetch_notmodified").alias("same")
    digest = (
        pl.when(pl.col("digest").is_not_null()).then(pl.col("digest").hash()).alias("digest")
    )  # null has one, too
    columns = seen.select("page", pl.col("fetch_time").dt.epoch("ms").alias("time"), same, digest)
    table = columns.collect(engine="streaming").sort("page", "time", "same")
    return compared(table, len(sample.entries))


def compared(table: pl.DataFrame, count: int) -> PageHistory:
    """Compares fetches with those before. `table` has page, time (ms), same (if the server said so)
    and digest (a number, or null), sorted by page, time.
    """
    page, time = table["page"].to_numpy().astype(np.int64), table["time"].to_numpy()
    same, digest = table["same"].to_numpy(), table["digest"].fill_null(0).to_numpy()
    known = same | table["digest"].is_not_null().to_numpy()
    page, time, same, digest = page[known], time[known], same[known], digest[known]
    last = np.zeros(count, np.int64)
    last[page] = time  # the last one of each page stays
    rows = np.arange(len(page))
    starts = (
        np.maximum.accumulate(np.where(np.diff(page, prepend=-1) != 0, rows, 0))
        if len(page)
        else rows
    )
    version = (
        np.maximum.accumulate(np.where(same, -1, rows)) if len(page) else rows
    )  # whose digest it still has
    before = np.concatenate([[-1], version[:-1]]) if len(page) else rows
    days = np.diff(time, prepend=0) / DAY
    has_before = (rows > starts) & (days > 0)
    comparable = has_before & (same | (before >= starts))
    changed = ~same & (digest != digest[np.maximum(before, 0)])
    return PageHistory(Observations(page[comparable], days[comparable], changed[comparable]), last)
