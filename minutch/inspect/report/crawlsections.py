"""Makes the sections about the crawl: rounds, status and due dates, hosts, answers. Pure: facts in,
markup out.

A section that a crawl has nothing for is left out.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import polars as pl

from minutch.inspect.query.pages import OUTCOMES
from minutch.inspect.report.facts import Facts
from minutch.inspect.report.layout import (
    MOST_ROWS,
    NAMES,
    Row,
    Section,
    bar_column,
    histogram,
    listed,
    section,
    series_of,
    together,
)
from minutch.terminal import counted
from minutch.web import cells, plots
from minutch.web.cells import Column, number
from minutch.web.frame import Markup, element
from minutch.web.plots import Series

e = element

STATUS_KINDS: Final = {
    "db_unfetched": "waiting", "db_fetched": "fetched", "db_gone": "gone",
    "db_redir_temp": "redirected", "db_redir_perm": "redirected", "db_notmodified": "unchanged",
    "db_duplicate": "duplicate", "db_orphan": "denied",
}  # fmt: skip
"""Status of the CrawlDb → its colour."""
_DAY: Final = 86400

# -- rounds ----------------------------------------------------------------------------------------


def rounds(facts: Facts) -> Section | None:
    """Shows the results of each round."""
    frame = facts["rounds"].with_row_index("round", 1)
    if frame.is_empty():
        return None
    labels, flows = together(frame, sums=(*OUTCOMES, "bytes"))
    pages = plots.columns(
        "Pages per round", labels, series_of(flows, OUTCOMES), cells.short, "by what came of them"
    )
    sizes = [Series("bytes", "duplicate", flows["bytes"].to_list())]
    stored = plots.columns("Bytes per round", labels, sizes, cells.size, "contents of the pages")
    more = (
        f"The newest {MOST_ROWS} of {cells.count(frame.height)} are shown."
        if frame.height > MOST_ROWS
        else None
    )
    shown = [
        one for one in _ROUND if one.title not in _MAY_LACK or frame[_MAY_LACK[one.title]].sum()
    ]
    table = cells.table("Rounds", frame.reverse().head(MOST_ROWS).to_dicts(), shown, more)
    said = "A round is a segment: a list of pages that were due, fetched together."
    return section(
        "rounds", "Rounds", said, e("div", pages, stored, class_="pair"), _history(facts), table
    )


def _history(facts: Facts) -> Markup | None:
    frame = facts["history"]
    if frame.height < 2:
        return None
    shown = (*OUTCOMES, *(["waiting"] if frame["waiting"].sum() else []))
    ends = facts["rounds"].select("segment", pl.col("ended").dt.epoch("ms"))
    labels, levels = together(
        frame.join(ends, on="segment", how="left", maintain_order="left"), sums=()
    )
    places, axis = _on_time(levels["ended"].to_list())
    title, said = (
        "Statuses over time",
        "all URLs known when a round had ended, by what came of them last"
        + (" (UTC)" if axis else ""),
    )
    series = series_of(levels, shown)
    return plots.areas(title, labels, series, cells.short, said, places, axis)


def _on_time(ends: list[int]) -> tuple[list[float], list[plots.Mark]]:
    """Returns where rounds stand by the times of their ends (ms), and the axis; nothing if the
    times are not known or don't grow.
    """
    if ends != sorted(ends) or not 0 < ends[0] < ends[-1]:
        return [], []
    first, span = ends[0], ends[-1] - ends[0]
    return [100 * (end - first) / span for end in ends], plots.time_axis(first, ends[-1])


def _lasted(row: Row) -> float | None:
    if row["started"] is None or row["ended"] is None:
        return None
    return float((row["ended"] - row["started"]).total_seconds())


_ROUND: Final = (
    number("Round", "round"),
    Column("Segment", lambda row: e("code", cells.words(row["segment"])), minor=True),
    Column("Started (UTC)", lambda row: cells.moment(row["started"])),
    Column("Lasted", lambda row: cells.span(_lasted(row)), _lasted, minor=True),
    number("Fetched", "fetched"),
    number("Not modified", "unchanged"),
    number("Redirected", "redirected"),
    number("Gone", "gone"),
    number("Denied", "denied"),
    number("Failed", "failed"),
    number("Bytes", "bytes", cells.size),
    number("Response (median)", "median_ms", cells.milliseconds),
    number("Not parsed", "unparsed"),
)


_MAY_LACK: Final = {
    "Not modified": "unchanged",
    "Denied": "denied",
    "Response (median)": "median_ms",
    "Not parsed": "unparsed",
}
"""Columns that a crawl may have nothing for."""


# -- state -----------------------------------------------------------------------------------------


def state(facts: Facts) -> Section | None:
    """Shows the CrawlDb by status, and when its entries are due."""
    frame = facts["statuses"]
    if frame.is_empty():
        return None
    most = float(frame["urls"].max() or 0)  # type: ignore[arg-type]
    total = float(frame["urls"].sum())
    columns = [
        Column("Status", lambda row: cells.status(row["status"])),
        Column("Nutch's name", lambda row: e("code", row["status"]), minor=True),
        number("URLs", "urls"),
        Column("Share", lambda row: f"{row['urls'] / total:.1%}", lambda row: row["urls"]),
        Column(
            "",
            lambda row: plots.bar(
                [(row["urls"] / most, STATUS_KINDS.get(row["status"], "waiting"))]
            ),
        ),
    ]
    table = listed("URLs by status", frame.sort("urls", descending=True), columns)
    said = "What the CrawlDb holds now, and when its entries are to be fetched next."
    return section(
        "state", "Status and due dates", said, e("div", table, _due(facts), class_="pair")
    )


def _due(facts: Facts) -> Markup | None:
    frame = (
        facts["due"]
        .filter(pl.col("start").is_not_null())
        .with_columns(pl.col(pl.Int64).fill_null(0))
    )
    if frame.is_empty():
        return None
    kinds = {
        "new": ("not yet fetched", "waiting"),
        "again": ("fetched before", "fetched"),
        "gone": ("gone", "gone"),
    }
    series = [Series(said, kind, frame[name].to_list()) for name, (said, kind) in kinds.items()]
    now = facts.total("due")
    if not any(sum(one.values) for one in series):
        return e("p", f"All of the {counted(now or 0, 'URLs')} are due now.")
    labels = [due_label(row["start"], row["end"]) for row in frame.to_dicts()]
    said = "" if now is None else f"{cells.count(now)} more are due now"
    return plots.columns("What is due when", labels, series, cells.short, said)


def due_label(start: datetime, end: datetime | None) -> str:
    """Returns the label of a step in the plot of due dates."""
    if end is None:
        return "later"
    seconds = (end - start).total_seconds()
    if seconds < _DAY:
        return f"{start:%H:%M}"
    return f"{start:%b %Y}" if seconds > 27 * _DAY else f"{start.day} {start:%b}"


# -- hosts -----------------------------------------------------------------------------------------

_PARTS: Final = {
    "fetched": "fetched",
    "duplicates": "duplicate",
    "redirects": "redirected",
    "gone": "gone",
    "unfetched": "waiting",
}


def hosts(facts: Facts) -> Section | None:
    """Shows the hosts with the most URLs, the slowest, and those that fail most."""
    frame = facts["hosts"]
    if frame.is_empty():
        return None
    top = frame.sort("urls", descending=True, nulls_last=True, maintain_order=True)
    most = float(frame["urls"].max() or 0)  # type: ignore[arg-type]
    legend = plots.legend([Series(name, kind, ()) for name, kind in _PARTS.items()])
    columns = [
        cells.text("Host", "host"),
        *(
            number(title, name)
            for title, name in (
                ("URLs", "urls"),
                ("Fetched", "fetched"),
                ("Unfetched", "unfetched"),
            )
        ),
        number("Bytes", "bytes", cells.size, minor=True),
        bar_column(_PARTS, most),
    ]
    known = facts.total("hosts") or frame.height
    said = f"{counted(known, 'hosts')} in all."
    biggest = cells.table("Most URLs", top.head(MOST_ROWS).to_dicts(), columns)
    pair = e("div", _slow(frame), _failing(frame), class_="pair")
    return section("hosts", "Hosts", said, e("figure", legend), biggest, pair)


def _slow(frame: pl.DataFrame) -> Markup | None:
    slow = frame.filter(pl.col("median_ms").is_not_null()).sort(
        "median_ms", descending=True, maintain_order=True
    )
    if slow.is_empty():
        return None
    columns = [
        cells.text("Host", "host"),
        number("Requests", "requests", minor=True),
        number("Median", "median_ms", cells.milliseconds),
        number("Slowest", "slowest_ms", cells.milliseconds),
        bar_column({"median_ms": "redirected"}, float(slow["median_ms"].max() or 0)),  # type: ignore[arg-type]
    ]
    return cells.table("Slowest", slow.head(MOST_ROWS // 2).to_dicts(), columns)


def _failing(frame: pl.DataFrame) -> Markup | None:
    trouble = frame.fill_null(0).with_columns(
        (pl.col("failed") / pl.col("requests")).alias("share"),
        (pl.col("denied") / pl.col("requests")).alias("refused"),
    )
    failing = trouble.filter(pl.col("failed") > 0).sort(
        "failed", "share", descending=True, maintain_order=True
    )
    if failing.is_empty():
        return None
    columns = [
        cells.text("Host", "host"),
        number("Requests", "requests", minor=True),
        number("Failed", "failed"),
        Column("Share", lambda row: f"{row['share']:.0%}", lambda row: row["share"]),
        bar_column({"share": "failed"}, 1),
    ]
    return cells.table("Failing most", failing.head(MOST_ROWS // 2).to_dicts(), columns)


# -- answers ---------------------------------------------------------------------------------------


def answers(facts: Facts) -> Section | None:
    """Shows codes, response times, and why fetches failed."""
    codes, times, reasons = facts["codes"], facts["times"], facts["reasons"]
    if codes.is_empty() and times.is_empty():
        return None
    most = float(codes["requests"].max() or 0)  # type: ignore[arg-type]
    total = float(codes["requests"].sum())
    columns = [
        Column("Answer", lambda row: cells.code(row["code"])),
        number("Requests", "requests"),
        Column("Share", lambda row: f"{row['requests'] / total:.1%}", lambda row: row["requests"]),
        Column("", lambda row: plots.bar([(row["requests"] / most, code_kind(row["code"]))])),
    ]
    found = listed(
        "Response codes", codes.sort("requests", descending=True, maintain_order=True), columns
    )
    plot = histogram("Response times", times, "requests", cells.milliseconds, _quantiles(facts))
    why = _reasons(reasons) if reasons.height else None
    said = "Every request of every round that is kept; where no answer came, why."
    return section("answers", "Answers", said, e("div", found, plot, class_="pair"), why)


def _reasons(frame: pl.DataFrame) -> Markup:
    columns = [
        cells.text("Why", "reason"),
        Column("What came of it", lambda row: NAMES.get(row["outcome"], row["outcome"])),
        number("Requests", "requests"),
        cells.url("For example", "example"),
    ]
    return listed("Why pages were not had", frame, columns, stacked=True)


def code_kind(code: str) -> str:
    """Returns the colour of an answer."""
    if code == "304":
        return "unchanged"
    return {"2": "fetched", "3": "redirected", "4": "gone"}.get(
        code[:1], "denied" if "robots" in code else "failed"
    )


def _quantiles(facts: Facts) -> str:
    known = [("median", "median_ms"), ("9 of 10 within", "p90_ms"), ("99 of 100 within", "p99_ms")]
    return ", ".join(
        f"{said} {cells.milliseconds(value)}"
        for said, name in known
        if (value := facts.total(name)) is not None
    )
