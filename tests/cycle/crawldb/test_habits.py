"""How pages change, learned from visits, and what a request is worth."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from minutch.cycle.crawldb import habits
from minutch.cycle.crawldb.habits import (
    Clocks,
    Floats,
    Prospects,
    after_visits,
    kept_share,
    learned,
    next_visits,
    worth_of,
)
from minutch.inspect.report.rates import gain
from tests.support.examples import every, examples, tabled

DAY = 86_400
BOUNDS = (60.0, 90.0 * DAY)


def one(value: float) -> NDArray[np.float64]:
    return np.array([value], np.float64)


def by_chance(shape: Floats, time: Floats, importance: Floats) -> Prospects:
    """Pages that change by chance."""
    same = np.ones(len(shape))
    return Prospects(shape, time, importance, same, 0 * same, 0 * same, same)


# -- what visits tell ------------------------------------------------------------------------------


@tabled("shape, waited", product((0.5, 5.0, 50.0), (0.01, 0.1, 1.0, 30.0)))
def test_a_change_at_some_moment_leaves_the_means_of_the_likelihood(
    shape: float, waited: float
) -> None:
    """By integrals over a grid of rates, of the gamma distribution times 1 - exp(-rate w)."""
    time = 1e6
    kept = memory(shape, time, waited * time, changed=True)
    kept_shape, kept_time = max(1e-3, shape * kept), time * kept
    rate = np.exp(np.linspace(-300, 6, 20_001)) * max(kept_shape, 1) / kept_time
    logs = kept_shape * np.log(rate * kept_time) - rate * kept_time
    weight = np.exp(logs) * -np.expm1(-rate * waited * time)
    mean, inverse = ((weight * each).sum() / weight.sum() for each in (rate, 1 / rate))
    found, found_time = learned(
        one(shape), one(time), one(waited * time), np.array([True]), one(np.nan)
    )
    assert (found / found_time)[0] == pytest.approx(mean, rel=1e-2)
    assert (found_time / (found - 1))[0] == pytest.approx(inverse, rel=1e-2)


def memory(shape: float, time: float, waited: float, *, changed: bool) -> float:
    """How probable it is that the rate is still what it was, by Bayes' rule: a visit to a page
    whose rate has shifted finds a change as often as none.
    """
    same = (1 + waited / time) ** -shape
    stays: float = (1 - habits._SHIFTS) * (1 - same if changed else same)
    return stays / (stays + habits._SHIFTS * 0.5)


def test_what_a_visit_contradicts_is_forgotten() -> None:
    """A page that was steady for three years changes: what was known of it counts for little."""
    steady, few = (0.5, 1100.0 * DAY), np.array([True])
    assert memory(*steady, 30 * DAY, changed=True) < 0.6
    assert memory(*steady, 30 * DAY, changed=False) > 0.98
    found = learned(one(steady[0]), one(steady[1]), one(30.0 * DAY), few, one(np.nan))
    assert (found[0] / found[1])[0] * DAY > 2 / 1100


@pytest.mark.parametrize("changed", [True, False])
def test_what_hardly_ever_happens_is_learned_as_if_nothing_had_been_known(changed: bool) -> None:
    """A page of an old date that changes within the hour, one that changed each minute and stops:
    the mean is not kept.
    """
    waited, few, none = one(3600.0), np.array([changed]), one(np.nan)
    wrong = (one(0.5), one(1e7)) if changed else (one(50.0), one(3000.0))
    found = learned(*wrong, waited, few, none)
    anew = learned(one(0.5), waited / 2, waited, few, none)
    kept = memory(0.5, 1800.0, 3600.0, changed=changed)
    assert found[0] / found[1] == pytest.approx(anew[0] / anew[1], rel=0.2)
    assert kept > 0.9  # what is new is not forgotten at once


def test_an_old_page_that_begins_to_change_is_known_after_a_hundred_visits() -> None:
    """Rates of the last 80, and of the first 5 after the beginning."""
    chance = np.random.default_rng(3)
    shape, time, none = np.full(50, 0.5), np.full(50, 1000.0 * DAY), np.full(50, np.nan)
    early, late = list[float](), list[float]()
    for visit in range(100):
        changed = chance.random(50) < -np.expm1(-0.5)
        shape, time = learned(shape, time, np.full(50, 600.0), changed, none)
        (early if visit < 5 else late if visit >= 20 else []).append((shape / time).mean() * 1200)
    assert early[-1] > 0.5
    assert np.mean(late) == pytest.approx(1, rel=0.15)


def test_no_change_and_a_dated_one() -> None:
    waited, shape, time = np.full(2, 5.0 * DAY), np.full(2, 2.0), np.full(2, 10.0 * DAY)
    found = learned(shape, time, waited, np.array([False, True]), np.array([np.nan, 1.0 * DAY]))
    same, dated = (memory(2, 10 * DAY, 5 * DAY, changed=changed) for changed in (False, True))
    assert found[0] == pytest.approx([2 * same, 2 * dated + 1])
    assert found[1] == pytest.approx([(10 * same + 5) * DAY, (10 * dated + 1) * DAY])


@pytest.mark.parametrize("rate", [0.02, 0.2, 1.0])
def test_irregular_visits_come_to_the_rate_of_greatest_likelihood(rate: float) -> None:
    """200 pages, 60 visits each; the maximum is that of Cho and Garcia-Molina's likelihood, over
    all pages. The last visits count most, so that single pages stay vague.
    """
    chance = np.random.default_rng(5)
    shape, time = np.full(200, 0.5), np.full(200, 15.0 * DAY)
    same, waits = 0.0, []
    for _ in range(60):
        waited = chance.uniform(0.2, 2.0, 200) / rate
        changed = chance.random(200) < -np.expm1(-rate * waited)
        shape, time = learned(shape, time, waited * DAY, changed, np.full(200, np.nan))
        same += waited[~changed].sum()
        waits.append(waited[changed])
    changes = np.concatenate(waits)
    low, high = rate / 10, rate * 10
    for _ in range(60):
        middle = math.sqrt(low * high)
        slope = (changes / np.expm1(middle * changes)).sum() - same
        low, high = (middle, high) if slope > 0 else (low, middle)
    assert (shape / time * DAY).mean() == pytest.approx(low, rel=0.15)


# -- what a request is worth -----------------------------------------------------------------------


def test_worth_is_what_one_more_request_adds() -> None:
    """The slope of the expected freshness by the number of requests; that of a page whose rate is
    known is `rates.gain`.
    """
    rate = np.random.default_rng(1).gamma(3.0, 1 / (2.0 * DAY), 200_000)

    def fresh_share(interval: float) -> float:
        return float((-np.expm1(-rate * interval) / (rate * interval)).mean())

    for interval in (0.2 * DAY, DAY, 9.0 * DAY):
        more = 1 / interval * 1.001
        slope = (fresh_share(1 / more) - fresh_share(interval)) / (more - 1 / interval)
        assert worth_of(one(3.0), one(2.0 * DAY), one(interval))[0] == pytest.approx(
            slope, rel=0.02
        )
        known = worth_of(one(1e6), one(1e6 * DAY), one(interval))[0]
        assert known == pytest.approx(float(gain(one(interval / DAY))[0]) * DAY, rel=1e-4)
        near = [worth_of(one(1 + by), one(DAY), one(interval))[0] for by in (-1e-6, 0.0, 1e-6)]
        assert near[1] == pytest.approx(near[0], rel=1e-4) == pytest.approx(near[2], rel=1e-4)


def test_the_multiplier_spends_the_budget() -> None:
    chance = np.random.default_rng(2)
    shape, time = chance.gamma(2.0, 5.0, 500) + 0.1, chance.lognormal(13, 2, 500)
    pages = by_chance(shape, time, chance.lognormal(0, 1, 500))
    count = chance.integers(1, 9, 500).astype(float)
    for a_day in (50.0, 500.0, 5000.0):
        worth = pages.multiplier(count, a_day / DAY, BOUNDS)
        intervals = pages.intervals(np.full(500, worth), BOUNDS)
        assert (count / intervals).sum() * DAY == pytest.approx(a_day, rel=0.01)
    floor = (count / BOUNDS[1]).sum() * DAY  # each page once in the longest interval
    worth = pages.multiplier(count, floor / 2 / DAY, BOUNDS)
    assert (pages.intervals(np.full(500, worth), BOUNDS) > BOUNDS[1] / 2).all()


def test_a_page_that_changes_too_often_waits_longer_than_one_of_unknown_rate() -> None:
    rates = np.array([0.01, 0.1, 1.0, 100.0])
    worth = np.full(4, DAY / 5)
    known = by_chance(np.full(4, 1e4), 1e4 * DAY / rates, np.ones(4))
    found = known.intervals(worth, BOUNDS) / DAY
    assert found[1] < found[0] and found[2] < 1
    # what nobody can keep fresh gets younger: at about 4 times the worth of a request
    assert found[3] == pytest.approx(0.8, rel=0.05)
    vague = by_chance(one(0.5), one(0.5 * DAY / 100), one(1.0)).intervals(worth[:1], BOUNDS) / DAY
    assert vague[0] < found[3]
    # and a copy of a page of a low score, too: T² goes by the fourth root of scores
    pair = by_chance(np.full(2, 1e4), np.full(2, 100 * DAY), np.array([1.0, 1e-4]))
    intervals = pair.intervals(worth[:2], BOUNDS)
    assert intervals[1] / intervals[0] == pytest.approx(10**0.5, rel=0.05)


# -- clocks ----------------------------------------------------------------------------------------


def followed(moments: Floats, days: float) -> tuple[list[float], Clocks]:
    """Visits to a page that changes at these times (days), as its clocks plan them or about each
    third of a day; returns when they were.
    """
    found, now, known, last = [0.0], 0.0, Clocks.of(pl.Series([""])), 0.0
    shape, time = one(0.5), one(0.5 * DAY)
    while now < days:
        _, wait = known.plan(one(now * DAY), one(now % 1))
        now += 0.37 if np.isnan(wait[0]) else wait[0] / DAY
        changed, waited = np.array([((moments > last) & (moments <= now)).any()]), now - last
        same = np.exp(-shape * np.log1p(waited * DAY / time))
        chance = 1 - same if changed[0] else same
        told = known.after(one(now * DAY), one(waited * DAY), changed, chance)
        shape, time = learned(shape, time, one(waited * DAY), changed, one(np.nan))
        known, last = Clocks.of(told.texts()), now
        assert all(
            np.allclose(kept, each, rtol=1e-6, atol=0.05)
            for kept, each in zip(known, told, strict=True)
        )
        found.append(now)
    return found, known


@pytest.mark.parametrize(("period", "phase"), [(1.0, 0.3), (7.0, 0.9), (7.0, 5.2)])
def test_a_page_that_keeps_time_is_asked_for_soon_after_its_change(
    period: float, phase: float
) -> None:
    days = 30 * period
    moments = np.arange(phase, days, period)
    visits, known = followed(moments, days)
    assert known.plan(one(0), one(1))[0][0] == period * DAY
    later = [visit for visit in visits if visit > days / 2]
    assert len(later) < 1.5 * days / 2 / period  # hardly any request in vain
    waits = [
        min(visit for visit in later if visit >= moment) - moment
        for moment in moments
        if days / 2 < moment < later[-1]
    ]
    assert sum(waits) / len(waits) < 0.1 * period


def test_a_clock_may_slip_and_stop() -> None:
    """One change an hour late is forgiven; what keeps no time any more is left to chance."""
    days = np.arange(0.3, 40, 1.0)
    slipped = np.where(days.astype(int) == 20, days + 1.5 / 24, days)
    assert followed(slipped, 40)[1].plan(one(0), one(1))[0][0] == DAY
    assert followed(days[:20], 80)[1].plan(one(0), one(1))[0][0] == 0


def test_who_changes_all_the_time_or_never_keeps_no_time() -> None:
    always, never = np.arange(0, 60, 0.01), np.array([])
    assert followed(always, 60)[1].plan(one(0), one(1))[0][0] == 0
    assert followed(never, 60)[1].plan(one(0), one(1))[0][0] == 0


def test_chance_seldom_looks_like_a_clock() -> None:
    """Pages that change once a day by chance, for 30 days each."""
    taken, seeds = 0, range(20)[every(4) - 1 :: every(4)]
    for seed in seeds:
        moments = np.sort(np.random.default_rng(seed).uniform(0, 30, 30))
        visits, _ = followed(moments, 30)
        taken += len(visits) < 60  # of 82, each third of a day
    assert taken <= len(seeds) / 10


@settings(max_examples=examples(30))
@given(
    st.lists(
        st.tuples(st.floats(1, 40 * DAY), st.booleans(), st.floats(1e-9, 1)),
        min_size=1,
        max_size=12,
    )
)
def test_any_history_fits_its_text(visits: list[tuple[float, bool, float]]) -> None:
    known, now = Clocks.of(pl.Series([""])), 1e9
    for waited, changed, chance in visits:
        now += waited
        known = known.after(one(now), one(waited), np.array([changed]), one(chance))
        (text,) = known.texts()
        assert text == "" or pl.Series([text]).str.contains(f"^{habits.TEXT}$").item()
        again = Clocks.of(pl.Series([text]))
        assert (again.bits == known.bits).all()
        assert np.abs(again.odds - known.odds).max() <= 0.051
        period, wait = again.plan(one(now), one(now % 1))
        assert (period[0] == 0) == np.isnan(wait[0])
        assert period[0] == 0 or 0 < wait[0] <= period[0]


def test_many_pages_are_told_of_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clocks of 300,000 pages at once took 0.5 GB."""
    texts, found = pl.Series([""] * 7), []
    for pieces in (7, 2):
        monkeypatch.setattr(habits, "_AT_ONCE", pieces)
        told, now = texts, 1e9
        for turn in range(6):
            waited = np.array([1e4 * (1 + row % 5 + turn) for row in range(7)])
            now += 1e5
            changed = np.arange(7) % 3 != turn % 3
            told = after_visits(told, np.full(7, now), waited, changed, np.full(7, 0.3))
        found.append((told.to_list(), *next_visits(told, np.full(7, now), np.zeros(7))))
    assert found[0][0] == found[1][0] and len(set(found[0][0])) > 3
    for one, other in zip(found[0][1:], found[1][1:], strict=True):
        assert np.array_equal(one, other, equal_nan=True)


