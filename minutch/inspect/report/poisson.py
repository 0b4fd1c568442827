"""Computes how fresh copies of pages are that change as a Poisson process, and the best that
fetches can do for them. Pure.

A page changes `rate` times a day. A copy is fresh until the page changes: with probability
exp(-rate × age). Held for the days from a to b after its fetch, it is expected to be

    fresh        for  (exp(-rate a) - exp(-rate b)) / rate                    days
    out of date  by   d²/2 over all moments, with d the time since the first change that was missed
                 (`Shares`)

`best` is the bound of Cho and Garcia-Molina: the most that any plan with as many fetches can reach,
be it drawn up by somebody who knows all rates. Over `days` with k fetches of a page whose copy is
`age` old, equal stretches y = (days + age) / (k + 1) are best, the first of which has begun `age`
ago (one that is longer than y restarts at once: y = days / k). One more fetch is worth (1 - (1 +
x) exp(-x)) / rate days, x = rate × y, which falls with k: so in the best plan it is worth the same
for all pages that are fetched at all, a Lagrange multiplier, found by halving. Numbers of fetches
may be fractions there, which only raises the bound. Nothing that was seen helps to foresee changes
of a Poisson process, so it holds for plans that learn, too.

Source: J. Cho, H. Garcia-Molina: Effective Page Refresh Policies for Web Crawlers, ACM TODS 28
(2003), section 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_HALVINGS: Final = 60
_NEWTON: Final = 60


def fresh_days(rate: Floats, start: Floats | float, end: Floats | float) -> Floats:
    """Returns the days for which a copy is expected to be fresh between the ages `start` and `end`;
    `rate` > 0.
    """
    days: Floats = np.exp(-rate * start) * -np.expm1(-rate * (np.asarray(end) - start)) / rate
    return days


def gain(x: Floats) -> Floats:
    """Returns 1 - (1 + x) exp(-x): the worth of one more fetch times the rate, at stretches of x /
    rate days.
    """
    found: Floats = np.where(x < 1e-4, x * x / 2 - x**3 / 3, 1 - (1 + x) * np.exp(-x))
    return found


def stretch(worth: Floats) -> Floats:
    """Returns the x whose `gain` is `worth` (0 to 1); infinite from 1 on."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        low, high = np.zeros_like(worth), np.full_like(worth, 50.0)
        for _ in range(_NEWTON):
            middle = (low + high) / 2
            above = gain(middle) > worth
            high, low = np.where(above, middle, high), np.where(above, low, middle)
    return np.where(worth >= 1.0, np.inf, (low + high) / 2)


@dataclass(frozen=True)
class Best:
    """The best plan: fresh days of all pages together, and how often each is fetched."""

    fresh_days: float
    fetches: Floats


def best(rate: Floats, age: Floats, days: float, fetches: float) -> Best:
    """Returns the best plan for pages with these rates (> 0) and ages of copies, with `fetches`
    fetches in `days`.
    """
    rates, at = np.unique(rate, return_inverse=True)
    low, high = -60.0, float(-np.log(rates[0]))  # of the multiplier's logarithm
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        wanted = _counts(stretch(np.exp(middle) * rates)[at] / rate, age, days)
        low, high = (middle, high) if wanted.sum() > fetches else (low, middle)
    counts = _counts(stretch(np.exp(high) * rates)[at] / rate, age, days)
    return Best(
        float(reached(rate, age, days, counts).sum()) + _rest(rate, high, fetches, counts), counts
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
