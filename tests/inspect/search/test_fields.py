"""Texts in Chinese, Japanese and Korean as pairs of characters, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.inspect.search.fields import paired, stemmer_of, unpaired


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
