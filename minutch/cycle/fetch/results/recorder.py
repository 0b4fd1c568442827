"""Makes the records of a fetched page for the segment: crawl_fetch, content, parts of a parse.

Source: org.apache.nutch.fetcher.FetcherThread.output. One difference: a ProtocolStatus belongs to
one page here, while in Nutch all successes share one object and with it the last modified time of
whichever page had one.

A URL that was not asked for (time limit, purged queue, deferral, …) gets a record too: status
`linked` with score 0 and `_pst_` notfetching(20) and the reason. Nutch writes none, so such URLs
vanish without a trace; its updatedb, like ours, leaves a known URL as it was for that record.
`fetcher.record.skipped=false` restores Nutch's way.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, Protocol

from minutch.clock import http_time
from minutch.conf import Configuration
from minutch.cycle.fetch.decisions import CAPTURE_KEY, ending, skipped_status
from minutch.cycle.fetch.results.fetchlog import Frame, Part, WarcCapture
from minutch.cycle.fetch.settings import FetchSettings
from minutch.cycle.parse.pageparser import ParsedPage
from minutch.errors import MinutchError
from minutch.hadoop.formats.writables import Text
from minutch.plugin.chains import ScoringFilters
from minutch.plugin.points import ScoringFilter
from minutch.records import crawldatum as status
from minutch.records import protocol
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import (
    CONTENT_TYPE_KEY,
    FETCH_STATUS_KEY,
    PROTO_STATUS_KEY,
    SEGMENT_NAME_KEY,
    Metadata,
)
from minutch.records.protocol import Content, ProtocolStatus
from minutch.warc.pagewriter import IDENTICAL, NOT_MODIFIED, Original, fetch_time
from minutch.warc.warcfile import sha1_digest

log = logging.getLogger(__name__)

PROTO_STATUS: Final = Text(PROTO_STATUS_KEY)
CONTENT_TYPE: Final = Text(CONTENT_TYPE_KEY)


@dataclass(slots=True)
class FetchOutcome:
    """The answer to a request, or why there is none."""

    url: str
    datum: CrawlDatum
    fetch_status: int
    """The status that `datum` gets (CrawlDatum.STATUS_FETCH_*, STATUS_LINKED)."""
    time: int
    """When it came (ms)."""
    status: ProtocolStatus | None = None
    content: Content | None = None


class LivePageParser(Protocol):
    """Parses a page while it is fetched (fetcher.parse=true)."""

    @property
    def pages(self) -> int:
        """Pages that are being parsed, and take no place of the fetch meanwhile."""
        ...

    async def parse(self, content: Content, fetch_time: int) -> ParsedPage:
        """Returns the records of a page; without a status if nothing could parse it."""
        ...

    def hurry(self) -> None:
        """Begins to parse what waits, however little it is."""

    def close(self) -> None:
        """Gives up what is being parsed."""


class Recorder:
    """Turns fetched pages into records in a frame of the fetch log."""

    def __init__(
        self,
        segment_name: str,
        settings: FetchSettings,
        scoring: ScoringFilter | ScoringFilters,
        *,
        content_type: Callable[[str, str, bytes], str | None],
        signature: Callable[[Content], bytes],
        parser: LivePageParser | None = None,
        date: Callable[[int], int] = int,
    ) -> None:
        """`content_type(declared, url, data)` is the type to store, `signature` that of an unparsed
        page; `date` makes the times that are written down of those that it is given.
        """
        self._segment_name = segment_name
        self._settings = settings
        self._scoring = scoring
        self._content_type = content_type
        self._signature = signature
        self._parser = parser
        self._date = date

    def page(self, frame: Frame, answer: FetchOutcome) -> None:
        """Records one URL that is not parsed; changes its datum as Nutch does."""
        answer.time = self._date(answer.time)
        self._page(frame, answer)

    def _page(self, frame: Frame, answer: FetchOutcome) -> None:
        self._begin(answer)
        self._sign(answer)
        if answer.content is not None:
            _note_status(answer.content, answer.datum.status)
        self._end(frame, answer)

    async def fetched(self, frame: Frame, answer: FetchOutcome) -> ParsedPage | None:
        """Records what a request gave, and keeps it for the WARC files, whatever it is. Returns
        what parsing found, if pages are parsed for the fetch and this is one.
        """
        answer.time = self._date(answer.time)
        if self._settings.warc is not None:
            capture = capture_of(answer)
            if capture is not None:
                # Before content that Nutch does not keep is dropped: an archive has errors, too.
                frame.captures.append(capture)
        if answer.status is not None and not ending(answer.status.code).keeps_content:
            answer.content = None
        datum, content = answer.datum, answer.content
        if (
            self._parser is None
            or content is None
            or answer.fetch_status != status.STATUS_FETCH_SUCCESS
        ):
            self._page(frame, answer)
            return None
        self._begin(answer)
        if self._settings.for_step:
            self._sign(answer)
        _note_status(content, answer.fetch_status)
        parsed = await self._parser.parse(content, answer.time)
        if parsed.signature is not None:
            datum.signature = parsed.signature
        if parsed.failed:
            datum.status = status.STATUS_PARSE_FAILED
            content.metadata[FETCH_STATUS_KEY][-1] = str(datum.status)
        self._end(frame, answer)
        frame.add(Part.PARSE, answer.url, parsed.to_bytes())
        for _, data in parsed.events:
            data["score"] = datum.score
        return None if self._settings.for_step else parsed

    def _begin(self, answer: FetchOutcome) -> None:
        """Prepares datum and content for a parse."""
        datum, content = answer.datum, answer.content
        datum.status, datum.fetch_time = answer.fetch_status, answer.time
        if answer.status is not None:
            datum.metadata[PROTO_STATUS] = answer.status
        if content is None:
            return
        content_type = self._content_type(content.content_type, content.url, content.content)
        content.content_type = content_type or ""
        if content_type is not None:
            datum.metadata[CONTENT_TYPE] = Text(content_type)
        content.metadata.set(SEGMENT_NAME_KEY, self._segment_name)
        try:
            self._scoring.pass_score_before_parsing(answer.url, datum, content)
        except MinutchError as exc:
            log.warning("can't pass the score of %s on: %s", answer.url, exc)

    def _sign(self, answer: FetchOutcome) -> None:
        """Gives the datum the signature of a page that is not parsed (fetcher.signature)."""
        if (
            answer.content is not None
            and answer.fetch_status == status.STATUS_FETCH_SUCCESS
            and self._settings.signature
        ):
            answer.datum.signature = self._signature(answer.content)

    @property
    def parses(self) -> bool:
        """True if pages are parsed while they are fetched."""
        return self._parser is not None

    @property
    def parsing(self) -> int:
        """Pages that are being parsed, and take no place of the fetch meanwhile."""
        return 0 if self._parser is None else self._parser.pages

    def hurry(self) -> None:
        """Has pages parsed without waiting for more of them."""
        if self._parser is not None:
            self._parser.hurry()

    def _end(self, frame: Frame, answer: FetchOutcome) -> None:
        """Writes datum and content down."""
        frame.add(Part.FETCH, answer.url, answer.datum.to_bytes())
        if answer.content is not None and self._settings.store_content:
            frame.add(Part.CONTENT, answer.url, answer.content.to_bytes())

    def linked(self, frame: Frame, url: str, datum: CrawlDatum, now: int) -> None:
        """Records a redirect's target that is left for a later round."""
        self.initial_score(url, datum)
        self.page(frame, FetchOutcome(url, datum, status.STATUS_LINKED, now))

    def initial_score(self, url: str, datum: CrawlDatum) -> None:
        """Score a redirect's target that is fetched now."""
        try:
            self._scoring.initial_score(url, datum)
        except MinutchError as exc:
            log.error("can't score %s: %s", url, exc)

    def skipped(
        self,
        frame: Frame,
        url: str,
        datum: CrawlDatum,
        reason: str,
        now: int,
        *,
        is_known: bool = True,
    ) -> None:
        """Records a URL that was not asked for, so that updatedb leaves it as it is; one that the
        CrawlDb may not know, in any case.
        """
        if self._settings.record_skipped or not is_known:
            # Updatedb adds the scores of `linked` records up.
            datum.score = 0.0
            why = skipped_status(reason)
            self.page(frame, FetchOutcome(url, datum, status.STATUS_LINKED, now, why))

    def host_files(self, frame: Frame, contents: list[Content], now: int) -> None:
        """Stores files of a host that are no pages (fetcher.store.robotstxt, fetcher.tdmrep): what
        has no fetch status is not parsed, and no page to anybody.
        """
        for content in contents:
            content.content_type = (
                self._content_type(content.content_type, content.url, content.content) or ""
            )
            if self._settings.store_content:
                frame.add(Part.CONTENT, content.url, content.to_bytes())
        if self._settings.warc is not None:
            frame.captures += file_captures(contents, self._date(now))


