"""The URL filters, each with rules of its own; columns as rows."""

from __future__ import annotations

import bz2
import gzip
import logging
from functools import cache
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from minutch.errors import ConfigError
from minutch.plugin.chains import URLExemptionFilters
from tests.plugins.urlplugins import passed, url_filter
from tests.plugins.urlplugins import settings as configuration
from tests.support.examples import examples, tabled
from tests.support.golden import PROJECT
from tests.urls.strategies import urls

RULES = r"""# a comment
-(?i)\.gif$
+^https?://([a-z0-9-]+\.)*example\.org/

> b.org
-/private/
+.
< anything
> www.c.co.uk
+^http:
<
-(/[^/]+)/[^/]+\1/[^/]+\1/
+\d{3}
"""
URLS = [
    "http://example.org/",
    "http://www.example.org/a.GIF",
    "http://b.org/x",
    "http://sub.b.org/private/x",
    "http://sub.b.org/x",
    "http://www.c.co.uk/",
    "http://c.co.uk/",
    "http://d/a/x/a/y/a/123",
    "http://d/a/x/b/y/a/123",
    "nothing 123",
    "123\n",
    "",
]


COMPARED = [
    "regex",
    "suffix",
    "prefix",
    "domain",
    "domaindenylist",
    "validator",
    "fast",
    "automaton",
]
"""Plugins whose filter for columns is held to the one for rows."""

made = cache(url_filter)
"""One for all examples: loading a plugin and its configuration is most of what an example costs."""


def test_every_filter_for_columns_is_compared() -> None:
    folders = (PROJECT / "plugins").glob("urlfilter_*")
    columns = {
        folder.name.removeprefix("urlfilter_")
        for folder in folders
        if any("def filter_column" in path.read_text("utf-8") for path in folder.glob("*.py"))
    }
    assert columns - set(COMPARED) == set(), "add them to COMPARED"


def test_regex_rules() -> None:
    chosen = url_filter("urlfilter-regex", urlfilter__regex__rules=RULES)
    expected = [
        "http://example.org/",
        "http://b.org/x",
        "http://sub.b.org/x",
        "http://www.c.co.uk/",
    ]
    assert passed(chosen, URLS) == [*expected, "http://d/a/x/b/y/a/123", "nothing 123", "123\n"]


@given(st.lists(urls, max_size=8))
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.parametrize(
    "plugin",
    COMPARED,
)
def test_columns_are_rows(plugin: str, some: list[str]) -> None:
    rules = {
        "regex": RULES,
        "suffix": "+PI\n.gif\n.html",
        "prefix": "http://e\nhttps:",
        "domain": "example.org\nuk",
        "domaindenylist": "example.com",
        "automaton": "-.*[?].*\n-http://a&~(.*b)\n+.*",
    }.get(plugin, "")
    chosen = made(
        f"urlfilter-{plugin}", **({f"urlfilter__{plugin}__rules": rules} if rules else {})
    )
    passed(chosen, some)
    column = pl.Series([url for url in some if url.isprintable()], dtype=pl.String)
    assert chosen.explain_column(column).to_list() == [chosen.explain(url) for url in column]


@pytest.mark.parametrize("line", ["x", "?", "+(", "-*"])
def test_regex_rules_that_are_none(line: str) -> None:
    with pytest.raises(ConfigError, match=r"^urlfilter\.regex\.rules \(.*\), line 2: "):
        url_filter("urlfilter-regex", urlfilter__regex__rules=f"+a\n{line}")


def test_a_rule_file_that_is_missing() -> None:
    with pytest.raises(ConfigError, match=r"no-such\.txt"):
        url_filter("urlfilter-regex", urlfilter__regex__file="no-such.txt")


def test_a_rule_that_takes_for_ever_rejects_and_is_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rules = "+((a|b)+)+c\\1c$\n+."
    chosen = url_filter(
        "urlfilter-regex", urlfilter__regex__rules=rules, urlfilter__regex__seconds="0.01"
    )
    hostile = "http://h/" + "a" * 3000 + "cbc"
    with caplog.at_level(logging.WARNING):
        assert chosen.filter(hostile) is None
        assert chosen.filter_column(pl.Series([hostile, "http://h/b"])).to_list() == [
            None,
            "http://h/b",
        ]
    assert vars(chosen)["timeouts"] == 2
    assert caplog.text.count("took too long") == 1


