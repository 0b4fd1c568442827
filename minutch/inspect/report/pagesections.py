"""Makes the sections about the pages: content, depth, freshness, and what people would fix. Pure:
facts in, markup out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import polars as pl

from minutch.inspect.query.reach import MOST_DEPTHS
from minutch.inspect.report.facts import Facts
from minutch.inspect.report.layout import (
    NAMES,
    Section,
    histogram,
    listed,
    ranked,
    section,
    together,
)
from minutch.terminal import counted
from minutch.web import cells, plots
from minutch.web.cells import Column, number
from minutch.web.frame import Markup, element, joined
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
        "Links from the nearest page that the crawl began with, mostly a seed; redirects are no"
        " steps."
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


# Makes the sections about what people would fix: a summary of all findings, then broken links,
# redirects, duplicates, robots.txt. Pure.

MOST_EXAMPLES: Final = 5
"""Addresses of a list within a cell."""
MOST_CHAINS: Final = 10
_DUPLICATES: Final = "select * from duplicates"
_REDIRECTS: Final = "select url, redirect_to from pages where redirect_to is not null"
_REFUSED: Final = "select url from pages where protocol_status = 'robots_denied'"


_SECTIONS: Final = {
    "broken-links": "broken",
    "redirect-chains": "redirects",
    "equal-pages": "duplicates",
    "forbidden-linked": "robots",
    "server-errors": "answers",
    "no-answer": "answers",
}
"""Rule -> the section of the report that shows more."""


def summary(facts: Facts) -> Section | None:
    """Lists what an audit has found, for the beginning of the report; the gravest come first."""
    asked = facts["audit"]
    if asked.is_empty():
        return None
    found = asked.filter(pl.col("findings") > 0)
    columns = [
        Column("Finding", _finding),
        cells.text("Severity", "severity"),
        number("How many", "findings"),
        cells.url("For example", "example"),
    ]
    unknown = asked.filter(pl.col("findings").is_null())["rule"].to_list()
    said = joined(
        "All of them, with the pages: ",
        e("code", "minutch audit"),
        f". Not to be told from this crawl: {', '.join(unknown)}." if unknown else ".",
    )
    return section(
        "findings",
        "Findings",
        said,
        e("p", "Nothing that would have to be mended.", class_="good")
        if found.is_empty()
        else cells.table("What was found", found.to_dicts(), columns, stacked=True),
    )


def _finding(row: Mapping[str, Any]) -> Markup:
    place = _SECTIONS.get(row["rule"])
    name = e("a", row["rule"], href=f"#{place}") if place else e("b", row["rule"])
    return joined(name, ": ", row["says"])


def duplicates(facts: Facts) -> Section | None:
    """Shows pages with equal content."""
    frame = facts["duplicates"]
    if frame.is_empty():
        return None
    columns = [
        cells.url("Page", "kept"),
        number("URLs", "urls"),
        Column("The same content", lambda row: _some(row["others"], row["urls"] - 1)),
    ]
    count = facts.total("duplicate_groups")
    groups = counted(count or frame.height, "groups")
    said = (
        f"{groups} of pages with the same signature; marked db_duplicate:"
        f" {cells.count(facts.total('duplicates'))}."
    )
    return section(
        "duplicates",
        "Duplicates",
        said,
        listed("Largest groups", frame, columns, count, _DUPLICATES, stacked=True),
    )


def chains(facts: Facts) -> Section | None:
    """Shows redirects that lead to redirects."""
    frame = facts["chains"]
    if frame.is_empty():
        return None
    columns = [
        Column("Chain", lambda row: cells.several(map(cells.address, row["addresses"]), "chain")),
        number("Hops", "hops"),
        Column("Ends in", lambda row: NAMES.get(row["end"], row["end"])),
    ]
    count = facts.total("chains")
    said = (
        f"{counted(count or frame.height, 'chains')} of redirects that lead to redirects; the"
        " longest first."
    )
    return section(
        "redirects",
        "Redirect chains",
        said,
        listed("Longest chains", frame.head(MOST_CHAINS), columns, count, _REDIRECTS, stacked=True),
    )


def broken(facts: Facts) -> Section | None:
    """Shows links to pages that are gone or fail, with the pages they are on."""
    frame = facts["broken"]
    if frame.is_empty():
        return None
    columns = [
        cells.url("Broken address", "url"),
        cells.text("Why", "why"),
        number("Links", "links"),
        Column("On the pages", _places),
    ]
    count = facts.total("broken")
    many = cells.count(count or frame.height)
    said = (
        f"Addresses that are gone or failed when last asked for, and that pages link to: {many}."
        " Those with the most links come first."
    )
    return section(
        "broken", "Broken links", said, listed("Broken links", frame, columns, count, stacked=True)
    )


def robots(facts: Facts) -> Section | None:
    """Shows what robots.txt refused."""
    frame = facts["robots"]
    if frame.is_empty():
        return None
    columns = [
        cells.text("Host", "host"),
        number("Refusals", "urls"),
        cells.url("For example", "example"),
    ]
    said = (
        "Requests that were not made, because the robots.txt of the host says so:"
        f" {cells.count(facts.total('denied'))}."
    )
    return section(
        "robots",
        "Refused by robots.txt",
        said,
        listed("Refusals by host", frame, columns, query=_REFUSED, stacked=True),
    )


def _some(addresses: list[str], count: int) -> Markup:
    shown = [cells.address(one) for one in addresses[:MOST_EXAMPLES]]
    more = count - len(shown)
    return cells.several([*shown, *([f"and {cells.count(more)} more"] if more > 0 else [])])


def _places(row: Mapping[str, Any]) -> Markup:
    pairs = list(zip(row["pages"], row["anchors"], strict=False))[:MOST_EXAMPLES]
    shown = [
        joined(cells.address(page), *((" “", cells.words(anchor), "”") if anchor else ()))
        for page, anchor in pairs
    ]
    more = row["links"] - len(shown)
    return cells.several([*shown, *([f"and {cells.count(more)} more"] if more > 0 else [])])