def _note_status(content: Content, fetch_status: int) -> None:
    # add, not set, as in FetcherThread.output.
    content.metadata.add(FETCH_STATUS_KEY, str(fetch_status))


# -- captures --------------------------------------------------------------------------------------
#
# How each answer is archived: as a whole page or as a revisit. Pure: no I/O.
#
# Every answer is archived, errors too. What had not changed becomes a revisit, by what the CrawlDb
# entry remembers:
#
#     metadata `_warc_`     8 hex digits of the URL's hash, blank, time of the last whole capture
#                           (ms), blank, its digest
#
# updatedb carries it along, and so does Nutch's. It belongs to one URL: a redirect's target that
# inherits it has another hash.

IMPLIED: Final = (
    "store.http.headers",
    "store.http.request",
    "store.ip.address",
    "store.protocol.versions",
)
"""Properties by which protocols hand over what belongs into an archive."""


def capture_of(answer: FetchOutcome) -> WarcCapture | None:
    """Returns the capture of an answer, None if nothing came. Notes in its datum what a later
    revisit may refer to.
    """
    url, time, datum, content = answer.url, answer.time, answer.datum, answer.content
    if content is None:
        return None
    known = remembered(url, datum)
    if answer.status is not None and answer.status.code == protocol.NOTMODIFIED:
        original = known if _is_of(known, content.metadata) else None
        return WarcCapture(url, time, datum, content, NOT_MODIFIED, original)
    digest = sha1_digest(content.content)
    # An empty body is equal to any other: no revisit of that.
    if known is not None and known.digest == digest and content.content:
        return WarcCapture(url, time, datum, content, IDENTICAL, known)
    datum.metadata[CAPTURE_KEY] = Text(f"{_hash(url)} {time} {digest}")
    return WarcCapture(url, time, datum, content, "", Original(time, digest))


