"""Normalizers and filters for columns of URLs, and what happens when a plugin fails."""

import logging
from collections.abc import Callable

import polars as pl
import pytest

from minutch.errors import PluginError, UrlError
from minutch.job import Counters
from minutch.plugin import urlrules
from minutch.plugin.urlrules import FILTERED, MALFORMED, UrlRules
from tests.support.crawldbs import context

PLUGINS = {"plugin.includes": "urlfilter-regex|urlnormalizer-basic"}


def rules(*, keep: bool = True, **given: bool) -> UrlRules:
    usual = {"normalize": True, "filtering": True, **given}
    return UrlRules(context(PLUGINS).conf, scope="crawldb", keep_on_error=keep, **usual)


def test_both() -> None:
    counters = Counters()
    urls = pl.Series(["http://A/", "http://a/x.gif", "http://a/../b", None])
    assert rules().apply(urls, counters).to_list() == ["http://a/", None, "http://a/b", None]
    assert counters == {MALFORMED: 0, FILTERED: 1}


def test_neither() -> None:
    neutral = rules(normalize=False, filtering=False)
    urls = pl.Series(["http://A/x.gif"])
    assert neutral.is_neutral
    assert neutral.apply(urls, Counters()).to_list() == urls.to_list()


class Failing:
    """A chain of plugins of which one has a bug."""

    def __init__(self, *_: object) -> None: ...

    def filter_column(self, urls: pl.Series) -> pl.Series:
        raise PluginError("a bug")

    def filter(self, url: str) -> str | None:
        if "bug" in url:
            raise PluginError("a bug")
        if "bad" in url:
            raise UrlError("malformed")
        return None if "no" in url else url


@pytest.mark.parametrize("keep", [True, False])
def test_a_bug_in_a_plugin_keeps_the_url_or_drops_it(
    keep: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(urlrules, "URLFilters", Failing)
    counters = Counters()
    with caplog.at_level(logging.ERROR):
        found = rules(normalize=False, keep=keep).apply(
            pl.Series(["a", "bug", "no", "bad", None]), counters
        )
    assert found.to_list() == ["a", "bug" if keep else None, None, None, None]
    assert counters[FILTERED] == (2 if keep else 3)
    assert "bug" in caplog.text


def test_scope_of_normalizing(monkeypatch: pytest.MonkeyPatch) -> None:
    scopes: list[str] = []
    make: Callable[..., None] = lambda conf, scope: scopes.append(scope)  # noqa: E731 - stands for a class
    monkeypatch.setattr(urlrules, "URLNormalizers", make)
    for settings in ({}, {"crawldb.url.normalizers.scope": "inject"}):
        UrlRules(
            context(settings).conf,
            normalize=True,
            filtering=False,
            scope="crawldb",
            keep_on_error=True,
        )
    assert scopes == ["crawldb", "inject"]
