"""Takes fetched pages through the parse step: whether to parse, the parse, signature, records.

`PageParser` is the step. `ParseTask` is the task of the workers that run it: bytes in, the packed
records of a page's documents out; the parse job (`SegmentTask`) and the fetcher
(`minutch.cycle.fetch.fetchparser`) define how they hand pages over and what else they want to know.
Source: org.apache.nutch.parse.ParseSegment (map, isTruncated) and the parsing half of
FetcherThread.output.
"""

from __future__ import annotations

import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, Self

import msgspec

from minutch.conf import Configuration
from minutch.cycle.parse.dispatch import ParserNotFound, ParseUtil, failed_result
from minutch.cycle.parse.pagerecords import DocumentPacker, PackedDocument, are_records
from minutch.cycle.parse.partwriters import PartSettings
from minutch.cycle.parse.robotsdirectives import agents_of, directives_in
from minutch.cycle.parse.signature import make_signature, signs_parses
from minutch.errors import FormatError, MinutchError
from minutch.hadoop.formats.compress import codec
from minutch.plugin.chains import ScoringFilters
from minutch.plugin.points import Parse, ParseResult
from minutch.records.crawldatum import MAX_SIGNATURE, STATUS_FETCH_SUCCESS, STATUS_PARSE_FAILED
from minutch.records.metadata import (
    FETCH_STATUS_KEY,
    FETCH_TIME_KEY,
    ROBOTS_KEY,
    SEGMENT_NAME_KEY,
    SIGNATURE_KEY,
    MadeLater,
)
from minutch.records.parsedata import MAJOR_NAMES, ParseData, ParseStatus
from minutch.records.protocol import Content, is_truncated

log = logging.getLogger(__name__)

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,10}")
_STORED: Final = msgspec.msgpack.Decoder(tuple[list[str], list[PackedDocument]])

SKIPPED_NO_STATUS: Final = "skipped_no_fetch_status"
SKIPPED_NOT_FETCHED: Final = "skipped_not_fetched"
SKIPPED_PARSE_FAILED: Final = "skipped_parse_failed"
SKIPPED_TRUNCATED: Final = "skipped_truncated"
SKIPPED_NO_PARSER: Final = "skipped_no_parser"
UNREADABLE = "unreadable_content"
CUT = "documents_with_links_cut"
"""Counts documents that have more links than db.max.outlinks.per.page."""
EXTERNAL = "documents_with_external_links_left_out"
"""Counts documents with links that db.ignore.external.links leaves out."""
KEPT_OUT = "documents_with_noindex_or_nofollow"
"""Counts documents whose robots elements say so: of a home page, that is why a crawl ends there."""

OUTCOMES: Final = frozenset({
    *MAJOR_NAMES, CUT, EXTERNAL, KEPT_OUT, UNREADABLE, SKIPPED_NO_STATUS, SKIPPED_NOT_FETCHED,
    SKIPPED_PARSE_FAILED, SKIPPED_TRUNCATED, SKIPPED_NO_PARSER,
})  # fmt: skip
"""The outcomes of pages and documents: names of counters."""


@dataclass(slots=True)
class ReadPage:
    """A page on its way through the step, and the time (ms) that its new records carry.

    `result` is what the parsers made of it, or why it was passed over (`damage`: where its file is
    to blame). In the end there are a counter's name for each document in it, and their records.
    """

    content: Content
    time: int
    result: ParseResult | str = ""
    damage: str = ""
    outcomes: list[str] = field(default_factory=list)
    documents: list[PackedDocument] = field(default_factory=list)


EventValue = str | int | float | None | list[dict[str, str]]


@dataclass(slots=True)
class ParsedPage:
    """A worker's answer: what the segment gets of a page, and values for a fetch that waits for it.

    What comes from a worker may be anything of these types (`is_usable`).
    """

    outcomes: list[str] = field(default_factory=list)
    """Names of counters (`OUTCOMES`)."""
    documents: list[PackedDocument] = field(default_factory=list)
    damage: str = ""
    """What is wrong with the page's file."""
    status: ParseStatus | None = None
    """Status of the page itself; None if it was not parsed."""
    signature: bytes | None = None
    """The signature of a page that was not parsed; that of a parsed page is in its crawl_parse
    records.
    """
    failed: bool = False
    """Nothing could parse it, and such pages are to be given up (parser.delete.failed.parse)."""
    outlinks: list[tuple[str, list[str]]] = field(default_factory=list)
    """Parsed URLs with their outlinks as stored, where links are followed at once."""
    events: list[tuple[str, dict[str, EventValue]]] = field(default_factory=list)
    """The data of a REPORT event for each parsed URL, where events are published."""

    @property
    def is_usable(self) -> bool:
        """True if outcomes and status are known ones, and the records of each document follow one
        another: a length that is wrong would cost a file all records after it.
        """
        return (
            OUTCOMES.issuperset(self.outcomes)
            and all(are_records(document.crawl) for document in self.documents)
            and (self.status is None or 0 <= self.status.major < len(MAJOR_NAMES))
            and (self.signature is None or len(self.signature) <= MAX_SIGNATURE)
        )

    def to_bytes(self) -> bytes:
        """Returns outcomes and documents for the fetch's log, in MessagePack."""
        return msgspec.msgpack.encode((self.outcomes, self.documents))

    @classmethod
    def from_bytes(cls, value: bytes) -> Self:
        """Returns what `to_bytes` has kept. Raises FormatError."""
        try:
            return cls(*_STORED.decode(value))
        except ValueError as error:  # msgspec's, and of texts that are no UTF-8
            raise FormatError(f"broken parse of a page ({error})") from error