GIF, CAPITALS, QUERY, HOST, NO_URL, EMPTY = (
    *("http://a/x.gif", "http://a/x.GIF", "http://a/x.gif?y", "http://a.gif", "x.gif#", ""),
)


@tabled(
    ("rules", "expected"),
    [
        (".gif\n.HTML", [GIF, HOST]),
        ("-I\n.GIF", [GIF, CAPITALS, HOST]),
        ("+\n.gif", [CAPITALS, QUERY, NO_URL, EMPTY]),
        ("+P\n.gif", [CAPITALS, HOST, NO_URL, EMPTY]),
        ("-P\n.gif", [GIF, QUERY]),
        ("+PI\n.gif\n-", [GIF, CAPITALS, QUERY]),
        ("", []),
        ("+", [GIF, CAPITALS, QUERY, HOST, NO_URL, EMPTY]),
    ],
)
def test_suffix_modes(rules: str, expected: list[str]) -> None:
    chosen = url_filter("urlfilter-suffix", urlfilter__suffix__rules=rules)
    assert passed(chosen, [GIF, CAPITALS, QUERY, HOST, NO_URL, EMPTY]) == expected


def test_prefixes() -> None:
    chosen = url_filter("urlfilter-prefix", urlfilter__prefix__rules="# c\n\n x\nhttp://a\nftp:")
    assert passed(chosen, ["http://a.org/", "ftp:x", "https://a/", "x", ""]) == [
        "http://a.org/",
        "ftp:x",
    ]
    assert passed(url_filter("urlfilter-prefix", urlfilter__prefix__rules=""), ["http://a/"]) == []


def test_filters_without_their_file_reject_everything(caplog: pytest.LogCaptureFixture) -> None:
    for name in ("prefix", "suffix"):
        chosen = url_filter(f"urlfilter-{name}", **{f"urlfilter__{name}__file": "no-such.txt"})
        assert passed(chosen, ["http://a/"]) == []
    assert caplog.text.count("every URL is rejected") == 2


def test_domains_hosts_and_suffixes() -> None:
    names = "# c\nExample.org\n www.b.com \nuk\n"
    given_urls = [
        "http://example.org/",
        "http://a.EXAMPLE.org/",
        "http://www.b.com:8/",
        "http://b.com/",
        "http://a.uk/",
        "http://a.co.uk/",
        "http://a.UK/",
        "nothing",
    ]
    allowed = [
        "http://example.org/",
        "http://a.EXAMPLE.org/",
        "http://www.b.com:8/",
        "http://a.uk/",
    ]
    assert (
        passed(url_filter("urlfilter-domain", urlfilter__domain__rules=names), given_urls)
        == allowed
    )
    denied = passed(
        url_filter("urlfilter-domaindenylist", urlfilter__domaindenylist__rules=names), given_urls
    )
    assert denied == ["http://b.com/", "http://a.co.uk/", "http://a.UK/"]


def test_an_empty_list_of_domains_is_no_limit() -> None:
    assert passed(
        url_filter("urlfilter-domain", urlfilter__domain__rules="# none\n"), ["nothing"]
    ) == ["nothing"]
    assert (
        passed(url_filter("urlfilter-domaindenylist", urlfilter__domaindenylist__rules=""), ["x"])
        == []
    )


@tabled(
    ("url", "valid"),
    [
        ("http://a.org/", True),
        ("http://a.org", True),
        ("http://a.org:80/x?y#z", True),
        ("http://1.2.3.4/", True),
        ("http://1.2.3.256/", False),
        ("http://1.2.3/", False),
        ("http://localhost/", False),
        ("http://a.o/", False),
        ("http://a..org/", False),
        ("http://u@a.org/", False),
        ("http://a.org:/", False),
        ("http://a.org:123456/", False),
        ("http://a.org/|", False),
        ("http://a.org/\u00e9", False),
        ("http://a.org/a b", False),
        ("http://a.org/a/../b", True),
        ("http://a.org/../b", False),
        ("http://a.org/a/b/../../c", True),
        ("http://a.org/../..", False),
        ("http://a.org/a..b/c/d", True),
        ("http://a.b-c.d-/.e./f.?..#..", True),
        ("http://-.1a.org/", True),
        ("http://a.1org/", False),
        ("http://a.org./", False),
        ("http://a.org/\n", False),
        ("http://a.org/?\n", False),
        ("h2://a.org/", False),
        ("//a.org/", False),
        ("http:a", False),
        ("", False),
    ],
)
def test_validator(url: str, valid: bool) -> None:
    assert passed(url_filter("urlfilter-validator"), [url]) == ([url] if valid else [])


