"""Host names between Unicode and ASCII, by IDNA 2003 and by UTS 46."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.errors import UrlError
from minutch.urls import hostname
from tests.support.examples import tabled


@tabled(
    ("host", "idna2003", "idna2008"),
    [
        ("b\u00fccher.example", "xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("fa\u00df.de", "fass.de", "xn--fa-hia.de"),
        ("\u03c3\u03b9\u03b3\u03bc\u03b1\u03c2.gr", "xn--mxadrn6ae.gr", "xn--mxadrn5ab.gr"),
        ("\u4f8b\u3048\u3002jp", "xn--r8jz45g.jp", "xn--r8jz45g.jp"),
        ("\U0001f600.org", "xn--e28h.org", "xn--e28h.org"),
        ("a.", "a.", "a."),
        ("a..b", None, None),
        ("a-.org", "a-.org", None),
        ("ab--c.org", "ab--c.org", None),
        ("a" * 64, None, None),
        ("xn--\u00e9", None, None),
        ("xn--zzzzzzzz\u00e9", None, None),
        ("\u0301a.org", "xn--a-wbb.org", None),
        ("a\u2028b", None, None),
    ],
)
def test_to_ascii(host: str, idna2003: str | None, idna2008: str | None) -> None:
    for convert, expected in (
        (hostname.to_ascii_2003, idna2003),
        (hostname.to_ascii_2008, idna2008),
    ):
        if expected is None:
            with pytest.raises(UrlError):
                convert(host)
        else:
            assert convert(host) == expected


@pytest.mark.parametrize(
    ("host", "idna2003", "idna2008"),
    [
        ("xn--bcher-kva.example", "b\u00fccher.example", "b\u00fccher.example"),
        ("xn--fa-hia.de", "xn--fa-hia.de", "fa\u00df.de"),
        ("xn--zzzz-.org", "xn--zzzz-.org", None),
        ("XN--bcher-kva", "b\u00fccher", "b\u00fccher"),
    ],
)
def test_to_unicode(host: str, idna2003: str, idna2008: str | None) -> None:
    assert hostname.to_unicode_2003(host) == idna2003
    if idna2008 is None:
        with pytest.raises(UrlError):
            hostname.to_unicode_2008(host)
    else:
        assert hostname.to_unicode_2008(host) == idna2008


@given(st.text(max_size=20))
def test_only_our_error(host: str) -> None:
    for convert in (
        hostname.to_ascii_2003,
        hostname.to_unicode_2003,
        hostname.to_ascii_2008,
        hostname.to_unicode_2008,
    ):
        try:
            convert(host)
        except UrlError as exc:
            assert str(exc)


@given(st.text(st.characters(categories=["Ll"], max_codepoint=0x24F), min_size=1, max_size=10))
def test_there_and_back(label: str) -> None:
    try:
        there = hostname.to_ascii_2008(label)
    except UrlError:
        return
    assert there.isascii()
    assert hostname.to_ascii_2008(hostname.to_unicode_2008(there)) == there
