"""Writes the results of `simulate` as text with a table and a plot, as JSON, as a picture. Pure."""

from __future__ import annotations

import math
import textwrap
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np

from minutch.annexes.simulate.forecast import Forecast, ForecastOptions
from minutch.inspect.report.rates import Floats
from minutch.terminal import counted
from minutch.web import plots
from minutch.web.plots import Panel

MARKS: Final = "*o+x#@%&"
"""Letters of schedules in a plot."""
_LINE: Final = 80
_WIDTH, _HEIGHT = 64, 10
"""Letters of the plot."""
_BLOCKS: Final = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class ScheduleResult:
    """The result of one schedule."""

    name: str
    forecast: Forecast
    best: float
    """The greatest share of fresh copies that as many fetches can reach."""
    best_weighted: float
    """The same, each page by its score."""

    @property
    def fresh(self) -> float:
        """Share of copies that are fresh, on average over the time."""
        return float(self.forecast.fresh.mean())


@dataclass(frozen=True)
class Simulated:
    """A simulation: its data, and its results."""

    options: ForecastOptions
    pages: int
    """Pages of the crawl."""
    looked_at: int
    others: int
    """Entries without a copy."""
    watched: int
    """Pages that were fetched more than once."""
    fetches: int
    """Number of their fetches that tell if the page had changed."""
    changes: int
    always: int
    """Pages that every fetch found changed: nobody can know how much more often they change."""
    rate: float
    """Mean changes of a page a day."""
    median_rate: float
    outcomes: Sequence[ScheduleResult]

    @property
    def scale(self) -> float:
        """Number of pages that each page of the sample stands for."""
        return self.pages / self.looked_at


def numbers(found: Simulated, outcome: ScheduleResult) -> dict[str, float]:
    """Returns the numbers of a schedule for the whole crawl: shares from 0 to 1, times in days."""
    came, scale = outcome.forecast, found.scale
    fetches = max(1, int(came.fetches.sum()))
    return {
        "fetches_a_day": float(came.fetches.mean()) * scale,
        "most_fetches_on_a_day": float(came.fetches.max()) * scale,
        "found_unchanged": float(came.unchanged.sum()) / fetches,
        "fresh": outcome.fresh,
        "best_fresh": outcome.best,
        "fresh_by_score": float(came.weighted.mean()),
        "best_fresh_by_score": outcome.best_weighted,
        "days_out_of_date": float(came.late.mean()),
        "versions_missed_a_day": float(came.missed.mean()) * scale,
        "due_at_the_end": float(came.waiting[-1]) * scale,
    }


def as_json(found: Simulated) -> dict[str, Any]:
    """Returns everything, with the numbers of each day."""
    options = found.options
    return {
        "from": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(options.now / 1000)),
        "days": options.days,
        "rounds_a_day": options.rounds,
        "budget_a_day": options.budget,
        "seed": options.seed,
        "pages": found.pages,
        "pages_looked_at": found.looked_at,
        "entries_left_out": found.others,
        "pages_fetched_twice": found.watched,
        "fetches_compared": found.fetches,
        "changes_seen": found.changes,
        "pages_changed_at_every_fetch": found.always,
        "changes_a_day": {"mean": found.rate, "median": found.median_rate},
        "schedules": [
            {
                "name": outcome.name,
                **numbers(found, outcome),
                "by_day": {
                    "fetches": [
                        round(float(count) * found.scale, 3) for count in outcome.forecast.fetches
                    ],
                    "fresh": outcome.forecast.fresh.tolist(),
                    "days_out_of_date": outcome.forecast.late.tolist(),
                },
            }
            for outcome in found.outcomes
        ],
    }


# -- text ------------------------------------------------------------------------------------------


def text(found: Simulated) -> str:
    """Returns the text for a terminal, 80 columns wide with two schedules."""
    head = (
        part for line in _head(found) for part in textwrap.wrap(line, _LINE, subsequent_indent="  ")
    )
    return "\n".join([*head, "", *_table(found), "", *_plot(found), "", *_bars(found)])


def _head(found: Simulated) -> list[str]:
    options = found.options
    parts = [
        f"{counted(options.days, 'days')} from"
        f" {time.strftime('%Y-%m-%d', time.gmtime(options.now / 1000))}"
    ]
    parts.append("a round a day" if options.rounds == 1 else f"{options.rounds} rounds a day")
    parts += [] if options.budget is None else [f"at most {options.budget:,.0f} fetches a day"]
    of = f"{found.looked_at:,} of " if found.looked_at < found.pages else ""
    others = (
        f"{counted(found.others, 'entries')} without a copy {'is' if found.others == 1 else 'are'}"
        " left out"
    )
    share = f", {found.changes / found.fetches:.0%} a change" if found.fetches else ""
    always = counted(found.always, "pages")
    return [
        ", ".join(parts),
        f"{of}{counted(found.pages, 'pages')}" + (f"; {others}" if found.others else ""),
        (
            f"{counted(found.fetches, 'fetches')} of {counted(found.watched, 'pages')} can be"
            f" compared with the one before{share}"
        ),
        *(
            [
                f"{always} had changed at every fetch, and may change more often than fetches can"
                " tell"
            ]
            if found.always
            else []
        ),
        (
            f"a page changes {found.rate:.2g} times a day on average; half of them every"
            f" {_days(found.median_rate)} days or more often"
        ),
    ]


