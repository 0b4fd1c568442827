"""The schedule for freshness over hundreds of rounds, beside the adaptive one and the optimum."""

from __future__ import annotations

import pytest

from tests.benchmarks.freshness import WORKLOADS, Form, bound, made, ran

FORM = Form(pages=300, days=200, rounds=1, budget=0.1, burn_in=100)
LEAST = {"d: half change daily or weekly": 0.85}
"""Shares of the optimum below 0.95. Where pages that are asked for every ten days change once a
week by the clock, each visit finds a change: it takes long to tell them from those that change
daily, for the rates are learnt as if changes came by chance.
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload(name: str) -> None:
    work, budget = made(name, FORM), FORM.pages * FORM.budget
    adaptive, fresh = (ran(each, work, FORM, budget) for each in ("adaptive", "fresh"))
    assert fresh.fresh > adaptive.fresh
    assert fresh.requests < 1.05 * budget
    assert fresh.fresh > LEAST.get(name, 0.95) * bound(work, FORM, budget)
