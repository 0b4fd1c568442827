"""Shows what has changed since an earlier report of the same crawl. Pure: two reports' facts in,
markup out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import polars as pl

from minutch.inspect.report import statuswords
from minutch.inspect.report.facts import TOTALS, Facts
from minutch.inspect.report.layout import MOST_ROWS, Section, section
from minutch.web import cells
from minutch.web.cells import Column, number
from minutch.web.frame import Markup, element, joined

e = element

_BETTER: Final = {
    "fetched": 1,
    "median_ms": -1,
    "p90_ms": -1,
    "p99_ms": -1,
    "broken": -1,
    "gone": -1,
}
"""Totals of which more (1) or less (-1) is better."""
_SHOWN: Final[Mapping[str, Callable[[float | None], str]]] = {
    "bytes": cells.size,
    "median_ms": cells.milliseconds,
    "p90_ms": cells.milliseconds,
    "p99_ms": cells.milliseconds,
}


def is_same_crawl(earlier: Facts, facts: Facts) -> bool:
    """Returns True if both may be reports of one crawl: they share a segment, or one of them has
    none.
    """
    mine, theirs = set(facts["rounds"]["segment"]), set(earlier["rounds"]["segment"])
    return bool(mine & theirs) or not mine or not theirs


def changes(earlier: Facts, facts: Facts) -> Section:
    """Makes the section."""
    rounds = set(facts["rounds"]["segment"]) - set(earlier["rounds"]["segment"])
    said = joined(
        "Compared with the report of ", cells.moment(earlier.when), f"; {len(rounds):,} round",
        "" if len(rounds) == 1 else "s", " since.",
        None if is_same_crawl(earlier, facts) else " No segment is in both: is it the same crawl?",
    )  # fmt: skip
    totals = cells.table("Totals", _totals(earlier, facts), _columns("What"))
    statuses = cells.table(
        "Statuses",
        _both("statuses", "status", "urls", earlier, facts),
        _columns("Status", statuswords.status),
    )
    codes = cells.table(
        "Answers",
        _both("codes", "code", "requests", earlier, facts),
        _columns("Answer", statuswords.code),
    )
    pair = e("div", totals, e("div", statuses, codes), class_="pair")
    return section("changes", "Since the earlier report", said, pair, _hosts(earlier, facts))


def _totals(earlier: Facts, facts: Facts) -> list[dict[str, Any]]:
    rows = []
    for name, title in TOTALS.items():
        before, now = earlier.total(name), facts.total(name)
        if before is not None and now is not None:
            rows.append({"name": title, "key": name, "before": before, "now": now})
    return rows


def _both(table: str, key: str, value: str, earlier: Facts, facts: Facts) -> list[dict[str, Any]]:
    """Returns the rows of a table of both reports, by key; a row in one alone counts 0 in the
    other.
    """
    then = earlier[table].select(name=key, before=value)
    found = (
        facts[table]
        .select(name=key, now=value)
        .join(then, on="name", how="full", coalesce=True)
        .fill_null(0)
    )
    return (
        found.sort("now", descending=True, maintain_order=True)
        .head(MOST_ROWS)
        .with_columns(key=pl.lit(""))
        .to_dicts()
    )


def _columns(title: str, shown: Callable[[str], Markup] = cells.words) -> list[Column]:
    return [
        Column(title, lambda row: shown(row["name"])),
        Column("Before", lambda row: _shown(row, row["before"]), lambda row: row["before"]),
        Column("Now", lambda row: _shown(row, row["now"]), lambda row: row["now"]),
        Column("Change", _change, lambda row: row["now"] - row["before"]),
    ]


def _shown(row: Mapping[str, Any], value: float) -> str:
    return _SHOWN.get(row["key"], cells.count)(value)


def _change(row: Mapping[str, Any]) -> Markup:
    less, more = row["before"], row["now"]
    if less == more:
        return joined("–")
    sign = "+" if more > less else "−"
    better = _BETTER.get(row["key"], 0) * (1 if more > less else -1)
    kind = {1: "good", -1: "bad"}.get(better)
    share = f" ({sign}{abs(more - less) / less:.0%})" if less else ""
    return e("span", f"{sign}{_shown(row, abs(more - less))}{share}", class_=kind)


def _hosts(earlier: Facts, facts: Facts) -> Markup | None:
    """Shows the hosts whose number of URLs has changed most, of those that both reports list."""
    then = earlier["hosts"].select("host", before="urls")
    both = facts["hosts"].select("host", now="urls").join(then, on="host").drop_nulls()
    moved = both.with_columns(change=pl.col("now") - pl.col("before")).filter(pl.col("change") != 0)
    if moved.is_empty():
        return None
    rows = (
        moved.sort(pl.col("change").abs(), descending=True, maintain_order=True)
        .head(MOST_ROWS // 2)
        .to_dicts()
    )
    change = Column(
        "Change", lambda row: f"{row['change']:+,}".replace("-", "−"), lambda row: row["change"]
    )
    columns = [
        cells.text("Host", "host"),
        number("URLs before", "before"),
        number("URLs now", "now"),
        change,
    ]
    return cells.table("Hosts that have changed most", rows, columns)
