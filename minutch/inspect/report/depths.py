"""Computes how far each URL is from the seeds, and since which round it is known, by links and
redirects. Pure.

    fetches of round k, and what their redirects lead to    time 2k + 1: a redirect may be followed
    in the same round
    what the links of their pages lead to                   time 2k + 2, for the rounds after it

A URL that nothing led to before it was fetched was injected (a seed, or listed in a sitemap): depth
0. So was one that nothing leads to at all. This can only be told if the segments of all fetches are
still there. In a segment that others were merged to, nothing was before anything else: of its URLs
those that the crawl began with were injected.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from minutch.inspect.query.ids import Mask, Places, places_in, places_of_runs

MOST_DEPTHS: Final = 40
"""The last depth that is told; it stands for all that are greater."""
_NEVER: Final = np.iinfo(np.int32).max
_NOTHING: Final = pl.Series(dtype=pl.UInt64)
Numbers = npt.NDArray[np.int32]


class Depths:
    """The URLs of a CrawlDb (`id`, `status`, sorted by id) and what leads to them; a link takes 8
    bytes.

    `seen` has the number of the `first` segment of every URL that was fetched, `began` the ids of
    those that the crawl began with, `merged` the numbers of segments that others were merged to.
    """

    def __init__(
        self,
        entries: pl.DataFrame,
        seen: pl.DataFrame,
        began: pl.Series = _NOTHING,
        merged: Sequence[int] = (),
    ) -> None:
        self._ids = entries["id"].to_numpy()
        joined = entries.join(seen, on="id", how="left", maintain_order="left")
        self._first = (
            joined.select(2 * pl.col("first") + 1).to_series().fill_null(_NEVER).to_numpy()
        )
        asked = pl.col("status").cast(pl.String).is_in(["db_unfetched", "db_orphan"]).not_()
        self.is_whole = not joined.select((asked & pl.col("first").is_null()).any()).item()
        """True if the segments of all fetches exist."""
        self._known = np.full(len(self._ids), _NEVER, np.int32)
        self._can_tell = ~np.isin(self._first, [2 * number + 1 for number in merged])
        self._can_tell |= np.isin(self._ids, began.to_numpy())
        self._links: list[tuple[Numbers, Numbers]] = []

    def add_links(self, sources: pl.Series, targets: pl.Series, numbers: pl.Series) -> None:
        """Adds links from and to ids, and the rounds in which they were found."""
        places = places_of_runs(self._ids, sources.to_numpy())
        target, both = self._add(*places, targets)
        np.minimum.at(self._known, target, 2 * numbers.to_numpy()[both].astype(np.int32) + 2)

    def add_redirects(self, redirects: pl.DataFrame) -> None:
        """Adds redirects from `id` to the id `to`, found in the round `segment`."""
        for (number,), found in redirects.group_by("segment"):
            target, _ = self._add(*places_in(self._ids, found["id"].to_numpy()), found["to"])
            self._known[target] = np.minimum(self._known[target], 2 * int(number) + 1)

    def _add(self, source: Places, there: Mask, targets: pl.Series) -> tuple[Numbers, Mask]:
        """Keeps links between entries, and returns their targets, and which ones they are."""
        target, here = places_in(self._ids, targets.to_numpy())
        both = there & here
        self._links.append((source[both].astype(np.int32), target[both].astype(np.int32)))
        return self._links[-1][1], both

    def waiting(self, rounds: int) -> list[int]:
        """Returns the number of known URLs that had not been fetched at the end of each round."""
        known = np.minimum(np.where(self._known == _NEVER, 0, self._known), self._first)
        return [
            int(((known <= 2 * number + 2) & (self._first > 2 * number + 2)).sum())
            for number in range(rounds)
        ]

    def depths(self) -> Numbers:
        """Returns the depth of each URL, at most MOST_DEPTHS; -1 if it can't be known."""
        injected = (self._known == _NEVER) | (self._first < self._known) & self._can_tell
        depth = np.where(injected, 0, -1).astype(np.int32)
        for level in range(MOST_DEPTHS):
            before = np.count_nonzero(depth < 0)
            for source, target in self._links:
                reached = target[depth[source] == level]
                depth[reached[depth[reached] < 0]] = level + 1
            if np.count_nonzero(depth < 0) == before:
                return depth
        depth[(depth < 0) & (self._known < _NEVER)] = MOST_DEPTHS
        return depth

    def table(self, fetched: Mask) -> pl.DataFrame:
        """Counts URLs by depth, and how many of them are `fetched`."""
        found = pl.DataFrame({"depth": self.depths(), "fetched": fetched})
        counts = found.group_by("depth").agg(
            pl.len().cast(pl.Int64).alias("urls"), pl.col("fetched").sum().cast(pl.Int64)
        )
        return counts.with_columns(pl.when(pl.col("depth") >= 0).then("depth")).sort(
            "depth", nulls_last=True
        )
