"""Makes the records of parsed pages for their segment, in Nutch's order, as the files hold them.

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

Packed, a document is

    text, data   a serialized ParseText and ParseData
    crawl        record*, as they lie in a SequenceFile without its markers
    record       int length of key and value | int length of key | key | value
    key, value   Text, the URL; CrawlDatum

Values are compressed where the files are compressed record by record (`partwriters`).
"""

from __future__ import annotations

import logging
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from minutch.conf import Configuration
from minutch.cycle.parse.outlinks import KeptLinks, OutlinkRules
from minutch.cycle.segment.store import CRAWL_PARSE, PARSE_DATA, PARSE_TEXT
from minutch.cycle.segment.storedrecords import text_key
from minutch.errors import MinutchError
from minutch.hadoop.formats.compress import RecordStreams
from minutch.hadoop.formats.javaio import encode_text
from minutch.hadoop.formats.sequencewriter import RECORD
from minutch.hadoop.formats.writables import MapWritable, Text
from minutch.kernels.native import U8
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
from minutch.records.links import Outlink, OutlinkRun, RelativeRun, as_run, resolve_runs
from minutch.records.metadata import (
    FETCH_TIME_KEY,
    LINKS_CUT_KEY,
    LINKS_EXTERNAL_KEY,
    REPR_URL_KEY,
    SIGNATURE_KEY,
)
from minutch.records.parsedata import SUCCESS_REDIRECT, ParseData, serialized
from minutch.urls.domains import choose_representative

if TYPE_CHECKING:
    from minutch.cycle.parse.partwriters import PartSettings


log = logging.getLogger(__name__)

PERMANENT_REFRESH: Final = 5
"""Seconds from which on a meta refresh counts as a permanent redirect
(Fetcher.PERM_REFRESH_TIME).
"""
_UNBOUNDED: Final = 1 << 31
_REMEMBERED: Final = 4096
_LENGTHS: Final = struct.Struct(">ii")


@dataclass(slots=True)
class LinkRecords:
    """Records of links that all have one datum."""

    links: OutlinkRun
    datum: CrawlDatum


CrawlParseRecord = tuple[str, CrawlDatum] | LinkRecords


class PackedDocument(NamedTuple):
    """A document's records: `url` in UTF-8, `text` None where texts are not stored, `crawl` whole
    records.

    `is_extra` says that it was found inside another page (and has a URL of its own).
    """

    url: bytes
    text: bytes | None
    data: bytes
    crawl: bytes
    is_extra: bool = False


