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
from typing import Any, Final, Protocol

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

    @property
    def shares(self) -> Floats:
        """The importance of each page, 1 in all."""
        score: Floats = np.nan_to_num(self.entries["score"].to_numpy().astype(np.float64)).clip(0)
        total = score.sum()
        return score / total if total else np.full(len(score), 1 / max(1, len(score)))


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
    weighted: Floats
    """The same share, each page by its score."""
    late: Floats
    """Days for which copies have been out of date, on average over all copies and the day."""
    missed: Floats
    """Versions of pages that nobody saw, known when their successors are fetched."""
    waiting: Ints
    """Pages that were due after the day's last round."""
    counts: Ints
    """Fetches of each page."""


class PageChanges(Protocol):
    """How pages change while a forecast runs, and which copies of them there are."""

    def visit(self, rows: Ints, number: int) -> tuple[NDArray[np.bool_], float]:
        """Fetches pages at the beginning of a round; returns which had changed since their fetch
        before, and the number of versions that nobody saw.
        """

    def wait(self) -> tuple[Floats, Floats]:
        """Lets the time pass until the next round; returns for how many days of it each copy was
        fresh, and days out of date, integrated over it.
        """


class ChanceChanges:
    """Pages that change by chance at their rates; nothing but what fetches find is drawn."""

    def __init__(self, pages: ForecastPages, options: ForecastOptions) -> None:
        self._pages, self._options = pages, options
        self._shares = Shares(pages.rate, options.step)
        self._age = pages.age.copy()
        self._fresh = np.exp(-pages.rate * pages.age)

    def visit(self, rows: Ints, number: int) -> tuple[NDArray[np.bool_], float]:
        fresh = self._fresh[rows]
        changed = uniform(self._pages.hashes[rows], self._options.seed, number + 1) >= fresh
        unseen = float(missed(self._pages.rate[rows], self._age[rows], fresh).sum())
        self._fresh[rows], self._age[rows] = 1.0, 0.0
        return changed, unseen

    def wait(self) -> tuple[Floats, Floats]:
        fresh = self._shares.fresh_days(self._fresh)
        late = self._shares.late_days(self._fresh, self._age)
        self._fresh *= self._shares.stays
        self._age += self._options.step
        return fresh, late


def forecast(
    schedule: AbstractFetchSchedule,
    pages: ForecastPages,
    options: ForecastOptions,
    max_interval: int,
    advance: Callable[[], None] = lambda: None,
    changes: PageChanges | None = None,
) -> Forecast:
    """Runs a forecast. `max_interval` is db.fetch.interval.max (s); `advance` is called daily."""
    chance = ChanceChanges(pages, options) if changes is None else changes
    return _Run(schedule, pages, options, max_interval, chance).run(advance)


class _Run:
    def __init__(
        self,
        schedule: AbstractFetchSchedule,
        pages: ForecastPages,
        options: ForecastOptions,
        max_interval: int,
        changes: PageChanges,
    ) -> None:
        self._schedule, self._pages, self._options = schedule, pages, options
        self._max_interval, self._changes = max_interval, changes
        self._entries = pages.entries
        self._counts = np.zeros(len(pages), np.int64)
        self._unchanged = self._fetched = self._waiting = 0
        self._missed = 0.0

    def run(self, advance: Callable[[], None]) -> Forecast:
        options, count = self._options, max(1, len(self._pages))
        rows: list[tuple[float, ...]] = []
        for day in range(options.days):
            self._unchanged = self._fetched = 0
            self._missed = fresh = weighted = late = 0.0
            for number in range(day * options.rounds, (day + 1) * options.rounds):
                self._round(number)
                fresh_days, late_days = self._changes.wait()
                fresh += float(fresh_days.sum())
                weighted += float(fresh_days @ self._pages.shares)
                late += float(late_days.sum())
            shares = (fresh / count, weighted, late / count)
            rows.append((self._fetched, self._unchanged, *shares, self._missed, self._waiting))
            advance()
        table = np.array(rows, np.float64).reshape(-1, 7).T
        fetches, unchanged, waiting = (table[i].astype(np.int64) for i in (0, 1, 6))
        fresh_share, by_score, late_share, unseen = table[2:6]
        return Forecast(
            fetches, unchanged, fresh_share, by_score, late_share, unseen, waiting, self._counts
        )

    def _round(self, number: int) -> None:
        now = self._options.now + round(number * self._options.step * DAY)
        schedule = self._schedule.surveyed(lambda: [self._entries], now)
        self._entries, due = schedule.should_fetch_columns(self._entries, now)
        rows = self._within_budget(np.flatnonzero(due.to_numpy()), number)
        self._waiting = int(due.sum()) - len(rows)
        if not len(rows):
            return
        changed, unseen = self._changes.visit(rows, number)
        self._fetched += len(rows)
        self._unchanged += int((~changed).sum())
        self._missed += unseen
        self._counts[rows] += 1
        frame = updated(self._schedule, self._entries[rows], changed, now, self._max_interval)
        columns = [self._entries["metadata"].scatter(rows, frame["metadata"])]
        for name in CHANGING:
            values = self._entries[name].to_numpy().copy()
            values[rows] = frame[name].to_numpy()
            columns.append(pl.Series(name, values))
        self._entries = self._entries.with_columns(columns)

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
