"""Columns of URLs through an automaton first, beside the normalizers and filters that it speaks
for.
"""

from __future__ import annotations

import pickle

import polars as pl
import pytest

from minutch.conf import Configuration
from minutch.job import Counters
from minutch.plugin.urlrules import FILTERED, UrlRules
from tests.support.examples import tabled

RULES = "-\\.gif$\n-(/[^/]+)/[^/]+\\1/[^/]+\\1/\n+^https?://"
ODD = [
    "http://h/../a//b",
    "http://h/a#b",
    "http://H/",
    "http://ä.de/ö",
    "no URL",
    "",
    "http://h/a/b/a/b/a/c",
    "x" * 99,
]


def url_rules(includes: str, *, normalize: bool = True, filtering: bool = True) -> UrlRules:
    conf = Configuration.load(
        [], overrides={"plugin.includes": includes, "urlfilter.regex.rules": RULES}
    )
    return UrlRules(
        conf, normalize=normalize, filtering=filtering, scope="inject", keep_on_error=False
    )


def some_urls(count: int) -> pl.Series:
    plain = [
        f"https://www.e{n % 9}.org/a{n}/b.{'gif' if n % 5 == 0 else 'html'}" for n in range(count)
    ]
    return pl.Series([ODD[n // 3 % len(ODD)] if n % 3 == 0 else url for n, url in enumerate(plain)])


@tabled(("normalize", "filtering"), [(True, True), (True, False), (False, True), (False, False)])
@tabled(
    "includes",
    [
        "urlnormalizer-(regex|basic)|urlfilter-regex",
        "urlnormalizer-querystring|urlfilter-(regex|domain)",
    ],
)
def test_the_same_urls_pass_as_without_it(includes: str, normalize: bool, filtering: bool) -> None:
    rules = url_rules(includes, normalize=normalize, filtering=filtering)
    urls = some_urls(4001)
    found, expected = Counters(), Counters()
    passed, asked = rules.apply(urls, found), rules._ask(urls, expected)
    assert passed.to_list() == asked.to_list() and passed.name == urls.name
    assert found == expected and list(found) == list(expected)


def test_plain_urls_reach_no_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = url_rules("urlnormalizer-(regex|basic)|urlfilter-regex")
    urls = some_urls(6000).filter(pl.Series([n % 3 > 0 for n in range(6000)]))
    monkeypatch.setattr(UrlRules, "_ask", lambda *_: pytest.fail("asked"))
    counters = Counters()
    passed = pickle.loads(pickle.dumps(rules)).apply(urls, counters)
    assert passed.null_count() == counters[FILTERED] == 800
    assert passed.drop_nulls().to_list() == urls.filter(passed.is_not_null()).to_list()


def test_what_is_null_stays_so() -> None:
    urls = pl.concat([some_urls(4000), pl.Series([None], dtype=pl.String)])
    assert url_rules("urlnormalizer-basic|urlfilter-regex").apply(urls, Counters())[-1] is None
