"""Compares fetch schedules over one history of changes and one number of requests.

    python -m tests.benchmarks.freshness [--pages 1000] [--days 360] [--rounds 4] [--budget 0.1]
        [--seed 1] [--only e] [--real]

Each workload is a seeded web of pages whose moments of change are drawn once; all schedules crawl
it by `forecast`, with the same number of requests a day at most. Prints a table in Markdown: the
share of copies that were fresh, by score, over the days after the burn-in, what share of the
optimum that is, and the days for which copies were out of date. The optimum knows all rates, as if
changes were left to chance; a page that changes by the clock is fresh for less of the time at any
fixed interval, so that it bounds those, too. `known` is the same simulation with its intervals, and
`own` gives the schedule, in place of the workload's budget, the number of requests that the
adaptive schedule made when nothing bounded it.

--real crawls the changing web of `tests.benchmarks.lasting` by `minutch crawl`, round by round, its
clock set in between: some pages always change, some are slow, dates are right, wrong or missing,
pages are born, move, vanish, and hosts die. The adaptive schedule has the rates of those tried that
suit this web and budget best; the other one is given as many requests as those of that one which
found a page: what is gone, or elsewhere, comes on top of its budget.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minutch.annexes.simulate.forecast import (
    DAY,
    Forecast,
    ForecastOptions,
    ForecastPages,
    forecast,
)
from minutch.conf import Configuration
from minutch.cycle.crawldb.schedule import PROPERTY, fetch_schedule
from minutch.inspect.report.rates import Floats, Ints, best
from minutch.records import crawldatum as status
from minutch.records.crawldatum import CrawlDatum
from minutch.records.crawldatum_columns import to_frame
from tests.benchmarks.lasting import steps
from tests.benchmarks.lasting.history import History, LifePlan
from tests.benchmarks.lasting.ideal import Schedule

NOW: Final = 1_800_000_000_000
_LONG: Final = 1e5
"""Days in which a beginning and an end do not count."""
_VIEWS: Final = 500
"""Moments at which copies of a real crawl are looked at."""
_YEARS: Final = 10 * 365 * 86_400
_CLASSES: Final = {
    "default": "org.apache.nutch.crawl.DefaultFetchSchedule",
    "known": "org.apache.nutch.crawl.DefaultFetchSchedule",
    "adaptive": "org.apache.nutch.crawl.AdaptiveFetchSchedule",
    "fresh": "minutch.cycle.crawldb.fresh:FreshnessFetchSchedule",
}


@dataclass(frozen=True)
class Workload:
    """Pages, and when each of them changes."""

    moments: list[Floats]
    """Days, ascending, by page."""
    rate: Floats
    """Changes a day in the days that are measured."""
    score: Floats
    born: Floats
    """Days."""
    aged: float = 0.0
    """Days before the beginning that pages have as their date; 0: none has one."""

    def pages(self, interval: Floats | float) -> ForecastPages:
        """Returns new pages, whose interval is at first `interval` days."""
        days = np.broadcast_to(interval, len(self.rate))
        entries = [
            (
                f"http://h{number % 97}.example/{number}",
                CrawlDatum(
                    status.STATUS_DB_UNFETCHED,
                    max(1, round(min(days[number], 3650.0) * 86_400)),
                    float(self.score[number]),
                    NOW + round(self.born[number] * DAY),
                    modified_time=NOW - round(self.aged * DAY) if self.aged else 0,
                ),
            )
            for number in range(len(self.rate))
        ]
        frame = to_frame(entries)
        hashes = np.arange(1, len(frame) + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        ranks = np.lexsort((hashes, -self.score)).argsort().astype(np.uint64)
        return ForecastPages(frame, self.rate, np.zeros(len(frame)), hashes, ranks)


class DrawnChanges:
    """The moments of a workload while a forecast runs: `forecast.PageChanges`."""

    def __init__(self, work: Workload, step: float) -> None:
        self._step, self._now = step, 0.0
        self._flat = np.concatenate([*work.moments, [np.inf]])
        self._ends = np.cumsum([len(one) for one in work.moments])
        self._born, self._fetched = work.born, np.full(len(work.rate), np.nan)
        self._at = self._ends - [len(one) for one in work.moments]
        """Of each page, the first change after its fetch."""

    def _next(self) -> Floats:
        found = np.where(self._at < self._ends, self._flat[self._at], np.inf)
        return np.where(np.isnan(self._fetched), self._born, found)  # no copy is as one that is old

    def visit(self, rows: Ints, number: int) -> tuple[NDArray[np.bool_], float]:
        first = self._next()[rows]
        for row in rows:
            while self._at[row] < self._ends[row] and self._flat[self._at[row]] <= self._now:
                self._at[row] += 1
        self._fetched[rows] = self._now
        return first <= self._now, 0.0

    def wait(self) -> tuple[Floats, Floats]:
        end = self._now + self._step
        first = np.maximum(self._next(), self._born)
        fresh = np.clip(first - self._now, 0.0, self._step)
        late = np.clip(end - first, 0, None) ** 2 / 2 - np.clip(self._now - first, 0, None) ** 2 / 2
        self._now = end
        return np.where(np.isnan(self._fetched), 0.0, fresh), np.nan_to_num(late)


# -- the workloads ---------------------------------------------------------------------------------


def _drawn(chance: np.random.Generator, rate: Floats, first: float, last: float) -> list[Floats]:
    """Draws the moments of pages that change by chance."""
    counts = chance.poisson(rate * (last - first))
    return [np.sort(chance.uniform(first, last, count)) for count in counts]


def _lognormal(chance: np.random.Generator, count: int, spread: float = 1.5) -> Floats:
    return np.exp(chance.normal(np.log(0.05), spread, count))


def _by_chance(chance: np.random.Generator, rate: Floats, days: int, score: Floats) -> Workload:
    moments = _drawn(chance, rate, 0, days)
    return Workload(moments, rate, score / score.mean(), np.zeros(len(rate)))


def _steady_and_restless(chance: np.random.Generator, count: int, days: int) -> Workload:
    rate = _lognormal(chance, count, 1.0)
    rate[: count * 3 // 10], rate[-count // 5 :] = 1e-6, 24.0
    return _by_chance(chance, rate, days, np.ones(count))


def _periodic(chance: np.random.Generator, count: int, days: int) -> Workload:
    period = np.where(np.arange(count) % 2, 1.0, 7.0)
    phase = chance.uniform(0, 1, count) * period
    moments = [np.arange(first, days, step) for first, step in zip(phase, period, strict=True)]
    rate = 1 / period
    others = slice(0, count // 2)  # the rest is as everywhere
    rate[others] = _lognormal(chance, count // 2)
    moments[others] = _drawn(chance, rate[others], 0, days)
    return Workload(moments, rate, np.ones(count), np.zeros(count))


def _arriving(chance: np.random.Generator, count: int, days: int) -> Workload:
    work = _by_chance(chance, _lognormal(chance, count), days, np.ones(count))
    born = np.where(np.arange(count) % 2, chance.uniform(0, days, count), 0.0)
    return replace(work, born=born)


def _shifting(chance: np.random.Generator, count: int, days: int) -> Workload:
    """All rates change places after a quarter of the time, as different as before."""
    before, after = _lognormal(chance, count), _lognormal(chance, count)
    first, then = _drawn(chance, before, 0, days / 4), _drawn(chance, after, days / 4, days)
    moments = [np.concatenate(pair) for pair in zip(first, then, strict=True)]
    return Workload(moments, after, np.ones(count), np.zeros(count))


def _dated(chance: np.random.Generator, count: int, days: int) -> Workload:
    """All pages have the date of their site's last move, years before they began to change."""
    return replace(_scored(0.0)(chance, count, days), aged=5000.0)


