"""cycle.owntext.own: what the words of lines say of them."""

from __future__ import annotations

from typing import Any

import polars as pl

from minutch.cycle.owntext.own import NUMBER, TITLE, counted, form, names, words_of

NAMES = ["tide tables of the north", "how stones are polished by waves", "sailors and their songs"]
NAMES += ["harbours that are no longer used", "wind in the sails", "moon over water"]
FRAMED = {"lines": 6, "of": 6, "place_pages": 6, "mean": 0.5, "framed": 0.0}


def words(*texts: str) -> list[list[int]]:
    return pl.DataFrame({"text": texts}).select(words_of(pl.col("text"))).to_series().to_list()


def of_places(
    lines: dict[int, list[str]], titles: list[str], **known: float
) -> dict[int, dict[str, Any]]:
    """What is counted of places, which have one of these lines on each page."""
    rows = [
        {"host": "h", "page": page, "place": place, "line": hash(text), "text": text, "times": 1}
        for place, texts in {**lines, TITLE: titles}.items()
        for page, text in enumerate(texts)
    ]
    sample = pl.DataFrame(rows, schema_overrides={"place": pl.UInt32, "line": pl.Int64})
    sample = sample.with_columns(words=words_of(pl.col("text"))).drop("text")
    places = pl.DataFrame([{"host": "h", "place": place} | FRAMED | known for place in lines])
    found = counted(
        sample.filter(pl.col("place") != TITLE),
        sample.filter(place=TITLE),
        places.cast({"place": pl.UInt32}),
    )
    return {row["place"]: row for row in found.iter_rows(named=True)}


def test_words_are_letters_and_digits_and_numbers_are_one() -> None:
    assert words("Posts: 480", "POSTS 12", "", "...", "x" * 257) == [
        [words("posts")[0][0], NUMBER],
        [words("posts")[0][0], NUMBER],
        [],
        [],
        [],
    ]
    [[version, *_]] = words("v12 12")
    assert version != NUMBER
    assert len(words("Größe Ελλάδα 図書")[0]) == 3


def test_a_place_of_lines_that_differ_in_numbers_is_one_of_forms() -> None:
    forms = [f"answered Mar {day} at 9:{day} by reader{day}" for day in range(6)]
    prices = [f"{day}.00 EUR" for day in range(6)]
    prose = [f"{name} in {day}" for day, name in enumerate(NAMES)]
    found = of_places({1: forms, 2: prices, 3: prose}, NAMES)
    assert [found[place]["formed"] for place in (1, 2, 3)] == [1, 0, 0]
    assert found[2]["common"] is None
    labelled = {4: [f"Posts: {day}" for day in range(6)]}
    assert of_places(labelled, NAMES)[4]["formed"] == 0
    assert of_places(labelled, NAMES, framed=0.5)[4]["formed"] == 1
    assert of_places({2: prices}, NAMES, framed=0.5)[2]["formed"] == 0
    assert of_places({1: forms}, NAMES, place_pages=1)[1]["formed"] == 0


def test_a_place_with_titles_of_other_pages_is_one_of_names() -> None:
    titles = [f"{name} - The Sea" for name in NAMES]
    others = [f"Read more: {NAMES[page - 1]} 12.50" for page in range(6)]
    own = [f"{name} 12.50" for name in NAMES]
    short = ["The sea of the sea"] * 6
    found = of_places({1: others, 2: own, 3: short}, titles)
    assert [found[place]["named"] for place in (1, 2, 3)] == [1, 0, 0]
    assert {*words("the sea")[0]} <= {*found[TITLE]["common"]}
    assert of_places({1: others}, titles, mean=0.8)[1]["named"] == 0
    menu = {1: ["Wind in the sails"] * 6}
    assert of_places(menu, titles)[1]["named"] == 1
    assert of_places({1: ["tide tables of stone"] * 6}, titles)[1]["named"] == 0


def test_a_line_is_a_form_by_the_words_of_its_place() -> None:
    lines = [
        "Asked 4 years ago, viewed 90 times",
        "Asked whether years matter",
        "467 g",
        "Posts: 4",
    ]
    common = words("asked years ago viewed times g posts")[0]
    table = pl.DataFrame({"words": words(*lines), "common": [[NUMBER, *common]] * 4})
    table = table.cast(pl.List(pl.UInt32))
    plain, among = (
        table.with_columns(framed=pl.lit(framed)).select(form()).to_series().to_list()
        for framed in (0.0, 0.5)
    )
    assert plain == [1, 0, 0, 0]
    assert among == [1, 0, 0, 1]


def test_the_name_of_a_page_is_the_line_that_has_most_of_its_title() -> None:
    rows = [
        (0, "The Sea", 0.9, 20),
        (0, "Class Wave", 0.2, 1),
        (0, "A wave of unrelated words", 0.9, 1),
        (0, "Nothing", 0.9, 1),
        (1, "Class Tide", 0.2, 1),
        (1, "Class Tide", 0.1, 1),
        (2, "Moon", 0.5, 1),
    ]
    table = pl.DataFrame(rows, schema=["row", "line", "mean", "anywhere"], orient="row")
    table = table.with_columns(words_of(pl.col("line")).alias("words"), of=20, place_pages=20)
    site = pl.Series([words("the sea")[0]] * len(rows), dtype=pl.List(pl.UInt32))
    titles = pl.Series(words("Wave (The Sea)", "Tide - The Sea", ""), dtype=pl.List(pl.UInt32))
    found = names(table.with_columns(site=site), titles)
    assert found["is_name"].to_list() == [False, True, False, False, True, False, False]
    assert found["of_title"].to_list() == [False, True, True, False, True, True, False]
