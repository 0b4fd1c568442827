"""Sections share their layout: rounds that stand together, buckets, dates."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from minutch.inspect.report.crawlsections import code_kind, due_label
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
