"""Says which of the figures that a broad fetch is to reach were reached. Pure."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from tests.benchmarks.broad.cases import Case, Mode

Figures = Mapping[str, float]
CPU: Final = "µs CPU per request"
FASTER: Final = "times the pages a second of rounds that follow"
IDLE: Final = "share of the time without a request"
STOP: Final = "stop, without what was in flight"


@dataclass(frozen=True)
class Goal:
    """A bound for one figure of each case of some modes."""

    figure: str
    sign: str
    limit: float
    modes: tuple[Mode, ...] = tuple(Mode)


@dataclass(frozen=True)
class Verdict:
    """Whether a case reached a goal."""

    case: str
    figure: str
    found: float
    goal: str
    reached: bool


GOALS: Final = (
    Goal("smallest share of the bound's rate, no other limit", "≥", 0.9, (Mode.RATE,)),
    Goal("99% by bound", "≤", 1.15, (Mode.RATE,)),
    Goal("violations", "≤", 0),
    Goal(STOP, "≤", 2.0),
    Goal("first request", "≤", 7.0, (Mode.START,)),
    Goal("RSS MB at the first request", "≤", 200, (Mode.START,)),
    Goal(FASTER, "≥", 2.3, (Mode.ROUNDS,)),
    Goal(f"{IDLE}, overlapping", "≤", 0.05, (Mode.ROUNDS,)),
)
MOST_TIMES_CPU: Final = 1.3
"""The CPU per request with the most hosts, over that with the fewest."""
_SIGNS: Final[Mapping[str, Callable[[float, float], bool]]] = {"≤": operator.le, "≥": operator.ge}


def verdicts(found: Mapping[Case, Figures]) -> Iterator[Verdict]:
    """One for each goal and case that has its figure; a figure that is not a number fails."""
    for case, figures in found.items():
        for goal in GOALS:
            if case.mode in goal.modes and goal.figure in figures:
                value = figures[goal.figure]
                words = f"{goal.sign} {goal.limit:g}"
                reached = _SIGNS[goal.sign](value, goal.limit)
                yield Verdict(case.name, goal.figure, value, words, reached)
    costs = {case: figures[CPU] for case, figures in found.items() if case.mode is Mode.CPU}
    if len(costs) > 1:
        few, *_, many = sorted(costs, key=lambda case: case.plan.hosts)
        times = costs[many] / costs[few]
        words = f"≤ {MOST_TIMES_CPU:g}"
        figure = f"{CPU}, times that of {few.name}"
        yield Verdict(many.name, figure, times, words, times <= MOST_TIMES_CPU)
