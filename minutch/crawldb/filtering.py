"""Which URLs stay, and under which name: URL normalizers and filters, purged entries. For every job on a CrawlDb.

    UrlRules       normalizers and filters for a column of URLs
    EntryFilter    what updatedb, mergedb and dedup do with every entry that they read: entries that are gone or
                   orphaned are purged (db.update.purge.404, db.update.purge.orphans), then UrlRules

A plugin that fails on a URL (a bug, not a verdict) keeps the URL in an EntryFilter, and loses it in inject.
Matched: org.apache.nutch.crawl.CrawlDbFilter, Injector.InjectMapper.filterNormalize.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

import polars as pl

from minutch.conf import Configuration
from minutch.errors import MinutchError, PluginError
from minutch.formats.javaio import encode_text
from minutch.job import Counters
from minutch.plugin.chains import SCOPE_CRAWLDB, URLFilters, URLNormalizers
from minutch.records.crawldatum import STATUS_DB_GONE, STATUS_DB_ORPHAN

log = logging.getLogger(__name__)

FILTER_PROPERTY: Final = "crawldb.url.filters"
NORMALIZE_PROPERTY: Final = "crawldb.url.normalizers"
SCOPE_PROPERTY: Final = "crawldb.url.normalizers.scope"
PURGE_GONE_PROPERTY: Final = "db.update.purge.404"
PURGE_ORPHANS_PROPERTY: Final = "db.update.purge.orphans"

PURGED_GONE: Final = "gone entries removed"
PURGED_ORPHANS: Final = "orphaned entries removed"
MALFORMED: Final = "malformed URLs removed"
FILTERED: Final = "URLs rejected by filters"


class UrlRules:
    """URL normalizers, then URL filters, for columns of URLs; without either, nothing changes."""

    def __init__(
        self, conf: Configuration, *, normalize: bool, filtering: bool, scope: str, keep_on_error: bool
    ) -> None:
        self._normalizers = URLNormalizers(conf, conf.get(SCOPE_PROPERTY) or scope) if normalize else None
        self._filters = URLFilters(conf) if filtering else None
        self._keep_on_error = keep_on_error

    @property
    def normalizes(self) -> bool:
        """Whether URLs may change."""
        return self._normalizers is not None

    @property
    def is_neutral(self) -> bool:
        """Whether all URLs pass as they are."""
        return self._normalizers is None and self._filters is None

    def apply(self, urls: pl.Series, counters: Counters) -> pl.Series:
        """The URLs (String) as they go on; null where one is rejected, which is counted."""
        if self._normalizers is not None:
            normalizers = self._normalizers
            urls = self._step(urls, normalizers.normalize_column, normalizers.normalize, MALFORMED, counters)
        if self._filters is not None:
            urls = self._step(urls, self._filters.filter_column, self._filters.filter, FILTERED, counters)
        return urls

    def _step(
        self,
        urls: pl.Series,
        column: Callable[[pl.Series], pl.Series],
        row: Callable[[str], str | None],
        reason: str,
        counters: Counters,
    ) -> pl.Series:
        try:
            result = column(urls)
        except PluginError as exc:
            log.error("a plugin failed, going on URL by URL: %s", exc)
            changed = [None if url is None else self._safe(row, url) for url in urls]
            result = pl.Series(urls.name, changed, dtype=pl.String)
        counters.add(reason, result.null_count() - urls.null_count())
        return result

    def _safe(self, row: Callable[[str], str | None], url: str) -> str | None:
        try:
            return row(url)
        except PluginError as exc:
            log.error("%s %s: %s", "keeping" if self._keep_on_error else "skipping", url, exc)
            return url if self._keep_on_error else None
        except MinutchError as exc:
            log.error("skipping malformed URL %s: %s", url, exc)
            return None


class EntryFilter:
    """What becomes of each entry that a job reads."""

    PURGES: Final = (PURGE_GONE_PROPERTY, PURGE_ORPHANS_PROPERTY)

    def __init__(self, conf: Configuration, *, normalize: bool = False, filtering: bool = False) -> None:
        self._purged = {
            status: reason
            for wanted, status, reason in (
                (conf.get_boolean(PURGE_GONE_PROPERTY, False), STATUS_DB_GONE, PURGED_GONE),
                (conf.get_boolean(PURGE_ORPHANS_PROPERTY, False), STATUS_DB_ORPHAN, PURGED_ORPHANS),
            )
            if wanted
        }
        self.rules = UrlRules(conf, normalize=normalize, filtering=filtering, scope=SCOPE_CRAWLDB, keep_on_error=True)

    @classmethod
    def from_conf(cls, conf: Configuration) -> EntryFilter:
        """With normalizers and filters where `crawldb.url.normalizers` and `crawldb.url.filters` ask for them."""
        return cls(
            conf,
            normalize=conf.get_boolean(NORMALIZE_PROPERTY, False),
            filtering=conf.get_boolean(FILTER_PROPERTY, False),
        )

    def apply(self, frame: pl.DataFrame, counters: Counters) -> pl.DataFrame:
        """The entries that go on, in their order, under the names under which they do."""
        for status, reason in self._purged.items():
            before = len(frame)
            frame = frame.filter(pl.col("status") != status)
            counters.add(reason, before - len(frame))
        return frame if self.rules.is_neutral else rename(frame, self.rules, counters)


def rename(frame: pl.DataFrame, rules: UrlRules, counters: Counters) -> pl.DataFrame:
    """The entries whose URLs the rules let pass, under their new names."""
    urls = rules.apply(decode_keys(frame["key"]), counters)
    keys = encode_keys(urls) if rules.normalizes else frame["key"]
    return frame.with_columns(key=keys).filter(urls.is_not_null())


def decode_keys(keys: pl.Series) -> pl.Series:
    """Keys as strings; bytes that are not UTF-8 become U+FFFD, as Text.toString makes them."""
    try:
        return keys.cast(pl.String)
    except pl.exceptions.ComputeError:
        replaced = [None if key is None else key.decode("utf-8", "replace") for key in keys]
        return pl.Series(keys.name, replaced, dtype=pl.String)


def encode_keys(urls: pl.Series) -> pl.Series:
    """Strings as keys."""
    try:
        return urls.cast(pl.Binary)
    except pl.exceptions.InvalidOperationError:
        return pl.Series(urls.name, [None if url is None else encode_text(url) for url in urls], dtype=pl.Binary)
