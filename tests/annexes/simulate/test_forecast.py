"""Forecasts: against closed forms, against a loop over single records, and never above the
bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from minutch.annexes.simulate.forecast import (
    DAY,
    Forecast,
    ForecastOptions,
    ForecastPages,
    forecast,
)
from minutch.conf import Configuration
from minutch.cycle.crawldb.schedule import (
    STATUS_MODIFIED,
    STATUS_NOTMODIFIED,
    STATUS_UNKNOWN,
    AbstractFetchSchedule,
    DefaultFetchSchedule,
    fetch_schedule,
    updated,
)
from minutch.cycle.crawldb.transitions import UpdateSettings, update
from minutch.hadoop.formats.writables import FloatWritable, MapWritable, Text
from minutch.inspect.report.rates import best, uniform
from minutch.records import crawldatum as status
from minutch.records.crawldatum import CrawlDatum
from minutch.records.crawldatum_columns import records, to_frame
from minutch.work.tables.frame import sort_by_key
from minutch.work.tables.recordfiles import pack
from tests.support.examples import few
from tests.support.tables import patched_frame

NOW = 1_800_000_000_000
YEAR = 365 * 86_400
ADAPTIVE = "org.apache.nutch.crawl.AdaptiveFetchSchedule"
MIME = "org.apache.nutch.crawl.MimeAdaptiveFetchSchedule"


class Hourly(DefaultFetchSchedule):
    """A user's schedule, for one record at a time: after a change twice a day, else 5 days."""

    def set_fetch_schedule(self, url: str, datum: CrawlDatum, *arguments: Any) -> None:
        datum.fetch_interval = 43_200 if arguments[-1] == STATUS_MODIFIED else 432_000
        super().set_fetch_schedule(url, datum, *arguments)


def schedule(name: str = "", **settings: str) -> AbstractFetchSchedule:
    values = {"db.fetch.schedule.class": name} if name else {}
    return fetch_schedule(Configuration.load([]).with_values(values | settings))


def pages(
    count: int,
    rate: float | np.ndarray,
    *,
    interval: float = 10.0,
    spread: int = 1,
    metadata: bool = False,
) -> ForecastPages:
    """Pages fetched just now, or at `spread` moments of the last interval; scores vary."""
    ages = (np.arange(count) % spread) / spread * interval
    entries = []
    for number in range(count):
        fetched = NOW - round(ages[number] * DAY)
        datum = CrawlDatum(
            status.STATUS_DB_FETCHED,
            round(interval * 86_400),
            (number * 7 % 11) / 2,
            fetched + round(interval * DAY),
            fetched,
        )
        if metadata and number % 3 == 0:
            datum.metadata = MapWritable({Text("Content-Type"): Text("text/html")})
        elif metadata and number % 7 == 0:
            datum.metadata = MapWritable({Text("fixedInterval"): FloatWritable(200_000.0)})
        entries.append((f"http://h{number % 5}.example/{number}", datum))
    hashes = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    ranks = np.lexsort((hashes, [-datum.score for _, datum in entries])).argsort().astype(np.uint64)
    return ForecastPages(
        to_frame(entries), np.broadcast_to(rate, count).astype(float).copy(), ages, hashes, ranks
    )


# -- closed forms ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.01, 0.1, 1.0])
def test_a_page_of_known_rate_under_a_fixed_interval(rate: float) -> None:
    """Fresh for (1 - exp(-rI)) / rI of the time; fetches that find nothing new exp(-rI); both known
    for 60 years.
    """
    interval, days = 10.0, 200
    found = forecast(
        schedule(), pages(2000, rate, interval=interval), ForecastOptions(NOW, days), YEAR
    )
    x = rate * interval
    assert found.fresh.mean() == pytest.approx((1 - math.exp(-x)) / x, rel=1e-9)
    late = (interval**2 / 2 - interval / rate + (1 - math.exp(-x)) / rate**2) / interval
    assert found.late.mean() == pytest.approx(late, rel=1e-6)
    fetches = found.fetches.sum()
    assert fetches == 2000 * (days / interval - 1)  # at days 10, 20, …, 190
    assert found.unchanged.sum() / fetches == pytest.approx(math.exp(-x), abs=0.01)
    assert found.missed.sum() / fetches == pytest.approx(x - (1 - math.exp(-x)), rel=1e-9)
    assert (found.counts == 19).all() and found.waiting.sum() == 0


def test_rounds_between_days() -> None:
    found = forecast(
        schedule(), pages(50, 0.3, interval=0.5), ForecastOptions(NOW, 20, rounds=4), YEAR
    )
    x = 0.3 * 0.5
    assert found.fresh.mean() == pytest.approx((1 - math.exp(-x)) / x, rel=1e-9)
    assert list(found.fetches) == [50, *[100] * 19]


