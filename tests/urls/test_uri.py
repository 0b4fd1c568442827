"""java.net.URI's strictness, normalization and quoting; percent-encoding as Nutch normalizes and
Java decodes it.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.errors import UrlError
from minutch.urls.uri import (
    escape_unsafe,
    form_decode,
    normalize_escapes,
    normalize_path,
    parse_uri,
    unescape_unreserved,
)
from tests.support.examples import tabled
from tests.urls.strategies import any_text, odd_text, urls


@tabled(
    ("text", "host", "path"),
    [
        ("http://a.org/b?c#d", "a.org", "/b"),
        ("http://a.1/b", None, "/b"),
        ("http://1.2.3.4/", "1.2.3.4", "/"),
        ("http://a_b/", None, "/"),
        ("http://-a/", None, "/"),
        ("http://a-/", None, "/"),
        ("http://b\u00fccher.example/", None, "/"),
        ("http://[::1]:80/", "[::1]", "/"),
        ("http://[fe80::1%25x]/", "[fe80::1%25x]", "/"),
        ("http://a:80:80/", None, "/"),
        ("http://u:p@a.org:8/", "a.org", "/"),
        ("http:///x", None, "/x"),
        ("mailto:a@b", None, ""),
        ("a/b", None, "a/b"),
        ("http://a./", "a.", "/"),
    ],
)
def test_parts(text: str, host: str | None, path: str) -> None:
    uri = parse_uri(text)
    assert (uri.host, uri.path) == (host, path)
    assert str(uri) == text


@tabled(
    "text",
    [
        "http://",
        "http:",
        ":a",
        "1:a",
        "http://a/ b",
        "http://a/%zz",
        "http://a/%2",
        "http://a/|",
        "http://a/\\",
        "http://a/#a#b",
        "http://a b/",
        "http://a/\u00a0",
        "http://[::1",
        "//",
    ],
)
def test_what_is_no_uri(text: str) -> None:
    with pytest.raises(UrlError, match="URI"):
        parse_uri(text)


@tabled(
    ("path", "expected"),
    [
        ("/a/./b/../c", "/a/c"),
        ("/a//b", "/a/b"),
        ("//", "/"),
        ("/..", "/.."),
        ("/../.", "/../"),
        ("/../../a", "/../../a"),
        ("/a/b/..", "/a/"),
        ("/a/.", "/a/"),
        ("a/..", ""),
        ("../a", "../a"),
        ("a/../b:c", "./b:c"),
        ("", ""),
    ],
)
def test_normalize_path(path: str, expected: str) -> None:
    assert normalize_path(path) == expected


def test_normalisation_leaves_the_rest_alone() -> None:
    assert str(parse_uri("http://U@A:80/b/../c?d/../e#f").normalize()) == "http://U@A:80/c?d/../e#f"
    assert str(parse_uri("mailto:a/../b").normalize()) == "mailto:a/../b"


@given(urls | any_text)
def test_only_our_error(text: str) -> None:
    try:
        uri = parse_uri(text)
        assert str(uri) == text
        uri.normalize()
    except UrlError as exc:
        assert str(exc)


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


@tabled(
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
def test_form_decode_raises_only_our_error(text: str) -> None:
    try:
        form_decode(text)
    except UrlError as exc:
        assert str(exc)
