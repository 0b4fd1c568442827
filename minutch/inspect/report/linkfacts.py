"""Finds in a crawl's links: depths, chains of redirects, broken links. Pure: numbers and pieces of
links in, facts out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from minutch.inspect.query.ids import Ids, Mask, Places, places_in, places_of_runs
from minutch.inspect.report.counts import with_own_texts
from minutch.work.tables.frame import decode_keys

# Computes how far each URL is from the seeds, and since which round it is known, by links and
# redirects. Pure.
#
#     fetches of round k, and what their redirects lead to    time 2k + 1: a redirect may be
#                                                             followed in the same round
#     what the links of their pages lead to                   time 2k + 2, for the rounds after it
#
# A URL that nothing led to before it was fetched was injected (a seed, or listed in a sitemap):
# depth 0. So was one that nothing leads to at all. This can only be told if the segments of all
# fetches are still there. In a segment that others were merged to, nothing was before anything
# else: of its URLs those that the crawl began with were injected.

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


# Finds chains of redirects, the longest first. Pure: numbers in, numbers out.

MOST_HOPS: Final = 50
"""A chain that is longer is cut here."""


def longest(redirects: pl.DataFrame, most: int) -> tuple[int, list[list[int]]]:
    """Returns the number of chains of two redirects or more, and the `most` longest as ids.

    `redirects` has one row (`id`, `to`) for each URL that redirects. A chain begins where no
    redirect leads to; in a circle, one begins at the least id and ends where it began.
    """
    ordered = redirects.unique("id", keep="last").sort("id")
    ids, targets = ordered["id"].to_numpy(), ordered["to"].to_numpy()
    if not len(ids):
        return 0, []
    at, is_redirect = places_in(ids, targets)
    follows = np.where(is_redirect, at, -1)
    starts = np.setdiff1d(np.arange(len(ids)), follows[follows >= 0])
    hops = _lengths(follows, starts)
    circles = _circles(follows, starts)
    every = np.concatenate([starts, circles[:, 0]])
    lengths = np.concatenate([hops, circles[:, 1]])
    is_chain = lengths > 1
    every, lengths = every[is_chain], lengths[is_chain]
    order = np.lexsort((ids[every], -lengths))[:most]
    return len(every), [_walk(ids, targets, follows, int(start)) for start in every[order]]


def _lengths(
    follows: npt.NDArray[np.int64], starts: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Returns the number of redirects from each start on, at most MOST_HOPS."""
    hops, here = np.ones(len(starts), np.int64), follows[starts]
    for _ in range(MOST_HOPS - 1):
        on = here >= 0
        if not on.any():
            break
        hops += on
        here = np.where(on, follows[np.maximum(here, 0)], -1)
    return hops


def _circles(
    follows: npt.NDArray[np.int64], starts: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Returns circles that nothing leads into from outside: the place of their least member, and
    their length.
    """
    reached = np.zeros(len(follows), bool)
    here = starts
    while len(here):
        reached[here] = True
        here = np.unique(follows[here])
        here = here[here >= 0]
        here = here[~reached[here]]
    found = []
    for start in np.flatnonzero(~reached):
        if reached[start]:
            continue
        length, place = 0, int(start)
        while not reached[place]:
            reached[place] = True
            place, length = int(follows[place]), length + 1
        found.append((int(start), min(length, MOST_HOPS)))
    return np.array(found, np.int64).reshape(-1, 2)


def _walk(ids: Ids, targets: Ids, follows: npt.NDArray[np.int64], start: int) -> list[int]:
    """Returns the ids of a chain, from its start to its end."""
    chain, place, passed = [int(ids[start])], start, {start}
    while len(chain) <= MOST_HOPS:
        chain.append(int(targets[place]))
        place = int(follows[place])
        if place < 0 or place in passed:
            break
        passed.add(place)
    return chain


# Finds links to pages that are gone or fail, and the pages that they are on. Pure: pieces of links
# in, facts out.

MOST_PLACES: Final = 5
"""Pages that are kept of those that link to an address."""
_MANY: Final = 32
_SCHEMA: Final = {
    "id": pl.UInt64,
    "url": pl.String,
    "from_url": pl.String,
    "anchor": pl.String,
    "n": pl.Int64,
}


class BrokenLinks:
    """A counter of links to addresses that are `broken`, by their ids."""

    def __init__(self, broken: pl.Series) -> None:
        self._broken = broken.implode()
        self._counts = [pl.DataFrame(schema={"id": pl.UInt64, "n": pl.Int64})]
        self._samples = [
            pl.DataFrame(schema={name: kind for name, kind in _SCHEMA.items() if name != "n"})
        ]
        self.links = 0

    def add(self, links: pl.DataFrame) -> None:
        """Counts links: `id` (of their targets), `url`, `from_url`, `anchor` (Binary)."""
        self.links += links.height
        mine = links.filter(pl.col("id").is_in(self._broken))
        self._counts.append(mine.group_by("id").agg(pl.len().cast(pl.Int64).alias("n")))
        texts = [decode_keys(mine[name]).alias(name) for name in ("url", "from_url", "anchor")]
        self._samples.append(with_own_texts(_first(mine.select("id").with_columns(texts))))
        if len(self._counts) > _MANY:
            self._counts = [self._counted()]
            self._samples = [_first(pl.concat(self._samples))]

    def _counted(self) -> pl.DataFrame:
        return pl.concat(self._counts).group_by("id").agg(pl.col("n").sum())

    @property
    def addresses(self) -> int:
        """Number of addresses that are broken and linked to."""
        return self._counted().height

    def table(self, whys: pl.DataFrame, most: int) -> pl.DataFrame:
        """Returns the addresses with the most links; `whys` has the known reasons."""
        top = self._counted().sort("n", "id", descending=[True, False]).head(most)
        samples = _first(
            pl.concat(self._samples).join(top, on="id", how="semi", maintain_order="left")
        )
        places = samples.group_by("id").agg(
            pl.col("url").first(),
            pl.col("from_url").alias("pages"),
            pl.col("anchor").alias("anchors"),
        )
        found = top.join(places, on="id").join(
            whys.select("id", "why").unique("id", keep="last"), on="id", how="left"
        )
        return found.rename({"n": "links"}).sort("links", "url", descending=[True, False])


def _first(links: pl.DataFrame) -> pl.DataFrame:
    """Returns the first links to each address, one a page."""
    return (
        links.unique(["id", "from_url"], keep="first", maintain_order=True)
        .group_by("id", maintain_order=True)
        .head(MOST_PLACES)
    )
