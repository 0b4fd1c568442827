"""simulate: what a fetch schedule would do with the pages of a crawl, judged by how often these were seen to change.

The schedule and its settings are those of the configuration, `-D` included; beside them stand the settings of the
configuration files alone, and for each the best that anybody could do with as many fetches (`poisson`). Pages are
the entries of the CrawlDb with a copy; what is yet to be fetched, gone or a redirect is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from minutch.arguments import Flag, fail, parse
from minutch.conf import Configuration
from minutch.crawldb.schedule import PROPERTY, AbstractFetchSchedule, fetch_schedule
from minutch.crawldb.store import CrawlDb
from minutch.errors import MinutchError, StoreError
from minutch.job import JobContext
from minutch.query.crawl import Crawl, open_crawl
from minutch.report.chance import chances
from minutch.report.forecast import DAY, Pages, Plan, forecast
from minutch.report.poisson import Floats, best
from minutch.report.rates import Ints, Watched, drawn
from minutch.report.sample import Sample, history, sampled
from minutch.report.simulated import Outcome, Simulated, as_json, svg, text
from minutch.tables.wholefile import WholeFile

USAGE: Final = """simulate <crawl> [-schedule <names>] [-days <n>] [-budget <n>[/day]] [options]
\tcrawl\tthe folder of a crawl
\t-schedule <names>\tdefault, adaptive, mimeadaptive, or a class (db.fetch.schedule.class); several with commas
\t-days <n>\tfor how long; 90 is the default
\t-budget <n>[/day]\tfetch no more a day; the pages with the highest scores go first, as in generate
\t-rounds <n>\trounds of the crawl a day (1)
\t-assume <days>\tpages that were not fetched twice change every so many days; else they are like the others
\t-sample <n>\tpages that are looked at, at most; they stand for all (1000000)
\t-seed <n>\tof what is left to chance (0)
\t-json\tthe numbers of each day as JSON
\t-svg <file>\tthe plot as a picture"""


def _positive(word: str) -> float:
    number = float(word)
    if not 0 < number < float("inf"):
        raise ValueError(word)
    return number


def _count(word: str) -> int:
    number = int(word)
    if number <= 0:
        raise ValueError(word)
    return number


def _budget(word: str) -> float:
    return _positive(word.removesuffix("/day"))


FLAGS: Final = (
    Flag("-schedule", value="names"),
    Flag("-days", value="n", convert=_count),
    Flag("-budget", value="n", convert=_budget),
    Flag("-rounds", value="n", convert=_count),
    Flag("-assume", value="days", convert=_positive),
    Flag("-sample", value="n", convert=_count),
    Flag("-seed", value="n", convert=int),
    Flag("-json"),
    Flag("-svg", value="file"),
)
SCHEDULES: Final = {
    "default": "org.apache.nutch.crawl.DefaultFetchSchedule",
    "adaptive": "org.apache.nutch.crawl.AdaptiveFetchSchedule",
    "mimeadaptive": "org.apache.nutch.crawl.MimeAdaptiveFetchSchedule",
}
DAYS: Final = 90
MOST_DAYS: Final = 3660
MOST_ROUNDS: Final = 24
SAMPLE: Final = 1_000_000
_RATE_TURN: Final = 0
"""The turn of chance in which rates are drawn; rounds come after it."""


def run(args: list[str], context: JobContext) -> int:
    """The command; exit code 0."""
    given = parse(args, FLAGS, usage=USAGE, least=1, most=1)
    plan = Plan(
        context.clock.now(),
        given.get("-days", DAYS),
        given.get("-rounds", 1),
        given["-budget"],
        given.get("-seed", 0),
    )
    if plan.days > MOST_DAYS or plan.rounds > MOST_ROUNDS:
        fail(f"expected at most {MOST_DAYS} days and {MOST_ROUNDS} rounds a day", USAGE)
    asked = _asked(context.conf, given["-schedule"])
    crawl = open_crawl(given.positional[0])
    most, assumed = given.get("-sample", SAMPLE), given["-assume"]
    with nullcontext() if given["-svg"] is None else _picture(Path(given["-svg"])) as picture:
        found = simulate(crawl, asked, plan, most=most, assumed=assumed, context=context)
        if picture is not None:
            picture.write(svg(found).encode())
    if given["-json"]:
        context.print(json.dumps(as_json(found), indent=2))
    else:
        context.print(text(found))
    return 0


def _picture(path: Path) -> WholeFile:
    """Opened before the work begins, so that a place that can't be written is known at once."""
    try:
        return WholeFile(path, sums=False)
    except OSError as exc:
        raise StoreError(f"can't write {path}: {exc.strerror or exc}") from exc


