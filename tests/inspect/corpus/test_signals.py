"""Signals of quality, by texts whose values were counted by hand."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.inspect.corpus import signals


def of(text: str) -> dict[str, Any]:
    """The signals of a text."""
    return signals.measures(pl.Series([text]))[0].row(0, named=True)


def test_words_are_counted_and_measured() -> None:
    found = of("The cat, and the dog's 3.14 well-known e.g. 1,000 a@b.example … end...")
    # The cat , and the dog 's 3.14 well - known e.g . 1,000 a@b.example … end ...
    assert found["words"] == 13
    lengths = (3, 3, 3, 3, 3, 2, 4, 4, 5, 3, 5, 11, 3)
    assert found["mean_word_length"] == pytest.approx(sum(lengths) / 13)
    assert found["alpha_words"] == pytest.approx(11 / 18)
    assert found["ellipsis_ratio"] == pytest.approx(2 / 18)
    assert found["stop_words"] == 2  # the, and


def test_characters_without_spaces_between_words_are_words() -> None:
    found = of("日本語のテキスト。")
    assert (found["words"], found["mean_word_length"]) == (8, 1)
    assert of("𠀀𠀁")["words"] == 2
    assert found["ended_lines"] == 1


def test_lines_by_how_they_begin_and_end() -> None:
    found = of("- one\n• two\n\nthree ...  \nfour…\nfive. . .\n" + "x" * 31 + "!")
    assert found["bullet_lines"] == pytest.approx(2 / 7)
    assert found["ellipsis_lines"] == pytest.approx(2 / 7)
    assert found["ended_lines"] == pytest.approx(2 / 6)  # "five. . ." and "xxx!"
    assert found["short_lines"] == pytest.approx(5 / 6)
    assert found["newline_ratio"] == pytest.approx(6 / 14)


def test_what_is_repeated_on_the_page() -> None:
    text = "same line\nother\nsame line\n\nsame line\n\nend\n\nend"
    found = of(text)
    assert found["repeated_lines"] == pytest.approx(3 / 6)
    assert found["repeated_line_chars"] == pytest.approx((9 + 9 + 3) / len(text))
    assert found["repeated_full_line_chars"] == pytest.approx(21 / (len(text) - 8))
    assert found["repeated_paragraphs"] == pytest.approx(1 / 4)
    assert found["repeated_paragraph_chars"] == pytest.approx(3 / len(text))


def test_runs_of_words() -> None:
    text = "a b a b c d e f a b c d e f"
    found = of(text)
    assert found["top_2_gram"] == pytest.approx(3 * len("a b") / len(text))
    assert found["top_3_gram"] == pytest.approx(2 * len("a b c") / len(text))
    assert found["repeated_5_grams"] == pytest.approx(
        5 / len(text)
    )  # abcde; f has too few after it
    assert found["repeated_6_grams"] == pytest.approx(6 / len(text))
    assert found["repeated_7_grams"] == 0
    assert of("one")["top_2_gram"] == 0


def test_the_language_of_the_text() -> None:
    found = of("Der Krake ist ein Ungeheuer, von dem Seeleute seit Jahrhunderten erzählen.")
    assert found["text_language"] == "de"
    assert 0.9 < (found["text_language_score"] or 0) <= 1
    assert of("12 345!")["text_language_score"] is None
    assert of("x" * 10 + " the sea " * 10_000)["text_language"] == "en"


def test_what_c4_keeps() -> None:
    found = of(
        "Too short.\n"
        "This line has no end\n"
        "This line trails off...\n"
        "One sentence. Another one! Is this the third? It is, of 3.5 or so.\n"
        "Please enable JavaScript to go on.\n"
        "Read our privacy policy here.\n"
        "It was so in 1066.[12]\n" + "x" * 1001 + " is too long.\n"
        "He said: 'so be it.'"
    )
    assert found["c4_lines"] == pytest.approx(3 / 9)
    assert found["c4_sentences"] == 4 + 1 + 1
    assert (found["lorem_ipsum"], found["curly_bracket"]) == (False, False)
    assert of("It says Lorem Ipsum there.")["lorem_ipsum"]
    assert of("It has a { in it.")["curly_bracket"]
    assert not of("function () {")["curly_bracket"]


def test_a_text_without_words_has_no_ratios() -> None:
    found = of("")
    assert {name for name, value in found.items() if value} == set()
    assert found["mean_word_length"] is None and found["words"] == 0


def test_lines_have_the_hashes_of_their_characters() -> None:
    _, lines = signals.measures(pl.Series(["a\n\n b", "", " b\na"]))
    first, second, third = lines.to_list()
    assert (first[1], second) == (0, [0])
    assert third == [first[2], first[0]]
    assert first[0] != first[2]


@given(st.lists(st.text(alphabet="a b.\n'é日-…"), max_size=5))
def test_counts_agree_with_plain_python(texts: list[str]) -> None:
    texts = [text.strip() for text in texts]
    found, lines = signals.measures(pl.Series(texts, dtype=pl.String))
    for text, row, hashes in zip(texts, found.iter_rows(named=True), lines, strict=True):
        split = text.split("\n")
        assert [value == 0 for value in hashes] == [not line.strip() for line in split]
        some = [line for line in split if line]
        if some:
            assert row["repeated_lines"] == pytest.approx(1 - len(set(some)) / len(some))
            full = [line for line in some if line.strip()]
            assert row["short_lines"] == pytest.approx(sum(len(x) <= 30 for x in full) / len(full))
