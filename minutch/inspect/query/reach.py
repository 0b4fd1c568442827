"""Finds what leads to each URL of a crawl: depths, the number of links, chains of redirects, and
since which round a URL is known. Pure but for `Reach.of`: numbers in, numbers out.

The depth of a URL is the least number of links from where the crawl began; a redirect or a refresh
leads on without a step. Only links that a page has now (its newest parse) and redirects that it
made last are followed. When something was known is told by all links and redirects ever found:

    fetches of round k, and what their redirects lead to    time 2k + 1: a redirect may be
                                                            followed in the same round
    what the links of their pages lead to                   time 2k + 2, for the rounds after it

The crawl began with its first fetch list, but for what sitemaps list there and is no root of a
host (`.began` has that list, once a segment has replaced the first one). Roots of hosts that none
of these leads to came later, as seeds, and are starts, too. What else came before it was linked is
not asked: merged segments don't know it, and a merge must not change depths.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from minutch.cycle.segment.places import began_with
from minutch.cycle.segment.store import CRAWL_FETCH, Segment
from minutch.inspect.query.columns import ID, Ids, Mask, Places, SortedIds
from minutch.inspect.query.table import Table

MOST_DEPTHS: Final = 100
"""The last depth that is told; it stands for all that are greater."""
_NEVER: Final = np.iinfo(np.int32).max
IS_ROOT: Final = pl.col("url").str.contains("^[a-z]+://[^/]*/?$").alias("is_root")
Numbers = npt.NDArray[np.int32]
Edges = tuple[Numbers, Numbers]
"""Places of sources and targets."""


class Reach:
    """The URLs of a crawl (`id`, `status`, `is_root`: of a host) and what leads to them; a link
    takes 8 bytes.

    `seen` has the number of the `first` segment of every URL that was fetched, `began` the ids of
    those that the crawl began with.
    """

    def __init__(self, entries: pl.DataFrame, seen: pl.DataFrame, began: pl.Series) -> None:
        joined = entries.sort("id").join(seen, on="id", how="left", maintain_order="left")
        self._ids = SortedIds(joined["id"].to_numpy())
        first = joined.select(2 * pl.col("first").cast(pl.Int32) + 1).to_series()
        self._first = first.fill_null(_NEVER).to_numpy()
        # Fetched, but by no segment that is left: depths would be guesses.
        asked = pl.col("status").cast(pl.String).is_in(["db_unfetched", "db_orphan"]).not_()
        self.is_whole = not joined.select((asked & pl.col("first").is_null()).any()).item()
        """True if the segments of all fetches exist."""
        self._known = np.full(len(self._ids.ids), _NEVER, np.int32)
        self._began = np.isin(self._ids.ids, began.to_numpy())
        self._roots = joined["is_root"].to_numpy()
        self._links: list[Edges] = []
        self._ways: list[Edges] = []

    @classmethod
    def of(
        cls,
        tables: Mapping[str, Table],
        segments: Sequence[Segment],
        entries: pl.DataFrame,
        seen: pl.DataFrame,
    ) -> Reach:
        """Makes one that knows where the crawl began, and no links yet. Raises FormatError."""
        began = _first_asked(segments, seen)
        urls = tables["sitemaps"].scan().filter(~IS_ROOT).select(pl.col("url").hash())
        began = began.filter(~began.is_in(urls.collect().to_series().implode()))
        return cls(entries, seen, began)

    @property
    def ids(self) -> SortedIds:
        """The ids of all URLs: in this order they have their places."""
        return self._ids

    def add_edges(self, source: Numbers, target: Numbers) -> None:
        """Adds links that pages have now, by places; -1 for a page that is none of the URLs."""
        both = (source >= 0) & (source != target)
        self._links.append((source[both], target[both]))

    def add_links(self, links: pl.DataFrame) -> None:
        """Adds links of `LinksTable.every` with ids: `from`, `id`, `number`, `is_newest`."""
        source = self._ids.places_of_runs(links["from"].to_numpy())
        self._links += self._add(source, links, links["id"], 2)

    def add_ways(self, ways: pl.DataFrame) -> None:
        """Adds redirects and refreshes from `id` to the id `to`, found in the round `number`."""
        source = self._ids.places_of(ways["id"].to_numpy())
        self._ways += self._add(source, ways, ways["to"], 1)

    def _add(
        self, sources: tuple[Places, Mask], frame: pl.DataFrame, targets: pl.Series, later: int
    ) -> Iterator[Edges]:
        """Notes when entries got known, and yields what still leads from one to another."""
        (source, there), (target, here) = sources, self._ids.places_of(targets.to_numpy())
        both = there & here & (source != target)
        counted = both & frame["number"].is_not_null().to_numpy()
        times = 2 * frame["number"].fill_null(0).to_numpy()[counted].astype(np.int32) + later
        # Not `known[target] = ...`, which takes the last of several.
        np.minimum.at(self._known, target[counted], times)
        both &= frame["is_newest"].to_numpy()
        yield source[both].astype(np.int32), target[both].astype(np.int32)

    def waiting(self, rounds: int) -> list[int]:
        """Returns the number of known URLs that had not been fetched at the end of each round."""
        # What nothing leads to was known from the beginning: a seed.
        known = np.minimum(np.where(self._known == _NEVER, 0, self._known), self._first)
        return [
            int(((known <= 2 * number + 2) & (self._first > 2 * number + 2)).sum())
            for number in range(rounds)
        ]

    def table(self) -> pl.DataFrame:
        """Returns `id`, `inlinks` from other pages, and `depth`; null where it can't be known."""
        inlinks = np.zeros(len(self._ids.ids), np.int64)
        for _, target in self._links:
            inlinks += np.bincount(target, minlength=len(inlinks))
        found = pl.DataFrame({"id": self._ids.ids, "inlinks": inlinks, "depth": self._depths()})
        return found.with_columns(pl.when((pl.col("depth") >= 0) & self.is_whole).then("depth"))

    def _depths(self) -> Numbers:
        depth = np.full(len(self._ids.ids), -1, np.int32)
        for starts in (self._began, self._roots):
            depth[starts & (depth < 0)] = 0
            links, level, found = self._links, 0, True
            while found:
                while _follow(self._ways, depth, level, level):
                    pass
                links = [
                    edges for edges in (_open(edges, depth) for edges in links) if len(edges[0])
                ]
                found = _follow(links, depth, level, min(level + 1, MOST_DEPTHS))
                level = min(level + 1, MOST_DEPTHS)
        return depth