@dataclass(frozen=True)
class Asked:
    """A schedule that is asked about."""

    name: str
    schedule: AbstractFetchSchedule
    max_interval: int
    """db.fetch.interval.max, s."""

    @classmethod
    def of(cls, name: str, conf: Configuration) -> Asked:
        """As a configuration has it."""
        return cls(name, fetch_schedule(conf), conf.get_int("db.fetch.interval.max", 0))


def _asked(conf: Configuration, names: str | None) -> list[Asked]:
    """The settings of the files first, then what is asked for."""
    current = conf.of_files()
    found = [Asked.of(f"now: {_short(current)}", current)]
    for name in [] if names is None else [name.strip() for name in names.split(",") if name.strip()]:
        chosen = conf.with_values({PROPERTY: SCHEDULES.get(name.lower(), name)})
        found.append(Asked.of(_short(chosen), chosen))
    if names is None and any(conf.source(name) == "command line" for name in conf):
        found.append(Asked.of(_short(conf), conf))
    return found


def _short(conf: Configuration) -> str:
    """A schedule's short name."""
    name = conf.get_trimmed(PROPERTY) or SCHEDULES["default"]
    return next((short for short, long in SCHEDULES.items() if long == name), name.rpartition(".")[2])


def simulate(
    crawl: Crawl, asked: Iterable[Asked], plan: Plan, *, most: int, assumed: float | None, context: JobContext
) -> Simulated:
    """What each of the schedules would do. Raises StoreError, FormatError, and MinutchError without any history."""
    sample = sampled(CrawlDb(crawl.path / "crawldb"), most)
    if not len(sample.entries):
        raise MinutchError(f"{crawl.path}: no page of this crawl was fetched, so there is nothing to simulate")
    seen = history(crawl, sample)
    rates = _rates(sample, seen.watched, assumed, plan.seed, crawl.path)
    scaled = replace(plan, budget=None if plan.budget is None else plan.budget * sample.share)
    outcomes = []
    for each in asked:
        ages = _ages(each.schedule, sample, seen.last, plan.now)
        pages = Pages(sample.entries, rates, ages, sample.hashes, sample.ranks)
        with context.progress(f"simulate {each.name}", plan.days, unit="days") as progress:
            came = forecast(each.schedule, pages, scaled, each.max_interval, progress.advance)
        bound = best(rates, pages.age, plan.days, float(came.fetches.sum()))
        outcomes.append(Outcome(each.name, came, bound.fresh_days / plan.days / len(pages)))
    watched = seen.watched
    return Simulated(
        plan,
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


def _always(watched: Watched) -> int:
    """Pages of which every fetch found a change."""
    steady = np.unique(watched.page[~watched.changed])
    return len(np.unique(watched.page)) - len(steady)


def _rates(sample: Sample, watched: Watched, assumed: float | None, seed: int, path: Path) -> Floats:
    """Changes a day of each page."""
    count = len(sample.entries)
    if not len(watched) and assumed is None:
        raise MinutchError(
            f"{path}: no page was fetched twice and parsed, so nothing is known of changes",
            hint="-assume 30 takes it that pages change every 30 days",
        )
    rates = np.full(count, 0.0 if assumed is None else 1 / assumed)
    if len(watched):
        found = drawn(watched, count, sample.hashes, chances(sample.hashes, seed, _RATE_TURN))
        known = np.full(count, assumed is None)
        known[watched.page] = True
        rates[known] = found[known]
    return rates


def _ages(schedule: AbstractFetchSchedule, sample: Sample, last: Ints, now: int) -> Floats:
    """Days since pages were fetched: as the segments say, or else as the schedule reckons."""
    reckoned = schedule.calculate_last_fetch_time_columns(sample.entries).to_numpy()
    ages: Floats = np.maximum(now - np.where(last > 0, last, reckoned), 0) / DAY
    return ages
