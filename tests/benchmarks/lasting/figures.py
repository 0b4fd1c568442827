"""Puts together what each tenth of a run shows, and says which goals were reached. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isnan, log2, nan
from statistics import fmean
from typing import Final

import numpy as np

from tests.benchmarks.broad.goals import Verdict
from tests.benchmarks.broad.requestlog import Requests
from tests.benchmarks.broad.tables import number, table
from tests.benchmarks.lasting.audit import Compared
from tests.benchmarks.lasting.living import Life

TENTHS: Final = 10
SECOND, LAST = 1, TENTHS - 1
"""The tenths that are compared."""
MOST_GROWTH: Final = 1.1
MOST_BYTES: Final = 2.5
LEAST_FRESH: Final = 0.97
SEGMENTS_BY_LOG: Final = 3


@dataclass(frozen=True)
class Tenth:
    """A tenth of a run."""

    rounds: int
    pages: int
    """Answers, 304 among them."""
    cpu: float
    """Milliseconds a page."""
    steps: Mapping[str, float]
    """The mean seconds of each step but fetch."""
    megabytes: float
    """The mean of private memory."""
    peak: float
    files: int
    """The most that were open."""
    segments: int
    """The most that there were."""
    bytes_a_page: float
    """Of the crawl's folder at the end of the tenth, by live page."""
    fresh: float
    permitted: float
    compared: Compared

    @property
    def step(self) -> float:
        """Seconds that all steps of a round take together, but for fetch."""
        return sum(self.steps.values())


@dataclass(frozen=True)
class Run:
    """What was found of a whole run."""

    tenths: Sequence[Tenth]
    rounds: int
    too_soon: int
    """Requests that came too soon after another one to the same host."""
    early: int
    """Requests for a page whose interval was not over."""
    requests: int
    bytes_by_newest: float
    """Bytes of all segments, over those of one with the newest copy of each page."""
    died: int
    """Processes of the crawl that ended though nothing had been done to them."""
    deaf: int
    """Those that did not end when they were told to."""
    left: int
    """Processes that outlived the crawl's own."""


def by_tenth(
    life: Life,
    requests: Requests,
    begin: int,
    span: float,
    fresh: Sequence[float],
    permitted: Sequence[float],
    compared: Sequence[Compared],
) -> list[Tenth]:
    """Takes a run apart. `fresh` and `permitted` have the same number of values for each tenth, of
    times that are evenly spaced.
    """
    borders = [span * part / TENTHS for part in range(TENTHS + 1)]
    answered = requests[(requests["page"] >= 0) & (requests["status"] > 0)]
    ends = np.sort((answered["end"] - begin) / 1e6)
    times = [one.time for one in life.samples]
    used = [one.cpu for one in life.samples]
    each = len(fresh) // TENTHS
    found = []
    for part, (since, until) in enumerate(pairwise(borders)):
        mine = [one for one in life.samples if since <= one.time < until]
        pages = int(np.searchsorted(ends, until) - np.searchsorted(ends, since))
        cpu = float(np.interp(until, times, used) - np.interp(since, times, used))
        views = slice(part * each, (part + 1) * each)
        live = compared[part].live
        found.append(
            Tenth(
                rounds=sum(since <= time < until for time in life.rounds),
                pages=pages,
                cpu=1000 * cpu / max(1, pages),
                steps=_steps(life, since, until),
                megabytes=_of(fmean, [one.megabytes for one in mine]),
                peak=_of(max, [one.megabytes for one in mine]),
                files=int(_of(max, [one.files for one in mine], 0)),
                segments=int(_of(max, [one.segments for one in mine], 0)),
                bytes_a_page=mine[-1].disk / live if mine and live else nan,
                fresh=_of(fmean, [one for one in fresh[views] if not isnan(one)]),
                permitted=_of(fmean, [one for one in permitted[views] if not isnan(one)]),
                compared=compared[part],
            )
        )
    return found


