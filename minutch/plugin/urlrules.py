"""Applies URL normalizers and then URL filters to columns of URLs, as every job does with the URLs
that it reads; explains why they are rejected, counts them by the rules that do so, and knows what
the rules consist of, so that a change is noticed.

Most URLs of a crawl are normal, and rules decide most of them by a few characters. One automaton
for all normalizers and filters tells those in one pass over their bytes
(`minutch.urls.plainautomaton`), so that only the others reach the plugins.

Source: org.apache.nutch.crawl.CrawlDbFilter, Injector.InjectMapper.filterNormalize.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable
from functools import cached_property
from itertools import islice, zip_longest
from threading import Lock
from typing import Any, Final

import numpy as np
import polars as pl

from minutch.conf import Configuration
from minutch.errors import MinutchError, PluginError, UrlError
from minutch.job import Counters
from minutch.kernels.arrow import from_series
from minutch.kernels.sieve import ASK, REJECT, sift_column
from minutch.plugin.chains import URLFilters, URLNormalizers
from minutch.plugin.points import URLExemptionFilter, URLFilter, URLNormalizer
from minutch.plugin.repository import PluginRepository
from minutch.urls.hostcolumns import host_names, lack_host
from minutch.urls.parts import lacks_host, parse
from minutch.urls.plainautomaton import PlainUrlAutomaton

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_FEW: Final = 1 << 11
"""URLs that are asked about at once: for fewer an automaton is not worth making."""

Codes = np.ndarray[Any, np.dtype[np.int8]]
log = logging.getLogger(__name__)

SCOPE_PROPERTY: Final = "crawldb.url.normalizers.scope"

NO_URL: Final = "no URL with a host, or dropped by a normalizer"
MALFORMED: Final = "malformed URLs removed"
FILTERED: Final = "URLs rejected by filters"


def why_rejected(url: str, filters: URLFilters | None, normalizers: URLNormalizers | None) -> str:
    """Returns the reason as text; empty if normalizers and filters accept the URL."""
    # `example.com:8080` has a scheme by the grammar, but none that anybody means.
    if not _SCHEME.match(url) or ("://" not in url and re.search(r"^[^/?#]+\.[^/?#]*:\d", url)):
        return f"it has no scheme: did you mean https://{url}?"
    try:
        parse(url)
        normal = normalizers.normalize(url) if normalizers else url
    except UrlError as exc:
        return str(exc)
    if normal is None:
        return "a normalizer drops it"
    for url_filter in filters.filters if filters else ():
        passed = url_filter.filter(normal)
        if passed is None:
            return url_filter.explain(normal) or f"{type(url_filter).__name__} rejects it"
        normal = passed
    return f"no host: {normal}" if lacks_host(normal) else ""


class UrlShortcut:
    """The automaton of some normalizers and filters, for several threads; extended in use."""

    def __init__(self, normalizers: URLNormalizers | None, filters: URLFilters | None) -> None:
        self._normalizers, self._filters = normalizers, filters
        self._lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return UrlShortcut, (self._normalizers, self._filters)

    def settle(
        self, urls: pl.Series, ask: Callable[[pl.Series], pl.Series]
    ) -> tuple[pl.Series, int]:
        """Returns the `urls` (String) that pass, normalized, null for the others; `ask` decides
        those that the automaton can't.

        Also returns the number of URLs that filters reject without being asked.
        """
        # For few URLs the automaton's first steps cost more than the plugins.
        decisions = self._decisions(urls) if len(urls) >= _FEW and not urls.null_count() else None
        if decisions is None:
            return ask(urls), 0
        asked, rejected = decisions == ASK, decisions == REJECT
        if asked.all():
            return ask(urls), 0
        count = int(np.count_nonzero(rejected))
        passed = pl.select(pl.when(pl.Series(~rejected)).then(urls)).to_series() if count else urls
        if asked.any():
            # Back into their rows: the nth that was asked stands where the nth mark is.
            answers = ask(urls.filter(pl.Series(asked))).gather(np.maximum(np.cumsum(asked) - 1, 0))
            passed = answers.zip_with(pl.Series(asked), passed)
        return passed.alias(urls.name), count

    def _decisions(self, urls: pl.Series) -> Codes | None:
        """Returns KEEP, REJECT or ASK for each URL; None if nothing can be decided."""
        with self._lock:
            # Built once, whichever thread comes first.
            automaton = self._automaton
        if automaton is None:
            return None
        strings, decisions = from_series(urls), np.empty(len(urls), np.int8)
        row = 0
        while (row := sift_column(strings.column, row, decisions, automaton.rules)) >= 0:
            with self._lock:
                # Only one thread makes states; the kernel may run over existing ones meanwhile.
                automaton.learn(urls[row].encode())
        return decisions

    @cached_property
    def _automaton(self) -> PlainUrlAutomaton | None:
        normalizers = self._normalizers.untouched() if self._normalizers is not None else []
        filters = self._filters.verdicts() if self._filters is not None else []
        return (
            None
            if normalizers is None or filters is None
            else PlainUrlAutomaton.of(normalizers, filters)
        )


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

    def reasons(self, urls: pl.Series) -> pl.Series:
        """Names for each of `urls` (String, none null), which it rejects, the rule that does so."""
        normal = urls
        if self._normalizers is not None:
            normal = self._normalizers.normalize_column(urls, distinct=True)
        found = pl.repeat(NO_URL, len(urls), dtype=pl.String, eager=True)
        alive = normal.is_not_null()
        if self._filters is None or not alive.any():
            return found
        said = self._filters.explain_column(normal.filter(alive))
        return found.scatter(alive.arg_true(), said.fill_null(NO_URL))

    def renamers(self, urls: pl.Series) -> pl.Series:
        """Names for each of `urls` (String, none null), which it changes, the normalizer that does
        so first.
        """
        assert self._normalizers is not None
        return self._normalizers.explain_column(urls)

    def apply(self, urls: pl.Series, counters: Counters) -> pl.Series:
        """Returns the normalized URLs (String), null where one is rejected or lacks its host;
        `counters` counts these.
        """
        passed, rejected = self._shortcut.settle(urls, lambda asked: self._ask(asked, counters))
        if self._normalizers is not None:
            counters.add(MALFORMED, 0)
        if self._filters is not None:
            counters.add(FILTERED, rejected)
        # Such a URL would fail in each round, as nobody can be asked.
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
            # Of a column of 100,000 one URL may be to blame.
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
            # Jobs that rewrite the CrawlDb keep it: a plugin's bug may cost no entries.
            return url if self._keep_on_error else None
        except MinutchError as exc:
            log.error("skipping malformed URL %s: %s", url, exc)
            return None


# -- what the rules consist of, and whom they reject -----------------------------------------------

_POINTS: Final = (URLFilter, URLNormalizer, URLExemptionFilter)
_PROPERTIES: Final = re.compile(
    r"urlfilter[.]order|urlnormalizer[.](order|scope|loop)([.].*)?|db[.]ignore[.].*"
    r"|db[.]update[.]purge[.].*|crawldb[.]url[.].*|(parse|fetcher)[.](filter|normalize)[.]urls"
)
"""Properties that decide which URLs belong to a crawl, and under which names; those that begin with
a plugin's id do, too.
"""


def rule_sources(conf: Configuration) -> dict[str, str]:
    """Returns what decides about URLs: the plugins by point, their properties with their values,
    each rule file (named by a property or a plugin.xml) with a digest of its content.
    """
    found, files, prefixes = {}, [], list[str]()
    for point in _POINTS:
        extensions = PluginRepository.of(conf).extensions(point.point_id)
        found[point.__name__] = " ".join(one.plugin.id for one in extensions)
        prefixes += [one.plugin.id.replace("-", ".") for one in extensions]
        files += [one.parameters.get("file", "").strip() for one in extensions]
    for name, value in conf.items():
        if name.startswith(tuple(prefixes)) or _PROPERTIES.fullmatch(name):
            found[name] = value
            files += [value.strip()] * name.endswith("file")
    for path in {path for name in files if name and (path := conf.resource(name))}:
        # Content, not time: the same file somewhere else is the same rules.
        found[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    return found


class UrlTally:
    """Counts URLs by a reason and by host, and keeps a few of each: for people. Its memory is that
    of so many reasons and hosts.
    """

    EXAMPLES: Final = 3

    def __init__(self) -> None:
        self.count = self.stored = 0
        self._tables: dict[str, list[pl.DataFrame]] = {"reason": [], "host": []}

    def add(
        self, urls: pl.Series, reasons: pl.Series | str, stored: pl.Series | bool = False
    ) -> None:
        """Counts URLs (String) with their reasons, and those that are `stored`."""
        if urls.is_empty():
            return
        more = {"reason": reasons, "stored": stored, "host": host_names(urls).fill_null("")}
        table = pl.DataFrame({"url": urls}).with_columns(
            (one if isinstance(one, pl.Series) else pl.lit(one)).alias(name)
            for name, one in more.items()
        )
        self.count += len(table)
        self.stored += int(table["stored"].sum())
        for by, tables in self._tables.items():
            counts = table.group_by(by, maintain_order=True).agg(
                pl.len(), pl.col("stored").sum(), pl.col("url").head(self.EXAMPLES)
            )
            # Summed up at once: memory is that of the reasons, not of the URLs.
            tables[:] = [_summed([*tables, counts], by, self.EXAMPLES)]

    def by(self, name: str) -> list[tuple[str, int, int, list[str]]]:
        """Returns each `reason` or `host`, how many URLs it has, how many of them are stored, and
        examples; greatest first.
        """
        found = self._tables[name]
        return list(found[0].sort("len", name, descending=[True, False]).rows()) if found else []

    def examples(self) -> list[str]:
        """Returns a few URLs of the most frequent reasons."""
        lists = [urls for *_, urls in self.by("reason")]
        # One of each reason, then a second one of each.
        in_turn = (url for some in zip_longest(*lists) for url in some if url is not None)
        return list(islice(in_turn, self.EXAMPLES))


def _summed(tables: list[pl.DataFrame], by: str, most: int) -> pl.DataFrame:
    return (
        pl.concat(tables)
        .group_by(by, maintain_order=True)
        .agg(pl.col("len", "stored").sum(), pl.col("url").explode().head(most))
    )
