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
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

# Computes how fresh copies of pages are that change as a Poisson process, and the best that
# fetches can do for them. Pure.
#
# A page changes `rate` times a day. A copy is fresh until the page changes: with probability
# exp(-rate × age). Held for the days from a to b after its fetch, it is expected to be
#
#     fresh        for  (exp(-rate a) - exp(-rate b)) / rate                    days
#     out of date  by   d²/2 over all moments, with d the time since the first change that was
#                       missed (`Shares`)
#
# `best` is the bound of Cho and Garcia-Molina: the most that any plan with as many fetches can
# reach, be it drawn up by somebody who knows all rates. Over `days` with k fetches of a page whose
# copy is `age` old, equal stretches y = (days + age) / (k + 1) are best, the first of which has
# begun `age` ago (one that is longer than y restarts at once: y = days / k). One more fetch is
# worth (1 - (1 + x) exp(-x)) / rate days, x = rate × y, which falls with k: so in the best plan it
# is worth the same for all pages that are fetched at all, a Lagrange multiplier, found by halving.
# Numbers of fetches may be fractions there, which only raises the bound. Nothing that was seen
# helps to foresee changes of a Poisson process, so it holds for plans that learn, too.
#
# Source: J. Cho, H. Garcia-Molina: Effective Page Refresh Policies for Web Crawlers, ACM TODS 28
# (2003), section 4.

Floats = NDArray[np.float64]

_HALVINGS: Final = 60
_NEWTON: Final = 4


def gain(x: Floats) -> Floats:
    """Returns 1 - (1 + x) exp(-x): the worth of one more fetch times the rate, at stretches of x /
    rate days.
    """
    found: Floats = np.where(x < 1e-4, x * x / 2 - x**3 / 3, 1 - (1 + x) * np.exp(-x))
    return found


def stretch(worth: Floats) -> Floats:
    """Returns the x whose `gain` is `worth` (0 to 1); infinite from 1 on.

    That is where x - log(1 + x) is L = -log(1 - worth), found by Newton's steps from above: sqrt(2
    L) + L is never below it (Chatzigeorgiou 2013). Four give all digits; halving took 60.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        aim = -np.log1p(-worth)
        x = np.sqrt(2 * aim) + aim
        for _ in range(_NEWTON):
            found = np.where(x < 1e-4, x * x / 2 - x**3 / 3, x - np.log1p(x))
            x = np.where(x > 0, x - (found - aim) * (1 + x) / x, x)
    return np.where(worth >= 1.0, np.inf, x)


@dataclass(frozen=True)
class Best:
    """The best plan: fresh days of all pages together, and how often each is fetched."""

    fresh_days: float
    fetches: Floats


def best(
    rate: Floats, age: Floats, days: float, fetches: float, weight: Floats | float = 1.0
) -> Best:
    """Returns the best plan for pages with these rates (> 0) and ages of copies, with `fetches`
    fetches in `days`; a page's fresh days count `weight` times (> 0).
    """
    rates, at = np.unique(rate / weight, return_inverse=True)
    low, high = -60.0, float(-np.log(rates[0]))  # of the multiplier's logarithm
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        wanted = _counts(stretch(np.exp(middle) * rates)[at] / rate, age, days)
        low, high = (middle, high) if wanted.sum() > fetches else (low, middle)
    counts = _counts(stretch(np.exp(high) * rates)[at] / rate, age, days)
    return Best(
        float((weight * reached(rate, age, days, counts)).sum())
        + _rest(rate, high, fetches, counts),
        counts,
    )


def _rest(rate: Floats, multiplier: float, fetches: float, counts: Floats) -> float:
    """Returns the greatest worth of fetches that were left over."""
    return max(0.0, fetches - float(counts.sum())) * float(np.exp(multiplier))


def _counts(y: Floats, age: Floats, days: float) -> Floats:
    """Returns how often pages are fetched whose stretches are `y` long."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(y <= age, days / y, np.maximum((days + age) / y - 1, 0.0))
    return np.where(np.isinf(y), 0.0, found)


def reached(rate: Floats, age: Floats, days: float, counts: Floats) -> Floats:
    """Returns the fresh days of pages that are fetched `counts` times, each at the best moments."""
    y = (days + age) / (counts + 1)
    late = (counts + 1) * -np.expm1(-rate * y) / rate + np.expm1(-rate * age) / rate
    with np.errstate(divide="ignore", invalid="ignore"):
        at_once = counts * -np.expm1(-rate * days / counts) / rate
    found: Floats = np.where(y > age, late, np.where(counts > 0, at_once, 0.0))
    return found


class Shares:
    """Copies that are held from one moment to the next, `step` days later: what that adds to each
    sum.

    All that depends on rate and step alone is computed once.
    """

    def __init__(self, rate: Floats, step: float) -> None:
        self.rate, self.step = rate, step
        self.stays = np.exp(-rate * step)
        """The probability that a page does not change in a step."""
        self._fresh = -np.expm1(-rate * step) / rate

    def fresh_days(self, fresh: Floats) -> Floats:
        """Returns the fresh days in a step of copies that are fresh with probability `fresh` at its
        beginning.
        """
        return fresh * self._fresh

    def late_days(self, fresh: Floats, age: Floats) -> Floats:
        """Returns the days out of date, integrated over the step, of copies `age` days old at its
        beginning.
        """
        rate, step = self.rate, self.step
        return np.maximum(
            age * step + step * step / 2 - step / rate + fresh * self._fresh / rate, 0.0
        )


def missed(rate: Any, age: Any, fresh: Any) -> Any:
    """Returns the number of versions that were never seen in copies held for `age` days: all
    changes but the last one.
    """
    return np.maximum(rate * age - (1 - fresh), 0.0)


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


# Draws random numbers that depend on a seed, a page and a turn alone, not on order, cores or
# libraries.

_MASK: Final = (1 << 64) - 1
_STEP: Final = 0x9E37_79B9_7F4A_7C15


def mixed_bits(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scrambles the bits of numbers. Source: SplitMix64 (Steele, Lea, Flood 2014)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58_476D_1CE4_E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D0_49BB_1331_11EB)
    return numbers ^ (numbers >> np.uint64(31))


def uniform(hashes: NDArray[np.uint64], seed: int, turn: int) -> NDArray[np.float64]:
    """Returns a number from 0 up to 1 for each page, by its hash."""
    salt = (seed * 0x1_0000_0001 + turn + 1) * _STEP & _MASK
    bits = mixed_bits(hashes ^ mixed_bits(np.array([salt], np.uint64)))
    found: NDArray[np.float64] = (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return found