def _of(
    measure: Callable[[Sequence[float]], float], values: Sequence[float], nothing: float = nan
) -> float:
    return measure(values) if values else nothing


def _steps(life: Life, since: float, until: float) -> dict[str, float]:
    """The fetch lasts as long as its hosts want, and is no cost of the crawl's."""
    seconds: Counter[str] = Counter()
    times: Counter[str] = Counter()
    for at, name, taken in life.steps:
        if since <= at < until and name != "fetch":
            seconds[name] += taken  # type: ignore[assignment]
            times[name] += 1
    return {name: seconds[name] / times[name] for name in seconds}


def ratio(run: Run, what: Callable[[Tenth], float]) -> float:
    """The last tenth by the second."""
    before = what(run.tenths[SECOND])
    return what(run.tenths[LAST]) / before if before else nan


def fresh_share(run: Run) -> float:
    """Freshness by the permitted, from the second tenth on."""
    later = [one for one in run.tenths[SECOND:] if not isnan(one.permitted)]
    if not later:
        return nan
    return fmean(one.fresh for one in later) / fmean(one.permitted for one in later)


def verdicts(run: Run, least_rounds: int) -> Iterator[Verdict]:
    """The goals of a crawl that lasts; a figure that is not a number fails."""
    segments = SEGMENTS_BY_LOG * log2(max(2, run.rounds))
    lacking = max(len(one.compared.lacking) for one in run.tenths)
    at_most = (
        ("CPU a page, last tenth by second", ratio(run, lambda one: one.cpu), MOST_GROWTH),
        (
            "private memory, last tenth by second",
            ratio(run, lambda one: one.megabytes),
            MOST_GROWTH,
        ),
        ("segments", run.tenths[LAST].segments, segments),
        ("bytes of segments by those of the newest copies", run.bytes_by_newest, MOST_BYTES),
        ("requests too soon", run.too_soon, 0),
        ("requests for a page before its interval was over", run.early, 0),
        ("pages that the index lacks", lacking, 0),
        ("crawls that ended by themselves", run.died, 0),
        ("crawls that did not end when told to", run.deaf, 0),
        ("processes that outlived their crawl", run.left, 0),
    )
    at_least = (
        ("rounds", run.rounds, least_rounds),
        ("freshness by the permitted", fresh_share(run), LEAST_FRESH),
    )
    for figure, found, limit in at_most:
        yield Verdict("", figure, found, f"≤ {limit:.4g}", found <= limit)
    for figure, found, limit in at_least:
        yield Verdict("", figure, found, f"≥ {limit:g}", found >= limit)


def tables(run: Run) -> str:
    """All tenths, side by side."""
    names = list(dict.fromkeys(name for one in run.tenths for name in one.steps))
    rows: list[tuple[str, Callable[[Tenth], float], int]] = [
        ("rounds", lambda one: one.rounds, 0),
        ("pages", lambda one: one.pages, 0),
        ("CPU ms a page", lambda one: one.cpu, 2),
        ("s of all steps of a round but fetch", lambda one: one.step, 2),
        *((f"s of {name}", lambda one, name=name: one.steps.get(name, nan), 2) for name in names),
        ("private MB", lambda one: one.megabytes, 0),
        ("at most", lambda one: one.peak, 0),
        ("open files", lambda one: one.files, 0),
        ("segments", lambda one: one.segments, 0),
        ("bytes a live page", lambda one: one.bytes_a_page, 0),
        ("fresh", lambda one: one.fresh, 3),
        ("permitted", lambda one: one.permitted, 3),
        ("live pages", lambda one: one.compared.live, 0),
        ("that the index lacks", lambda one: len(one.compared.lacking), 0),
        ("in the index, but gone", lambda one: len(one.compared.ghosts), 0),
        ("in an old version", lambda one: len(one.compared.older), 0),
    ]
    return table(
        ("tenth", *(str(part + 1) for part in range(len(run.tenths)))),
        ((name, *(number(what(one), digits) for one in run.tenths)) for name, what, digits in rows),
    )
