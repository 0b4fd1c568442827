"""Reads the pages of a crawl for a data set: of each URL the newest parse that succeeded, with the
text of its own, as the table `site` has them.

Parses are numbered in the order in which they are read: by segment, then by URL. `NewestPages.of`
says which of them count, and cuts them into ranges of some thousands. What a range holds depends on
the crawl alone, so they can be read in any order, and again.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.owntext.frames import SiteFrames
from minutch.cycle.segment.store import PARSE_DATA, Segment
from minutch.inspect.query.columns import METADATA, TIME
from minutch.inspect.query.crawl import CRAWLDB, CrawlFolder
from minutch.inspect.query.pages import PagesTable
from minutch.inspect.query.parses import ParsesTable
from minutch.inspect.query.table import Request
from minutch.work.tables.shuffle import Shuffle

ROWS: Final = 4096
"""Parses that a piece may have."""
KEPT: Final = "pagedata."
"""What the keys begin with that parse-pagedata keeps."""
COLUMNS: Final = {
    "url": pl.String(),
    "fetched": TIME,
    "language": pl.String(),
    "title": pl.String(),
    "digest": pl.String(),
    "metadata": METADATA,
    "text": pl.String(),
}
_NUMBERS: Final = pl.Schema({"key": pl.Binary(), "number": pl.Int64(), "is_known": pl.Boolean()})


_URL: Final = pl.col("url")
_IS_START: Final = _URL.ne_missing(_URL.shift()) & (_URL.str.len_bytes() == _URL.str.len_chars())
"""A URL at which files may be cut: the first of its name, in ASCII, whose order is that of keys."""


class PageRange(NamedTuple):
    """Some parses: those of whole segments, or of URLs from `low` to `high` of one; numbers from
    `first` to `last`, the ends not included.
    """

    segments: Sequence[Segment]
    low: str | None
    high: str | None
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class NewestPages:
    """The parses of a crawl: `counts` says which are a row, `pieces` how they are read."""

    counts: npt.NDArray[np.bool_]
    pieces: Sequence[PageRange]

    @classmethod
    def of(cls, crawl: CrawlFolder, *, memory: int, spill: Path) -> NewestPages:
        """Finds the newest success of each URL that the CrawlDb has, if there is one.

        `memory` bytes of URLs are held, others are in `spill`. Raises FormatError.
        """
        segments = [segment for segment in crawl.segments if segment.has(PARSE_DATA)]
        has_entries, total = CrawlDb(crawl.path / CRAWLDB).exists(), 0
        starts: list[tuple[int, str | None, int]] = []  # segment, its first URL, its number
        with Shuffle(1, _NUMBERS, budget=memory, spill=spill) as shuffle:

            def add(urls: pl.Series, numbers: pl.Series, *, is_known: bool) -> None:
                known = pl.Series([is_known]).new_from_index(0, len(urls))
                columns = [urls.cast(pl.Binary), numbers, known]
                shuffle.add(pl.DataFrame(columns, schema=_NUMBERS))

            for at, segment in enumerate(segments):
                starts.append((at, None, total))
                for frame in ParsesTable([segment]).frames(Request(("url", "status"))):
                    places = np.flatnonzero(frame.select(_IS_START).to_series().to_numpy())
                    while len(places := places[places + total >= starts[-1][2] + ROWS]):
                        place = int(places[0])
                        starts.append((at, frame["url"][place], total + place))
                    numbers = pl.int_range(total, total + len(frame), eager=True)
                    is_good = frame["status"].cast(pl.String) == "success"
                    add(frame["url"].filter(is_good), numbers.filter(is_good), is_known=False)
                    total += len(frame)
            if has_entries:
                for frame in crawl.crawldb.frames(Request(("url",))):
                    nothing = pl.Series([-1], dtype=pl.Int64).new_from_index(0, len(frame))
                    add(frame["url"], nothing, is_known=True)
            counts = np.zeros(total, np.bool_)
            for rows in shuffle.sorted(0):
                newest = rows.group_by("key").agg(pl.max("number"), pl.any("is_known"))
                where = (pl.col("number") >= 0) & (pl.col("is_known") | (not has_entries))
                counts[newest.filter(where)["number"].to_numpy()] = True
        return cls(counts, list(_pieces(segments, starts, total)))


def _pieces(
    segments: Sequence[Segment], starts: Sequence[tuple[int, str | None, int]], total: int
) -> Iterator[PageRange]:
    """Yields the pieces that begin at `starts`; small segments are together in one."""
    waiting: list[Segment] = []
    begun = 0
    for number, (at, low, first) in enumerate(starts):
        following = starts[number + 1] if number + 1 < len(starts) else (at + 1, None, total)
        last, is_whole = following[2], low is None and following[0] != at
        if waiting and not (is_whole and last - begun <= ROWS):
            yield PageRange(waiting, None, None, begun, first)
            waiting = []
        if is_whole:
            begun = begun if waiting else first
            waiting = [*waiting, segments[at]]
        else:
            high = following[1] if following[0] == at else None
            yield PageRange([segments[at]], low, high, first, last)
    if waiting:
        yield PageRange(waiting, None, None, begun, total)


def read(
    piece: PageRange, counts: npt.NDArray[np.bool_], sites: SiteFrames | None = None
) -> pl.DataFrame:
    """Returns the rows of a piece, with `COLUMNS`; `sites` as ParsesTable has it. Raises
    FormatError.
    """
    inside = _between(piece)
    parses = ParsesTable(piece.segments, sites).frames(
        Request(("segment", "url", "lang", "title", "metadata", "own_text"), inside)
    )
    rows = pl.concat([pl.DataFrame(schema=_PARSED), *parses])
    rows = rows.filter(pl.Series(counts[piece.first : piece.last]))
    pages = PagesTable(piece.segments).frames(
        Request(("segment", "url", "status", "fetch_time", "digest"), inside)
    )
    fetches = pl.concat([pl.DataFrame(schema=_FETCHED), *pages])
    fetches = fetches.filter(pl.col("status").cast(pl.String) == "fetch_success")
    fetches = fetches.unique(["segment", "url"], keep="last")
    return rows.join(fetches, on=["segment", "url"], how="left", maintain_order="left").select(
        "url",
        pl.col("fetch_time").alias("fetched"),
        pl.col("lang").alias("language"),
        "title",
        "digest",
        pl.col("metadata").list.filter(pl.element().struct["key"].str.starts_with(KEPT)),
        pl.col("own_text").fill_null("").str.strip_chars().alias("text"),
        "segment",
    )


_PARSED: Final = pl.Schema(
    {
        name: ParsesTable.columns[name].dtype
        for name in ("segment", "url", "lang", "title", "metadata", "own_text")
    }
)
_FETCHED: Final = pl.Schema(
    {
        name: PagesTable.columns[name].dtype
        for name in ("segment", "url", "status", "fetch_time", "digest")
    }
)


def _between(piece: PageRange) -> pl.Expr | None:
    bounds = [] if piece.low is None else [_URL.ge(piece.low)]
    bounds += [] if piece.high is None else [_URL.lt(piece.high)]
    return reduce(operator.and_, bounds) if bounds else None
