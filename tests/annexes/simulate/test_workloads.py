"""The schedule for freshness over hundreds of rounds, beside the adaptive one and the optimum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.benchmarks.freshness import WORKLOADS, Form, bound, made, ran

FORM = Form(pages=300, days=200, rounds=1, budget=0.1, burn_in=100)
BY_CLOCK = "d: half change daily or weekly"
"""Who knows when pages change exceeds the optimum of those who know how often."""


@pytest.mark.slow
@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload(name: str) -> None:
    """Above the optimum, by more than a web of 300 pages differs from its rates, a figure is wrong:
    copies of unborn pages counted, and made it 1.17.
    """
    work, budget = made(name, FORM), FORM.pages * FORM.budget
    adaptive, fresh = (ran(each, work, FORM, budget) for each in ("adaptive", "fresh"))
    assert fresh.fresh > adaptive.fresh
    assert fresh.requests < 1.05 * budget
    most = 1.15 if name == BY_CLOCK else 1.02
    assert 0.95 < fresh.fresh / bound(work, FORM, budget) < most
    assert fresh.late < adaptive.late  # days out of date


def test_copies_count_from_the_birth_of_their_pages() -> None:
    """Of pages that never change and are born all the time, by rounds a day apart."""
    form = Form(pages=20, days=120, rounds=1, budget=2.0, burn_in=1)
    work = replace(made("e: half arrive later", form), moments=[np.zeros(0)] * 20)
    late = np.floor(work.born) + (work.born > 0)  # the first round after the birth
    days = np.arange(1, 120)[:, None]
    expected = ((late <= days).sum(axis=1) / (work.born <= days).sum(axis=1)).mean()
    assert ran("default", work, form, None).fresh == pytest.approx(expected)