def test_a_copy_that_is_old_at_the_beginning() -> None:
    some = pages(100, 0.2, interval=10.0)
    some.age[:] = 4.0
    found = forecast(schedule(), some, ForecastOptions(NOW, 6), YEAR)
    assert found.fresh.mean() * 6 == pytest.approx((math.exp(-0.8) - math.exp(-2.0)) / 0.2)


def test_a_budget_takes_the_highest_scores_first_and_leaves_the_rest_waiting() -> None:
    some = pages(110, 0.1, interval=1.0)
    found = forecast(schedule(), some, ForecastOptions(NOW, 3, budget=10.5), YEAR)
    assert list(found.fetches) == [0, 11, 10]  # nothing is due on the first day
    assert list(found.waiting) == [0, 99, 100]
    taken = some.entries["score"].to_numpy()[found.counts > 0]
    assert (
        sorted(taken) == [4.5, *[5.0] * 10] and found.counts.max() == 2
    )  # ten pages have the highest score


# -- a loop over single records --------------------------------------------------------------------


def one_by_one(
    plan_schedule: AbstractFetchSchedule,
    some: ForecastPages,
    plan: ForecastOptions,
    max_interval: int,
) -> Mapping[str, Any]:
    """The same with a record at a time, dictionaries and sums."""
    table = [(url, datum) for url, datum in records(some.entries)]
    fetched_at = [NOW - age * DAY for age in some.age]
    found: dict[str, list[float]] = {
        "fetches": [],
        "unchanged": [],
        "fresh": [],
        "late": [],
        "missed": [],
    }
    counts = [0] * len(table)
    step = 1 / plan.rounds
    for day in range(plan.days):
        sums = dict.fromkeys(found, 0.0)
        for number in range(day * plan.rounds, (day + 1) * plan.rounds):
            now = plan.now + round(number * step * DAY)
            due = [
                i
                for i, (url, datum) in enumerate(table)
                if plan_schedule.should_fetch(url, datum, now)
            ]
            due.sort(key=lambda i: int(some.ranks[i]))
            if plan.budget is not None:
                due = due[
                    : int(plan.budget * step * (number + 1)) - int(plan.budget * step * number)
                ]
            for i in due:
                url, datum = table[i]
                age = (now - fetched_at[i]) / DAY
                fresh = math.exp(-some.rate[i] * age)
                changed = uniform(some.hashes[i : i + 1], plan.seed, number + 1)[0] >= fresh
                sums["fetches"] += 1
                sums["unchanged"] += not changed
                sums["missed"] += some.rate[i] * age - (1 - fresh)
                known = datum.status != status.STATUS_DB_UNFETCHED
                state = (
                    (STATUS_MODIFIED if changed else STATUS_NOTMODIFIED)
                    if known
                    else STATUS_UNKNOWN
                )
                before, modified = datum.fetch_time, datum.modified_time
                datum.fetch_time = now
                plan_schedule.set_fetch_schedule(url, datum, before, modified, now, modified, state)
                if known and not changed:
                    datum.modified_time = modified
                datum.status = (
                    status.STATUS_DB_NOTMODIFIED
                    if known and not changed
                    else status.STATUS_DB_FETCHED
                )
                if datum.fetch_interval > max_interval:
                    plan_schedule.force_refetch(url, datum, False, now)
                fetched_at[i] = now
                counts[i] += 1
            for i, rate in enumerate(some.rate):
                age = (now - fetched_at[i]) / DAY
                fresh = math.exp(-rate * age) * (1 - math.exp(-rate * step)) / rate
                sums["fresh"] += fresh
                sums["late"] += ((age + step) ** 2 - age**2) / 2 - step / rate + fresh / rate
        for name, values in found.items():
            values.append(sums[name] / (len(table) if name in ("fresh", "late") else 1))
    return {**found, "counts": counts}


CASES: dict[str, tuple[AbstractFetchSchedule, ForecastOptions, int]] = {
    "default": (schedule(), ForecastOptions(NOW, 40), YEAR),
    "adaptive": (schedule(ADAPTIVE), ForecastOptions(NOW, 60), YEAR),
    "adaptive, without sync": (
        schedule(ADAPTIVE, **{"db.fetch.schedule.adaptive.sync_delta": "false"}),
        ForecastOptions(NOW, 60, seed=3), YEAR,
    ),
    "adaptive, several rounds, a budget": (
        schedule(ADAPTIVE), ForecastOptions(NOW, 30, rounds=3, budget=9.7), YEAR,
    ),
    "by media type": (schedule(MIME), ForecastOptions(NOW, 60), YEAR),
    "intervals beyond the highest": (schedule(ADAPTIVE), ForecastOptions(NOW, 90), 14 * 86_400),
    "one of the user's": (schedule(f"{__name__}:Hourly"), ForecastOptions(NOW, 20, rounds=2), YEAR),
}  # fmt: skip


