"""Which URLs stay, and what happens when a plugin fails."""

import logging
from collections.abc import Callable

import polars as pl
import pytest

from minutch.crawldb import filtering
from minutch.crawldb.filtering import FILTERED, MALFORMED, EntryFilter, UrlRules, decode_keys, encode_keys
from minutch.errors import PluginError, UrlError
from minutch.job import Counters
from minutch.records.crawldatum import CrawlDatum
from minutch.tables import rows
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
def test_a_bug_does_not_delete_entries(
    keep: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(filtering, "URLFilters", Failing)
    counters = Counters()
    with caplog.at_level(logging.ERROR):
        found = rules(normalize=False, keep=keep).apply(pl.Series(["a", "bug", "no", "bad", None]), counters)
    assert found.to_list() == ["a", "bug" if keep else None, None, None, None]
    assert counters[FILTERED] == (2 if keep else 3)
    assert "bug" in caplog.text


def test_scope_of_normalizing(monkeypatch: pytest.MonkeyPatch) -> None:
    scopes: list[str] = []
    make: Callable[..., None] = lambda conf, scope: scopes.append(scope)  # noqa: E731 - stands for a class
    monkeypatch.setattr(filtering, "URLNormalizers", make)
    for settings in ({}, {"crawldb.url.normalizers.scope": "inject"}):
        UrlRules(context(settings).conf, normalize=True, filtering=False, scope="crawldb", keep_on_error=True)
    assert scopes == ["crawldb", "inject"]


def test_entries_go_on_under_their_new_names() -> None:
    frame = rows.to_frame(
        [("http://A/", CrawlDatum(1)), ("http://a/x.gif", CrawlDatum(2)), ("http://b/", CrawlDatum(3))]
    )
    counters = Counters()
    conf = context({**PLUGINS, "db.update.purge.404": "true"}).conf
    found = EntryFilter(conf, normalize=True, filtering=True).apply(frame, counters)
    assert found["key"].to_list() == [b"http://a/"]
    assert counters == {"gone entries removed": 1, MALFORMED: 0, FILTERED: 1}


def test_settings_for_all_jobs() -> None:
    conf = context({**PLUGINS, "crawldb.url.filters": "true"}).conf
    found = EntryFilter.from_conf(conf)
    assert not found.rules.is_neutral
    assert not found.rules.normalizes
    assert EntryFilter.from_conf(context().conf).rules.is_neutral


def test_keys_as_strings() -> None:
    keys = pl.Series([b"a", b"\xc3\xa9", b"x\xff", None])
    assert decode_keys(keys).to_list() == ["a", "é", "x\ufffd", None]
    assert decode_keys(keys[:2]).to_list() == ["a", "é"]
    assert encode_keys(pl.Series(["a", "é", None])).to_list() == [b"a", "é".encode(), None]