def _power(chance: np.random.Generator, count: int, days: int) -> Workload:
    rate = np.minimum(0.01 * (1 + chance.pareto(1.0, count)), 20.0)
    return _by_chance(chance, rate, days, np.ones(count))


def _scored(power: float) -> Callable[[np.random.Generator, int, int], Workload]:
    def make(chance: np.random.Generator, count: int, days: int) -> Workload:
        rate = _lognormal(chance, count)
        return _by_chance(chance, rate, days, rate**power)

    return make


WORKLOADS: Final[Mapping[str, Callable[[np.random.Generator, int, int], Workload]]] = {
    "a: rates lognormal": _scored(0.0),
    "a: rates by a power law": _power,
    "b: scores rise with rates": _scored(0.7),
    "b: scores fall with rates": _scored(-0.7),
    "c: 30 % never, 20 % always change": _steady_and_restless,
    "d: half change daily or weekly": _periodic,
    "e: half arrive later": _arriving,
    "f: rates shift": _shifting,
    "g: dates of years ago": _dated,
}


# -- the comparison --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Form:
    """How large a comparison is; the first `burn_in` days are left out of all figures."""

    pages: int
    days: int
    rounds: int
    budget: float
    """Requests a day for each page."""
    burn_in: int
    seed: int = 1


