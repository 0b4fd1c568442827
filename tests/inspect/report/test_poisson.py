"""Freshness in closed form: against integrals worked out step by step, and the bound against all
plans there are.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from minutch.inspect.report.rates import Shares, best, gain, missed, reached, stretch
from tests.support.examples import tabled


def integral(function: object, start: float, end: float, pieces: int = 20_000) -> float:
    """By the midpoint rule."""
    at = start + (np.arange(pieces) + 0.5) * (end - start) / pieces
    return float(function(at).mean()) * (end - start)  # type: ignore[operator]


@tabled("rate", [0.0001, 0.01, 0.3, 5.0])
@tabled(("start", "end"), [(0.0, 1.0), (0.0, 30.0), (12.5, 13.5)])
def test_shares_of_a_stretch(rate: float, start: float, end: float) -> None:
    rates, step = np.array([rate]), end - start
    fresh = integral(lambda t: np.exp(-rate * t), start, end)
    late = integral(lambda t: t - (1 - np.exp(-rate * t)) / rate, start, end)
    shares = Shares(rates, step)
    at_start = np.exp(-rates * start)
    assert shares.fresh_days(at_start)[0] == pytest.approx(fresh, rel=1e-5)
    assert shares.late_days(at_start, np.array([start]))[0] == pytest.approx(
        late, rel=1e-4, abs=1e-9
    )


def test_versions_that_nobody_saw() -> None:
    """All of k changes but the last go unseen: the mean of max(k - 1, 0)."""
    for expected in (0.1, 1.0, 4.0):
        found = missed(expected, 1.0, math.exp(-expected))
        mean = sum(
            (k - 1) * math.exp(-expected) * expected**k / math.factorial(k) for k in range(1, 60)
        )
        assert found == pytest.approx(mean)


def test_the_worth_of_a_fetch() -> None:
    x = np.array([1e-9, 1e-3, 0.5, 1.0, 3.0, 20.0])
    assert stretch(gain(x))[1:] == pytest.approx(x[1:], rel=1e-6)
    assert np.isinf(stretch(np.array([1.0, 2.0]))).all()
    rate, days, more = 0.2, 50.0, 1e-5
    for count in (0.5, 3.0, 40.0):  # the slope of what is reached, with a copy that is new
        before, after = (
            reached(*_one(rate, 0.0), days, np.array([c]))[0] for c in (count, count + more)
        )
        assert (after - before) / more == pytest.approx(
            gain(np.array([rate * days / (count + 1)]))[0] / rate, rel=1e-3
        )


def _one(rate: float, age: float) -> tuple[np.ndarray, np.ndarray]:
    return np.array([rate]), np.array([age])


@tabled("age", [0.0, 2.0, 9.0, 200.0])
@tabled("count", [0, 1, 2])
def test_what_a_page_can_reach_with_some_fetches(age: float, count: int) -> None:
    """No moments for them, of many tried, do better; the best of those come near."""
    rate, days = 0.15, 20.0
    at_most = float(reached(*_one(rate, age), days, np.array([float(count)]))[0])
    grid = np.linspace(0, days, 41)
    found = max(
        _value(rate, age, days, moments)
        for moments in itertools.combinations_with_replacement(grid, count)
    )
    assert found <= at_most + 1e-9
    assert found == pytest.approx(at_most, rel=1e-3)


def _value(rate: float, age: float, days: float, moments: tuple[float, ...]) -> float:
    total, start, old = 0.0, 0.0, age
    for moment in (*moments, days):
        total += (math.exp(-rate * old) - math.exp(-rate * (old + moment - start))) / rate
        start, old = moment, 0.0
    return total


def test_the_bound_is_above_every_division_of_fetches_and_near_the_best() -> None:
    rate, age, days = np.array([0.02, 0.1, 0.5, 3.0]), np.array([5.0, 0.0, 30.0, 1.0]), 10.0
    for fetches in (0, 1, 4, 9, 20):
        bound = best(rate, age, days, fetches)
        assert bound.fetches.sum() <= fetches + 1e-6
        divisions = [
            c for c in itertools.product(range(fetches + 1), repeat=4) if sum(c) == fetches
        ]
        every = [float(reached(rate, age, days, np.array(c, float)).sum()) for c in divisions]
        assert max(every) <= bound.fresh_days + 1e-9
        assert max(every) == pytest.approx(bound.fresh_days, rel=0.05)


def test_pages_that_change_too_often_are_given_up() -> None:
    """The known surprise of Cho and Garcia-Molina: where fetches are scarce, the wildest pages get
    none.
    """
    rate = np.array([0.1, 50.0])
    bound = best(rate, np.zeros(2), 100.0, 60.0)
    assert bound.fetches[1] == 0.0 and bound.fetches[0] == pytest.approx(60, rel=1e-6)


def test_equal_pages_get_equal_shares() -> None:
    bound = best(np.full(1000, 0.1), np.zeros(1000), 90.0, 9000.0)
    assert np.allclose(bound.fetches, 9.0)
    y = 90 / 10
    assert bound.fresh_days == pytest.approx(1000 * 10 * (1 - math.exp(-0.1 * y)) / 0.1)
