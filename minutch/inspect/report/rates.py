"""Estimates how often pages change, by fetches that found them changed or not. Pure.

A fetch sees whether a page has changed since the fetch before, not how often. Of a page that
changes `rate` times a day, as a Poisson process, it finds a change after t days with probability 1
- exp(-rate t). That is the likelihood of Cho and Garcia-Molina, for fetches at irregular times. Its
maximum is a poor guide for pages fetched two or three times, which are most of a crawl: it knows
only "never" and "always". So pages learn from each other (empirical Bayes):

1.  `grid`: rates that could have been seen at all. The highest is that of the estimator -log((n - c
    + ½) / (n + ½)) / t of Cho and Garcia-Molina (n fetches, c of them with changes, t days between
    them), the largest of all pages; the lowest makes a change unlikely in the longest time for
    which a page was watched.
2.  `weights`: how many pages have which rate, the shares that make what was seen most likely
    (maximum likelihood over all distributions on the grid, by expectation maximization).
3.  `drawn`: each page's rate, drawn from what its own fetches leave possible. Pages that were not
    fetched twice are like the others. To draw, and not to take means, keeps the differences between
    pages that a schedule has to meet.

A page's modified time in the CrawlDb is left out: that it has not changed since is known, but not
whether it did then (Nutch writes the time of the first fetch there), and half of that would make
all pages seem steadier than they are.

Source: J. Cho, H. Garcia-Molina: Estimating Frequency of Change, ACM TOIT 3 (2003), sections 4 and
5; N. Laird: Nonparametric Maximum Likelihood Estimation of a Mixing Distribution, JASA 73 (1978).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from minutch.inspect.report.poisson import Floats

Ints = NDArray[np.int64]
Bits = NDArray[np.uint64]

POINTS: Final = 64
"""Rates of the grid."""
TURNS: Final = 200
"""Number of steps of the expectation maximization."""
LEARN_FROM: Final = 50_000
"""Pages whose fetches the weights are made of, at most; the first ones by their hash."""
_ROWS: Final = 1 << 16
"""Pages that are worked on at a time."""


@dataclass(frozen=True)
class Observations:
    """The results of fetches: a row for each, of the page with number `page` (ascending), `days`
    after the one before.
    """

    page: Ints
    days: Floats
    changed: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.page)


def cho(fetches: Floats, changes: Floats, days: Floats) -> Floats:
    """Returns the rate of pages fetched at intervals of `days`, with so many changes found: the
    estimator r̂.
    """
    found: Floats = -np.log((fetches - changes + 0.5) / (fetches + 0.5)) / days
    return found


def grid(watched: Observations) -> Floats:
    """Returns rates a day, evenly spaced by their logarithms; `watched` is not empty."""
    pages, at = np.unique(watched.page, return_inverse=True)
    fetches = np.bincount(at, minlength=len(pages)).astype(np.float64)
    changes = np.bincount(at, watched.changed, len(pages)).astype(np.float64)
    days = np.bincount(at, watched.days, len(pages))
    lowest = 0.1 / days.max()
    highest = max(float(cho(fetches, changes, days / fetches).max()), 10 * lowest)
    return np.geomspace(lowest, highest, POINTS)


def log_likelihoods(watched: Observations, rates: Floats, count: int) -> Floats:
    """Returns a row for each of `count` pages (numbers from 0 on), a column for each rate; 0 where
    nothing was seen.
    """
    same = np.bincount(watched.page, np.where(watched.changed, 0.0, watched.days), count)
    found = -np.outer(same, rates)
    page, days = watched.page[watched.changed], watched.days[watched.changed]
    if len(page):
        starts = np.flatnonzero(np.diff(page, prepend=-1))
        found[page[starts]] += np.add.reduceat(
            np.log(-np.expm1(-np.outer(days, rates))), starts, axis=0
        )
    return found


def weights(watched: Observations, rates: Floats, count: int) -> Floats:
    """Returns the share of pages with each rate."""
    likelihood = _scaled(log_likelihoods(watched, rates, count))
    share = np.full(len(rates), 1 / len(rates))
    for _ in range(TURNS):
        share = (likelihood / (likelihood @ share)[:, None]).mean(axis=0) * share
    return share


def _scaled(logs: Floats) -> Floats:
    found: Floats = np.exp(logs - logs.max(axis=1, keepdims=True))
    return found


def drawn_rates(watched: Observations, count: int, hashes: Bits, chance: Floats) -> Floats:
    """Draws the rates of `count` pages; `chance` (0 to 1) decides in each, `hashes` select the
    pages that weights are learnt from.

    `watched` is not empty.
    """
    rates = grid(watched)
    share = _learnt(watched, rates, hashes)
    found = np.empty(count)
    bounds = np.searchsorted(watched.page, np.arange(0, count + _ROWS, _ROWS))
    for number, first in enumerate(range(0, count, _ROWS)):
        last = min(first + _ROWS, count)
        mine = slice(bounds[number], bounds[number + 1])
        part = Observations(watched.page[mine] - first, watched.days[mine], watched.changed[mine])
        sums = np.cumsum(_scaled(log_likelihoods(part, rates, last - first)) * share, axis=1)
        aim = chance[first:last] * sums[:, -1]
        found[first:last] = rates[np.minimum((sums <= aim[:, None]).sum(axis=1), len(rates) - 1)]
    return found


def _learnt(watched: Observations, rates: Floats, hashes: Bits) -> Floats:
    """Returns the weights, of some of the pages if there are many."""
    pages = np.unique(watched.page)
    if len(pages) > LEARN_FROM:
        pages = np.sort(pages[np.argsort(hashes[pages], kind="stable")[:LEARN_FROM]])
    at = np.searchsorted(pages, watched.page)
    mine = pages[np.minimum(at, len(pages) - 1)] == watched.page
    return weights(
        Observations(at[mine], watched.days[mine], watched.changed[mine]), rates, len(pages)
    )
