"""The benchmark of schedules in a real crawl: what it counts, and a short run."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks.freshness import Form, Workload, compared, kept, web_of
from tests.benchmarks.lasting.history import PRESENT, History
from tests.benchmarks.lasting.ideal import Schedule, counted
from tests.benchmarks.lasting.steps import DAY, tuned

FORM = Form(pages=60, days=16, rounds=1, budget=0.25, burn_in=8)


def test_copies_count_from_the_first_visit_on_by_score() -> None:
    form = Form(pages=3, days=20, rounds=1, budget=0.1, burn_in=10)
    moments = [np.array([5.0, 15.0]), np.array([]), np.array([12.0])]
    work = Workload(moments, np.ones(3), np.array([3.0, 1.0, 1.0]), np.zeros(3))
    found = kept(work, [np.array([0.0, 6.0]), np.array([15.0]), np.array([0.0, 14.0])], form)
    # days 10 to 12, 12 to 14, 14 to 15, 15 to 20: what is held and fresh, by score
    shares = (2 * 4 / 4, 2 * 3 / 4, 1 * 4 / 4, 5 * 2 / 5)
    assert found.fresh == pytest.approx(sum(shares) / 10, abs=0.01)
    late = (2 * 1 / 2, 5 * 2.5 / 3)  # copies were out of date for 1 and 2.5 days on average
    assert found.late == pytest.approx(sum(late) / 10, abs=0.01)
    assert found.requests == 0.2


def test_a_mixed_web_has_what_schedules_stumble_over() -> None:
    plan = replace(web_of(FORM), pages=400)
    history = History(plan)
    lives = [history.life(slot) for slot in counted(history)]
    restless = np.mean([life.rate * DAY > 20 for life in lives])
    wrong = np.mean([life.validator == PRESENT for life in lives])
    assert 0.05 < restless < 0.15 and 0.05 < wrong < 0.15
    assert np.std(np.log([life.score for life in lives])) > 0.5
    assert all(life.score == 1 for life in lives if life.born)
    changed = sum(np.searchsorted(life.changes, plan.span) for life in lives)
    assert changed == pytest.approx(sum(life.rate * (plan.span - life.born) for life in lives), 0.1)
    ordinary = History(replace(plan, mixed=False))
    assert {page.score for page in ordinary.lives if page is not None} == {1.0}


def test_rates_are_chosen_that_suit_the_budget() -> None:
    history = History(web_of(replace(FORM, pages=30)))
    first = Schedule(DAY, 10 * DAY, 70 * DAY)
    scarce, ample = (tuned(history, first, pages * len(counted(history)) / DAY)
                     for pages in (0.1, inf))  # fmt: skip
    assert scarce.inc_rate / scarce.dec_rate > ample.inc_rate / ample.dec_rate


@pytest.mark.slow
def test_a_short_crawl_with_each_schedule(tmp_path: Path) -> None:
    """The schedule for freshness spends what it is given, and keeps copies fresh by it."""
    (adaptive, _), (fresh, most) = compared(FORM, tmp_path).values()
    assert fresh.requests < 1.2 * adaptive.requests
    assert fresh.fresh > 0.85 * most