def _days(rate: float) -> str:
    days = 1 / rate
    return f"{days:,.0f}" if days >= 100 else f"{days:.3g}"


def _table(found: Simulated) -> list[str]:
    """Makes a row for each number, a column for each schedule."""
    columns = [numbers(found, outcome) for outcome in found.outcomes]
    rows = [
        ("fetches a day", [f"{one['fetches_a_day']:,.1f}" for one in columns]),
        ("  most on a day", [f"{one['most_fetches_on_a_day']:,.0f}" for one in columns]),
        ("  found unchanged", [f"{one['found_unchanged']:.1%}" for one in columns]),
        ("copies fresh", [f"{one['fresh']:.1%}" for one in columns]),
        ("  at best with these fetches", [f"{one['best_fresh']:.1%}" for one in columns]),
        ("fresh by score", [f"{one['fresh_by_score']:.1%}" for one in columns]),
        ("  at best with these fetches", [f"{one['best_fresh_by_score']:.1%}" for one in columns]),
        ("days out of date", [f"{one['days_out_of_date']:,.2f}" for one in columns]),
        ("versions missed a day", [f"{one['versions_missed_a_day']:,.1f}" for one in columns]),
        ("due, not fetched at the end", [f"{one['due_at_the_end']:,.0f}" for one in columns]),
    ]
    names = [outcome.name for outcome in found.outcomes]
    wide = [max(14, len(name), *(len(row[1][i]) for row in rows)) for i, name in enumerate(names)]
    left = max(len(name) for name, _ in rows)
    lines = [("", names), *rows]
    return [
        (
            f"{name:<{left}}"
            + "".join(f"  {cell:>{w}}" for cell, w in zip(cells, wide, strict=True))
        ).rstrip()
        for name, cells in lines
    ]


def _shrunk(values: Floats, width: int) -> Floats:
    """Returns at most so many numbers: the means of equal stretches."""
    if len(values) <= width:
        return values
    edges = np.linspace(0, len(values), width + 1).astype(np.int64)
    return np.array([values[a:b].mean() for a, b in pairwise(edges)])


def _plot(found: Simulated) -> list[str]:
    """Draws the share of fresh copies, day by day."""
    series = [_shrunk(outcome.forecast.fresh, _WIDTH) for outcome in found.outcomes]
    low, high = _range(series)
    cells = [[" "] * len(series[0]) for _ in range(_HEIGHT)]
    for number, values in enumerate(series):
        for x, value in enumerate(values):
            row = round((high - value) / (high - low) * (_HEIGHT - 1))
            cells[row][x] = MARKS[number % len(MARKS)]
    lines = [
        "copies fresh: "
        + ", ".join(f"{MARKS[i % len(MARKS)]} {o.name}" for i, o in enumerate(found.outcomes))
    ]
    for row, letters in enumerate(cells):
        value = high - (high - low) * row / (_HEIGHT - 1)
        label = f"{value:7.1%}" if row % 3 == 0 else " " * 7
        lines.append(f"{label} |{''.join(letters)}".rstrip())
    width = len(series[0])
    end = f"day {found.options.days}"
    lines.append(f"{'':7} +{'-' * width}")
    lines.append(f"{'':9}day 1{end:>{max(width - 5, len(end) + 1)}}")
    return lines


def _range(series: Sequence[Floats]) -> tuple[float, float]:
    """Returns whole percents around all values."""
    low = math.floor(100 * min(float(values.min()) for values in series)) / 100
    high = math.ceil(100 * max(float(values.max()) for values in series)) / 100
    return (low, high) if high - low >= 0.02 else (max(0.0, high - 0.02), max(high, 0.02))


def _bars(found: Simulated) -> list[str]:
    """Draws fetches, day by day."""
    most = max(1.0, *(float(outcome.forecast.fetches.max()) for outcome in found.outcomes))
    lines = [f"fetches a day, up to {most * found.scale:,.0f}"]
    for number, outcome in enumerate(found.outcomes):
        values = _shrunk(outcome.forecast.fetches.astype(np.float64), _WIDTH)
        bar = "".join(_block(value / most) for value in values)
        lines.append(f"{MARKS[number % len(MARKS)]:>7} |{bar}".rstrip())
    return lines


def _block(share: float) -> str:
    return _BLOCKS[min(int(share * len(_BLOCKS)), len(_BLOCKS) - 1)] if share else " "


# -- a picture -------------------------------------------------------------------------------------


def svg(found: Simulated) -> str:
    """Draws both plots as SVG, for light and dark."""
    fresh = [_lines_of(outcome.forecast.fresh) for outcome in found.outcomes]
    bests = [outcome.best for outcome in found.outcomes]
    low, high = _range([*fresh, np.array(bests)])
    fetches = [_lines_of(outcome.forecast.fetches * found.scale) for outcome in found.outcomes]
    most = max(1.0, *(float(values.max()) for values in fetches))
    said = "Copies fresh; dashed: at best with as many fetches"
    return plots.picture(
        f"What fetch schedules would do in {counted(found.options.days, 'days')}",
        [outcome.name for outcome in found.outcomes],
        [
            Panel(said, low, high, "{:.0%}".format, [one.tolist() for one in fresh], bests),
            Panel("Fetches a day", 0.0, most, "{:,.0f}".format, [one.tolist() for one in fetches]),
        ],
        ("day 1", f"day {found.options.days}"),
    )


def _lines_of(values: Any) -> Floats:
    return _shrunk(np.asarray(values, np.float64), 640)