@pytest.mark.parametrize("case", few(CASES))
def test_single_records_lead_to_the_same(case: str) -> None:
    of, plan, max_interval = CASES[case]
    some = pages(70, np.geomspace(0.003, 2.0, 70), spread=97, metadata=True)
    found = forecast(of, some, plan, max_interval)
    wanted = one_by_one(of, some, plan, max_interval)
    assert list(found.counts) == wanted["counts"] and found.fetches.sum() > 70
    for name in ("fetches", "unchanged", "fresh", "late", "missed"):
        assert getattr(found, name) == pytest.approx(wanted[name], rel=1e-6, abs=1e-9), name


# -- the bound -------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", few(CASES, 3))
@pytest.mark.parametrize("budget", few([None, 30.0]))
def test_no_schedule_is_above_the_bound(case: str, budget: float | None) -> None:
    of, plan, max_interval = CASES[case]
    some = pages(500, np.geomspace(0.003, 2.0, 500), spread=97)
    found = forecast(of, some, ForecastOptions(NOW, plan.days, plan.rounds, budget), max_interval)
    bound = best(some.rate, some.age, plan.days, float(found.fetches.sum()))
    assert found.fresh.mean() * plan.days * 500 <= bound.fresh_days + 1e-6


@pytest.mark.slow
def test_the_bound_is_reached_where_a_fixed_interval_is_best() -> None:
    """Pages of one rate, spread evenly over the interval: nothing can be done better, but for where
    the time ends.
    """
    some = pages(20, 0.1, interval=10.0, spread=10)
    found = forecast(schedule(), some, ForecastOptions(NOW, 1000), YEAR)
    bound = best(some.rate, some.age, 1000, float(found.fetches.sum()))
    assert found.fresh.mean() == pytest.approx(bound.fresh_days / 1000 / 20, rel=0.002)


def test_nothing_to_fetch_and_nobody_to_fetch() -> None:
    empty = pages(0, 0.1)
    found = forecast(schedule(), empty, ForecastOptions(NOW, 3), YEAR)
    assert list(found.fetches) == [0, 0, 0] and isinstance(found, Forecast)
    later = forecast(schedule(), pages(3, 0.1, interval=80), ForecastOptions(NOW, 3), YEAR)
    assert later.fetches.sum() == 0 and pl.Series(later.fresh).is_sorted(descending=True)


# -- updatedb --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", ADAPTIVE, MIME])
@pytest.mark.parametrize("max_interval", few(["7776000", "1000000"]))
def test_entries_become_what_updatedb_makes_of_them(name: str, max_interval: str) -> None:
    """Fetch after fetch, with changes by chance; what is longer than db.fetch.interval.max is
    forgotten on the way.
    """
    settings = {"plugin.includes": "scoring-opic", "db.fetch.interval.max": max_interval}
    settings |= {"db.fetch.schedule.class": name} if name else {}
    rules = UpdateSettings.from_conf(Configuration.load([], overrides=settings))
    mine = sort_by_key(pages(60, 0.1, metadata=True).entries)
    theirs, versions = mine.with_columns(signature=pl.Series([b"version 0"] * 60)), [0] * 60
    chance, now, forgotten = np.random.default_rng(4), NOW, 0
    for _ in range(12):
        now += int(chance.integers(1, 40)) * DAY
        changed = chance.random(60) < 0.4
        versions = [version + bool(new) for version, new in zip(versions, changed, strict=True)]
        seen = pl.Series([f"version {version}".encode() for version in versions])
        fetches = theirs.with_columns(
            status=pl.lit(status.STATUS_FETCH_SUCCESS, pl.UInt8), fetch_time=pl.lit(now, pl.Int64)
        )
        signed = theirs.with_columns(
            status=pl.lit(status.STATUS_SIGNATURE, pl.UInt8), signature=seen
        )
        segment = sort_by_key(
            pl.concat([fetches, signed.with_columns(metadata=pl.lit(None, pl.Binary))])
        )
        theirs = patched_frame(update(pack(theirs), pack(segment), rules, now)[0])
        mine = updated(rules.schedule, mine, changed, now, rules.max_interval)
        columns = [
            "key",
            "status",
            "fetch_time",
            "modified_time",
            "fetch_interval",
            "retries",
            "metadata",
        ]
        assert_frame_equal(mine.select(columns), theirs.select(columns))
        forgotten += int((mine["status"] == status.STATUS_DB_UNFETCHED).sum())
    assert forgotten or not name
