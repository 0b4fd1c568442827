"""Explains one URL, or a whole crawl, by putting together the facts of the other modules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import polars as pl

from minutch.conf import Configuration
from minutch.cycle.crawldb.canonical import NONE
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.crawldb.transitions import ADDITIONS_PROPERTY
from minutch.cycle.crawldb.twins import CANONICAL_PROPERTY, CanonicalTwins, mode_of
from minutch.cycle.fetch.decisions import RedirectRules
from minutch.cycle.fetch.settings import FetchSettings, QueueSettings
from minutch.cycle.fetchlist.selector import HOSTDB_PROPERTY, GenerateOptions, Selector
from minutch.cycle.segment.store import PARSE_DATA, Segment
from minutch.hadoop.formats.javaio import encode_text
from minutch.inspect.explain.access import FetchProspects
from minutch.inspect.explain.facts import (
    Explanation,
    FilterAnswer,
    MissingEntry,
    NormalForm,
    Overview,
    Referrers,
    SegmentVisit,
    TwinFacts,
    UseFacts,
)
from minutch.inspect.explain.overview import OverviewBuilder, OverviewSettings
from minutch.inspect.explain.selection import EntryOrigin, due_date, generate_verdict, origin_of
from minutch.inspect.explain.settings import (
    CrawlStores,
    ExplainOptions,
    ExplainSettings,
    filter_answers,
    generate_arguments,
    normal_forms,
    proxy_of,
    seed_form,
    settings_of,
)
from minutch.inspect.explain.visits import entry_of, left_out_words, referrers_of, score_of, visits
from minutch.inspect.query.rights import RightsTable
from minutch.job import JobContext
from minutch.plugin.chains import SCOPE_FETCHER
from minutch.plugin.urlrules import why_rejected
from minutch.processwide import command_line
from minutch.records.crawldatum import STATUS_DB_DUPLICATE, CrawlDatum
from minutch.records.metadata import CANONICAL_KEY, TWIN_KEY
from minutch.records.parsedata import ParseData
from minutch.terminal import agreeing, counted
from minutch.urls.urlkeys import url_key
from minutch.work.tables.frame import decode_keys
from minutch.work.tables.parallel import for_each
from minutch.work.tables.recordfiles import scan_having

# Finds the reason why a URL has no entry in the CrawlDb, and what would add it. Pure: no I/O

MALFORMED = "malformed"
DROPPED = "dropped"
FILTERED = "filtered"
NO_ADDITIONS = "additions_not_allowed"
NOT_BROUGHT_IN = "not_brought_in"
REDIRECT_IGNORED = "redirect_ignored"
REDIRECT_NOT_BROUGHT_IN = "redirect_not_brought_in"
NEVER_SEEN = "never_seen"
NOT_LOOKED = "not_looked_for"
MOST_DUPLICATES: Final = 20
"""Pages with the same signature that are named."""


_DEFAULTS: Final = ExplainOptions()


def why_unknown(  # noqa: PLR0911 - one return a case
    given: str,
    url: str,
    forms: Sequence[NormalForm],
    filters: Sequence[FilterAnswer],
    referrers: Referrers,
    settings: ExplainSettings,
    crawl: str,
) -> MissingEntry:
    """Returns the first reason that applies. `url` is the name under which it would be known,
    `crawl` the folder.
    """
    form = seed_form(forms)
    if form.url is None and form.error:
        why = why_rejected(given, None, None) or form.error
        return MissingEntry(
            MALFORMED, f"it is no URL that a crawl takes: {why}", "inject it spelled right"
        )
    if form.url is None:
        return MissingEntry(
            DROPPED, f"{' and '.join(form.changed_by)} drops it", "change the normalizers' rules"
        )
    rule = next((each for each in filters if not each.passed), None)
    if rule is not None:
        text = f"{rule.filter} rejects it: {rule.rule or 'it names no rule'}"
        return MissingEntry(
            FILTERED,
            text,
            "change that rule; then inject it, or fetch and update pages that link to it",
        )
    if referrers.found:
        return _found(referrers, settings, crawl)
    if referrers.redirects:
        return _redirected(referrers, url, settings)
    remedy = f"inject it: {command_line(f'inject {crawl}/crawldb FILE')}, with {url} in the file"
    if not referrers.looked:
        return MissingEntry(
            NOT_LOOKED, "the CrawlDb does not have it; the segments were not gone through", remedy
        )
    if referrers.total:
        lead = agreeing(referrers.total, "lead")
        links = counted(referrers.total, "links")
        text = f"{links} in the LinkDb {lead} to it, but no segment at hand"
        return MissingEntry(NOT_BROUGHT_IN, text, remedy)
    text = "no segment has a link or a redirect to it"
    for words in left_out_words(referrers.left_out):
        text += f"; but {words}"
    return MissingEntry(NEVER_SEEN, text, remedy)


def _found(referrers: Referrers, settings: ExplainSettings, crawl: str) -> MissingEntry:
    places = ", ".join(place.segment for place in referrers.found)
    if not settings.update.additions:
        text = (
            f"segment {places} leads to it, but updatedb takes in no new URLs"
            f" ({ADDITIONS_PROPERTY}=false)"
        )
        return MissingEntry(
            NO_ADDITIONS, text, f"{ADDITIONS_PROPERTY}=true and updatedb with that segment"
        )
    text = (
        f"segment {places} leads to it, and updatedb has not brought it in from there, or it was"
        " removed since"
    )
    return MissingEntry(
        NOT_BROUGHT_IN,
        text,
        command_line(f"updatedb {crawl}/crawldb {crawl}/segments/{referrers.found[-1].segment}"),
    )


def _redirected(referrers: Referrers, url: str, settings: ExplainSettings) -> MissingEntry:
    rules = RedirectRules(
        settings.fetch.redirects,
        settings.normalizers[SCOPE_FETCHER].normalize,
        settings.filters.filter,
    )
    origin = referrers.redirects[0]
    text = f"{origin.from_url} redirects to it (segment {origin.segment})"
    if rules.target(origin.from_url, url) is None:
        why = (
            "the fetcher goes no further: a normalizer or filter, or db.ignore.external.links,"
            " .internal.links"
        )
        return MissingEntry(REDIRECT_IGNORED, f"{text}, but {why}", "change those, or inject it")
    text += (
        ", but it was not fetched and not written down (http.redirect.max,"
        " http.redirect.max.exceeded.skip)"
    )
    return MissingEntry(REDIRECT_NOT_BROUGHT_IN, text, "raise http.redirect.max, or inject it")


def explain(
    crawl: Path, url: str, options: ExplainOptions = _DEFAULTS, *, context: JobContext
) -> Explanation:
    """Explains why a URL of a crawl was, or was not, fetched, and what comes next.

    Nothing is written but what is counted of segments (`frames`), and no host is asked. Raises
    StoreError if there is no crawl, FormatError for a damaged file.
    """
    now = context.clock.now()
    settings = ExplainSettings.from_conf(context.conf, fetch=FetchSettings.of(context.conf, now))
    selector = _selector(options.generate, context.conf, now)
    return Explainer(CrawlStores(crawl), settings, selector, options, now).explain(url)


def overview(crawl: Path, options: ExplainOptions = _DEFAULTS, *, context: JobContext) -> Overview:
    """Returns what is left to do in a crawl and what comes next. Raises StoreError, FormatError."""
    now = context.clock.now()
    settings = OverviewSettings(
        generate_arguments(options.generate),
        QueueSettings.from_conf(context.conf).crawl_delay,
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
        self._access = FetchProspects(settings, crawl.state, crawl.hostdb, now, options.resolve)

    def explain(self, given: str) -> Explanation:
        """Returns all that is known of a URL. Raises FormatError (damage)."""
        settings = self._settings
        forms = normal_forms(settings.normalizers, given)
        url, datum = self._find(given, forms)
        filters = filter_answers(settings.filters, url)
        normalize = self._settings.normalizers[SCOPE_FETCHER].normalize
        known = list(visits(self.crawl.segments, url, normalize, self._settings.proxy))
        origin = origin_of(url, datum, self.crawl.segments, known, settings.update, self.now)
        referrers = referrers_of(url, self.crawl.linkdb, self.crawl.segments, quick=self._quick)
        robots, host, fetch = self._access.to(url)
        parsed = (one for one in reversed(self.crawl.segments) if one.has(PARSE_DATA))
        newest = next((one for one in parsed if one.get(PARSE_DATA, url)), None)
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
            rights=self._rights(url, newest),
            twin=self._twin(url, datum, newest),
        )

    def _twin(self, url: str, datum: CrawlDatum | None, newest: Segment | None) -> TwinFacts | None:
        """Returns what became of the canonical link of the newest parse."""
        if datum is None or self._quick:
            return None
        parses = [] if newest is None else newest.get(PARSE_DATA, url)
        parse = next((one for one in reversed(parses) if isinstance(one, ParseData)), None)
        return twin_facts(url, datum, parse, self.crawl.crawldb, self._settings.conf)

    def _rights(self, url: str, newest: Segment | None) -> tuple[UseFacts, ...]:
        """Returns what is said about use of the newest parse of a URL."""
        if newest is None:
            return ()
        rows = RightsTable(self.crawl.segments, self._settings.agents).scan()
        rows = rows.filter(pl.col("url") == url, pl.col("segment") == newest.name)
        said = "verdict", "mechanism", "statement", "source", "agent"
        found = rows.collect().group_by(said, maintain_order=True).agg("use")
        return tuple(UseFacts(tuple(uses), *words) for *words, uses in found.iter_rows())

    def _find(self, given: str, forms: Sequence[NormalForm]) -> tuple[str, CrawlDatum | None]:
        """Returns the URL as the CrawlDb knows it, else the name under which it would be added."""
        normal = seed_form(forms).url
        names = [given, *(form.url for form in forms if form.url is not None)]
        for name in dict.fromkeys(names):
            datum = self.crawl.crawldb.get(name)
            if datum is not None:
                return name, datum
        return normal or given, None

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


def _marked(visit: SegmentVisit, origin: EntryOrigin) -> SegmentVisit:
    """Returns the visit with a mark if the CrawlDb has, or has not, merged it."""
    if visit.segment in (name for name, _ in origin.pending):
        return replace(visit, in_crawldb=False)
    return (
        replace(visit, in_crawldb=True)
        if origin.segment and visit.segment <= origin.segment
        else visit
    )


def twin_facts(
    url: str, datum: CrawlDatum, parse: ParseData | None, db: CrawlDb, conf: Configuration
) -> TwinFacts | None:
    """Returns what is to be said of a page with its newest parse; None if it names no other page,
    and is marked as no twin. Raises FormatError.
    """
    metadata = datum.metadata
    marked = metadata.get_text(TWIN_KEY) if metadata else None
    marked = marked if datum.status == STATUS_DB_DUPLICATE else None
    named = None if parse is None else parse.parse_meta.get(CANONICAL_KEY)
    if named is not None and url_key(named) == url_key(url):
        named = None
    if named is None and marked is None:
        return None
    if mode_of(conf) == NONE:
        said = f"its canonical link names {named}, which dedup does not follow" if named else ""
        said = (
            f"twin of {marked}, as dedup found before, which follows none now" if marked else said
        )
        return TwinFacts(named, marked, f"{said} ({CANONICAL_PROPERTY}={NONE})")
    with CanonicalTwins(db, conf) as twins:
        decided = twins.why(url)
    original, why = (None, "") if decided.is_empty() else decided.row(0)[2:]
    if original is None:
        is_kept = marked is not None and parse is None
        text = (
            f"twin of {marked}, as dedup found before"
            if is_kept
            else (
                f"its canonical link, {named}, is not believed: {why}"
                if why
                else "it names no page any more"
            )
        )
        back = f"; it was a twin of {marked}, and comes back when dedup runs"
        return TwinFacts(named, marked, text + (back if marked and not is_kept else ""))
    name = original.decode("utf-8", "replace")
    other = db.get(name)
    is_equal = other is not None and other.signature == datum.signature
    text = f"twin of {name}, because its canonical link leads there, and both have " + (
        "the same content" if is_equal else "nearly the same text"
    )
    return TwinFacts(named, marked, text if marked == name else f"{text}; marked when dedup runs")
