"""Makes the sections about the pages: content, depth, freshness. Pure: facts in, markup out."""

from __future__ import annotations

import polars as pl

from minutch.inspect.report.depths import MOST_DEPTHS
from minutch.inspect.report.facts import Facts
from minutch.inspect.report.layout import Section, histogram, ranked, section, together
from minutch.terminal import counted
from minutch.web import cells, plots
from minutch.web.cells import Column
from minutch.web.frame import element
from minutch.web.plots import Series

e = element

# -- content ---------------------------------------------------------------------------------------


def content(facts: Facts) -> Section | None:
    """Shows types, languages, charsets, sizes, depth."""
    types, sizes = facts["types"], facts["sizes"]
    if types.is_empty() and sizes.is_empty():
        return None
    first = ranked("Content types", types, cells.text("Type", "content_type"), "pages", "Pages")
    blocks = [first, histogram("Sizes", sizes, "pages", cells.size)]
    for name, column, title, heading in (
        ("languages", "lang", "Languages", "Language"),
        ("charsets", "charset", "Charsets", "Charset"),
    ):
        if facts[name].height:
            blocks.append(
                ranked(
                    title, facts[name], cells.text(heading, column), "pages", "Pages", "duplicate"
                )
            )
    said = "Of each page, as it was fetched last."
    return section("content", "Content", said, e("div", *blocks, class_="pair"))


def depth(facts: Facts) -> Section | None:
    """Shows how far from the seeds the crawl has come."""
    frame = facts["depth"]
    if frame.is_empty():
        return None
    names = {None: "unknown", MOST_DEPTHS: f"{MOST_DEPTHS} or more"}
    labels = [names.get(depth) or f"{depth}" for depth in frame["depth"]]
    frame = frame.with_columns(waiting=pl.col("urls") - pl.col("fetched"))
    kinds = {"fetched": "fetched", "not fetched": "waiting"}
    series = [Series(said, kind, frame[kind].to_list()) for said, kind in kinds.items()]
    plot = plots.columns("URLs by depth", labels, series, cells.short)
    said = (
        "Links and redirects from the nearest page that no other page led to: a seed, or one of a"
        " sitemap's."
    )
    return section("depth", "Depth", said, plot)


# -- freshness -------------------------------------------------------------------------------------


def freshness(facts: Facts) -> Section | None:
    """Shows the age of the copies, and how often pages change."""
    ages, changes, intervals = facts["ages"], facts["changes"], facts["intervals"]
    if ages.is_empty():
        return None
    blocks = [histogram("Time since a page was fetched last", ages, "pages", cells.span)]
    if facts.total("refetched"):
        labels, flows = together(changes, sums=("changed", "same"))
        pair = [Series("changed", "failed", flows["changed"].to_list())]
        pair.append(Series("the same", "unchanged", flows["same"].to_list()))
        blocks.append(plots.columns("Pages fetched again, per round", labels, pair, cells.short))
    if intervals.height:
        first = Column(
            "Fetched every", lambda row: cells.span(row["seconds"]), lambda row: row["seconds"]
        )
        blocks.append(ranked("Fetch intervals", intervals, first, "urls", "URLs", "duplicate"))
    return section("freshness", "Freshness", _changed(facts), e("div", *blocks, class_="pair"))


def _changed(facts: Facts) -> str:
    again, changed = facts.total("refetched"), facts.total("changed")
    if not again or changed is None:
        return "No page has been fetched a second time yet."
    return (
        f"Of {counted(again, 'fetches')} of pages fetched before, {changed / again:.0%} found a"
        " change."
    )