class PageParser:
    """The parse step for pages, as configured."""

    def __init__(
        self,
        conf: Configuration,
        form: PartSettings,
        segment_name: str | None = None,
        *,
        fetching: bool = False,
    ) -> None:
        """`form` is that of the part files. `segment_name` is what documents get as their
        segment's, None: each page's own. `fetching`: the pages come from a fetch that is under way,
        all of them fetched with success.

        Then links are always filtered, and documents carry the time of the fetch.
        """
        self._segment_name = segment_name
        self._fetching = fetching
        self._parsers = ParseUtil(conf)
        self._signature = make_signature(conf)
        self._signs = signs_parses(self._signature)
        self._agents = agents_of(conf)
        self._scoring = ScoringFilters(conf)
        self._packer = DocumentPacker(
            conf, self._scoring, form, filtered=False if fetching else None
        )
        self._skips_truncated = conf.get_boolean("parser.skip.truncated")
        self.deletes_failed = conf.get_boolean("parser.delete.failed.parse")

    def read(self, page: ReadPage) -> None:
        """Does the first half: has the parsers read a page, or says why it is passed over."""
        content = page.content
        # A page that could not be read has its reason already.
        page.result = page.result or self._reason_to_skip(content)
        if page.result:
            log.debug("%s: %s", content.url, page.result)
            return
        try:
            page.result = _without_failures(self._parsers.parse(content))
        except ParserNotFound as error:
            log.warning("%s: %s", content.url, error)
            page.result = SKIPPED_NO_PARSER

    def fail(self, page: ReadPage, reason: str) -> None:
        """Ends a page that can't be read or finished, as a failed parse unless it is passed
        over.
        """
        # A page that is passed over has no parse that could fail.
        skipped = page.result or self._reason_to_skip(page.content)
        if not (isinstance(skipped, str) and skipped):
            skipped = _without_failures(failed_result(page.content.url, reason))
        page.result = skipped
        self.finish([page])

    def finish(self, pages: Sequence[ReadPage]) -> None:
        """The second half, for many pages at once: outcomes, and the records of what was read.
        Passed-over pages have none.
        """
        found = [
            (page, url, parse)
            for page in pages
            if not isinstance(page.result, str)
            for url, parse in page.result.items()
        ]
        for page in pages:
            page.outcomes = [page.result] if isinstance(page.result, str) else []
        MadeLater.make_all(
            value
            for _, _, parse in found
            for value in parse.data.parse_meta.values()
            if isinstance(value, MadeLater)
        )
        self._describe(found)
        # All links of a batch at once: a kernel's call and a column cost as much for one page.
        all_kept = self._packer.keep([(url, parse.data.outlinks) for _, url, parse in found])
        documents = []
        for (page, url, parse), kept in zip(found, all_kept, strict=True):
            page.outcomes.append(MAJOR_NAMES[parse.data.status.major])
            page.outcomes += [
                name for name, count in ((CUT, kept.unread), (EXTERNAL, kept.external)) if count
            ]
            robots = parse.data.parse_meta.get_values(ROBOTS_KEY)
            forbidden = directives_in(robots, self._agents, page.time) if robots else None
            if forbidden is not None and (forbidden.no_index or forbidden.no_follow):
                page.outcomes.append(KEPT_OUT)
            if self._fetching:
                # scores are shared out among the links kept, not among all (FetcherThread.output)
                parse.data.outlinks = kept.links
            documents.append((url, parse, kept, page.time, url != page.content.url))
        packed = iter(self._packer.pack(documents))
        for page in pages:
            page.documents = (
                [] if isinstance(page.result, str) else [*islice(packed, len(page.result))]
            )

    def signature_of(self, content: Content) -> bytes:
        """Returns the signature of a page that was not parsed."""
        return self._signature.calculate(content, "")

    def _reason_to_skip(self, content: Content) -> str:
        """Returns why a page is not parsed; empty if it is."""
        unfetched = "" if self._fetching else self._unfetched(content)
        if unfetched:
            return unfetched
        return SKIPPED_TRUNCATED if self._skips_truncated and is_truncated(content) else ""

    def _unfetched(self, content: Content) -> str:
        """Why a page of a segment is no page to parse, by its fetch status."""
        status = content.metadata.get(FETCH_STATUS_KEY)
        if status is None:
            return SKIPPED_NO_STATUS
        # 0 is no status: the page counts as not fetched.
        code = int(status) if _INTEGER.fullmatch(status) else 0
        if self.deletes_failed and code == STATUS_PARSE_FAILED:
            return SKIPPED_PARSE_FAILED
        return "" if code == STATUS_FETCH_SUCCESS else SKIPPED_NOT_FETCHED

    def _describe(self, found: Sequence[tuple[ReadPage, str, Parse]]) -> None:
        """Segment name, signature and score into the content metadata of all documents."""
        for page, url, parse in found:
            digest = self._signs(page.content, parse)
            metadata = parse.data.content_meta
            name = self._segment_name
            if name is None:
                name = page.content.metadata.get(SEGMENT_NAME_KEY) or ""
            # ParseSegment and FetcherThread set these before the filters of scores are asked.
            metadata.set(SEGMENT_NAME_KEY, name)
            metadata.set(SIGNATURE_KEY, digest.hex())
            try:
                self._scoring.pass_score_after_parsing(url, page.content, parse)
            except MinutchError as error:
                log.warning("%s: score not passed on: %s", url, error)
            if self._fetching:
                metadata.set(FETCH_TIME_KEY, str(page.time))


