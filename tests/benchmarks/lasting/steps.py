"""Crawls a web that changes for months: whenever nothing is due, the clock is set forward.

The web's time goes with the machine's clock (`LifePlan.set_too`), so that a round takes seconds and
the next one comes hours or days later.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from tests.benchmarks.broad.requestlog import now, read
from tests.benchmarks.broad.runs import Crawl
from tests.benchmarks.broad.server import serving
from tests.benchmarks.lasting import server
from tests.benchmarks.lasting.clock import MachineClock
from tests.benchmarks.lasting.history import NOT_MODIFIED, OK, History, LifePlan
from tests.benchmarks.lasting.ideal import Schedule, answered, counted, freshness, ideal
from tests.benchmarks.measure import Failed

DAY: Final = 86_400.0
Visits = Mapping[int, list[float]]
"""Slot → seconds after the begin at which the page was answered."""
_PLUGINS: Final = (
    "protocol-http|urlfilter-(regex|validator)|parse-html|urlnormalizer-(pass|regex|basic)"
)
_RATES: Final = (0.05, 0.1, 0.2, 0.4, 0.8)
"""inc_rate and dec_rate that are tried."""
_ROUNDS: Final = 1_000_000
_VIEWS: Final = 100


class _Stepped(Crawl):
    """A crawl whose clock is set whenever nothing is due."""

    def run(self, history: History, clock: MachineClock, step: float, steps: int) -> list[int]:
        """Crawls from all pages that are there at the beginning, with their scores, until nothing
        is due after so many steps of `step` seconds; returns when each began (µs, true time).
        """
        begun = [now()]
        seeds = self._seeds(_with_scores(history, self._serving.port))
        with (
            (self._folder / "crawl.err").open("wb") as err,
            subprocess.Popen(
                self._words("crawl", "-s", seeds, "-w", "1", "crawl", str(_ROUNDS)),
                cwd=self._folder,
                env={**self._environment, **clock.environment},
                stdout=subprocess.PIPE,
                stderr=err,
                text=True,
            ) as process,
        ):
            assert process.stdout is not None
            for line in process.stdout:
                if not line.strip().startswith("Waiting for"):
                    continue
                if len(begun) == steps:
                    (self._folder / "crawl" / ".STOP").touch()
                    steps = _ROUNDS
                elif steps < _ROUNDS:
                    clock.ahead = len(begun) * step
                    begun.append(now())
        if process.returncode or len(begun) < steps < _ROUNDS:
            log = (self._folder / "crawl.err").read_text(errors="replace")[-3000:]
            raise Failed(f"the crawl ended with exit code {process.returncode}\n{log}")
        return begun


def _with_scores(history: History, port: int) -> list[str]:
    there = [slot for slot, life in enumerate(history.lives) if life and life.born == 0]
    return [f"{history.url(slot, port)}\tnutch.score={history.life(slot).score}" for slot in there]


def crawled(
    plan: LifePlan, folder: Path, properties: Mapping[str, str], steps: int
) -> tuple[Visits, int]:
    """Crawls a web by so many steps over its span, in an empty folder; returns when each page that
    counts was visited, and how many requests found a page in the second half.
    """
    clock = MachineClock(folder / "clock")
    plan = replace(plan, begin=now())
    history = History(plan)
    given = {
        "plugin.includes": _PLUGINS,
        "fetcher.server.delay": "0",
        "fetcher.min.crawl.delay": "0",
        "http.robots.cache.seconds": f"{30 * DAY:.0f}",
        # The rest of a host that is down lasts for true seconds; until then its pages were listed
        # and left in vain, in hundreds of rounds.
        "http.robots.503.defer.visits.delay": "1000",
        "http.redirect.max": "2",
        **properties,
    }
    step = plan.span / steps
    with serving(plan, folder, server.__name__, clock.environment) as web:
        crawl = _Stepped(folder, web, given)
        begun = crawl.run(history, clock, step, steps)
    requests = read(web.log)
    requests = requests[requests["page"] >= 0]
    if not len(requests):
        raise Failed("the crawl made no request")
    turn = np.searchsorted(begun, requests["begin"], side="right") - 1
    requests["begin"] += np.rint(turn * step * 1e6).astype(np.int64)
    late = requests["status"][requests["begin"] - plan.begin >= plan.span * 5e5]
    held = int(np.isin(late, (OK, NOT_MODIFIED)).sum())
    return answered(requests, history, counted(history)), held


def tuned(history: History, schedule: Schedule, budget: float) -> Schedule:
    """Returns the adaptive schedule whose rates keep copies the freshest, by score, of those that
    make at most `budget` requests a second in the second half, as who knew the web would choose
    them; the thriftiest one, if none does.
    """
    half = history.plan.span / 2
    known = {slot: history.life(slot).born for slot in counted(history)}
    views = (half + (np.arange(_VIEWS) + 0.5) * half / _VIEWS).tolist()
    found = []
    for inc_rate in _RATES:
        for dec_rate in _RATES:
            one = replace(schedule, inc_rate=inc_rate, dec_rate=dec_rate)
            times = ideal(history, known, one, history.plan.span)
            spent = sum(time >= half for mine in times.values() for time in mine) / half
            fresh = weighted(times, known, history, views)
            found.append((spent <= budget, fresh if spent <= budget else -spent, one))
    return max(found, key=lambda one: one[:2])[2]


def weighted(
    times: Mapping[int, list[float]], known: Mapping[int, float], history: History, at: list[float]
) -> float:
    """The share of copies that were fresh at these times, each page by its score."""
    scores = [history.life(slot).score for slot in known]
    shares = [
        np.nanmean(freshness(times, {slot: since}, history, at)) for slot, since in known.items()
    ]
    return float(np.average(shares, weights=scores))
