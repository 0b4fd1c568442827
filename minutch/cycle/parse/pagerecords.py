"""Makes the records of a parsed page for its segment: text, data, and records for updatedb, in
Nutch's order.

    parse_text     the text (unless parser.store.text = false)
    crawl_parse    signature        the digest that the parse job (or the fetcher) put into the
                                    content metadata
                   parse_metadata   the values that db.parsemeta.to.crawldb names; the validators of
                                    the page
                   linked           the target of a meta refresh, with _repr_ if another URL stands
                                    for it
                   linked           every outlink kept, with its share of the page's score
                   …                what the scoring filters give back to the page itself
                   fetch_success    for a page found inside another one (a feed's entry)
    parse_data     status, title, the outlinks kept, metadata

At most db.max.outlinks.per.page links are kept, in order; those longer than db.max.outlink.length
are passed over. With fetcher.parse the fetcher has filtered them already. Source:
org.apache.nutch.parse.ParseOutputFormat (write).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from minutch.conf import Configuration
from minutch.cycle.parse.outlinks import KeptLinks, OutlinkRules
from minutch.errors import MinutchError
from minutch.hadoop.formats.writables import MapWritable, Text
from minutch.plugin.chains import SCOPE_FETCHER, ScoringFilters
from minutch.plugin.points import Parse
from minutch.records import validators
from minutch.records.crawldatum import (
    STATUS_FETCH_SUCCESS,
    STATUS_LINKED,
    STATUS_PARSE_META,
    STATUS_SIGNATURE,
    CrawlDatum,
)
from minutch.records.links import Outlink, OutlinkRun, RelativeRun, resolve_runs
from minutch.records.metadata import (
    FETCH_TIME_KEY,
    LINKS_CUT_KEY,
    LINKS_EXTERNAL_KEY,
    REPR_URL_KEY,
    SIGNATURE_KEY,
)
from minutch.records.parsedata import SUCCESS_REDIRECT, ParseData
from minutch.urls.domains import choose_representative

log = logging.getLogger(__name__)

PERMANENT_REFRESH: Final = 5
"""Seconds from which on a meta refresh counts as a permanent redirect
(Fetcher.PERM_REFRESH_TIME).
"""
_UNBOUNDED: Final = 1 << 31


@dataclass(slots=True)
class LinkRecords:
    """Records of links that all have one datum."""

    links: OutlinkRun
    datum: CrawlDatum


CrawlParseRecord = tuple[str, CrawlDatum] | LinkRecords


@dataclass(slots=True)
class PageRecords:
    """The records of one page; `text` (UTF-8) is None if texts are not stored, `entries` are those
    for crawl_parse.
    """

    url: str
    text: bytes | None
    data: ParseData
    entries: list[CrawlParseRecord]


class PageRecordsMaker:
    """Makes the records by the configured rules."""

    def __init__(
        self, conf: Configuration, scoring: ScoringFilters, *, filtered: bool | None = None
    ) -> None:
        """`filtered` says that the links went through normalizers and filters (default:
        fetcher.parse).
        """
        self._links = OutlinkRules(conf)
        self._scoring = scoring
        self._interval = conf.get_int("db.fetch.interval.default")
        self._stores_text = conf.get_boolean("parser.store.text")
        self._most = _limit(conf.get_int("db.max.outlinks.per.page"))
        self._longest = _limit(conf.get_int("db.max.outlink.length"))
        self._filtered = conf.get_boolean("fetcher.parse") if filtered is None else filtered
        self._counts = conf.get_boolean("parser.outlinks.count")
        self._keeps_validators = conf.get_boolean(validators.PROPERTY)
        names = re.split(r" *, *", conf.get_text("db.parsemeta.to.crawldb"))
        self._to_crawldb = [(name, Text(name)) for name in names]

    def keep(self, pages: Sequence[tuple[str, Sequence[Outlink]]]) -> list[KeptLinks]:
        """The links that are kept of each page (URL and links), those of runs all at once."""
        resolve_runs([links for _, links in pages if isinstance(links, RelativeRun)])
        if self._filtered:
            return [
                KeptLinks(links)
                if len(links) <= self._most
                else KeptLinks(links[: self._most], len(links) - self._most)
                for _, links in pages
            ]
        runs = [(url, links) for url, links in pages if isinstance(links, OutlinkRun)]
        kept = iter(self._links.keep(runs, self._most, self._longest) if runs else ())
        return [
            next(kept)
            if isinstance(links, OutlinkRun)
            else self._links.keep_each(url, links, self._most, self._longest)
            for url, links in pages
        ]

    def note(self, data: ParseData, kept: KeptLinks) -> None:
        """Notes in a page's parse metadata how many links it lacks (parser.outlinks.count)."""
        if self._counts:
            for name, count in (
                (LINKS_CUT_KEY, kept.unread),
                (LINKS_EXTERNAL_KEY, kept.external),
            ):
                if count:
                    data.parse_meta.set(name, str(count))

    def records(self, url: str, parse: Parse, kept: Sequence[Outlink], now: int) -> PageRecords:
        """Returns the records of a page of which the links `kept` stay; `now` (ms) is the time that
        new records carry.
        """
        data = parse.data
        signature = _signature(url, data)
        entries: list[CrawlParseRecord] = []
        if signature:
            entries.append((url, CrawlDatum(STATUS_SIGNATURE, fetch_time=now, signature=signature)))
        metadata = self._metadata(data)
        if self._keeps_validators and signature and parse.is_original:
            found = validators.of_page(data.content_meta, now)
            if found is not None:
                metadata[validators.VALIDATORS_KEY] = found.stored(url, signature)
        if metadata:
            entries.append((url, CrawlDatum(STATUS_PARSE_META, fetch_time=now, metadata=metadata)))
        entries += self._refresh(url, data, now)
        entries += self._linked(url, data, kept, now)
        if not parse.is_original:
            entries.append((url, _fetched(data, now)))
        data = ParseData(data.status, data.title, kept, data.content_meta, data.parse_meta)
        return PageRecords(url, parse.utf8 if self._stores_text else None, data, entries)

    def _metadata(self, data: ParseData) -> MapWritable:
        values = [(key, data.parse_meta.first(name)) for name, key in self._to_crawldb]
        return MapWritable({key: Text(value) for key, value in values if value is not None})

    def _refresh(self, url: str, data: ParseData, now: int) -> Iterator[tuple[str, CrawlDatum]]:
        status = data.status
        if not (status.is_success and status.minor == SUCCESS_REDIRECT and status.args):
            return
        target = self._links.accept(
            url, status.args[0] or "", self._links.origin(url), SCOPE_FETCHER
        )
        if target is None:
            return
        datum = CrawlDatum(STATUS_LINKED, fetch_time=now)
        temporary = int(status.args[1] or 0) < PERMANENT_REFRESH
        representative = choose_representative(url, target, temporary)
        if representative != target:
            datum.metadata = MapWritable({Text(REPR_URL_KEY): Text(representative)})
        yield target, datum

    def _linked(
        self, url: str, data: ParseData, kept: Sequence[Outlink], now: int
    ) -> list[CrawlParseRecord]:
        """Returns a record for each link, with what the scoring filters give it, and what they give
        the page itself.
        """
        if isinstance(kept, OutlinkRun):
            score = self._outlink_score(url, data, len(kept))
            if score is not None:
                return [
                    LinkRecords(
                        kept, CrawlDatum(STATUS_LINKED, self._interval, score, fetch_time=now)
                    )
                ]
        targets = []
        for link in kept:
            datum = CrawlDatum(STATUS_LINKED, self._interval, fetch_time=now)
            if link.metadata:
                datum.metadata = link.metadata.copy()
            self._initial_score(link.to_url, datum)
            targets.append((link.to_url, datum))
        adjusted = self._distribute(url, data, targets)
        return [*targets, *([(url, adjusted)] if adjusted is not None else [])]

    def _outlink_score(self, url: str, data: ParseData, kept: int) -> float | None:
        try:
            return self._scoring.outlink_score(data, kept, len(data.outlinks))
        except MinutchError as error:
            log.warning("%s: links are scored one by one: %s", url, error)
            return None

    def _initial_score(self, url: str, datum: CrawlDatum) -> None:
        try:
            self._scoring.initial_score(url, datum)
        except MinutchError as error:
            log.warning("%s: no initial score: %s", url, error)
            datum.score = 0.0

    def _distribute(
        self, url: str, data: ParseData, targets: list[tuple[str, CrawlDatum]]
    ) -> CrawlDatum | None:
        try:
            return self._scoring.distribute_score_to_outlinks(
                url, data, targets, None, len(data.outlinks)
            )
        except MinutchError as error:
            log.warning("%s: score not distributed: %s", url, error)
            return None


def _limit(value: int) -> int:
    return _UNBOUNDED if value < 0 else value


def _signature(url: str, data: ParseData) -> bytes:
    digest = data.content_meta.first(SIGNATURE_KEY) or ""
    try:
        return bytes.fromhex(digest)
    except ValueError:
        log.warning("%s: %s is no signature: %r", url, SIGNATURE_KEY, digest)
        return b""


def _fetched(data: ParseData, now: int) -> CrawlDatum:
    """Returns the record that makes a page found inside another one a fetched page."""
    time = data.content_meta.first(FETCH_TIME_KEY) or ""
    return CrawlDatum(STATUS_FETCH_SUCCESS, fetch_time=int(time) if time.isdecimal() else now)
