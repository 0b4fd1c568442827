"""Registered domains and public suffixes, with crawler-commons' quirks; tldextract agrees on
ordinary hosts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import tldextract

from minutch import processwide
from minutch.errors import ConfigError
from minutch.urls.domains import (
    SuffixList,
    choose_representative,
    domain_name,
    domain_of,
    suffix_of,
)
from tests.support.examples import tabled

LIST = """
// a comment
com
uk
co.uk
*.ck
!www.ck
\u516c\u53f8.cn
cn
// ===BEGIN PRIVATE DOMAINS===
github.io
// ===END PRIVATE DOMAINS===
io
"""


@pytest.fixture
def own_list(tmp_path: Path) -> Iterator[None]:
    path = tmp_path / "effective_tld_names.dat"
    path.write_text(LIST, encoding="utf-8")
    processwide.change(suffix_list=path)
    yield
    processwide.change(suffix_list=None)


@pytest.mark.usefixtures("own_list")
@pytest.mark.parametrize(
    ("host", "domain", "suffix"),
    [
        ("www.Example.COM", "example.com", None),
        ("www.example.com", "example.com", "com"),
        ("a.b.co.uk", "b.co.uk", "co.uk"),
        ("co.uk", "co.uk", "co.uk"),
        ("a.b.ck", "a.b.ck", "*.ck"),
        ("x.a.b.ck", "a.b.ck", "*.ck"),
        ("b.ck", "b.ck", "*.ck"),
        ("ck", "ck", None),
        ("www.ck", "www.ck", "!www.ck"),
        ("a.www.ck", "www.ck", "!www.ck"),
        ("me.github.io", "github.io", "io"),
        ("a.x.\u516c\u53f8.cn", "x.\u516c\u53f8.cn", "xn--55qx5d.cn"),
        ("a.x.xn--55qx5d.cn", "x.xn--55qx5d.cn", "xn--55qx5d.cn"),
        ("localhost", "localhost", None),
        ("1.2.3.4", "1.2.3.4", None),
        ("[::1]", "[::1]", None),
        ("example.com.", "example.com", "com"),
        ("a..com", "a..com", "com"),
        (".com", ".com", "com"),
        ("", "", None),
    ],
)
def test_host(host: str, domain: str, suffix: str | None) -> None:
    assert (domain_of(host), suffix_of(host)) == (domain, suffix)


@pytest.mark.usefixtures("own_list")
def test_urls() -> None:
    assert domain_name("http://www.example.co.uk/x") == "example.co.uk"


def test_the_bundled_list_is_tldextracts() -> None:
    extract = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)
    for host in (
        "www.example.org",
        "a.b.example.co.uk",
        "city.kawasaki.jp",
        "x.y.kawasaki.jp",
        "foo.github.io",
        "a.b.c.museum",
    ):
        found = extract(host)
        assert domain_of(host) == found.top_domain_under_public_suffix, host


def test_a_list_that_is_not_there(tmp_path: Path) -> None:
    processwide.change(suffix_list=tmp_path / "nothing")
    try:
        with pytest.raises(ConfigError, match="nothing"):
            domain_of("example.org")
    finally:
        processwide.change(suffix_list=None)


def test_a_list_with_a_line_that_is_no_host() -> None:
    with pytest.raises(ConfigError, match="no host name"):
        SuffixList("\u00e9" * 100)


A, B, C, LONG, OTHER = (
    *(
        "http://a.org/",
        "http://a.org/x",
        "http://a.org/y/z",
        "http://a.org/longer",
        "http://b.org/",
    ),
)


@tabled(
    ("source", "target", "temporary", "chosen"),
    [
        (A, OTHER, True, OTHER),
        (A, OTHER, False, OTHER),
        (A, B, False, A),
        (B, A, False, A),
        (B, C, False, C),
        (A, B, True, A),
        (B, A, True, A),
        (B, C, True, B),
        (C, B, True, B),
        (LONG, B, True, B),
        (B, LONG, True, B),
        ("http://www.a.org/", A, True, A),
        (A, "http://www.a.org/", True, A),
        ("http://www.a.org/x", "http://a.org/y/z", True, "http://a.org/y/z"),
        ("nothing", A, True, A),
        (A, "nothing", True, "nothing"),
    ],
)
def test_the_url_that_stands_for_a_redirected_page(
    source: str, target: str, temporary: bool, chosen: str
) -> None:
    assert choose_representative(source, target, temporary) == chosen
