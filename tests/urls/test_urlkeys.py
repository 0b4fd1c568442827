"""One form for the spellings of a URL, in which they are compared."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.urls.urlkeys import form_of_any, url_key, url_keys

SAME = {
    "http://h.example/": (
        "http://h.example",
        "HTTP://H.Example/",
        "http://h.example:80/",
        "http://h.example./",
        "http://h.example/#top",
        "http://h.example/#",
        "http://h.example/a/..",
        "http://h.example/./",
        "http://h.example/%2e/",
        " http://h.example/\n",
    ),
    "https://h.example/%C3%A9?a=%C3": (
        "https://h.example/%c3%a9?a=%C3#x",
        "https://h.example:443/é?a=%c3",
        "https://h.example/b/../%C3%A9?a=%C3",
    ),
    "http://xn--bcher-kva.example/~a": (
        "http://bücher.example/%7ea",
        "http://BÜCHER.example:80/%7Ea",
        "http://bücher.example./~a",
    ),
    "http://127.0.0.1:8080/": ("http://127.1:8080", "http://0x7f.1:8080/"),
    "http://[::1]/": ("http://[::0001]", "http://[0:0::1]:80/"),
    "http://h.example/a%2Fb?c%26d": ("http://h.example/a%2fb?c%26d",),
}
OTHERS = (
    "https://h.example/",
    "http://h.example/?",
    "http://h.example//",
    "http://h.example/A",
    "http://h.example/a",
    "http://h.example/a/",
    "http://h.example/a%2Fb",
    "http://h.example/a/b",
    "http://h.example:8080/",
    "http://www.h.example/",
    "http://h.example/a.b/..c?/../",
    "https://h.example:80/",
    "http://h.example/?u=http://x:80/",
    "mailto:a@b.example",
    "no url",
)


@pytest.mark.parametrize("form", SAME)
def test_spellings_of_a_url(form: str) -> None:
    assert {url_key(spelled) for spelled in (form, *SAME[form])} == {form}


def test_what_differs() -> None:
    assert [url_key(url) for url in OTHERS] == list(OTHERS)
    assert url_key("no url#x") == "no url"


def test_columns() -> None:
    urls = [None, *(url for form in SAME for url in (form, *SAME[form])), *OTHERS]
    found = url_keys(pl.Series(urls, dtype=pl.String))
    assert found.to_list() == [url and form_of_any(url) for url in urls]
    assert url_keys(pl.Series([], dtype=pl.String)).to_list() == []


@given(
    st.lists(
        st.one_of(
            st.from_regex(
                r"https?://[a-z0-9.-]{1,9}(:(80|443|8080|0))?/[a-zA-Z/.%~?:&_-]{0,12}",
                fullmatch=True,
            ),
            st.text("htps:/.#?%aA7eé[]@ ", max_size=20).map("http://".__add__),
        ),
        max_size=8,
    )
)
def test_plain_urls_need_no_library(urls: list[str]) -> None:
    found = url_keys(pl.Series(urls, dtype=pl.String)).to_list()
    assert found == [*map(url_key, urls)] == [*map(form_of_any, urls)]
    assert [url_key(key) for key in found] == found
