"""Holds the rows of a data set while it is made: in files the pages and what is asked of their
texts, in memory what only all of them together tell: near-duplicates, lines that came before. In
SQL they are the table `corpus`.

All texts that are near each other (`owntext.near`), also by way of others, are a cluster. Lines are
the same if they are so to the character. Both are found within a budget of memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from minutch.cycle.owntext.frames import SiteFrames
from minutch.cycle.owntext.near import KEYS, band_keys
from minutch.inspect.corpus import pages, signals
from minutch.inspect.query.table import Request, SqlColumn, Table
from minutch.kernels import minhash as kernels

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
        every = np.where(counts, keys(band), np.uint64(0))
        for low, high in _ranges(len(counts), memory):
            mine = np.flatnonzero((every >= low) & (every <= high) & (every != 0))
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
_STORED: Final = {**pages.COLUMNS, **signals.COLUMNS}
_OF_CLUSTERS: Final = {
    "cluster": pl.String(),
    "cluster_size": pl.Int64(),
    "is_first": pl.Boolean(),
}
_OF_LINES: Final = {
    "duplicate_lines": pl.List(pl.Int32()),
    "duplicate_line_share": pl.Float64(),
}
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


def make_piece(piece: pages.PageRange, counts: Chosen, sites: SiteFrames) -> pl.DataFrame:
    """Reads the pages of a piece, with what is asked of their texts. Raises FormatError."""
    rows = pages.read(piece, counts, sites)
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