class DocumentPacker:
    """Makes the records of documents by the configured rules, and serializes them, those of many
    pages at once; most links of a page have equal data, which are made once.
    """

    def __init__(
        self,
        conf: Configuration,
        scoring: ScoringFilters,
        form: PartSettings,
        *,
        filtered: bool | None = None,
    ) -> None:
        """`form` is that of the part files; `filtered` says that the links went through normalizers
        and filters (default: fetcher.parse).
        """
        self._text, self._data, self._crawl = (
            RecordStreams().of_all if form.compression_of(folder) == RECORD else list
            for folder in (PARSE_TEXT, PARSE_DATA, CRAWL_PARSE)
        )
        # Serialized data by their fields: those of links mostly differ in the score alone.
        self._datums: dict[tuple[float, ...], bytes] = {}
        self._links = OutlinkRules(conf)
        self._scoring = scoring
        self._interval = conf.get_int("db.fetch.interval.default")
        self._stores_text = form.stores_text
        self._most = _limit(conf.get_int("db.max.outlinks.per.page"))
        self._longest = _limit(conf.get_int("db.max.outlink.length"))
        self._filtered = conf.get_boolean("fetcher.parse") if filtered is None else filtered
        self._counts = conf.get_boolean("parser.outlinks.count")
        self._keeps_validators = conf.get_boolean(validators.PROPERTY)
        names = re.split(r" *, *", conf.get_text("db.parsemeta.to.crawldb"))
        self._to_crawldb = [(name, Text(name)) for name in names]

    def keep(self, pages: Sequence[tuple[str, Sequence[Outlink]]]) -> list[KeptLinks]:
        """Returns the links that are kept of each page (URL and links); those without metadata are
        judged all at once.
        """
        pages = [(url, as_run(links)) for url, links in pages]
        # Of all pages at once: a kernel's call costs as much for one.
        resolve_runs([links for _, links in pages if isinstance(links, RelativeRun)])
        # ParseOutputFormat normalizes and filters only if the fetcher has not parsed.
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

    def pack(
        self, documents: Sequence[tuple[str, Parse, KeptLinks, int, bool]]
    ) -> list[PackedDocument]:
        """Returns the records of documents: of each, its URL, its parse, the links that are kept of
        it, the time (ms) that new records carry, and whether it was found inside another page.
        """
        data, entries = [], []
        for url, parse, kept, now, _ in documents:
            self._note(parse.data, kept)
            entries.append(self._entries(url, parse, kept.links, now))
            read = parse.data
            # `data.outlinks` stay all there are: scores are shared out by their number.
            stored = ParseData(
                read.status, read.title, kept.links, read.content_meta, read.parse_meta
            )
            data.append(stored.to_bytes())
        texts: Sequence[bytes | None] = [None] * len(documents)
        if self._stores_text:
            texts = self._text([serialized(parse.utf8) for _, parse, *_ in documents])
        values = zip(texts, self._data(data), self.crawl_records(entries), strict=True)
        return [
            PackedDocument(encode_text(url), text, found, crawl, is_extra)
            for (url, *_, is_extra), (text, found, crawl) in zip(documents, values, strict=True)
        ]

    def _note(self, data: ParseData, kept: KeptLinks) -> None:
        """Notes in a page's parse metadata how many links it lacks (parser.outlinks.count)."""
        if self._counts:
            for name, count in ((LINKS_CUT_KEY, kept.unread), (LINKS_EXTERNAL_KEY, kept.external)):
                if count:
                    data.parse_meta.set(name, str(count))

    def _entries(
        self, url: str, parse: Parse, kept: Sequence[Outlink], now: int
    ) -> list[CrawlParseRecord]:
        """Returns the records for crawl_parse of a document of which the links `kept` stay."""
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
        return entries

    def _metadata(self, data: ParseData) -> MapWritable:
        values = [(key, data.parse_meta.get(name)) for name, key in self._to_crawldb]
        return MapWritable({key: Text(value) for key, value in values if value is not None})

    def _refresh(self, url: str, data: ParseData, now: int) -> Iterator[tuple[str, CrawlDatum]]:
        status = data.status
        if not (status.is_success and status.minor == SUCCESS_REDIRECT and status.args):
            return
        # Scope `fetcher`, as ParseOutputFormat has it for redirects, not `outlink`.
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
            # One score for all links, as OPIC gives: one datum, and no object for each link.
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
            try:
                self._scoring.initial_score(link.to_url, datum)
            except MinutchError as error:
                log.warning("%s: no initial score: %s", link.to_url, error)
                # As in ParseOutputFormat: the link stays.
                datum.score = 0.0
            targets.append((link.to_url, datum))
        adjusted = self._distribute(url, data, targets)
        return [*targets, *([(url, adjusted)] if adjusted is not None else [])]

    def _outlink_score(self, url: str, data: ParseData, kept: int) -> float | None:
        try:
            return self._scoring.outlink_score(data, kept, len(data.outlinks))
        except MinutchError as error:
            log.warning("%s: links are scored one by one: %s", url, error)
            return None

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

    def crawl_records(self, pages: Sequence[Sequence[CrawlParseRecord]]) -> list[bytes]:
        """Returns the records for crawl_parse of each page, one after the other."""
        datums = [
            entry.datum if isinstance(entry, LinkRecords) else entry[1]
            for entries in pages
            for entry in entries
        ]
        values = self._crawl([self._datum(datum) for datum in datums])
        found = iter(_records([entry for entries in pages for entry in entries], values))
        return [b"".join(islice(found, len(entries))) for entries in pages]

    def _datum(self, datum: CrawlDatum) -> bytes:
        # These are not among the fields below, and hardly ever the same twice.
        if datum.metadata or datum.signature:
            return datum.to_bytes()
        fields = (
            datum.status,
            datum.fetch_interval,
            datum.score,
            datum.fetch_time,
            datum.modified_time,
            datum.retries,
        )
        value = self._datums.get(fields)
        if value is None:
            if len(self._datums) >= _REMEMBERED:
                self._datums.clear()
            value = self._datums[fields] = datum.to_bytes()
        return value


