"""Percent-encoding as Nutch normalises and Java decodes it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.errors import UrlError
from minutch.urls.uri import escape_unsafe, form_decode, normalize_escapes, unescape_unreserved
from tests.urls.strategies import odd_text


def test_each_direction() -> None:
    assert unescape_unreserved("%41%7e%2f%zz%") == "A~%2F%zz%"
    assert escape_unsafe("a b%%20\u00e9\ud800") == "a%20b%25%20%C3%A9?"
    assert normalize_escapes("%2%35") == "%25"


@given(odd_text)
def test_normalising_gives_ascii_and_ends_after_a_second_time(text: str) -> None:
    once = normalize_escapes(text)
    assert once.isascii()
    twice = normalize_escapes(once)
    assert normalize_escapes(twice) == twice


@pytest.mark.parametrize(
    ("text", "decoded"),
    [
        ("a+b%20c", "a b c"),
        ("%C3%A9", "\u00e9"),
        ("%C3", "\ufffd"),
        ("%+f", "\x0f"),
        ("", ""),
        ("\u00e9%", None),
        ("%4", None),
        ("%-1", None),
        ("%zz", None),
    ],
)
def test_form_decode(text: str, decoded: str | None) -> None:
    if decoded is None:
        with pytest.raises(UrlError, match="percent"):
            form_decode(text)
    else:
        assert form_decode(text) == decoded


@given(st.text(max_size=20))
def test_only_our_error(text: str) -> None:
    try:
        form_decode(text)
    except UrlError as exc:
        assert str(exc)
