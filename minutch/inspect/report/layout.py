"""Lays out the sections of a report: headings, lists with bars, grouped rounds. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import polars as pl

from minutch.web import cells, frame, plots
from minutch.web.cells import Column, number
from minutch.web.frame import Child, Markup, element, joined
from minutch.web.plots import Series

e = element
Row = Mapping[str, Any]

MOST_PLACES: Final = 80
"""Rounds of a plot; where there are more, several stand together."""
MOST_ROWS: Final = 20
"""Rows of a list that are shown."""
NAMES: Final = {
    "fetched": "fetched", "unchanged": "not modified", "redirected": "redirected", "gone": "gone",
    "denied": "denied by robots.txt", "failed": "failed", "waiting": "not yet fetched",
}  # fmt: skip


class Section(NamedTuple):
    """A section: its anchor, its heading, and its markup."""

    name: str
    title: str
    markup: Markup


def section(name: str, title: str, said: Child, *content: Child) -> Section:
    """Makes a section with a heading and a line that introduces it."""
    about = e("p", said, class_="said") if said else None
    markup = frame.section(name, title, about, *content)
    return Section(name, title, markup)


def bar_column(parts: Mapping[str, str], most: float) -> Column:
    """Makes a column of bars: column of the facts → colour; a full bar is `most`."""
    return Column(
        "",
        lambda row: plots.bar(
            [((row[name] or 0) / most, kind) for name, kind in parts.items()] if most else []
        ),
    )


def ranked(
    title: str, frame: pl.DataFrame, first: Column, value: str, heading: str, kind: str = "fetched"
) -> Markup:
    """Makes a list of numbers, their shares and bars."""
    total, most = float(frame[value].sum() or 0), float(frame[value].max() or 0)  # type: ignore[arg-type]
    share = Column(
        "Share", lambda row: f"{row[value] / total:.1%}" if total else "–", lambda row: row[value]
    )
    rows = frame.sort(value, descending=True, maintain_order=True)
    return listed(
        title, rows, [first, number(heading, value), share, bar_column({value: kind}, most)]
    )


def listed(
    title: str,
    frame: pl.DataFrame,
    columns: Sequence[Column],
    of: int | None = None,
    query: str = "",
    *,
    stacked: bool = False,
) -> Markup:
    """Makes a table of the first rows of a frame, out of `of` rows; `query` is the SQL that shows
    all of them.
    """
    count, rows = of or frame.height, frame.head(MOST_ROWS).to_dicts()
    note: Child = None
    if count > len(rows):
        all_of_them = (
            joined(" All of them: ", e("code", f'minutch sql CRAWL "{query}"')) if query else None
        )
        note = joined(f"{len(rows)} of {cells.count(count)} are shown.", all_of_them)
    return cells.table(title, rows, columns, note, stacked=stacked)


def together(frame: pl.DataFrame, sums: Iterable[str]) -> tuple[list[str], pl.DataFrame]:
    """Groups rounds for a plot and labels them: `sums` are added up, of other columns the last
    value counts.
    """
    every = math.ceil(frame.height / MOST_PLACES)
    grouped = frame.with_columns((pl.int_range(pl.len()) // every).alias("_group")).group_by(
        "_group", maintain_order=True
    )
    numeric = [name for name, kind in frame.schema.items() if kind == pl.Int64]
    found = grouped.agg(
        pl.col(name).sum() if name in set(sums) else pl.col(name).last() for name in numeric
    )
    ends = [(at * every + 1, min((at + 1) * every, frame.height)) for at in range(found.height)]
    return [
        f"{first}" if first == last else f"{first}–{last}" for first, last in ends
    ], found.fill_null(0)


def series_of(frame: pl.DataFrame, names: Iterable[str]) -> list[Series]:
    """Returns the columns of a frame that are not all 0, in the colours of outcomes."""
    return [Series(NAMES[name], name, frame[name].to_list()) for name in names if frame[name].sum()]


def histogram(
    title: str,
    frame: pl.DataFrame,
    value: str,
    shown: Callable[[float | None], str],
    said: str = "",
) -> Markup | None:
    """Makes a plot of rows that count what is below the bound in their first column."""
    if frame.is_empty():
        return None
    labels, places = steps(frame.to_series().to_list(), shown)
    series = [Series(value, "fetched", frame[value].to_list())]
    return plots.columns(title, labels, series, cells.short, said, places)


def steps(
    bounds: Sequence[int | None], shown: Callable[[float | None], str]
) -> tuple[list[str], list[str]]:
    """Returns labels for rows that count what is below a bound and not below the one before: short
    ones and long ones.
    """
    pairs = list(zip([None, *bounds[:-1]], bounds, strict=True)) if bounds else []
    labels = [f"< {shown(high)}" if low is None else f"{shown(low)}" for low, high in pairs]
    whole = [
        f"{shown(low)} or more" if high is None else f"less than {shown(high)}" if low is None
        else f"{shown(low)} to {shown(high)}"
        for low, high in pairs
    ]  # fmt: skip
    return labels, whole
