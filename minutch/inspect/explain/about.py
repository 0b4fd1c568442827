"""All that a crawl knows of one URL, put together: the facts of every module here, in one
`Explanation`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import polars as pl

from minutch.conf import Configuration
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.crawldb.transitions import UpdateSettings
from minutch.cycle.fetch.hoststate import state_folder
from minutch.cycle.fetchlist.selector import GenerateOptions, Selector
from minutch.cycle.hostdb.store import HostDb
from minutch.cycle.linkdb.store import LinkDb
from minutch.cycle.segment.store import Segment
from minutch.hadoop.formats.javaio import encode_text
from minutch.inspect.explain.access import Access, Resolve
from minutch.inspect.explain.duedates import History, due_date, history
from minutch.inspect.explain.entries import entry_of, score_of
from minutch.inspect.explain.facts import Asked, Explanation, Leads, NormalForm, Unknown, Visit
from minutch.inspect.explain.leads import leads_to
from minutch.inspect.explain.selection import verdict
from minutch.inspect.explain.unknown import why_unknown
from minutch.inspect.explain.urlforms import asked, form_of, normal_forms
from minutch.inspect.explain.visits import visits
from minutch.inspect.query.crawl import CRAWLDB, HOSTDB, LINKDB, open_crawl
from minutch.inspect.query.segments import SEGMENTS
from minutch.plugin.chains import (
    SCOPE_FETCHER,
    SCOPE_INJECT,
    ScoringFilters,
    URLFilters,
    URLNormalizers,
)
from minutch.records.crawldatum import STATUS_DB_DUPLICATE, CrawlDatum
from minutch.work.tables.crawldata import scan_having
from minutch.work.tables.frame import decode_keys
from minutch.work.tables.parallel import for_each

MOST_DUPLICATES: Final = 20
"""Pages with the same signature that are named."""


class Crawl:
    """The files of a crawl to look URLs up in. Raises StoreError if there is none, or one without a
    CrawlDb.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.segments: list[Segment] = [*open_crawl(folder).segments]
        self.crawldb, self.linkdb = CrawlDb(folder / CRAWLDB), LinkDb(folder / LINKDB)
        self.hostdb = HostDb(folder / HOSTDB)
        self.crawldb.require_parts()

    @property
    def state(self) -> Path:
        """Where fetches keep what they remember of hosts."""
        return state_folder(self.folder / SEGMENTS / "any")


class Explainer:
    """Explains URLs of one crawl. `options` are those of generate, `now` in ms.

    `look` lets it go through what has no index, for links, redirects and pages of the same content;
    `resolve` lets it look up hosts.
    """

    def __init__(
        self,
        crawl: Crawl,
        conf: Configuration,
        options: GenerateOptions,
        now: int,
        *,
        look: bool = True,
        resolve: Resolve | None = None,
    ) -> None:
        self.crawl, self.conf, self.now = crawl, conf, now
        self.choice = Selector.from_conf(conf, options, now)
        self._look = look
        self._filters = URLFilters(conf)
        self._settings = UpdateSettings.from_conf(conf)
        self._access = Access(conf, crawl.state, crawl.hostdb, now, resolve)
        self._proxy = conf.get_trimmed("http.proxy.host") or ""

    def explain(self, given: str) -> Explanation:
        """All that is known of a URL. Raises FormatError (damage)."""
        forms = normal_forms(self.conf, given)
        url, datum = self._find(given, forms)
        filters = asked(self._filters, url)
        known = self._visits(url)
        before = history(url, datum, self.crawl.segments, known, self._settings, self.now)
        leads = leads_to(url, self.crawl.linkdb, self.crawl.segments, look=self._look)
        robots, host, fetch = self._access.to(url)
        return Explanation(
            url=url,
            given=given,
            crawl=str(self.crawl.folder),
            now=self.now,
            forms=forms,
            filters=filters,
            entry=None if datum is None else entry_of(datum, self._settings.retry_max, self._proxy),
            unknown=self._why_unknown(given, url, forms, filters, leads) if datum is None else None,
            due=None if datum is None else due_date(datum, before, self._settings),
            generate=None
            if datum is None
            else verdict(url, datum, self.choice, self.crawl.crawldb, filters),
            fetch=fetch,
            robots=robots,
            host=host,
            visits=tuple(_marked(visit, before) for visit in known),
            leads=leads,
            score=None
            if datum is None
            else score_of(datum, leads.found, ScoringFilters(self.conf).filters),
            duplicates=() if datum is None else self._duplicates(url, datum),
        )

    def _why_unknown(
        self,
        given: str,
        url: str,
        forms: Sequence[NormalForm],
        filters: Sequence[Asked],
        leads: Leads,
    ) -> Unknown:
        return why_unknown(given, url, forms, filters, leads, self.conf, str(self.crawl.folder))

    def _find(self, given: str, forms: Sequence[NormalForm]) -> tuple[str, CrawlDatum | None]:
        """The URL as the CrawlDb knows it, else the name under which it would be brought in."""
        normal = form_of(forms, SCOPE_INJECT).url
        names = [given, *(form.url for form in forms if form.url is not None)]
        for name in dict.fromkeys(names):
            datum = self.crawl.crawldb.get(name)
            if datum is not None:
                return name, datum
        return normal or given, None

    def _visits(self, url: str) -> list[Visit]:
        normalize = URLNormalizers(self.conf, SCOPE_FETCHER).normalize
        return list(visits(self.crawl.segments, url, normalize, self._proxy))

    def _duplicates(self, url: str, datum: CrawlDatum) -> tuple[str, ...]:
        """Pages with the same signature, those that are no duplicates first."""
        signature = datum.signature
        if not signature or not self._look:
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


def _marked(visit: Visit, before: History) -> Visit:
    """The visit, and whether the CrawlDb knows of it."""
    if visit.segment in (name for name, _ in before.pending):
        return replace(visit, in_crawldb=False)
    return (
        replace(visit, in_crawldb=True)
        if before.segment and visit.segment <= before.segment
        else visit
    )
