"""Reads the pages of a crawl for a data set, and holds its rows while it is made: in files the
pages and what is asked of their texts, in memory what only all of them together tell:
near-duplicates, lines that came before. In SQL they are the table `corpus`.

A page is, of each URL, the newest parse that succeeded, with the text of its own, as the table
`site` has them. Parses are numbered in the order in which they are read: by segment, then by URL.
`NewestPages.of` says which of them count, and cuts them into ranges of some thousands. What a range
holds depends on the crawl alone, so they can be read in any order, and again.

All texts that are near each other (`owntext.near`), also by way of others, are a cluster. Lines are
the same if they are so to the character. Both are found within a budget of memory.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.owntext.frames import SiteFrames
from minutch.cycle.owntext.near import KEYS, band_keys
from minutch.cycle.segment.store import PARSE_DATA, Segment
from minutch.inspect.corpus import signals
from minutch.inspect.query.columns import METADATA, TIME
from minutch.inspect.query.crawl import CRAWLDB, CrawlFolder
from minutch.inspect.query.pages import PagesTable
from minutch.inspect.query.parses import ParsesTable
from minutch.inspect.query.table import Request, SqlColumn, Table
from minutch.kernels import minhash as kernels
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
        # Cut while they are read: nothing that depends on memory or threads decides where.
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
                    # An entry is no parse: its number is less than any.
                    nothing = pl.Series([-1], dtype=pl.Int64).new_from_index(0, len(frame))
                    add(frame["url"], nothing, is_known=True)
            counts = np.zeros(total, np.bool_)
            for rows in shuffle.sorted(0):
                # Numbers ascend with the segments.
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
    # A segment may have asked twice, for a page and as a redirect's target.
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


_SORTED: Final = 32
"""Bytes that a key takes while it is sorted."""
Numbers = npt.NDArray[np.int64]


def clusters(
    keys: Callable[[str], npt.NDArray[np.uint64]], counts: npt.NDArray[np.bool_], memory: int
) -> Numbers:
    """Returns for each row the first one of its cluster: itself, if no other is near it.

    `keys` reads those of a band; rows that do not count are near no other.
    """
    rows = np.arange(len(counts), dtype=np.int64)
    for band in KEYS:
        # One band at a time: 8 bytes a row, whatever the number of bands.
        every = np.where(counts, keys(band), np.uint64(0))
        for low, high in _ranges(len(counts), memory):
            mine = np.flatnonzero((every >= low) & (every <= high) & (every != 0))
            # Stable: rows of one key are in their order, and the first is the first of its cluster.
            order = mine[np.argsort(every[mine], kind="stable")]
            kernels.join_equal(every[order], order, rows)
    kernels.find_roots(rows)
    return rows


def came_before(
    lines: Callable[[], Iterator[npt.NDArray[np.uint64]]], count: int, memory: int
) -> npt.NDArray[np.bool_]:
    """Returns whether a line (by its hash, 0 for none) came before, for each of `count`, which
    `lines` reads one after the other.
    """
    seen = np.zeros(count, np.bool_)
    for low, high in _ranges(count, memory):
        places, hashes, start = [], [], 0
        for some in lines():
            mine = np.flatnonzero((some >= low) & (some <= high) & (some != 0))
            places.append(mine + start)
            hashes.append(some[mine])
            start += len(some)
        if not places:
            return seen
        place, value = np.concatenate(places), np.concatenate(hashes)
        order = np.argsort(value, kind="stable")
        same = np.zeros(len(order), np.bool_)
        same[1:] = value[order[1:]] == value[order[:-1]]
        # Stable, too: the first of equal ones comes first, and is not marked.
        seen[place[order[same]]] = True
    return seen


def _ranges(count: int, memory: int) -> Iterator[tuple[np.uint64, np.uint64]]:
    """Yields ranges of hashes, the ends included, of which so many have each about what can be
    sorted in memory.
    """
    parts = max(1, -(-count * _SORTED // memory))
    borders = [part * (1 << 64) // parts for part in range(parts + 1)]
    for low, high in pairwise(borders):
        yield np.uint64(low), np.uint64(high - 1)


Chosen = npt.NDArray[np.bool_]
_STORED: Final = {**COLUMNS, **signals.COLUMNS}
_OF_CLUSTERS: Final = {"cluster": pl.String(), "cluster_size": pl.Int64(), "is_first": pl.Boolean()}
_OF_LINES: Final = {"duplicate_lines": pl.List(pl.Int32()), "duplicate_line_share": pl.Float64()}
_REFUSED: Final = "refused"
_REFUSALS: Final = pl.List(
    pl.Struct({name: pl.String() for name in ("use", "mechanism", "statement")})
)
_NUMBER: Final = "number"
ABOUT: Final[dict[str, str]] = {
    "url": "the page's URL",
    "fetched": "when it was fetched (UTC)",
    "language": "its language, as language-identifier found it",
    "title": "its title",
    "digest": "its signature in the crawl, in hexadecimal",
    "metadata": "what parse-pagedata kept: keys and values, in order",
    "text": "its own text",
    "markdown": "the same as Markdown, if the page was stored",
    "cluster": "the URL of the first page of its cluster of near-duplicates",
    "cluster_size": "how many pages the cluster has",
    "is_first": "whether it is the first of them",
    "duplicate_lines": "which lines of the text came before in the data set, counted from 0",
    "duplicate_line_share": "their share of the lines that are not blank",
    "refused": "which uses are refused (training, input, search), by which mechanism and words",
    **signals.ABOUT,
}
"""The columns of a row, in their order, and what they are."""


def make_piece(piece: PageRange, counts: Chosen, sites: SiteFrames) -> pl.DataFrame:
    """Reads the pages of a piece, with what is asked of their texts. Raises FormatError."""
    rows = read(piece, counts, sites)
    found, lines = signals.measures(rows["text"])
    size = rows["text"].str.len_bytes().alias("bytes")
    every = [*rows, *found, *band_keys(rows["text"]), size, lines.alias("lines")]
    return pl.DataFrame(every)


class CorpusTable(Table):
    """The rows in `files`, of which each has so many, numbered from 0."""

    name = "corpus"
    key = "url"
    columns: ClassVar = {
        name: SqlColumn(dtype, itemgetter(name))
        for name, dtype in {
            **_STORED,
            **_OF_CLUSTERS,
            **_OF_LINES,
            _REFUSED: _REFUSALS,
            _NUMBER: pl.Int64(),
            "segment": pl.String(),
        }.items()
    }

    def __init__(
        self, files: Sequence[Path], heights: Sequence[int], refusals: pl.DataFrame
    ) -> None:
        """`refusals` has what is refused of pages, as the table `rights`."""
        self._files = files
        said = pl.struct(pl.col("use", "mechanism").cast(pl.String), "statement")
        of_page = refusals.group_by("segment", "url", maintain_order=True)
        self._refusals = of_page.agg(said.unique(maintain_order=True).alias(_REFUSED))
        self.starts = np.cumsum([0, *heights])
        self._line_starts = np.zeros(len(files) + 1, np.int64)
        self.firsts = np.arange(len(self), dtype=np.int64)
        """For each row the first one of its cluster."""

    def __len__(self) -> int:
        return int(self.starts[-1])

    def frames(self, request: Request) -> Iterator[pl.DataFrame]:
        for number in range(len(self._files)):
            yield self.make(self.piece(number, request.needed), request)

    def stored(self, name: str) -> npt.NDArray[Any]:
        """Returns a column of the files, of all rows."""
        read = [pl.read_parquet(file, columns=[name])[name].to_numpy() for file in self._files]
        return np.concatenate(read) if read else np.zeros(0, np.uint64)

    def find_duplicates(self, chosen: Chosen, memory: int) -> None:
        """Finds near-duplicates among the chosen rows, and lines that came before."""
        self.firsts = clusters(self.stored, chosen, memory)
        self._sizes = np.bincount(self.firsts, minlength=len(self))
        heads = np.flatnonzero(self._sizes > 1)
        urls = [pl.Series([], dtype=pl.String)]
        for file, low, high in zip(self._files, self.starts, self.starts[1:], strict=False):
            mine = heads[np.searchsorted(heads, low) : np.searchsorted(heads, high)] - low
            if len(mine):
                urls.append(pl.read_parquet(file, columns=["url"])["url"].gather(mine))
        self._heads = pl.DataFrame([pl.Series("first", heads), pl.concat(urls).alias("cluster")])
        counts = [
            int(pl.read_parquet(file, columns=["lines"])["lines"].list.len().sum())
            for file in self._files
        ]
        self._line_starts = np.cumsum([0, *counts])

        def lines() -> Iterator[npt.NDArray[np.uint64]]:
            for file, low in zip(self._files, self.starts, strict=False):
                found = pl.read_parquet(file, columns=["lines"])["lines"]
                counted = np.repeat(chosen[low : low + len(found)], found.list.len().to_numpy())
                yield np.where(counted, _flat(found), np.uint64(0))

        self._came_before = came_before(lines, int(self._line_starts[-1]), memory)

    def piece(self, number: int, names: Collection[str]) -> pl.DataFrame:
        """Returns columns of the rows in a file."""
        named = [name for name in self.columns if name in names]
        of_lines = not _OF_LINES.keys().isdisjoint(named)
        wanted = [name for name in named if name in _STORED] + ["lines"] * of_lines
        wanted = ["segment", "url", *(name for name in wanted if name != "url")]
        rows = pl.read_parquet(self._files[number], columns=wanted)
        low, high = self.starts[number], self.starts[number + 1]
        made = [pl.Series(_NUMBER, np.arange(low, high))]
        if _REFUSED in named:
            of_page = ["segment", "url"]
            found = rows.join(self._refusals, on=of_page, how="left", maintain_order="left")
            made.append(found[_REFUSED].fill_null(pl.Series([[]], dtype=_REFUSALS)))
        if not _OF_CLUSTERS.keys().isdisjoint(named):
            first = pl.Series("first", self.firsts[low:high])
            heads = first.to_frame().join(
                self._heads, on="first", how="left", maintain_order="left"
            )
            made += [
                heads["cluster"].zip_with(heads["cluster"].is_not_null(), rows["url"]),
                pl.Series("cluster_size", self._sizes[self.firsts[low:high]]),
                pl.Series("is_first", self.firsts[low:high] == np.arange(low, high)),
            ]
        if of_lines:
            made += self._line_columns(number, rows["lines"])
        return rows.with_columns(made).select(named)

    def _line_columns(self, number: int, lines: pl.Series) -> list[pl.Series]:
        seen = self._came_before[self._line_starts[number] : self._line_starts[number + 1]]
        counts = lines.list.len().to_numpy()
        row = np.repeat(np.arange(len(lines)), counts)
        nth = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        found = pl.DataFrame({"row": row[seen], "nth": nth[seen].astype(np.int32)})
        full = np.bincount(row[_flat(lines) != 0], minlength=len(lines))
        every = pl.DataFrame({"row": np.arange(len(lines)), "full": full}).join(
            found.group_by("row").agg("nth"), on="row", how="left", maintain_order="left"
        )
        nths = pl.col("nth").fill_null(pl.lit([], pl.List(pl.Int32())))
        share = pl.when(pl.col("full") > 0).then(nths.list.len() / pl.col("full"))
        return every.select(duplicate_lines=nths, duplicate_line_share=share).get_columns()


def _flat(lists: pl.Series) -> npt.NDArray[np.uint64]:
    return lists.explode().drop_nulls().to_numpy()
