"""Texts in Chinese, Japanese and Korean as pairs of characters, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.inspect.search.fields import STEMMERS, paired, stemmer_of, stop_words, unpaired


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("plain text", ["plain", "text"]),
        ("搜索引擎", ["搜索", "索引", "引擎"]),
        ("用Linux系统", ["用", "Linux", "系统"]),
        ("図書館、本", ["図書", "書館", "、", "本"]),
        ("한국어 문서", ["한국", "국어", "문서"]),
    ],
)
def test_pairs(text: str, pairs: list[str]) -> None:
    cut = paired(text).replace("\u2060", " ").replace("\u200b", " ").replace("、", " 、 ")
    assert cut.split() == pairs


@given(
    st.text(
        st.one_of(
            st.characters(exclude_characters="\u2060\u200b"), st.sampled_from("図書館한국어ab \n")
        ),
        max_size=60,
    )
)
def test_there_and_back(text: str) -> None:
    assert unpaired(paired(text)) == text


def test_marks_of_the_page_itself_go() -> None:
    assert unpaired(paired("a\u2060b\u200bc")) == "abc"


@pytest.mark.parametrize(
    ("lang", "stemmer"),
    [
        ("en", "en"),
        ("en-GB", "en"),
        ("DE_at", "de"),
        ("nb", "no"),
        ("ja", None),
        ("unknown", None),
        (None, None),
    ],
)
def test_stemmers_by_language(lang: str | None, stemmer: str | None) -> None:
    assert stemmer_of(lang) == stemmer


def test_stop_words_are_those_of_the_querys_language() -> None:
    shares = dict.fromkeys(STEMMERS, 0.01) | {"en": 0.5}
    assert stop_words(["how", "do", "I", "find", "die"], shares) == ["how", "do", "I"]
    assert stop_words(["die", "Boote", "in", "der", "Bucht"], shares) == ["die", "in", "der"]
    assert not stop_words(["to", "be", "or", "not", "to", "be"], shares)
    assert not stop_words(["harbour"], {})
    for code in STEMMERS:  # each has a list, or is known to have none
        assert len(stop_words(["harbour", "xyz"], {code: 1.0})) == 0
