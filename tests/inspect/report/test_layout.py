"""Sections share their layout: rounds that stand together, buckets, dates."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import polars as pl
import pytest

from minutch.inspect.report.counts import TIME_BOUNDS
from minutch.inspect.report.crawlsections import code_kind, due_label, rounds
from minutch.inspect.report.facts import Facts, shaped
from minutch.inspect.report.layout import MOST_PLACES, listed, steps, together
from minutch.web import cells
from minutch.web.cells import text


def test_few_rounds_stand_alone() -> None:
    frame = pl.DataFrame({"segment": ["a", "b", "c"], "fetched": [1, 2, None]})
    labels, found = together(frame, sums=("fetched",))
    assert labels == ["1", "2", "3"]
    assert found["fetched"].to_list() == [1, 2, 0]


@pytest.mark.parametrize("count", [79, 80, 81, 160, 1000])
def test_many_rounds_stand_together(count: int) -> None:
    frame = pl.DataFrame({"flow": [1] * count, "level": range(count)})
    labels, found = together(frame, sums=("flow",))
    assert len(labels) == found.height <= MOST_PLACES
    assert found["flow"].sum() == count
    assert found["level"].to_list()[-1] == count - 1
    assert labels[0] == ("1" if count <= MOST_PLACES else f"1–{-(-count // MOST_PLACES)}")
    assert labels[-1].endswith(str(count))


def test_steps() -> None:
    assert steps([10, 20, None], cells.size) == (
        ["< 10 B", "10 B", "20 B"],
        ["less than 10 B", "10 B to 20 B", "20 B or more"],
    )
    assert steps([], cells.size) == ([], [])


@pytest.mark.parametrize(
    ("length", "label"),
    [
        (timedelta(hours=1), "13:00"),
        (timedelta(days=1), "5 Mar"),
        (timedelta(days=7), "5 Mar"),
        (timedelta(days=30), "Mar 2026"),
    ],
)
def test_due_dates(length: timedelta, label: str) -> None:
    start = datetime(2026, 3, 5, 13, tzinfo=UTC)
    assert due_label(start, start + length) == label
    assert due_label(start, None) == "later"


def test_statuses_stand_at_the_times_of_their_rounds() -> None:
    """A round a day, then a pause of eight days: the last tenth of the rounds is eight tenths of
    the time.
    """
    day = timedelta(days=1)
    start = datetime(2026, 3, 5, tzinfo=UTC)
    ends = [start, start + day, start + 2 * day, start + 10 * day]
    names = [f"{number}" for number in range(4)]
    counts = {"fetched": [1, 2, 3, 4]}
    tables = {
        "rounds": shaped(
            "rounds", pl.DataFrame({"segment": names, "started": ends, "ended": ends, **counts})
        ),
        "history": shaped("history", pl.DataFrame({"segment": names, **counts})),
    }
    found = rounds(Facts("x", 0, tables))
    assert found is not None
    path = re.search(r'<path d="M([^"]*?) L100.00 100.00 ', found.markup)
    assert path and re.findall(r"(?:^| L)([\d.]+) ", path[1]) == [
        "0.00",
        "10.00",
        "20.00",
        "100.00",
    ]
    assert ">7 Mar</text>" in found.markup or ">6 Mar</text>" in found.markup


def test_rounds_without_times_stand_side_by_side() -> None:
    names = ["a", "b", "c"]
    tables = {
        name: shaped(name, pl.DataFrame({"segment": names, "fetched": [1, 2, 3]}))
        for name in ("rounds", "history")
    }
    found = rounds(Facts("x", 0, tables))
    assert found is not None and " L50.00 " in found.markup


def test_response_times_are_counted_on_a_logarithmic_scale() -> None:
    """Neighbouring bounds are as far from each other anywhere: a factor of 2 or 2.5."""
    factors = {right / left for left, right in pairwise(TIME_BOUNDS)}
    assert factors == {2, 2.5} and TIME_BOUNDS[0] == 1 and TIME_BOUNDS[-1] >= 30_000


def test_colours_of_answers() -> None:
    kinds = {
        code: code_kind(code)
        for code in ("200", "304", "301", "404", "503", "robots denied", "exception", "999")
    }
    assert list(kinds.values()) == [
        "fetched",
        "unchanged",
        "redirected",
        "gone",
        "failed",
        "denied",
        "failed",
        "failed",
    ]


def test_a_list_says_how_many_there_are() -> None:
    frame = pl.DataFrame({"name": [f"{number}" for number in range(100)]})
    found = listed("Names", frame, [text("Name", "name")], 5000, "select '<x>'")
    assert (
        "20 of 5,000 are shown. All of them: <code>minutch sql CRAWL" in found
        and "<x>" not in found
    )
    assert "are shown" not in listed("Names", frame.head(3), [text("Name", "name")], 3, "select 1")