def _without_failures(result: ParseResult) -> ParseResult:
    """Takes text and data from the documents whose parse has failed."""
    for url, parse in result.items():
        status = parse.data.status
        if not status.is_success:
            log.warning("%s: not parsed: %s", url, status)
            # ParseSegment.map writes an empty parse for it (ParseStatus.getEmptyParse).
            result[url] = Parse("", ParseData(status), parse.is_original)
    return result


class ParseTask(ABC):
    """The task of a `WorkerPool` over pages."""

    result_type = ParsedPage

    def __init__(self, parser: PageParser) -> None:
        self._parser = parser

    @abstractmethod
    def _page(self, item: bytes) -> ReadPage:
        """Returns the page in an item, not parsed yet unless nothing is to be parsed."""

    def accepts(self, result: ParsedPage) -> bool:
        """Tells whether an answer can be used."""
        return result.is_usable

    def run(self, item: bytes) -> ReadPage:
        """Parses a page."""
        page = self._page(item)
        self._parser.read(page)
        return page

    def finish(self, pages: Sequence[ReadPage]) -> list[ParsedPage]:
        """Returns the records of parsed pages, whose links are filtered together."""
        try:
            self._parser.finish(pages)
        except Exception as error:  # noqa: BLE001 - one bad page is that page's failure
            log.debug("pages are finished one by one: %s", error)
            for page in pages:
                self._finish(page)
        return [*map(self.answer, pages)]

    def fail(self, item: bytes, reason: str) -> ParsedPage:
        """Returns the records of a page whose parser hangs, dies or takes too much memory."""
        page = self._page(item)
        self._parser.fail(page, reason)
        return self.answer(page)

    def answer(self, page: ReadPage) -> ParsedPage:
        """Returns what the parent is told of a page."""
        return ParsedPage(page.outcomes, page.documents, page.damage)

    def _finish(self, page: ReadPage) -> None:
        try:
            self._parser.finish([page])
        except Exception as error:  # noqa: BLE001 - one bad page is that page's failure
            log.warning("%s: no records of its parse: %s", page.content.url, error)
            self._parser.fail(page, f"{type(error).__name__}: {error}")


class SegmentTask(ParseTask):
    """The task of the parse job: its items are values of `content` as the files hold them."""

    def __init__(
        self, make_parser: Callable[[], PageParser], now: int, *, compression: str | None = None
    ) -> None:
        """`compression` is the codec by which each item is compressed; `now` (ms) is the time that
        records carry.
        """
        super().__init__(make_parser())
        # Workers decompress, so that the parent, of which there is one, does not.
        self._decompress = codec(compression).decompress if compression else bytes
        self._now = now

    def _page(self, item: bytes) -> ReadPage:
        """A value that can't be decompressed is damage to the file; content that can't be read is a
        loss that is counted and logged, not an error.
        """
        try:
            data = self._decompress(item)
        except FormatError as error:
            return ReadPage(Content(), self._now, UNREADABLE, str(error))
        try:
            return ReadPage(Content.from_bytes(data), self._now)
        except FormatError as error:
            log.error("content left out: %s", error)
            return ReadPage(Content(), self._now, UNREADABLE)
