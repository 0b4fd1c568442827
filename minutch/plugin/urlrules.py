"""Applies URL normalizers and then URL filters to columns of URLs, as every job does with the URLs
that it reads.

Source: org.apache.nutch.crawl.CrawlDbFilter, Injector.InjectMapper.filterNormalize.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

import polars as pl

from minutch.conf import Configuration
from minutch.errors import MinutchError, PluginError
from minutch.job import Counters
from minutch.plugin.chains import URLFilters, URLNormalizers
from minutch.plugin.rejections import why_rejected
from minutch.plugin.urlshortcut import UrlShortcut
from minutch.urls.hostcolumns import lack_host

log = logging.getLogger(__name__)

SCOPE_PROPERTY: Final = "crawldb.url.normalizers.scope"

MALFORMED: Final = "malformed URLs removed"
FILTERED: Final = "URLs rejected by filters"


class UrlRules:
    """The normalizers and filters of a job; without either, URLs pass unchanged.

    `keep_on_error` decides whether a URL on which a plugin fails (by a bug, not a verdict) is kept
    or dropped.
    """

    def __init__(
        self,
        conf: Configuration,
        *,
        normalize: bool,
        filtering: bool,
        scope: str,
        keep_on_error: bool,
    ) -> None:
        self._normalizers = (
            URLNormalizers(conf, conf.get(SCOPE_PROPERTY) or scope) if normalize else None
        )
        self._filters = URLFilters(conf) if filtering else None
        self._shortcut = UrlShortcut(self._normalizers, self._filters)
        self._keep_on_error = keep_on_error

    @property
    def normalizes(self) -> bool:
        """True if URLs may change."""
        return self._normalizers is not None

    @property
    def filters(self) -> bool:
        """True if URL filters apply."""
        return self._filters is not None

    @property
    def is_neutral(self) -> bool:
        """True if all URLs pass unchanged."""
        return self._normalizers is None and self._filters is None

    def why_rejected(self, url: str) -> str:
        """Explains for messages which normalizer or filter rejects the URL, by which rule."""
        return why_rejected(url, self._filters, self._normalizers)

    def apply(self, urls: pl.Series, counters: Counters) -> pl.Series:
        """Returns the normalized URLs (String), null where one is rejected or lacks its host;
        `counters` counts these.
        """
        passed, rejected = self._shortcut.settle(urls, lambda asked: self._ask(asked, counters))
        if self._normalizers is not None:
            counters.add(MALFORMED, 0)
        if self._filters is not None:
            counters.add(FILTERED, rejected)
        hostless = lack_host(passed)
        if hostless.any():
            counters.add(MALFORMED, int(hostless.sum()))
            passed = passed.set(hostless, None)
        return passed

    def _ask(self, urls: pl.Series, counters: Counters) -> pl.Series:
        if self._normalizers is not None:
            normalizers = self._normalizers
            urls = self._step(
                urls, normalizers.normalize_column, normalizers.normalize, MALFORMED, counters
            )
        if self._filters is not None:
            urls = self._step(
                urls, self._filters.filter_column, self._filters.filter, FILTERED, counters
            )
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
            log.error("a plugin failed, continuing URL by URL: %s", exc)
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