def test_many_equal_pages_that_keep_time_share_a_budget() -> None:
    """A budget that suffices for half of them is spent on half of them, by the chance of URLs."""
    count, week = 1000, 7.0 * DAY
    ones = np.ones(count)
    pages = by_chance(ones * 1e4, ones * 1e4 * week, ones)._replace(
        period=ones * week, kept=kept_share((np.arange(count) + 0.5) / count)
    )
    worth = pages.multiplier(ones, count / 2 / week, BOUNDS)
    taken = pages.timely(worth)
    intervals = pages.intervals(ones * worth, BOUNDS)
    asked = taken.sum() / week + (1 / intervals[~taken]).sum()
    assert asked == pytest.approx(count / 2 / week, rel=0.02)
    assert 0.1 * count < taken.sum() < 0.5 * count


def test_those_of_equal_pages_that_are_asked_for_in_time_are_counted_as_such() -> None:
    """They alone are found to keep time again, so that soon all that keep time are of a kind that
    is worth it: a seventh more than the budget was spent on pages that changed at each visit.
    """
    count, day = 100, 1.0 * DAY
    ones = np.ones(count)
    pages = by_chance(ones, ones * 10 * day, ones)._replace(
        period=np.where(np.arange(count) < 50, day, 0.0),
        kept=np.where(np.arange(count) < 50, kept_share(ones), 0.0),
    )
    worth = pages.multiplier(ones, 70 / day, (60.0, 90 * day))
    assert pages.timely(worth).sum() == 50
    asked = 50 / day + (1 / pages.intervals(ones * worth, (60.0, 90 * day))[50:]).sum()
    assert asked == pytest.approx(70 / day, rel=0.02)
