"""Rates of change judged by what fetches saw: of populations whose rates are known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from minutch.inspect.report.rates import (
    POINTS,
    Observations,
    cho,
    drawn_rates,
    grid,
    log_likelihoods,
    uniform,
    weights,
)


def hashes(count: int) -> np.ndarray:
    return np.arange(count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)


def seen(rates: np.ndarray, fetches: int, days: float, seed: int = 5) -> Observations:
    """Returns what `fetches` fetches of each page, with its rate of changes, find."""
    chance = np.random.default_rng(seed)
    page = np.repeat(np.arange(len(rates)), fetches)
    times = days * chance.uniform(0.5, 1.5, len(page))
    return Observations(page, times, chance.random(len(page)) >= np.exp(-rates[page] * times))


def test_chances_are_even_and_depend_on_seed_page_and_turn() -> None:
    found = uniform(hashes(200_000), 0, 1)
    assert found.min() >= 0 and found.max() < 1
    counts = np.histogram(found, 20, (0, 1))[0]
    assert abs(counts - 10_000).max() < 500
    others = [uniform(hashes(200_000), seed, turn) for seed, turn in ((0, 2), (1, 1), (-1, 1))]
    for other in others:
        assert abs(np.corrcoef(found, other)[0, 1]) < 0.01
    assert (uniform(hashes(100)[::-1], 0, 1) == found[:100][::-1]).all()


def test_their_estimator() -> None:
    """Table 2 of the paper: with one change in ten fetches r̂ = -log(9.5 / 10.5)."""
    assert cho(np.array([10.0]), np.array([1.0]), np.array([1.0]))[0] == pytest.approx(
        -math.log(9.5 / 10.5)
    )
    assert cho(np.array([10.0]), np.array([0.0]), np.array([1.0]))[0] == 0.0


def test_likelihoods_are_those_of_each_fetch() -> None:
    rates = np.array([0.01, 0.5, 3.0])
    watched = Observations(
        np.array([0, 0, 0, 2]), np.array([2.0, 3.0, 5.0, 7.0]), np.array([True, False, True, False])
    )
    found = log_likelihoods(watched, rates, 3)
    for number, rate in enumerate(rates):
        first = math.log(1 - math.exp(-2 * rate)) - 3 * rate + math.log(1 - math.exp(-5 * rate))
        assert found[:, number] == pytest.approx([first, 0.0, -7 * rate])


def test_the_weights_make_what_was_seen_likelier_than_others() -> None:
    watched = seen(np.repeat([0.01, 0.3], 300), 5, 10.0)
    rates = grid(watched)
    share = weights(watched, rates, 600)
    assert share.sum() == pytest.approx(1.0) and len(rates) == POINTS
    likelihood = np.exp(log_likelihoods(watched, rates, 600))

    def total(of: np.ndarray) -> float:
        return float(np.log(likelihood @ of).sum())

    assert total(share) > total(np.full(POINTS, 1 / POINTS)) + 50
    for number in (0, 20, 40, 60):
        moved = 0.99 * share
        moved[number] += 0.01
        assert total(moved) < total(share) + 0.5
    assert share[rates < 0.05].sum() == pytest.approx(0.5, abs=0.08)


@pytest.mark.parametrize("rate", [0.003, 0.05, 0.2])
def test_a_population_of_one_rate(rate: float) -> None:
    count = 4000
    found = drawn_rates(
        seen(np.full(count, rate), 2, 10.0), count, hashes(count), uniform(hashes(count), 0, 0)
    )
    for days in (5, 10, 20):
        assert np.exp(-days * found).mean() == pytest.approx(math.exp(-days * rate), abs=0.02)
    assert np.median(found) == pytest.approx(rate, rel=0.35)


def test_pages_of_two_kinds_and_such_as_nobody_fetched_twice() -> None:
    """Half change every 100 days, half every 5; fetched three times each. The other half of the
    pages is like them.
    """
    count = 10_000
    truth = np.tile([0.01, 0.2], count // 2)
    known = seen(truth[: count // 2], 3, 10.0)
    found = drawn_rates(known, count, hashes(count), uniform(hashes(count), 0, 0))
    for part in (found[: count // 2], found[count // 2 :]):
        for days in (5, 10, 20):  # how many pages change within so many days
            assert np.exp(-days * part).mean() == pytest.approx(
                np.exp(-days * truth).mean(), abs=0.02
            )
    known_half, slow = found[: count // 2], truth[: count // 2] == 0.01
    assert np.median(known_half[slow]) < 0.03 and np.median(known_half[~slow]) > 0.1
    again = drawn_rates(known, count, hashes(count), uniform(hashes(count), 0, 0))
    assert (again == found).all()


def test_long_histories_leave_little_to_chance() -> None:
    truth = np.geomspace(0.005, 0.5, 300)
    found = drawn_rates(seen(truth, 300, 4.0), 300, hashes(300), uniform(hashes(300), 0, 0))
    assert np.median(np.abs(np.log(found / truth))) < 0.2


def test_weights_come_of_some_pages_where_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    from minutch.inspect.report import rates as module

    monkeypatch.setattr(module, "LEARN_FROM", 500)
    monkeypatch.setattr(module, "_ROWS", 300)
    found = drawn_rates(
        seen(np.full(2000, 0.05), 3, 10.0), 2000, hashes(2000), uniform(hashes(2000), 0, 0)
    )
    assert np.exp(-10 * found).mean() == pytest.approx(math.exp(-0.5), abs=0.04)


def test_pages_that_always_and_never_changed() -> None:
    for changed in (True, False):
        watched = Observations(np.arange(50), np.full(50, 10.0), np.full(50, changed))
        found = drawn_rates(watched, 50, hashes(50), uniform(hashes(50), 0, 0))
        assert np.isfinite(found).all() and (found > 0).all()
        assert (found <= max(grid(watched))).all()
        assert np.median(1 - np.exp(-10 * found)) > 0.5 if changed else np.median(found) < 0.02
