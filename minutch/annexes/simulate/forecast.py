"""Forecasts what a schedule would do to pages that change at known rates, round by round. Pure.

Each round is one moment: whatever is due is fetched then, the best first where a budget cuts it
short, as generate takes them (score, then a hash of the URL). Whether a page has changed since its
last fetch is left to chance; whether copies are fresh is not, its probability is known (`rates`).
The schedule is the one that updatedb asks, with the same arguments: fetch time and modified time of
the entry before, the time of the fetch, the modified time once more (servers say none here), and
whether the page changed.

Source: org.apache.nutch.crawl.Generator (due), CrawlDbReducer (STATUS_FETCH_SUCCESS).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from minutch.cycle.crawldb.schedule import CHANGING, AbstractFetchSchedule, updated
from minutch.inspect.report.rates import Bits, Floats, Ints, Shares, missed, uniform

DAY: Final = 86_400_000


@dataclass(frozen=True)
class ForecastPages:
    """The pages at the beginning of a forecast."""

    entries: pl.DataFrame
    """Entries of CRAWLDB_SCHEMA."""
    rate: Floats
    """Changes a day, > 0."""
    age: Floats
    """Days since the last fetch."""
    hashes: Bits
    ranks: NDArray[np.uint64]
    """The order in which they are chosen: ascending."""

    def __len__(self) -> int:
        return len(self.entries)


@dataclass(frozen=True)
class ForecastOptions:
    """Options of a forecast: its length, and how often and how much is fetched."""

    now: int
    """ms."""
    days: int
    rounds: int = 1
    """A day."""
    budget: float | None = None
    """Fetches a day."""
    seed: int = 0

    @property
    def step(self) -> float:
        """Days from round to round."""
        return 1 / self.rounds


@dataclass(frozen=True)
class Forecast:
    """The results of a forecast, one number for each day."""

    fetches: Ints
    unchanged: Ints
    """Fetches that found nothing new."""
    fresh: Floats
    """Share of copies that are fresh, on average over the day."""
    late: Floats
    """Days for which copies have been out of date, on average over all copies and the day."""
    missed: Floats
    """Versions of pages that nobody saw, known when their successors are fetched."""
    waiting: Ints
    """Pages that were due after the day's last round."""
    counts: Ints
    """Fetches of each page."""


def forecast(
    schedule: AbstractFetchSchedule,
    pages: ForecastPages,
    options: ForecastOptions,
    max_interval: int,
    advance: Callable[[], None] = lambda: None,
) -> Forecast:
    """Runs a forecast. `max_interval` is db.fetch.interval.max (s); `advance` is called daily."""
    return _Run(schedule, pages, options, max_interval).run(advance)


class _Run:
    def __init__(
        self,
        schedule: AbstractFetchSchedule,
        pages: ForecastPages,
        options: ForecastOptions,
        max_interval: int,
    ) -> None:
        self._schedule, self._pages, self._options, self._max_interval = (
            schedule,
            pages,
            options,
            max_interval,
        )
        self._entries = pages.entries
        self._shares = Shares(pages.rate, options.step)
        self._age = pages.age.copy()
        self._fresh = np.exp(-pages.rate * pages.age)
        self._counts = np.zeros(len(pages), np.int64)
        self._unchanged = self._fetched = self._waiting = 0
        self._missed = 0.0

    def run(self, advance: Callable[[], None]) -> Forecast:
        options, count = self._options, max(1, len(self._pages))
        rows: list[tuple[float, ...]] = []
        for day in range(options.days):
            self._unchanged = self._fetched = 0
            self._missed = fresh = late = 0.0
            for number in range(day * options.rounds, (day + 1) * options.rounds):
                self._round(number)
                fresh += float(self._shares.fresh_days(self._fresh).sum())
                late += float(self._shares.late_days(self._fresh, self._age).sum())
                self._fresh *= self._shares.stays
                self._age += options.step
            rows.append(
                (
                    self._fetched,
                    self._unchanged,
                    fresh / count,
                    late / count,
                    self._missed,
                    self._waiting,
                )
            )
            advance()
        table = np.array(rows, np.float64).reshape(-1, 6).T
        fetches, unchanged, waiting = (table[i].astype(np.int64) for i in (0, 1, 5))
        return Forecast(fetches, unchanged, table[2], table[3], table[4], waiting, self._counts)

    def _round(self, number: int) -> None:
        now = self._options.now + round(number * self._options.step * DAY)
        self._entries, due = self._schedule.should_fetch_columns(self._entries, now)
        rows = self._within_budget(np.flatnonzero(due.to_numpy()), number)
        self._waiting = int(due.sum()) - len(rows)
        if not len(rows):
            return
        fresh = self._fresh[rows]
        changed = uniform(self._pages.hashes[rows], self._options.seed, number + 1) >= fresh
        self._fetched += len(rows)
        self._unchanged += int((~changed).sum())
        self._missed += float(missed(self._pages.rate[rows], self._age[rows], fresh).sum())
        self._counts[rows] += 1
        self._fresh[rows], self._age[rows] = 1.0, 0.0
        self._put(
            rows, updated(self._schedule, self._entries[rows], changed, now, self._max_interval)
        )

    def _within_budget(self, due: NDArray[Any], number: int) -> NDArray[Any]:
        budget = self._options.budget
        if budget is None:
            return due
        step = self._options.step
        most = int(budget * step * (number + 1)) - int(budget * step * number)
        if most >= len(due):
            return due
        return (
            np.sort(due[np.argpartition(self._pages.ranks[due], most)[:most]])
            if most > 0
            else due[:0]
        )

    def _put(self, rows: NDArray[Any], frame: pl.DataFrame) -> None:
        columns = []
        for name in CHANGING:
            values = self._entries[name].to_numpy().copy()
            values[rows] = frame[name].to_numpy()
            columns.append(pl.Series(name, values))
        self._entries = self._entries.with_columns(columns)
