"""cycle.owntext.own: which lines are own, by what is known of them."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from minutch.cycle.owntext.own import kept
from minutch.records.textblocks import MOST

SAID = {"form": 0.0, "formed": 0.0, "named": 0.0, "of_title": False, "is_name": False}
SEEN = SAID | {"of": 20, "place_pages": 20, "mean": 0.9, "framed": 0.0, "at": 1, "anywhere": 1}
MAIN = {"words": 30, "chance": 57, "times": 1} | SEEN


def own(*lines: dict[str, float]) -> list[bool]:
    """Which lines of a page are own, with three lines of main text before and behind them."""
    rows = [{"row": 0} | MAIN | line for line in [{}, {}, {}, *lines, {}, {}, {}]]
    rows = [{"place": 0, "line": number} | row for number, row in enumerate(rows)]
    found = kept(pl.DataFrame(rows, infer_schema_length=None)).to_list()
    assert all(found[:3])
    assert all(found[-3:])
    return found[3:-3]


@given(st.lists(st.tuples(st.integers(1, MOST - 1), st.integers(1, 40)), min_size=1, max_size=30))
def test_of_a_first_page_the_lines_with_the_highest_expected_f1_are_own(
    lines: list[tuple[int, int]],
) -> None:
    chances, words = np.array(lines).T
    alone: dict[str, float] = dict.fromkeys(["of", "place_pages", "at", "anywhere", "times"], 1) | {
        "framed": 0.0
    }
    alone |= SAID
    table = pl.DataFrame({"row": 0, "words": words, "chance": chances, "mean": chances / MOST})
    table = table.with_columns(place=0, line=pl.col("words") % 3)
    found = kept(table.with_columns(**{name: pl.lit(value) for name, value in alone.items()}))
    order = np.argsort(-chances, kind="stable")
    size, hoped = np.cumsum(words[order]), np.cumsum((words * chances / MOST)[order])
    best = np.argmax((2 * hoped / (size + hoped[-1])).round(12))
    assert found.to_list() == np.isin(np.arange(len(lines)), order[: best + 1]).tolist()


def test_pages_are_judged_each_by_itself() -> None:
    rows = [
        {"row": row, "place": 0, "line": line} | MAIN | {"chance": 57 - 20 * row}
        for row in range(3)
        for line in range(4)
    ]
    table = pl.DataFrame(rows)
    alone = [kept(table.filter(row=row).with_columns(row=pl.lit(0))) for row in range(3)]
    assert kept(table).to_list() == pl.concat(alone).to_list()
    assert not len(kept(table.clear()))


def test_a_line_of_all_pages_at_a_place_of_such_lines_is_frame() -> None:
    box = {"chance": 34, "mean": 0.54, "framed": 1.0, "at": 20, "anywhere": 20, "times": 20}
    assert own({"chance": 34, "mean": 0.54}) == [True]
    assert own(*[box] * 5) == [False] * 5


def test_what_repeats_at_a_place_of_main_text_is_own() -> None:
    shared = {"at": 20, "anywhere": 20, "times": 20}
    assert own(shared) == [True]
    assert own(shared | {"framed": 1.0, "words": 2}) == [True]
    assert own(shared | {"framed": 1.0, "at": 12}) == [True]
    assert own(shared | {"framed": 1.0, "mean": 0.6, "times": 400, "chance": 40, "words": 2}) == [
        True
    ]


def test_what_most_pages_have_where_nothing_else_stands_is_frame_though_it_looks_like_text() -> (
    None
):
    whole = {"at": 20, "anywhere": 20, "times": 20, "framed": 1.0, "mean": 0.9}
    assert own(whole) == [False]
    menu = whole | {"words": 2}
    assert own(*[menu] * 40)[5:35] == [False] * 30
    assert own(menu, {}, menu, {}) == [True] * 4


def test_lines_that_stand_at_a_likelier_place_of_the_page_too_are_its_table_of_contents() -> None:
    contents = {"place": 1, "words": 3, "chance": 38, "mean": 0.6}
    toc = [contents | {"line": number} for number in range(-4, 0)]
    text = [{"line": number} for number in range(-4, 0)]
    assert own(*toc) == [True] * 4
    assert own(*toc, *text) == [False] * 4 + [True] * 4
    assert own(*toc[:2], *text[:2]) == [True] * 4
    assert own(*(line | {"of": 1} for line in toc), *text)[:4] == [True] * 4


def test_what_a_page_alone_would_lose_is_kept_by_the_others() -> None:
    lost = {"chance": 12}
    assert own(lost | {"mean": 12 / MOST, "anywhere": 9}) == [False]
    assert own(lost) == [True]
    assert own({"chance": 21, "mean": 0.35, "words": 3}) == [True]
    assert own({"chance": 1, "mean": 0.02, "words": 3}) == [False]


def test_in_a_slot_of_the_template_a_heading_is_before_what_is_own_and_tags_are_behind_it() -> None:
    slot, menu = {"chance": 13, "mean": 0.2, "words": 3}, {"chance": 1, "mean": 0.02, "words": 3}
    assert own(slot) == [True]
    assert own(slot, menu) == [False, False]
    assert own(slot | {"place_pages": 14}, menu) == [True, False]
    assert own(slot | {"mean": 0.38}, menu) == [True, False]


def test_forms_at_a_place_of_forms_that_all_pages_have_are_frame() -> None:
    head = {"form": 1.0, "formed": 1.0, "mean": 0.7, "chance": 45, "words": 7}
    assert own(head) == [False]
    assert own(head | {"form": 0.0}) == [True]
    assert own(head | {"formed": 0.2}) == [True]
    assert own(head | {"place_pages": 12}) == [True]
    assert own(head | {"of_title": True}) == [True]
    assert own(head | {"of_title": True, "mean": 0.4}) == [False]
    reply = {"at": 20, "anywhere": 20, "times": 20, "framed": 0.5, "mean": 0.5, "words": 4}
    assert own(reply | {"formed": 0.5}) == [False]
    assert own(reply) == [True]


def test_what_stands_where_titles_of_other_pages_do_is_frame() -> None:
    card = {"named": 0.1, "mean": 0.5, "chance": 45, "words": 6}
    assert own(card) == [False]
    assert own(card | {"named": 0.0}) == [True]
    assert own(card | {"mean": 0.8}) == [True]
    assert own(card | {"place_pages": 5}) == [True]
    assert own(card | {"is_name": True}) == [True]


def test_the_name_of_a_page_is_its_own_though_it_looks_like_frame() -> None:
    title = {"chance": 12, "mean": 0.2, "words": 2, "anywhere": 2}
    assert own(title) == [False]
    assert own(title | {"is_name": True}) == [True]
    assert own(title | {"is_name": True, "of": 1, "place_pages": 1}) == [False]