def _first_asked(segments: Sequence[Segment], seen: pl.DataFrame) -> pl.Series:
    """Returns the ids of what the crawl began with: its first fetch list."""
    least = seen["first"].min()
    for number, segment in enumerate(segments):
        known = began_with(segment.path) if segment.has(CRAWL_FETCH) else None
        if known is not None:
            return pl.Series(known, dtype=pl.String).hash()
        if number == least:
            break
    return seen.filter(pl.col("first") == pl.col("first").min())["id"]


def _follow(edges: Sequence[Edges], depth: Numbers, level: int, to: int) -> bool:
    """Sets the depth of what the pages of a level lead to; returns whether there was any."""
    any_new = False
    for source, target in edges:
        reached = target[depth[source] == level]
        reached = reached[depth[reached] < 0]
        depth[reached] = to
        any_new |= bool(len(reached))
    return any_new


def _open(edges: Edges, depth: Numbers) -> Edges:
    """Returns the edges to what is not reached yet."""
    is_open = depth[edges[1]] < 0
    return (edges[0][is_open], edges[1][is_open])


# Finds chains of redirects, the longest first. Pure: numbers in, numbers out.

MOST_HOPS: Final = 50
"""A chain that is longer is cut here."""


def with_ends(rows: pl.DataFrame) -> pl.DataFrame:
    """Adds to `url` and `redirect_to` where the redirects of each URL end, as `leads_to`; null
    where there are none, or they lead into a circle.
    """
    redirects = rows.select(ID, "redirect_to", to=pl.col("redirect_to").hash())
    ordered, follows = _followed(redirects.filter(pl.col("redirect_to").is_not_null()))
    last = np.where(follows >= 0, follows, np.arange(len(follows)))
    for _ in range(len(last).bit_length()):
        last = last[last]
    has_end = pl.Series(follows[last] < 0, dtype=pl.Boolean)
    leads_to = pl.when(has_end).then(ordered["redirect_to"].gather(last)).alias("leads_to")
    found = rows.with_columns(ID).join(
        ordered.select("id", leads_to), on="id", how="left", maintain_order="left"
    )
    return found.drop("id")


def _followed(redirects: pl.DataFrame) -> tuple[pl.DataFrame, Places]:
    """Returns redirects by id, and the place of that to which each leads; -1 if it is none."""
    ordered = redirects.unique("id", keep="last").sort("id")
    at, is_redirect = SortedIds(ordered["id"].to_numpy()).places_of(ordered["to"].to_numpy())
    return ordered, np.where(is_redirect, at, -1)


def longest(redirects: pl.DataFrame, most: int) -> tuple[int, list[list[int]]]:
    """Returns the number of chains of two redirects or more, and the `most` longest as ids.

    `redirects` has one row (`id`, `to`) for each URL that redirects. A chain begins where no
    redirect leads to; in a circle, one begins at the least id and ends where it began.
    """
    ordered, follows = _followed(redirects)
    if ordered.is_empty():
        return 0, []
    ids, targets = ordered["id"].to_numpy(), ordered["to"].to_numpy()
    starts = np.setdiff1d(np.arange(len(ids)), follows[follows >= 0])
    hops = _lengths(follows, starts)
    circles = _circles(follows, starts)
    every = np.concatenate([starts, circles[:, 0]])
    lengths = np.concatenate([hops, circles[:, 1]])
    is_chain = lengths > 1
    every, lengths = every[is_chain], lengths[is_chain]
    order = np.lexsort((ids[every], -lengths))[:most]
    return len(every), [_walk(ids, targets, follows, int(start)) for start in every[order]]


def _lengths(follows: Places, starts: Places) -> Places:
    """Returns the number of redirects from each start on, at most MOST_HOPS."""
    hops, here = np.ones(len(starts), np.int64), follows[starts]
    for _ in range(MOST_HOPS - 1):
        on = here >= 0
        if not on.any():
            break
        hops += on
        here = np.where(on, follows[np.maximum(here, 0)], -1)
    return hops


def _circles(follows: Places, starts: Places) -> Places:
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


def _walk(ids: Ids, targets: Ids, follows: Places, start: int) -> list[int]:
    """Returns the ids of a chain, from its start to its end."""
    chain, place, passed = [int(ids[start])], start, {start}
    while len(chain) <= MOST_HOPS:
        chain.append(int(targets[place]))
        place = int(follows[place])
        if place < 0 or place in passed:
            break
        passed.add(place)
    return chain
