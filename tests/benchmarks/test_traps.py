"""The web of traps, and a crawl of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.traps.__main__ import crawl, served
from tests.benchmarks.traps.web import answer, contents_of, sites


def test_the_web() -> None:
    web = sites(100)
    assert len(contents_of(web["catalogue"])) == 1 + 5 + 100
    assert len(contents_of(web["wiki"])) == 1 + 5 * 20
    for name in ("calendar", "facets", "maze", "tarpit", "noise", "relative", "softecho"):
        seen, targets = set[str](), ["/"]
        while targets and len(seen) < 1500:
            target = targets.pop()
            new = set(answer(web[name], target).links) - seen
            targets += sorted(new)
            seen |= new
        assert len(seen) >= 1500, name  # as good as endless
        assert len(contents_of(web[name])) == 20
    assert answer(web["softhome"], "/nothing").location == "/"
    assert answer(web["catalogue"], "/item?id=x").status == 404
    first = answer(web["session"], "/").links[0]
    assert answer(web["session"], first).content == "session page 0"


@pytest.mark.slow
def test_a_budget_finds_more_with_the_same_requests(tmp_path: Path) -> None:
    good = []
    for budget in ("-1", "20"):
        folder = tmp_path / budget
        folder.mkdir()
        with served(sites(60)) as server:
            crawl(server, folder, budget=budget, rounds=7, cap=900)
            assert 400 < server.asked.total() <= 900 + 22
            good.append(server.good.total() / server.asked.total())
    assert good[1] > good[0]