@dataclass(frozen=True)
class Outcome:
    """What a schedule reached, on average over the days that are measured."""

    fresh: float
    """The share of copies that were fresh, by score."""
    late: float
    """Days out of date."""
    requests: float
    """A day."""


def made(name: str, form: Form) -> Workload:
    """Returns the workload of this name."""
    return WORKLOADS[name](np.random.default_rng(form.seed), form.pages, form.days)


def optimum(work: Workload, budget: float) -> tuple[float, Floats]:
    """Returns the share of fresh copies that `budget` requests a day can reach, and the intervals
    (days) by which they do, if changes are left to chance.
    """
    share = work.score / work.score.sum()
    plan = best(work.rate, np.zeros(len(share)), _LONG, budget * _LONG, share)
    with np.errstate(divide="ignore"):
        return plan.fresh_days / _LONG, _LONG / plan.fetches


def bound(work: Workload, form: Form, budget: float) -> float:
    """Returns the share of fresh copies that nobody can exceed who knows all rates, but no moment,
    on average over the days that are measured; the first fetches of new pages are paid from the
    budget.
    """
    found = []
    for day in np.linspace(form.burn_in, form.days, 8):
        there = work.born <= day
        some = replace(work, rate=work.rate[there], score=work.score[there])
        found.append(optimum(some, budget - (work.born > 0).sum() / form.days)[0])
    return float(np.mean(found))


def ran(schedule: str, work: Workload, form: Form, budget: float | None) -> Outcome:
    """Runs a schedule within a number of requests a day."""
    asked = form.pages * form.budget if budget is None else budget
    interval: Any = len(work.rate) / asked if schedule == "default" else 30.0
    # what is further ahead than db.fetch.interval.max is due at once: unborn pages counted as fresh
    longest = _YEARS if schedule == "known" else max(90, math.ceil(work.born.max())) * 86_400
    if schedule == "known":
        interval = optimum(work, asked)[1]
    conf = Configuration.load([]).with_values(
        {
            PROPERTY: _CLASSES[schedule],
            "db.fetch.schedule.fresh.budget": str(asked - (work.born > 0).sum() / form.days),
            "db.fetch.interval.max": str(longest),
        }
    )
    most = budget if schedule == "adaptive" else None  # the others keep to it by themselves
    options = ForecastOptions(NOW, form.days, form.rounds, most)
    changes = DrawnChanges(work, options.step)
    pages = work.pages(interval)
    found = forecast(fetch_schedule(conf), pages, options, longest, changes=changes)
    return _outcome(found, work, form)


def _outcome(found: Forecast, work: Workload, form: Form) -> Outcome:
    days = slice(form.burn_in, None)
    alive = np.array(
        [work.score[work.born <= day].sum() / work.score.sum() for day in range(form.days)]
    )
    return Outcome(
        float((found.weighted[days] / alive[days]).mean()),
        float(found.late[days].mean()),
        float(found.fetches[days].mean()),
    )


# -- in a real crawl -------------------------------------------------------------------------------


