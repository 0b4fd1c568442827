"""Counters of generate in words, for the one who wonders why nothing was selected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from minutch.fetchlist import select, selection

REASONS: Final = {
    select.FILTERED: "rejected by the URL filters",
    select.NOT_DUE: "not due yet",
    select.WAITING: "in a fetch list whose results are awaited (crawl.gen.delay)",
    select.EXPRESSION: "for which the expression is not true",
    select.STATUS: "with another status than generate.restrict.status",
    select.LOW_SCORE: "with a score below generate.min.score",
    select.INTERVAL: "with a fetch interval above generate.min.interval",
    select.MALFORMED: "that are no URLs",
    select.OVER_LIMIT: "over the limit of their host or domain (generate.max.count)",
    selection.NOT_IN_TOP: "beyond topN",
}


def describe(counters: Mapping[str, int]) -> Iterator[str]:
    """A line for each reason that left out entries; one line where the CrawlDb had none."""
    lines = [f"{counters[name]:,} {text}" for name, text in REASONS.items() if counters.get(name, 0)]
    return iter(lines or ["the CrawlDb has no entries"])
