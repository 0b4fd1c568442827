"""cycle.owntext.revisions: which blocks have changed, and which of them say nothing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from fractions import Fraction
from math import comb

import polars as pl
import pytest

from minutch.cycle.owntext import revisions, worddiff
from minutch.cycle.owntext.revisions import ELSEWHERE, FRAME, HABIT, NOT_OWN, PASSING

Block = tuple[str, str]
"""Place and line; a place that begins with - is one of no main text."""
Visit = Sequence[Block]
P = "Prose of page {} that stays."


def told(*pages: Sequence[Visit]) -> dict[tuple[int, int], dict[str, str | None]]:
    """What `judged` says of pages of one site, each with its visits: line -> why it is muted, by
    page and turn.
    """
    places = {place for page in pages for visit in page for place, _ in visit}
    numbers = {place: number for number, place in enumerate(sorted(places))}
    rows = [
        (
            1,
            page,
            visit,
            visit,
            numbers[place],
            2 if place[0] == "-" else 60,
            place[0] != "-",
            line,
            date(2026, 3, 2) + timedelta(visit),
        )
        for page, visits in enumerate(pages)
        for visit, lines in enumerate(visits)
        for place, line in lines
    ]
    schema = pl.Schema(
        {
            "site": pl.UInt64(), "page": pl.UInt64(), "visit": pl.UInt32(), "segment": pl.UInt32(),
            "place": pl.UInt32(), "chance": pl.UInt8(), "own": pl.Boolean(), "line": pl.String(),
            "day": pl.Date(),
        }
    )  # fmt: skip
    found = worddiff.sides(worddiff.read(pl.DataFrame(rows, schema=schema, orient="row")))
    known = revisions.habits(revisions.added([revisions.counted(found)]))
    result: dict[tuple[int, int], dict[str, str | None]] = {}
    for page, turn, line, why in (
        revisions.judged(found, known).select("page", "turn", "line", "muted").iter_rows()
    ):
        result.setdefault((page, turn), {})[line] = why
    return result


def site(pages: int, visits: int, lines: str) -> list[list[list[Block]]]:
    """Pages of which each has a line of its own, and `lines` with {page} and {visit}."""
    return [
        [
            [
                ("p", P.format(page)),
                ("q", lines.format(page=page, visit=visit)),
            ]
            for visit in range(visits)
        ]
        for page in range(pages)
    ]


def test_a_counter_on_all_pages_is_a_habit_and_a_price_that_changes_once_is_none() -> None:
    pages = site(6, 4, "Counted {page}{visit}0 times")
    for visit in range(4):
        pages[2][visit].append(("price", "Price 10 EUR" if visit < 2 else "Price 12 EUR"))
        pages[3][visit].append(("price", "Price 10 EUR"))
    found = told(*pages)
    assert found[2, 2].pop("Price 10 EUR") is None
    assert found[2, 2].pop("Price 12 EUR") is None
    assert len(found) == 18
    assert {why for lines in found.values() for why in lines.values()} == {HABIT}


def test_what_changes_once_on_all_pages_is_no_habit() -> None:
    """A sale: each page has its own new price, at one of four visits."""
    pages = site(8, 5, "x")
    for number, page in enumerate(pages):
        for visit, lines in enumerate(page):
            lines[1] = ("price", f"Price {number + (10 if visit < 2 else 5)}.{number} EUR")
    found = told(*pages)
    assert len(found) == 8
    assert {why for lines in found.values() for why in lines.values()} == {None}


def test_two_visits_mute_numbers_that_nearly_all_pages_change_but_no_prices() -> None:
    found = told(*site(5, 2, "Counted {page}{visit}1 times"), *site(1, 2, "Version {visit}.1"))
    assert {why for (page, _), lines in found.items() for why in lines.values()} <= {HABIT, None}
    assert found[4, 1] == {"Counted 401 times": HABIT, "Counted 411 times": HABIT}
    assert found[5, 1] == {"Version 0.1": None, "Version 1.1": None}
    few = told(*site(2, 2, "Counted {page}{visit}1 times"))
    assert {why for lines in few.values() for why in lines.values()} == {None}
    for dearer in ("Price: {page}{visit}.10 EUR", "€ {page}{visit}.10"):
        found = told(*site(9, 2, dearer))
        assert len(found) == 9
        assert {why for lines in found.values() for why in lines.values()} == {None}


def pages_with(*ads: Sequence[str], edited: int = -1) -> list[list[list[Block]]]:
    """Pages of three paragraphs, with what the visits have found after the first of them."""
    return [
        [
            [
                ("p", P.format(f"{page} first")),
                ("p", text),
                ("p", P.format(f"{page} second")),
                ("p", P.format(f"{page} last" if page != edited or not visit else "edited")),
            ]
            for visit, text in enumerate(mine)
        ]
        for page, mine in enumerate(ads)
    ]


def test_two_visits_mute_what_takes_turns_with_what_other_pages_have_there() -> None:
    turns = ["ab", "bc", "ca", "bb", "cb", "ac"]
    found = told(*pages_with(*([f"Buy {ad} now" for ad in mine] for mine in turns), edited=2))
    assert found[2, 1] == {
        "Buy c now": HABIT, "Buy a now": HABIT, P.format("2 last"): None, P.format("edited"): None,
    }  # fmt: skip
    assert {why for (page, _), lines in found.items() if page != 2 for why in lines.values()} == {
        HABIT
    }
    stock = [("In stock", "Sold out"), *[("In stock", "In stock")] * 4, ("Sold out", "Sold out")]
    assert told(*pages_with(*stock)) == {(0, 1): {"In stock": None, "Sold out": None}}


def test_two_visits_mute_what_is_quite_another_at_the_same_place_of_most_pages() -> None:
    ads = [("abcdefgh"[page] * 3, "stuvwxyz"[page] * 3) for page in range(8)]
    ads[5] = ("mmm", "mmm")
    found = told(*pages_with(*ads, edited=2))
    assert {why for (page, _), lines in found.items() if page != 2 for why in lines.values()} == {
        HABIT
    }
    assert {line for line, why in found[2, 1].items() if why is None} == {
        P.format("2 last"), P.format("edited"),
    }  # fmt: skip


def test_the_same_words_for_others_on_all_pages_are_an_edit() -> None:
    names = ["Ann", "Bea"]
    words = [[[("p", P.format(n)), ("q", f"{name} of {n}")] for name in names] for n in range(9)]
    found = told(*words)
    assert len(found) == 9
    assert {why for lines in found.values() for why in lines.values()} == {None}


def test_a_title_that_was_edited_twice_is_no_habit() -> None:
    pages = site(20, 3, "x")
    pages[3] = [[("p", title), ("q", "x")] for title in ("One", "Two", "Three")]
    found = told(*pages)
    assert found == {(3, 1): {"One": None, "Two": None}, (3, 2): {"Two": None, "Three": None}}


def test_a_long_list_that_stays_is_told_though_other_pages_have_turns_there() -> None:
    names = [f"Name {letter}" for letter in "abcdefghijklmnopqrst"]
    pages = [
        [[("l", names[(7 * page + 3 * visit + n) % 20]) for n in range(3)] for visit in range(4)]
        for page in range(8)
    ]
    every = [[("l", f"Page {name}") for name in names] for _ in range(4)]
    every[2:] = [[*every[0][:5], ("l", "Page another"), *every[0][6:]]] * 2
    found = told(*pages, every)
    assert found.pop((8, 2)) == {"Page Name f": None, "Page another": None}
    assert {why for lines in found.values() for why in lines.values()} <= {HABIT, FRAME}


def test_advertisements_that_take_turns_are_a_habit_and_new_ones_in_their_place() -> None:
    turns = [[0, 1, 2, 0, 3], [1, 2, 0, 2, 1], [2, 0, 1, 1, 2], [0, 2, 1, 0, 9]]
    pages = [
        [[("p", P.format(number)), ("p", f"Buy the {'abcdefghij'[ad]} now")] for ad in mine]
        for number, mine in enumerate(turns)
    ]
    found = told(*pages)
    assert {why for lines in found.values() for why in lines.values()} == {HABIT, FRAME}
    assert found[3, 4]["Buy the j now"] == HABIT


def test_a_page_alone_has_habits_after_three_changes_of_words_and_two_of_numbers() -> None:
    texts = ["one thing", "another", "a third one", "and a last one"]
    page = [
        [("p", "Prose."), ("q", text), ("n", f"{visit} things")] for visit, text in enumerate(texts)
    ]
    found = told(page)
    assert {why for lines in found.values() for why in lines.values()} == {HABIT}
    assert told(page[:3])[0, 1] == {
        "one thing": None, "another": None, "0 things": HABIT, "1 things": HABIT,
    }  # fmt: skip
    edited = [[("p", f"First {text}."), ("p", "Second.")] for text in ("a", "b", "b", "c")]
    assert {why for lines in told(edited).values() for why in lines.values()} == {None}


def test_a_menu_that_changes_on_all_pages_is_no_change_of_any() -> None:
    pages = [
        [[("m", "Home"), ("m", menu), ("p", P.format(number))] for menu in ("News", "Blog")]
        for number in range(500)
    ]
    pages[7][1][2] = ("p", "Prose of page 7 that was edited.")
    found = told(*pages)
    assert {why for (page, _), lines in found.items() for why in lines.values() if page != 7} == {
        FRAME
    }
    assert found[7, 1] == {
        "News": FRAME, "Blog": FRAME, P.format(7): None, "Prose of page 7 that was edited.": None,
    }  # fmt: skip
    few = told(*(page for page in pages[:2]))
    assert few[0, 1] == {"News": None, "Blog": None}  # two pages are no site


def test_a_line_that_some_pages_get_is_their_own() -> None:
    pages = site(10, 3, "x")
    for page in pages[:3]:
        page[2].append(("q", "Sold out"))
    found = told(*pages)
    assert found == {(page, 2): {"Sold out": None} for page in range(3)}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Posted 3 hours ago by Ann", "Posted 5 days ago by Ann"),
        ("Posted yesterday", "Posted 2 days ago"),
        ("An hour ago: rain", "just now: rain"),
        ("Gepostet vor 3 Stunden", "Gepostet vor 2 Tagen"),
        ("Publié il y a 3 heures", "Publié il y a 2 jours"),
        ("投稿者：山（3時間前）", "投稿者：山（2日前）"),
        ("منذ 3 ساعات", "منذ 5 أيام"),
        ("Noch 3 Tage, 4 Stunden", "Noch 2 Tage, 11 Stunden"),
        ("Views: 3", "Views: 1,204"),
        ("12 Kommentare · 4 mal geteilt", "13 Kommentare · 9 mal geteilt"),
        ("1 комментарий", "5 комментариев"),
        ("閲覧数：12", "閲覧数：345"),
        ("Note : 4,3 sur 5 (18 votes)", "Note : 4,1 sur 5 (25 votes)"),
        ("Request 1a1aa71819717cb3-FRA", "Request 9f3e0bfbbe2403e1-FRA"),
        ("EUR/USD 1.0812 +0.31 %", "EUR/USD 1.0790 -0.20 %"),
        ("Today is Monday, 2 March 2026, 09:30", "Today is Tuesday, 3 March 2026, 10:12"),
        ("Stand: 02.03.2026", "Stand: 03.03.2026"),
        ("今天是2026年3月2日 星期一, 09:30", "今天是2026年3月3日 星期二, 10:12"),
    ],
)
def test_times_counts_and_codes_of_a_visit_say_nothing(old: str, new: str) -> None:
    assert told([[("p", old)], [("p", new)]]) == {(0, 1): {old: PASSING, new: PASSING}}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Price: 12 EUR", "Price: 14 EUR"),
        ("Open from 9:00 to 17:00", "Open from 9:00 to 18:00"),
        ("Deadline: 2 April 2026", "Deadline: 3 April 2026"),
        ("Delivery in 3 days", "Delivery in 5 days"),
        ("For 4 guests", "For 6 guests"),
        ("Bake at 180 °C", "Bake at 200 °C"),
        ("第3回の会議は東京です。", "第3回の会議は大阪です。"),
        ("Il y a 3 pommes", "Il y a 4 pommes"),
        ("SHA-256: " + 8 * "1a2b3c4d", "SHA-256: " + 8 * "1a2b3c4e"),
        ("Views of the lake: 3 rooms, a kitchen, " + 30 * "and more", "Views of the lake: 2"),
    ],
)
def test_what_people_edit_is_told(old: str, new: str) -> None:
    assert told([[("p", old)], [("p", new)]]) == {(0, 1): {old: None, new: None}}


def test_lists_of_others_and_notices_say_nothing() -> None:
    def page(head: str, first: str, notice: str = "") -> list[list[Block]]:
        before = [("h", head), ("li", first), ("li", "A second item of it"), ("p", "Prose.")]
        after = [("h", head), ("li", "Another first one"), ("li", "And one more"), ("p", "Prose.")]
        return [before, [*after, *([("c", notice)] if notice else [])]]

    for head in ("Related articles", "Kunden kauften auch:", "関連記事", "Les plus lus"):
        found = told(page(head, "The first", "Wir verwenden Cookies"))[0, 1]
        assert found.pop("Wir verwenden Cookies") == PASSING
        assert set(found.values()) == {NOT_OWN}
    assert set(told(page("What we need", "The first"))[0, 1].values()) == {None}
    cookies = told([[("p", "x")], [("p", "x"), ("p", "Our chocolate cookies are here")]])
    assert cookies == {(0, 1): {"Our chocolate cookies are here": None}}


def test_order_spaces_and_boxes_are_no_change() -> None:
    page = [
        [("p", "One."), ("p", "Two  words\u00a0here."), ("p", "Three.")],
        [("p", "Three."), ("p", "Two words here."), ("p", "One.\u200b")],
    ]
    assert told(page) == {}
    assert told([[("p", "One."), ("p", "Two.")], [("q", "One."), ("p", "Two.")]]) == {
        (0, 1): {"One.": ELSEWHERE}
    }


def test_what_is_no_main_text_is_not_told() -> None:
    assert told([[("-nav", "Next: a")], [("-nav", "Next: b")]]) == {
        (0, 1): {"Next: a": NOT_OWN, "Next: b": NOT_OWN}
    }


def test_words_that_change_in_a_line_whose_number_always_does_are_told() -> None:
    pages = site(4, 5, "Counted {page}{visit}0 times")
    pages[1][3][1] = ("q", "Counted 130 times by members")
    pages[1][4][1] = ("q", "Counted 140 times by members")
    found = told(*pages)
    assert found[1, 3] == {"Counted 120 times": None, "Counted 130 times by members": None}
    assert set(found[1, 4].values()) == {HABIT}


def test_counts_of_different_pages_add_up() -> None:
    pages = site(6, 4, "Counted {page}{visit}0 times")
    rows = [
        (1, page, visit, visit, place == "q", 60, True, line, date(2026, 3, 2))
        for page, visits in enumerate(pages)
        for visit, lines in enumerate(visits)
        for place, line in lines
    ]
    names = ["site", "page", "visit", "segment", "place", "chance", "own", "line", "day"]
    found = worddiff.sides(worddiff.read(pl.DataFrame(rows, schema=names, orient="row")))
    halves = [revisions.counted(found.filter(pl.col("page") % 2 == half)) for half in (0, 1)]
    whole = revisions.added([revisions.counted(found)])
    order = ["kind", "key", "place", "segment"]
    assert revisions.added(halves).sort(order).equals(whole.sort(order))


def test_a_year_in_the_footer_of_all_pages_is_its_frame() -> None:
    """The numbers of a line, too, that all pages have."""
    pages = site(6, 4, "x")
    for number, page in enumerate(pages):
        for visit, lines in enumerate(page):
            lines[1] = ("q", f"© {2026 + (visit == 3)} Example" if number else "Version 1")
    found = told(*pages)
    assert len(found) == 5
    assert {why for lines in found.values() for why in lines.values()} == {FRAME}


def test_a_line_that_takes_turns_elsewhere_does_so_on_two_pages_with_other_boxes() -> None:
    variants = ["Order now", "Buy this", "Get yours"]
    turns = [[0, 1, 2, 0], [1, 0, 0, 2], [2, 0, 1, 1], [0, 2, 1, 2]]
    pages = [
        [[("p", P.format(n)), ("call" if n < 4 else "other", variants[at])] for at in mine]
        for n, mine in enumerate([*turns, turns[0], turns[1]])
    ]
    found = told(*pages)
    assert {why for (page, _), lines in found.items() for why in lines.values() if page > 3} == {
        HABIT
    }


@pytest.mark.parametrize("turns", [1, 3, 64, 65, 200])
@pytest.mark.parametrize("rate", [0.05, 0.5, 0.9])
def test_what_is_rare_of_few_lines_and_of_thousands(turns: int, rate: float) -> None:
    for times in {0, 1, turns // 2, int(turns * rate) + 1, turns}:
        exact = sum(
            comb(turns, n) * Fraction(rate) ** n * (1 - Fraction(rate)) ** (turns - n)
            for n in range(times, turns + 1)
        )
        if times > turns * rate:
            assert revisions.tail(times, turns, rate) == pytest.approx(float(exact), 1e-6)
        else:
            assert exact > 0.2 and revisions.tail(times, turns, rate) == 1


def test_what_half_of_all_lines_do_is_no_habit_of_a_place_on_many_pages() -> None:
    """Beyond 64 lines all were taken for rare."""
    assert revisions.tail(400, 1000, 0.5) == 1
    assert revisions.tail(400, 1000, 0.3) < 1e-9 and revisions.tail(9000, 10_000, 0.5) < 1e-99


def test_counters_within_lines_that_differ_by_names_are_a_habit() -> None:
    names = ("Ada", "Bob", "Cleo", "Dan", "Eve", "Finn")
    pages: list[list[list[Block]]] = [
        [
            [("p", P.format(n)), ("q", f"{name} ({n}{v}1 posts) wrote on {n + 1} May")]
            for v in (0, 1)
        ]
        for n, name in enumerate(names)
    ]
    found = told(*pages)
    assert len(found) == 6
    assert {why for lines in found.values() for why in lines.values()} == {HABIT}
    # a new date of one is an edit, as no other has one
    for number, page in enumerate(pages):
        page[1][1] = ("q", f"{names[number]} ({number}01 posts) wrote on {number + 1} May")
    pages[3][1][1] = ("q", "Dan (301 posts) wrote on 9 May")
    assert told(*pages)[3, 1] == {line: None for _, line in (pages[3][0][1], pages[3][1][1])}


def test_prices_of_goods_that_take_turns_say_nothing() -> None:
    letters = "abcdefghi"

    def goods(page: int, visit: int) -> list[Block]:
        chosen = [(page + 3 * visit + n) % 9 for n in range(4)]
        items = [("li", f"Lamp {letters[n]} {n}{visit}.{page}0 EUR") for n in chosen]
        price = f"Chair {letters[page]} {9 if visit < 2 else 8}.00 EUR"
        return [("p", P.format(page)), ("price", price), *items]

    found = told(*([goods(page, visit) for visit in range(4)] for page in range(9)))
    for (page, turn), lines in found.items():
        edited = {line for line, why in lines.items() if why is None}
        sale = {f"Chair {letters[page]} {price}.00 EUR" for price in (9, 8)}
        assert edited == (sale if turn == 2 else set())
        # one of four stays, at another price
        assert len(lines) - len(edited) == 8


def test_what_comes_on_some_pages_and_goes_from_others_is_a_habit_unless_it_has_a_place() -> None:
    def pages(line: str, other: str) -> list[list[list[Block]]]:
        with_line = [(n % 2 == 0, n % 3 == 0) for n in range(12)]
        return [
            [
                [("p", P.format(n)), *([("q", line)] if is_there else [("q", other)] * bool(other))]
                for is_there in two
            ]
            for n, two in enumerate(with_line)
        ]

    banner = told(*pages("Our shop is on holiday", ""))
    assert {why for lines in banner.values() for why in lines.values()} == {HABIT}
    stock = pages("In stock", "Sold out")
    stock += [[[("p", P.format(n)), ("q", "In stock")]] * 2 for n in range(12, 40)]
    assert {why for lines in told(*stock).values() for why in lines.values()} == {None}


def test_what_stands_before_the_same_line_is_known_after_two_visits() -> None:
    def page(number: int, visit: int) -> list[Block]:
        ad = [("p", f"Buy {'abcdefgh'[number]}{'xy'[visit]} now"), ("p", "Advertisement")]
        above, below = ([("p", f"{P.format(number)} {n}") for n in range(m)] for m in (2, 6))
        return [*above[: number % 3], *ad, *below[2 : 2 + number % 4]]

    found = told(*([page(number, visit) for visit in (0, 1)] for number in range(8)))
    assert len(found) == 8
    assert {why for lines in found.values() for why in lines.values()} == {HABIT}


def test_a_new_design_is_no_change_and_what_changes_anyway_is_known_in_it() -> None:
    def page(number: int, visit: int) -> list[Block]:
        box = "new " if visit > 2 else ""
        ad = f"Buy {'abcdefgh'[number]}{'wxyz'[visit]}"
        first = P.format(number) if (number, visit) != (4, 3) else "Prose that was written anew."
        return [
            (f"{box}p", first),
            (f"{box}h", "Related"),
            (f"{box}li", ad),
            (f"{box}q", f"Counted {number}{visit}7 times"),
            (f"{box}p", f"More of {'abcdefgh'[number]}."),
        ]

    found = told(*([page(number, visit) for visit in range(4)] for number in range(8)))
    for (number, turn), lines in found.items():
        edits = {line for line, why in lines.items() if why is None}
        anew = {P.format(4), "Prose that was written anew."}
        assert edits == (anew if (number, turn) == (4, 3) else set())


def test_lines_whose_words_went_say_nothing_of_their_numbers() -> None:
    """Of five pages one loses the line: of all that stay, the number is another."""
    pages = site(4, 2, "{page}{visit}7 people have read it")
    pages[3][1][1] = ("q", "Nobody counts here.")
    found = told(*pages)
    assert all(found[page, 1] == dict.fromkeys(found[page, 1], HABIT) for page in range(3))
