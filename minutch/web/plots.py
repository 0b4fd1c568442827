"""Draws plots as inline SVG: columns, areas, and the bars of tables; lines as a file of their own.
Pure: numbers in, markup out.

No viewBox on the outside: places are in percent, so that a plot takes the width that there is and
its letters keep their size. Colours are the classes of the page's style sheet. Each place of a plot
says in words what it shows (`title`), the whole of it in its label; the numbers stand in tables,
too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final

from minutch.web.frame import Markup, element, joined

e = element

HEIGHT: Final = 180
"""Pixels between the axis and the top of a plot."""
_TOP: Final = 12
_LABELS: Final = 26
_AXIS: Final = 52
"""Pixels for the numbers of the axis."""
_MOST_LABELS: Final = 8
_TICKS: Final = 4
_STEPS: Final = (1, 2, 5, 10)
_WIDE: Final = 0.78
"""Share of its place that a column fills."""
_WIDEST: Final = 12
"""Percent of the plot that a column takes at most."""
_ROOM: Final = 14
"""Percent of the plot that the name of a turn takes."""
_MANY: Final = 40
"""Number of columns from which on they touch each other."""

_MINUTE: Final = 60_000
_DAY: Final = 1440 * _MINUTE
_TIME_STEPS: Final = (
    *(1000 * seconds for seconds in (1, 2, 5, 10, 15, 30)),
    *(_MINUTE * minutes for minutes in (1, 2, 5, 10, 15, 30, 60, 180, 360, 720)),
    *(_DAY * days for days in (1, 2, 7, 14, 28, 91, 182, 364)),
)
"""Milliseconds between two labels of a time axis."""

Number = Callable[[float], str]
Mark = tuple[float, str]
"""Where something stands (percent of the width), and its name."""


@dataclass(frozen=True)
class Series:
    """Numbers of one kind, one for each place; `kind` is the class that has their colour."""

    name: str
    kind: str
    values: Sequence[float]


def columns(
    title: str,
    labels: Sequence[str],
    series: Sequence[Series],
    number: Number,
    said: str = "",
    places: Sequence[str] = (),
    turns: Sequence[Mark] = (),
    axis: Sequence[Mark] = (),
) -> Markup:
    """Draws columns, those of several series stacked.

    `said` follows the title; `places` are longer names of what `labels` are; `turns` are marked by
    lines; `axis` has the labels of the axis, if they are others.
    """
    top = _top([sum(values) for values in zip(*(one.values for one in series), strict=True)])
    wide = 100 / max(len(labels), 1)
    # One or two columns would be blocks as wide as the plot.
    share = min(_WIDE if len(labels) < _MANY else 1, _WIDEST / wide)
    shapes = []
    for at, label in enumerate(places or labels):
        left, below, rects = (at + (1 - share) / 2) * wide, 0.0, []
        for one in series:
            high = 100 * one.values[at] / top
            if high > 0:
                place = {"x": _percent(left), "width": _percent(wide * share)}
                rects.append(
                    e(
                        "rect",
                        **place,
                        y=_percent(100 - below - high),
                        height=_percent(high),
                        class_=one.kind,
                    )
                )
                below += high
        shapes.append(
            # The whole height tells its title, also above a low column.
            e("g", e("title", _place(label, series, at, number)), _whole(at * wide, wide), *rects)
        )
    return _figure(
        title,
        labels,
        axis or [((at + 0.5) * wide, label) for at, label in enumerate(labels)],
        series,
        [*shapes, *_turns(turns)],
        top,
        number,
        said,
    )


def areas(
    title: str,
    labels: Sequence[str],
    series: Sequence[Series],
    number: Number,
    said: str = "",
    places: Sequence[float] = (),
    axis: Sequence[Mark] = (),
) -> Markup:
    """Draws the numbers of several series as stacked areas.

    `places` says where each stands (percent of the width), if not as far from each other; `axis`
    has the labels of the axis then.
    """
    top = _top([sum(values) for values in zip(*(one.values for one in series), strict=True)])
    wide = 100 / max(len(labels) - 1, 1)
    middles = list(places) or [at * wide for at in range(len(labels))]
    below = [0.0] * len(labels)
    shapes = []
    for one in series:
        upper = [low + 100 * value / top for low, value in zip(below, one.values, strict=True)]
        if any(one.values):
            pairs = list(zip(middles, upper, below, strict=True))
            there = [f"{x:.2f} {100 - high:.2f}" for x, high, _ in pairs]
            back = [f"{x:.2f} {100 - low:.2f}" for x, _, low in reversed(pairs)]
            shapes.append(e("path", d=f"M{' L'.join([*there, *back])}Z", class_=one.kind))
        below = upper
    drawn = e(
        "svg",
        *shapes,
        viewBox="0 0 100 100",
        preserveAspectRatio="none",  # stretched as the window is
        width="100%",
        height="100%",
    )
    # Each place reaches halfway to its neighbours.
    edges = [0.0, *((left + right) / 2 for left, right in pairwise(middles)), 100.0]
    shown = [
        e(
            "g",
            e("title", _place(label, series, at, number)),
            _whole(edges[at], edges[at + 1] - edges[at]),
        )
        for at, label in enumerate(labels)
    ]
    marks = axis or list(zip(middles, labels, strict=True))
    return _figure(title, labels, marks, series, [drawn, *shown], top, number, said)


def time_axis(first: float, last: float) -> list[Mark]:
    """Returns the labels of an axis from one time (ms since the epoch, UTC) to another: round
    times, dates at midnight.
    """
    span = max(last - first, 1.0)
    step = next((one for one in _TIME_STEPS if span / one < _MOST_LABELS), span / _TICKS)
    start = math.ceil(first / step)
    times = [at * step for at in range(start, math.floor(last / step) + 1)]
    return [(100 * (time - first) / span, _time_label(time, step)) for time in times]


def _time_label(time: float, step: float) -> str:
    shown = datetime.fromtimestamp(time / 1000, UTC)
    if step >= 28 * _DAY:
        return f"{shown:%b %Y}"
    if time % _DAY == 0:
        return f"{shown.day} {shown:%b}"
    return f"{shown:%H:%M:%S}" if step < _MINUTE else f"{shown:%H:%M}"


def _turns(turns: Sequence[Mark]) -> list[Markup]:
    """Draws a line at each turn, with its name where there is room."""
    found, free = [], 0.0
    for at, name in turns:
        x, is_right = _percent(at), free <= at <= 100 - _ROOM
        side = {"dx": "4"} if is_right else {"dx": "-4", "text_anchor": "end"}
        label = e("text", name, x=x, y="0", dy=".2em", aria_hidden="true", **side)
        line = e("line", e("title", name), x1=x, x2=x, y1="0", y2="100%", class_="turn")
        has_room = is_right or free <= at - _ROOM
        found.append(joined(line, label if has_room else None))
        free = (at + _ROOM if is_right else at) if has_room else free
    return found


def bar(parts: Sequence[tuple[float, str]]) -> Markup:
    """Draws a bar within a cell: shares of its width (0 to 1) with their colours, side by side."""
    rects, left = [], 0.0
    for share, kind in parts:
        if share > 0:
            rects.append(
                e(
                    "rect",
                    x=_percent(100 * left),
                    width=_percent(100 * share),
                    height="100%",
                    class_=kind,
                )
            )
            left += share
    return e("svg", *rects, class_="bar", aria_hidden="true")


def legend(series: Sequence[Series]) -> Markup:
    """Lists the colours and their names."""
    items = []
    for one in series:
        square = e("rect", width="100%", height="100%", class_=one.kind)
        items.append(e("li", e("svg", square, aria_hidden="true"), one.name))
    return e("ul", *items, class_="legend")


def ticks(top: float) -> list[float]:
    """Returns round numbers from 0 to `top`, the last one no less than it."""
    # Of a crawl without a page, too, an axis is drawn; NaN fails the first comparison.
    if not top > 0 or not math.isfinite(top):
        return [0, 1]
    rough = top / _TICKS
    unit = 10 ** math.floor(math.log10(rough))
    # A step that is less by a rounding alone is large enough.
    step = next(unit * step for step in _STEPS if unit * step >= rough * (1 - 1e-9))
    # Nobody counts half a page.
    step = max(step, 1) if top >= 1 else step
    return [step * count for count in range(math.ceil(top / step) + 1)]


def _top(sums: Sequence[float]) -> float:
    return ticks(max(sums, default=0))[-1]


def _figure(
    title: str,
    labels: Sequence[str],
    axis: Sequence[Mark],
    series: Sequence[Series],
    drawn: Sequence[Markup],
    top: float,
    number: Number,
    said: str,
) -> Markup:
    """Draws title, legend and axes around a plot."""
    marks = [(tick, _percent(100 - 100 * tick / top)) for tick in ticks(top)]
    zero, *lines = [
        e("line", x1="0", x2="100%", y1=y, y2=y, class_="grid" if tick else "zero")
        for tick, y in marks
    ]
    numbers = [
        e("text", number(tick), x="100%", y=y, dy=".32em", text_anchor="end") for tick, y in marks
    ]
    size = {"height": str(HEIGHT), "y": str(_TOP), "width": "100%"}
    height = str(HEIGHT + _TOP + _LABELS)
    scale = e(
        "svg",
        e("svg", *numbers, **size, class_="open"),
        width=str(_AXIS),
        height=height,
        aria_hidden="true",
    )
    field = e(
        "svg",
        # The line at 0 last: columns begin at it and would hide half of it.
        e("svg", *lines, *drawn, zero, **size, class_="open"),
        *_labels(axis),
        height=height,
        role="img",
        aria_label=_in_words(title, labels, series, number),
        class_="field",
    )
    names = legend(series) if len(series) > 1 else None
    caption = e("figcaption", e("strong", title), e("span", said) if said else None, names)
    return e("figure", caption, e("div", scale, field, class_="plot"))


def _labels(axis: Sequence[Mark]) -> list[Markup]:
    """Draws as many labels as fit; a narrow window hides every other one (class `minor`)."""
    every = math.ceil(len(axis) / _MOST_LABELS)
    shown = axis[:: max(every, 1)]
    found = []
    for count, (at, label) in enumerate(shown):
        anchor = "start" if at < 2 else "end" if at > 98 else "middle"
        minor = "minor" if count % 2 and len(shown) > _MOST_LABELS // 2 else None
        place = {"x": _percent(at), "y": str(HEIGHT + _TOP + 18), "text_anchor": anchor}
        found.append(e("text", label, **place, class_=minor, aria_hidden="true"))
    return found


def _whole(left: float, wide: float) -> Markup:
    """Draws a place from top to bottom, for the pointer."""
    start, end = max(left, 0), min(left + wide, 100)
    return e("rect", x=_percent(start), width=_percent(end - start), height="100%", class_="place")


def _place(label: str, series: Sequence[Series], at: int, number: Number) -> str:
    said = ", ".join(f"{one.name} {number(one.values[at])}" for one in series if one.values[at])
    return f"{label}: {said or number(0)}"


def _in_words(title: str, labels: Sequence[str], series: Sequence[Series], number: Number) -> str:
    """Describes the plot for people who do not see it."""
    if not labels:
        return title
    sums = "; ".join(f"{one.name} {number(one.values[-1])}" for one in series)
    most = max(range(len(labels)), key=lambda at: sum(one.values[at] for one in series))
    return (
        f"{title}, from {labels[0]} to {labels[-1]}. Highest at {labels[most]}. At {labels[-1]}:"
        f" {sums}"
    )


def _percent(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".") + "%"


# -- a file of its own -----------------------------------------------------------------------------

_LEFT, _RIGHT, _FIRST, _PANEL, _GAP, _ENTRY = 60, 700, 40, 180, 60, 22
_COLOURS: Final = (
    ("#0b57a4", "#8ab8f5"), ("#b3261e", "#ff9aa2"), ("#1a6b3c", "#7fce9f"), ("#8a4b00", "#f0b060"),
    ("#6a3d9a", "#c5a3f0"), ("#00696d", "#6fd6d9"), ("#5f5f00", "#d0d060"), ("#8e3a6e", "#f0a0d0"),
)  # fmt: skip
"""Of lines, on light and on dark: those of the style sheet are for areas, some too pale for a
line."""


@dataclass(frozen=True)
class Panel:
    """A plot of lines, one for each name of the picture, from `low` to `high`; `levels` are dashed
    lines across it.
    """

    title: str
    low: float
    high: float
    number: Number
    lines: Sequence[Sequence[float]]
    levels: Sequence[float] = ()


def picture(
    title: str, names: Sequence[str], panels: Sequence[Panel], ends: tuple[str, str]
) -> str:
    """Returns an SVG file, for light and dark: panels below each other, and the names of the lines;
    `ends` are the labels of the axis.
    """
    bottom = _FIRST + (_PANEL + _GAP) * len(panels) - 10
    height = str(bottom + _ENTRY * len(names) + 10)
    tops = [_FIRST + (_PANEL + _GAP) * number for number in range(len(panels))]
    drawn = e(
        "svg",
        e("title", title),
        e("style", Markup(_picture_style())),
        e("rect", width="760", height=height, class_="paper"),
        *(_panel(one, top, ends) for one, top in zip(panels, tops, strict=True)),
        *(_entry(name, number, bottom + _ENTRY * number) for number, name in enumerate(names)),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 760 {height}",
        role="img",
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{drawn}\n'


def _picture_style() -> str:
    light, dark = (
        "".join(f".s{number}{{stroke:{pair[at]}}}" for number, pair in enumerate(_COLOURS))
        for at in (0, 1)
    )
    return (
        "text{font:13px system-ui,sans-serif;fill:#1b1f24}.paper{fill:#fff}"
        ".axis{stroke:#8c959f;stroke-width:1}"
        f"polyline{{fill:none;stroke-width:2}}.level{{stroke-dasharray:6 4}}{light}"
        "@media(prefers-color-scheme:dark){text{fill:#e6e9ee}.paper{fill:#14181d}" + dark + "}"
    )


def _panel(panel: Panel, top: int, ends: tuple[str, str]) -> Markup:
    """Draws a title, axes, and the lines."""

    def place(value: float) -> float:
        return top + _PANEL * (panel.high - value) / (panel.high - panel.low)

    parts = [_label(panel.title, _LEFT, top - 12)]
    for value in (panel.low, (panel.low + panel.high) / 2, panel.high):
        parts.append(_line([(_LEFT, place(value)), (_RIGHT, place(value))], "axis"))
        parts.append(_label(panel.number(value), _LEFT - 6, place(value) + 4, "end"))
    parts.append(_label(ends[0], _LEFT, top + _PANEL + 18))
    parts.append(_label(ends[1], _RIGHT, top + _PANEL + 18, "end"))
    for number, values in enumerate(panel.lines):
        wide = (_RIGHT - _LEFT) / max(1, len(values) - 1)
        points = [(_LEFT + wide * x, place(value)) for x, value in enumerate(values)]
        parts.append(_line(points, _colour(number)))
    for number, value in enumerate(panel.levels):
        points = [(_LEFT, place(value)), (_RIGHT, place(value))]
        parts.append(_line(points, f"level {_colour(number)}"))
    return joined(*parts)


def _entry(name: str, number: int, y: float) -> Markup:
    line = _line([(_LEFT, y), (_LEFT + 24, y)], _colour(number))
    return joined(line, _label(name, _LEFT + 32, y + 4))


def _line(points: Sequence[tuple[float, float]], kind: str) -> Markup:
    return e("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points), class_=kind)


def _label(said: str, x: float, y: float, anchor: str = "start") -> Markup:
    return e("text", said, x=f"{x:g}", y=f"{y:.1f}", text_anchor=anchor)


def _colour(number: int) -> str:
    return f"s{number % len(_COLOURS)}"