def _limit(value: int) -> int:
    return _UNBOUNDED if value < 0 else value


def _signature(url: str, data: ParseData) -> bytes:
    digest = data.content_meta.get(SIGNATURE_KEY) or ""
    try:
        return bytes.fromhex(digest)
    except ValueError:
        log.warning("%s: %s is no signature: %r", url, SIGNATURE_KEY, digest)
        # A plugin wrote it there: the page is kept, without a signature.
        return b""


def _fetched(data: ParseData, now: int) -> CrawlDatum:
    """Returns the record that makes a page found inside another one a fetched page."""
    time = data.content_meta.get(FETCH_TIME_KEY) or ""
    return CrawlDatum(STATUS_FETCH_SUCCESS, fetch_time=int(time) if time.isdecimal() else now)


def _records(entries: Sequence[CrawlParseRecord], values: Sequence[bytes]) -> list[bytes]:
    """Returns the records of each entry, with its value."""
    runs = [
        (entry.links, value)
        for entry, value in zip(entries, values, strict=True)
        if isinstance(entry, LinkRecords)
    ]
    linked = iter(linked_records(runs) if runs else ())
    return [
        next(linked)
        if isinstance(entry, LinkRecords)
        else _record(text_key(encode_text(entry[0])), value)
        for entry, value in zip(entries, values, strict=True)
    ]


def _record(key: bytes, value: bytes) -> bytes:
    return _LENGTHS.pack(len(key) + len(value), len(key)) + key + value


def linked_records(runs: Sequence[tuple[OutlinkRun, bytes]]) -> list[bytes]:
    """Returns a record for each link of each run, all of a run with the value that comes with
    it.
    """
    from minutch.kernels.outlinks import RECORD_HEAD
    from minutch.kernels.outlinks import linked_records as write_records

    data = b"".join([run.data for run, _ in runs])
    sizes = [len(value) for _, value in runs]
    table = np.empty((len(runs), 3), np.int64)
    table[:, 0] = [run.length for run, _ in runs]
    table[:, 1], table[:, 2] = np.cumsum(sizes) - sizes, sizes
    out = np.empty(len(data) + int((table[:, 0] * (RECORD_HEAD + table[:, 2])).sum()), np.uint8)
    ends = np.empty(len(runs), np.int64)
    values = b"".join([value for _, value in runs])
    write_records(np.frombuffer(data, np.uint8), table, np.frombuffer(values, np.uint8), out, ends)
    return _cut(out, [0, *ends.tolist()])


def _cut(data: U8, bounds: Sequence[int]) -> list[bytes]:
    """Returns the strings between each bound and the next one."""
    return [data[start:end].tobytes() for start, end in pairwise(bounds)]


def are_records(crawl: bytes) -> bool:
    """Tells whether records follow one another up to the end, as `PackedDocument.crawl` has
    them.
    """
    at, size, unpack = 0, len(crawl), _LENGTHS.unpack_from
    # The last place where a head fits.
    last = size - _LENGTHS.size
    while at < size:
        if at > last:
            return False
        length, key_length = unpack(crawl, at)
        # Lengths are signed: a negative one would lead backwards, for ever.
        if not 0 <= key_length <= length:
            return False
        at += _LENGTHS.size + length
    return at == size