def remembered(url: str, datum: CrawlDatum) -> Original | None:
    """Returns the last whole capture of a URL, as its entry has it."""
    words = str(datum.metadata.get(CAPTURE_KEY, "")).split(" ")
    if len(words) != 3 or words[0] != _hash(url) or not (words[1].isascii() and words[1].isdigit()):
        return None
    # int() refuses more than 4,300 digits.
    return Original(int(words[1][:15]), words[2])


def _is_of(known: Original | None, answer: Metadata) -> bool:
    """Tells whether an unmodified answer is about the capture `known`: not if it was modified
    since.
    """
    modified = http_time(answer.field("Last-Modified") or "")
    return known is not None and (modified is None or modified <= known.time)


def _hash(url: str) -> str:
    return blake2b(url.encode("utf-8", "surrogateescape"), digest_size=4).hexdigest()


def file_captures(contents: list[Content], now: int) -> Iterator[WarcCapture]:
    """Files of a host."""
    for content in contents:
        time = fetch_time(content)
        yield WarcCapture(content.url, now if time is None else time, CrawlDatum(), content)


def archiving(conf: Configuration) -> Configuration:
    """Returns the configuration for a fetch: what an archive needs to know is kept."""
    return conf.with_values(dict.fromkeys(IMPLIED, "true"))
