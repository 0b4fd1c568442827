"""SURT keys: pairs as the canonicalizers of web archives give them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from minutch.archives.web.cdxjindex import surt
from tests.support.examples import tabled

PAIRS = {
    "http://a.example/": "example,a)/",
    "http://a.example": "example,a)/",
    "https://WWW23.A.Example:443/B/": "example,a)/b",
    "http://a.example:8080/": "example,a:8080)/",
    "http://a.example:80/x": "example,a)/x",
    "http://user:secret@a.example/x#top": "example,a)/x",
    "http://a.example/?b=2&a=1&a=0&c": "example,a)/?a=0&a=1&b=2&c",
    "http://a.example/x?": "example,a)/x",
    "http://a.example//b/../c/./d//": "example,a)/c/d",
    "http://a.example/%2541%20b%zz": "example,a)/a%20b%25zz",
    "http://a.example/é": "example,a)/%c3%a9",
    "http://bücher.example/": "example,xn--bcher-kva)/",
    "http://3232235777/": "1,1,168,192)/",
    "http://0300.0250.1.1/": "1,1,168,192)/",
    "http://a.example/x;v=1?PHPSESSID=0123456789abcdef0123456789ABCDEF&b=1": "example,a)/x;v=1?b=1",
    "http://a.example/(a(0123456789abcdefghijklmn))/x.aspx": "example,a)/x.aspx",
    "http://https://a.example/": "example,a)/",
    "a.example/x": "example,a)/x",
    "ftp://a.example/x": "example,a)/x",
    "mailto:x@a.example": "mailto:x@a.example",
    "": "-",
}


@tabled("url", PAIRS)
def test_keys(url: str) -> None:
    assert surt(url) == PAIRS[url]


@given(st.text(max_size=60) | st.text("aA./:?&=%#@[]é\n0 ", max_size=60).map("http://".__add__))
def test_every_text_has_a_key_of_one_line(url: str) -> None:
    key = surt(url)
    assert key and key.isascii() and key.isprintable() and " " not in key
