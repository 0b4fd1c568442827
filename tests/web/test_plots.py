"""Plots as SVG: numbers at the axis, shapes, words."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

from minutch.web import cells, plots
from minutch.web.plots import Series, areas, bar, columns, ticks
from tests.support.examples import tabled


@tabled(
    ("top", "expected"),
    [
        (0, [0, 1]),
        (1, [0, 1]),
        (3, [0, 1, 2, 3]),
        (10, [0, 5, 10]),
        (79, [0, 20, 40, 60, 80]),
        (100, [0, 50, 100]),
        (4_013, [0, 2000, 4000, 6000]),
        (float("nan"), [0, 1]),
        (float("inf"), [0, 1]),
    ],
)
def test_ticks(top: float, expected: list[float]) -> None:
    assert ticks(top) == expected


def test_ticks_are_few_and_reach_the_top() -> None:
    for top in [*range(1, 400), 10**6 + 1, 123_456_789, 10**15 + 7]:
        found = ticks(top)
        assert found[0] == 0 and found[-2] < top <= found[-1] and 2 <= len(found) <= 6, top


def drawn_rates(markup: str) -> ET.Element:
    return ET.fromstring(f"<r>{markup}</r>")


def test_columns_stand_on_top_of_each_other() -> None:
    series = [Series("one", "fetched", [1, 2]), Series("two", "gone", [3, 0])]
    root = drawn_rates(columns("A plot", ["first", "second"], series, cells.short))
    rects = [
        one for one in root.iter("rect") if one.get("class") in ("fetched", "gone") and one.get("x")
    ]
    assert [(one.get("class"), one.get("y"), one.get("height")) for one in rects] == [
        ("fetched", "75%", "25%"),
        ("gone", "0%", "75%"),
        ("fetched", "50%", "50%"),
    ]
    assert [one.text for one in root.iter("title")] == ["first: one 1, two 3", "second: one 2"]
    label = next(one.get("aria-label") for one in root.iter("svg") if one.get("role") == "img")
    assert label == "A plot, from first to second. Highest at first. At second: one 2; two 0"


def test_areas_reach_from_edge_to_edge() -> None:
    root = drawn_rates(
        areas("A plot", ["1", "2", "3"], [Series("one", "fetched", [0, 5, 10])], cells.short)
    )
    (path,) = root.iter("path")
    assert (
        path.get("d")
        == "M0.00 100.00 L50.00 50.00 L100.00 0.00 L100.00 100.00 L50.00 100.00 L0.00 100.00Z"
    )


@pytest.mark.parametrize("count", [0, 1, 2, 80, 500])
def test_any_number_of_places(count: int) -> None:
    labels = [f"{at}" for at in range(count)]
    for draw in (columns, areas):
        root = drawn_rates(
            draw("A plot", labels, [Series("one", "fetched", list(range(count)))], cells.short)
        )
        shown = [one for one in root.iter("text") if one.get("y") == str(plots.HEIGHT + 30)]
        assert len(shown) <= 8
        assert len(list(root.iter("title"))) == count


def test_a_bar_has_its_parts_side_by_side() -> None:
    rects = list(drawn_rates(bar([(0.5, "fetched"), (0, "gone"), (0.25, "failed")])).iter("rect"))
    assert [(one.get("x"), one.get("width"), one.get("class")) for one in rects] == [
        ("0%", "50%", "fetched"),
        ("50%", "25%", "failed"),
    ]


def test_what_comes_from_the_web_is_text() -> None:
    for draw in (columns, areas):
        root = drawn_rates(
            draw("<b>", ["<i>", "</svg>"], [Series("<s>", "fetched", [1, 2])], cells.short, "<u>")
        )
        assert not {one.tag for one in root.iter()} & {"b", "i", "s", "u"}


MINUTE, DAY = 60_000, 86_400_000


@pytest.mark.parametrize(
    ("span", "labels"),
    [
        (10_000, ["1 Jan", "00:00:02", "00:00:04"]),
        (10 * MINUTE, ["1 Jan", "00:02", "00:04"]),
        (2 * DAY, ["1 Jan", "12:00", "2 Jan"]),
        (30 * DAY, ["1 Jan", "8 Jan"]),
        (3000 * DAY, ["Jan 1970", "Jan 1972"]),
    ],
)
def test_a_time_axis_has_round_times(span: int, labels: list[str]) -> None:
    """Labels are as far from each other as their times, on the edges of minutes, hours and days."""
    found = plots.time_axis(0, span)
    assert [label for _, label in found][: len(labels)] == labels and 1 < len(found) <= 8
    gaps = [right - left for (left, _), (right, _) in pairwise(found)]
    assert max(gaps) - min(gaps) < 0.01 and found[0][0] == 0 and found[-1][0] <= 100


def test_a_time_axis_of_no_time() -> None:
    assert len(plots.time_axis(5, 5)) <= 8


def test_areas_stand_where_their_times_are() -> None:
    """Three rounds, the second soon after the first: the area turns there, not in the middle."""
    series = [Series("one", "fetched", [0, 10, 10])]
    root = drawn_rates(
        areas("A plot", ["1", "2", "3"], series, cells.short, "", [0, 10, 100], [(50, "noon")])
    )
    (path,) = root.iter("path")
    assert (path.get("d") or "").startswith("M0.00 100.00 L10.00 0.00 L100.00 0.00")
    places = [one.get("width") for one in root.iter("rect") if one.get("class") == "place"]
    assert places == ["5%", "50%", "45%"]
    assert "noon" in [one.text for one in root.iter("text")]


def test_turns_are_marked() -> None:
    series = [Series("one", "fetched", [1, 2])]
    marks = [(10, "Round 1"), (12, "Round 2"), (60, "<b>"), (95, "Round 4")]
    root = drawn_rates(columns("A plot", ["a", "b"], series, cells.short, turns=marks))
    turns = [one for one in root.iter("line") if one.get("class") == "turn"]
    assert [one.get("x1") for one in turns] == ["10%", "12%", "60%", "95%"]
    assert [one[0].text for one in turns] == ["Round 1", "Round 2", "<b>", "Round 4"]
    texts = [one.text for one in root.iter("text")]
    assert "Round 1" in texts and "<b>" in texts and "Round 2" not in texts  # no room
    last = next(one for one in root.iter("text") if one.text == "Round 4")
    assert last.get("text-anchor") == "end"  # on the side where there is room
