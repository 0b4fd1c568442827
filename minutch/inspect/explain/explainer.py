"""Explains one URL, or a whole crawl, by putting together the facts of the other modules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import polars as pl

from minutch.conf import Configuration
from minutch.cycle.fetch.settings import QueueSettings
from minutch.cycle.fetchlist.selector import HOSTDB_PROPERTY, GenerateOptions, Selector
from minutch.hadoop.formats.javaio import encode_text
from minutch.inspect.explain.access import Access
from minutch.inspect.explain.commandlines import generate_arguments
from minutch.inspect.explain.duedates import EntryOrigin, due_date, origin_of
from minutch.inspect.explain.entrywords import entry_of, score_of
from minutch.inspect.explain.facts import Explanation, NormalForm, Overview, Visit
from minutch.inspect.explain.overview import OverviewBuilder, OverviewSettings
from minutch.inspect.explain.referrers import referrers_of
from minutch.inspect.explain.selection import generate_verdict
from minutch.inspect.explain.settings import (
    ExplainOptions,
    ExplainSettings,
    proxy_of,
    settings_of,
)
from minutch.inspect.explain.stores import CrawlStores
from minutch.inspect.explain.unknown import why_unknown
from minutch.inspect.explain.urlforms import filter_answers, form_of, normal_forms
from minutch.inspect.explain.visits import visits
from minutch.job import JobContext
from minutch.plugin.chains import SCOPE_FETCHER, SCOPE_INJECT
from minutch.records.crawldatum import STATUS_DB_DUPLICATE, CrawlDatum
from minutch.work.tables.frame import decode_keys
from minutch.work.tables.parallel import for_each
from minutch.work.tables.recordfiles import scan_having

MOST_DUPLICATES: Final = 20
"""Pages with the same signature that are named."""


_DEFAULTS: Final = ExplainOptions()


def explain(
    crawl: Path, url: str, options: ExplainOptions = _DEFAULTS, *, context: JobContext
) -> Explanation:
    """Explains why a URL of a crawl was, or was not, fetched, and what comes next.

    Nothing is written, and no host is asked. Raises StoreError if there is no crawl, FormatError
    for a damaged file.
    """
    now = context.clock.now()
    settings = ExplainSettings.from_conf(context.conf, now)
    selector = _selector(options.generate, context.conf, now)
    return Explainer(CrawlStores(crawl), settings, selector, options, now).explain(url)


def overview(crawl: Path, options: ExplainOptions = _DEFAULTS, *, context: JobContext) -> Overview:
    """Returns what is left to do in a crawl and what comes next. Raises StoreError, FormatError."""
    now = context.clock.now()
    settings = OverviewSettings(
        generate_arguments(options.generate),
        QueueSettings.from_conf(context.conf, now).crawl_delay,
        proxy_of(context.conf),
        context.conf,
    )
    selector = _selector(options.generate, context.conf, now)
    found = OverviewBuilder(CrawlStores(crawl), selector, settings, now).overview()
    return replace(found, settings=tuple(settings_of(context.conf)))


def _selector(options: GenerateOptions, conf: Configuration, now: int) -> Selector:
    """Returns generate's selector, with the configured HostDb if none is given."""
    named = conf.get_trimmed(HOSTDB_PROPERTY)
    if options.hostdb is None and named:
        options = replace(options, hostdb=Path(named))
    return Selector.from_conf(conf, options, now)


class Explainer:
    """An explainer of the URLs of one crawl at the time `now` (ms)."""

    def __init__(
        self,
        crawl: CrawlStores,
        settings: ExplainSettings,
        selector: Selector,
        options: ExplainOptions,
        now: int,
    ) -> None:
        self.crawl, self.selector, self.now = crawl, selector, now
        self._settings, self._quick = settings, options.quick
        self._access = Access(settings, crawl.state, crawl.hostdb, now, options.resolve)

    def explain(self, given: str) -> Explanation:
        """Returns all that is known of a URL. Raises FormatError (damage)."""
        settings = self._settings
        forms = normal_forms(settings.normalizers, given)
        url, datum = self._find(given, forms)
        filters = filter_answers(settings.filters, url)
        known = self._visits(url)
        origin = origin_of(url, datum, self.crawl.segments, known, settings.update, self.now)
        referrers = referrers_of(url, self.crawl.linkdb, self.crawl.segments, quick=self._quick)
        robots, host, fetch = self._access.to(url)
        return Explanation(
            url=url,
            given=given,
            crawl=str(self.crawl.folder),
            now=self.now,
            forms=forms,
            filters=filters,
            entry=None
            if datum is None
            else entry_of(datum, settings.update.retry_max, settings.proxy),
            unknown=why_unknown(
                given, url, forms, filters, referrers, settings, str(self.crawl.folder)
            )
            if datum is None
            else None,
            due=None if datum is None else due_date(datum, origin, settings.update),
            generate=None
            if datum is None
            else generate_verdict(url, datum, self.selector, self.crawl.crawldb, filters),
            fetch=fetch,
            robots=robots,
            host=host,
            visits=tuple(_marked(visit, origin) for visit in known),
            leads=referrers,
            score=None
            if datum is None
            else score_of(datum, referrers.found, settings.update.scoring.filters),
            duplicates=() if datum is None else self._duplicates(url, datum),
        )

    def _find(self, given: str, forms: Sequence[NormalForm]) -> tuple[str, CrawlDatum | None]:
        """Returns the URL as the CrawlDb knows it, else the name under which it would be added."""
        normal = form_of(forms, SCOPE_INJECT).url
        names = [given, *(form.url for form in forms if form.url is not None)]
        for name in dict.fromkeys(names):
            datum = self.crawl.crawldb.get(name)
            if datum is not None:
                return name, datum
        return normal or given, None

    def _visits(self, url: str) -> list[Visit]:
        normalize = self._settings.normalizers[SCOPE_FETCHER].normalize
        return list(visits(self.crawl.segments, url, normalize, self._settings.proxy))

    def _duplicates(self, url: str, datum: CrawlDatum) -> tuple[str, ...]:
        """Returns pages with the same signature, the one that is kept first."""
        signature = datum.signature
        if not signature or self._quick:
            return ()

        def same_in(part: Path) -> list[tuple[bool, str]]:
            found = []
            for table in scan_having(part, signature):
                same = table.filter(
                    pl.col("signature") == signature, pl.col("key") != encode_text(url)
                )
                marked = (same["status"] == STATUS_DB_DUPLICATE).to_list()
                found += list(zip(marked, decode_keys(same["key"]), strict=True))
            return found

        parts = for_each(same_in, self.crawl.crawldb.require_parts())
        return tuple(
            name for _, name in sorted(pair for part in parts for pair in part)[:MOST_DUPLICATES]
        )


def _marked(visit: Visit, origin: EntryOrigin) -> Visit:
    """Returns the visit with a mark if the CrawlDb has, or has not, merged it."""
    if visit.segment in (name for name, _ in origin.pending):
        return replace(visit, in_crawldb=False)
    return (
        replace(visit, in_crawldb=True)
        if origin.segment and visit.segment <= origin.segment
        else visit
    )
