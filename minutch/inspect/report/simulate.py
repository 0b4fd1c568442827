"""Simulates what a fetch schedule would do with the pages of a crawl, judged by how often these
were seen to change.

The schedule and its settings are those of the configuration, `-D` included; beside them stand the
settings of the configuration files alone, and for each the best that anybody could do with as many
fetches (`poisson`). Pages are the entries of the CrawlDb with a copy; what is yet to be fetched,
gone or a redirect is left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from minutch.conf import Configuration
from minutch.cycle.crawldb.schedule import AbstractFetchSchedule, fetch_schedule
from minutch.cycle.crawldb.store import CrawlDb
from minutch.errors import MinutchError
from minutch.inspect.query.crawl import Crawl
from minutch.inspect.report.forecast import DAY, ForecastOptions, Pages, forecast
from minutch.inspect.report.poisson import Floats, best
from minutch.inspect.report.rates import Ints, Observations, drawn_rates
from minutch.inspect.report.sample import Sample, history, sample_pages
from minutch.inspect.report.seededrandom import uniform
from minutch.inspect.report.simulated import ScheduleResult, Simulated
from minutch.job import JobContext

_RATE_TURN: Final = 0
"""The turn of chance in which rates are drawn; rounds come after it."""


@dataclass(frozen=True)
class Candidate:
    """A schedule to simulate."""

    name: str
    schedule: AbstractFetchSchedule
    max_interval: int
    """db.fetch.interval.max, s."""

    @classmethod
    def from_conf(cls, name: str, conf: Configuration) -> Candidate:
        """Reads the schedule of a configuration."""
        return cls(name, fetch_schedule(conf), conf.get_int("db.fetch.interval.max"))


def simulate(
    crawl: Crawl,
    candidates: Iterable[Candidate],
    options: ForecastOptions,
    *,
    most: int,
    assumed: float | None,
    context: JobContext,
) -> Simulated:
    """Simulates each of the schedules. Raises StoreError, FormatError, and MinutchError without any
    history.
    """
    sample = sample_pages(CrawlDb(crawl.path / "crawldb"), most)
    if not len(sample.entries):
        raise MinutchError(
            f"{crawl.path}: no page of this crawl was fetched, so there is nothing to simulate"
        )
    seen = history(crawl, sample)
    rates = _rates(sample, seen.watched, assumed, options.seed, crawl.path)
    scaled = replace(
        options, budget=None if options.budget is None else options.budget * sample.share
    )
    outcomes = []
    for each in candidates:
        ages = _ages(each.schedule, sample, seen.last, options.now)
        pages = Pages(sample.entries, rates, ages, sample.hashes, sample.ranks)
        with context.progress(f"simulate {each.name}", options.days, unit="days") as progress:
            came = forecast(each.schedule, pages, scaled, each.max_interval, progress.advance)
        bound = best(rates, pages.age, options.days, float(came.fetches.sum()))
        outcomes.append(
            ScheduleResult(each.name, came, bound.fresh_days / options.days / len(pages))
        )
    watched = seen.watched
    return Simulated(
        options,
        sample.pages,
        len(sample.entries),
        sample.others,
        len(np.unique(watched.page)),
        len(watched),
        int(watched.changed.sum()),
        _always(watched),
        float(np.mean(rates)),
        float(np.median(rates)),
        outcomes,
    )


def _always(watched: Observations) -> int:
    """Returns the number of pages of which every fetch found a change."""
    steady = np.unique(watched.page[~watched.changed])
    return len(np.unique(watched.page)) - len(steady)


def _rates(
    sample: Sample, watched: Observations, assumed: float | None, seed: int, path: Path
) -> Floats:
    """Returns the changes a day of each page."""
    count = len(sample.entries)
    if not len(watched) and assumed is None:
        raise MinutchError(
            f"{path}: no page was fetched twice and parsed, so nothing is known of changes",
            hint="-assume 30 takes it that pages change every 30 days",
        )
    rates = np.full(count, 0.0 if assumed is None else 1 / assumed)
    if len(watched):
        found = drawn_rates(watched, count, sample.hashes, uniform(sample.hashes, seed, _RATE_TURN))
        known = np.full(count, assumed is None)
        known[watched.page] = True
        rates[known] = found[known]
    return rates


def _ages(schedule: AbstractFetchSchedule, sample: Sample, last: Ints, now: int) -> Floats:
    """Returns the days since pages were fetched: by the segments, or else by the schedule."""
    reckoned = schedule.calculate_last_fetch_time_columns(sample.entries).to_numpy()
    ages: Floats = np.maximum(now - np.where(last > 0, last, reckoned), 0) / DAY
    return ages