FAST = r"""
DenyPath ignored
Host www.a.org   # comment
  DenyPath ^/x
  DenyPathQuery \?id=
  Nonsense
  DenyPath (
Domain b.org
  DenyPath .*
Domain .
  DenyPath (?i)\.gif$
"""


def test_fast_rules(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    given_urls = [
        "http://www.a.org/x",
        "http://www.a.org/y?id=1",
        "http://www.a.org/y?x=1",
        "http://a.org/x",
        "http://b.org/",
        "http://c.b.org/",
        "http://cb.org/",
        "http://d/e.GIF",
        "nothing",
    ]
    expected = ["http://www.a.org/y?x=1", "http://a.org/x", "http://cb.org/"]
    for name, data in {
        "plain.txt": FAST.encode(),
        "rules.txt.gz": gzip.compress(FAST.encode()),
        "rules.txt.bz2": bz2.compress(FAST.encode()),
    }.items():
        (tmp_path / name).write_bytes(data)
        chosen = url_filter("urlfilter-fast", tmp_path, urlfilter__fast__file=name)
        assert passed(chosen, given_urls) == expected
        by_url = url_filter("urlfilter-fast", urlfilter__fast__file=f"file://{tmp_path / name}")
        assert passed(by_url, given_urls) == expected
    assert caplog.text.count("is skipped") == 12


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("cut.gz", gzip.compress(FAST.encode())[:-9]),
        ("damaged.gz", gzip.compress(FAST.encode())[:10] + b"\xff" * 20),
        ("cut.bz2", bz2.compress(FAST.encode())[:-9]),
        ("damaged.bz2", b"BZh9" + b"\xff" * 20),
    ],
)
def test_fast_rules_in_a_damaged_file(name: str, data: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ConfigError, match=f"{name}: can't be read"):
        url_filter("urlfilter-fast", tmp_path, urlfilter__fast__file=name)


def test_fast_limits() -> None:
    names = ("url", "url__path", "url__query")
    limits = {
        f"urlfilter__fast__{name}__max__length": str(limit)
        for name, limit in zip(names, (18, 4, 3), strict=True)
    }
    chosen = url_filter("urlfilter-fast", **limits)
    fits = ["http://a/bcd", "http://a/bcd?efg", "http://a/\U0001f600d"]
    assert (
        passed(
            chosen,
            [
                *fits,
                "http://a/bcde",
                "http://a/b?cdef",
                "http://a/bc?d#efghij",
                "http://a/\U0001f600de",
            ],
        )
        == fits
    )


@pytest.mark.parametrize(
    ("name", "data"), [("none.gz", None), ("bad.gz", b"x"), ("host.txt", b"Host\n")]
)
def test_fast_files_that_are_none(tmp_path: Path, name: str, data: bytes | None) -> None:
    if data is not None:
        (tmp_path / name).write_bytes(data)
    with pytest.raises(ConfigError, match=r"none|bad|line 1"):
        url_filter("urlfilter-fast", tmp_path, urlfilter__fast__file=name)


def test_exemptions(tmp_path: Path) -> None:
    (tmp_path / "db-ignore-external-exemptions.txt").write_text("-private\n+\\.gif$\n")
    chosen = URLExemptionFilters(configuration("urlfilter-ignoreexempt", {}, tmp_path))
    assert chosen.is_exempted("http://a/", "http://b/x.gif")
    assert not chosen.is_exempted("http://a/", "http://b/private/x.gif")
    assert not chosen.is_exempted("http://a/", "http://b/")


_SEGMENTS = st.lists(
    st.sampled_from(["a", "b", "", "a" * 9, "b" * 8 + "a", "\u00e9"]), max_size=9
).map("/".join)


@given(st.lists(_SEGMENTS, max_size=9))
def test_loops_in_columns(some: list[str]) -> None:
    (rule,) = vars(made("urlfilter-regex", urlfilter__regex__rules=r"-(/[^/]+)/[^/]+\1/[^/]+\1/"))[
        "rules"
    ]
    column = pl.Series(some, dtype=pl.String)
    assert rule.matcher.search_column(column).to_list() == [
        rule.matcher.search(url) for url in column
    ]
