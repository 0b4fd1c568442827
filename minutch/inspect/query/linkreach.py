"""How pages are reached by links: how many there are to each, and how many of them lie between it
and where the crawl began. Pure.

The crawl began at what its first segment asked for: of what sitemaps list there, at the roots of
hosts alone. A redirect leads on without a step.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from minutch.inspect.query.ids import places_in, places_of_runs

Places = NDArray[np.int32]
MOST_DEEP: Final = 100
"""The last depth that is told; it stands for all that are greater."""
_ROOT: Final = r"^[a-z]+://[^/]*/?$"


def starts(first: pl.Series, listed: pl.Series) -> pl.Series:
    """Returns where a crawl began: of the URLs of its `first` segment those that sitemaps have not
    `listed`, and roots of hosts.
    """
    return first.filter(first.str.contains(_ROOT) | ~first.is_in(listed.implode()))


class LinkReach:
    """The URLs of a site, by their places in `urls`, and the links between them (8 bytes each)."""

    def __init__(self, urls: pl.Series) -> None:
        hashes = urls.hash().to_numpy()
        self._order = np.argsort(hashes, kind="stable").astype(np.int32)
        self._sorted = hashes[self._order]
        self._links: list[tuple[Places, Places]] = []

    def places(self, urls: pl.Series) -> Places:
        """Returns the place of each of `urls`; -1 for one that is not of the site."""
        return self._named(*places_in(self._sorted, urls.hash().to_numpy()))

    def _named(self, at: NDArray[np.int64], there: NDArray[np.bool_]) -> Places:
        found = np.full(len(at), -1, np.int32)
        found[there] = self._order[at[there]]
        return found

    def add(self, sources: pl.Series, targets: pl.Series) -> None:
        """Adds links; those of a page to itself, and to or from elsewhere, don't count."""
        source = self._named(*places_of_runs(self._sorted, sources.hash().to_numpy()))
        target = self.places(targets)
        mine = (source >= 0) & (target >= 0) & (source != target)
        self._links.append((source[mine], target[mine]))

    def counts(self) -> NDArray[np.int64]:
        """Returns the number of links to each."""
        found = np.zeros(len(self._order), np.int64)
        for _, target in self._links:
            found += np.bincount(target, minlength=len(found))
        return found

    def depths(self, roots: Iterable[int], redirects: tuple[Places, Places]) -> Places:
        """Returns the depth of each, from 0 for `roots`; -1 where no way leads to."""
        depth = np.full(len(self._order), -1, np.int32)
        depth[np.fromiter(roots, np.int64)] = 0
        for level in range(MOST_DEEP):
            self._follow(depth, level, level, [redirects])
            if not self._follow(depth, level, level + 1, self._links):
                break
        return depth

    @staticmethod
    def _follow(depth: Places, level: int, to: int, links: Iterable[tuple[Places, Places]]) -> bool:
        """Sets the depth of what the pages of a level lead to; returns whether there was any."""
        any_new = False
        for source, target in links:
            while True:
                reached = target[depth[source] == level]
                reached = reached[depth[reached] < 0]
                depth[reached] = to
                any_new |= bool(len(reached))
                if to != level or not len(reached):
                    break
        return any_new