def web_of(form: Form) -> LifePlan:
    """Returns the plan of a changing web of this size."""
    return LifePlan(
        hosts=max(3, form.pages // 20),
        pages=form.pages,
        delay=0.0,
        skew=0.35,
        median=0.0,
        seed=form.seed,
        span=form.days * steps.DAY,
        shortest=steps.DAY,
        later=1,
        mixed=True,
        set_too=True,
    )


def crawled(form: Form, folder: Path, properties: Mapping[str, str]) -> tuple[Outcome, float, int]:
    """Crawls this web; returns what came of it, the share that the optimum would have reached with
    as many requests for pages that count, and how many found any page in the second half.
    """
    plan = web_of(form)
    folder.mkdir()
    visits, late = steps.crawled(plan, folder, properties, form.days * form.rounds)
    history = History(plan)
    lives = [history.life(slot) for slot in visits]
    days = [np.array(mine) / steps.DAY for mine in visits.values()]
    first = np.array([mine[0] for mine in days])
    work = Workload(
        [np.array(life.changes) / steps.DAY for life in lives],
        np.maximum([life.rate * steps.DAY for life in lives], 1e-6),
        np.array([life.score for life in lives]),
        np.where(first < 1 / form.rounds, 0.0, first),
    )
    found = kept(work, days, form)
    return found, bound(work, form, found.requests), late


def kept(work: Workload, visits: list[Floats], form: Form) -> Outcome:
    """Returns what visits (days) of pages have reached, from each page's first one on."""
    at = form.burn_in + (np.arange(_VIEWS) + 0.5) * (form.days - form.burn_in) / _VIEWS
    fresh, late, held = (np.zeros((len(visits), _VIEWS)) for _ in range(3))
    for row, (mine, moments) in enumerate(zip(visits, work.moments, strict=True)):
        last = mine[np.maximum(np.searchsorted(mine, at, side="right") - 1, 0)]
        changed = np.append(moments, np.inf)[np.searchsorted(moments, last, side="right")]
        held[row] = at >= mine[0]
        fresh[row] = held[row] * (changed > at)
        late[row] = held[row] * np.maximum(at - changed, 0)
    by = work.score[:, None]
    return Outcome(
        float(((by * fresh).sum(axis=0) / (by * held).sum(axis=0)).mean()),
        float((late.sum(axis=0) / held.sum(axis=0)).mean()),
        sum((one >= form.burn_in).sum() for one in visits) / (form.days - form.burn_in),
    )


def compared(form: Form, folder: Path) -> dict[str, tuple[Outcome, float]]:
    """Crawls this web with both schedules and as many requests; returns what came of it, and the
    optimum of each.
    """
    day, asked = steps.DAY, form.budget * form.pages
    least, longest = day / form.rounds, 90 * day
    tried = Schedule(least, round(day / form.budget), 0.8 * longest)
    best_one = steps.tuned(History(web_of(form)), tried, asked / day)
    name = "db.fetch.schedule"
    properties = {
        PROPERTY: _CLASSES["adaptive"],
        "db.fetch.interval.default": f"{best_one.default:.0f}",
        "db.fetch.interval.max": f"{longest:.0f}",
        f"{name}.adaptive.sync_delta": "false",  # it believes wrong dates
        f"{name}.adaptive.min_interval": f"{least:.0f}",
        f"{name}.adaptive.max_interval": f"{best_one.longest:.0f}",
        f"{name}.adaptive.inc_rate": str(best_one.inc_rate),
        f"{name}.adaptive.dec_rate": str(best_one.dec_rate),
    }
    came, most, requests = crawled(form, folder / "adaptive", properties)
    label = f"adaptive, +{best_one.inc_rate:g} −{best_one.dec_rate:g}"
    found = {label: (came, most)}
    budget = requests / (form.days / 2)
    properties |= {PROPERTY: _CLASSES["fresh"], f"{name}.fresh.budget": f"{budget:g}"}
    came, most, _ = crawled(form, folder / "fresh", properties)
    return found | {"fresh": (came, most)}


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=1000)
    parser.add_argument("--days", type=int, default=360)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--budget", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--real", action="store_true", help="crawl a web")
    words = parser.parse_args()
    form = Form(words.pages, words.days, words.rounds, words.budget, words.days // 2, words.seed)
    head = ("workload", "schedule", "fresh", "of the optimum", "days late", "requests a day")
    print("|".join(("", *head, "")), "|".join(("", "---", "---", *["--:"] * 4, "")), sep="\n")
    if words.real:
        with tempfile.TemporaryDirectory() as folder:
            for each, (came, most) in compared(form, Path(folder)).items():
                _print("real", each, came, most)
        return
    budget = form.budget * form.pages
    for name in WORKLOADS:
        if not name.startswith(words.only):
            continue
        work = made(name, form)
        known = ran("known", work, form, budget)
        top = bound(work, form, budget)
        rows = {each: ran(each, work, form, budget) for each in ("default", "adaptive", "fresh")}
        own = ran("adaptive", work, form, None)
        rows |= {"known": known, "adaptive, own": own}
        rows["fresh, own"] = ran("fresh", work, form, own.requests)
        for each, came in rows.items():
            most = bound(work, form, own.requests) if each.endswith(", own") else top
            _print(name, each, came, most)


def _print(name: str, schedule: str, came: Outcome, most: float) -> None:
    shares = f"{came.fresh:.3f}|{came.fresh / most:.3f}"
    print(f"|{name}|{schedule}|{shares}|{came.late:.2f}|{came.requests:.1f}|", flush=True)


if __name__ == "__main__":
    main()
