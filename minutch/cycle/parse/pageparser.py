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
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, Generic, NamedTuple, TypeVar

from minutch.conf import Configuration
from minutch.cycle.parse.dispatch import ParserNotFound, ParseUtil, failed_result
from minutch.cycle.parse.outlinks import KeptLinks
from minutch.cycle.parse.pagerecords import (
    DocumentPacker,
    PackedDocument,
    PageRecords,
    PageRecordsMaker,
    are_records,
)
from minutch.cycle.parse.partwriters import PartSettings
from minutch.cycle.parse.signature import make_signature
from minutch.errors import FormatError, MinutchError
from minutch.hadoop.formats.compress import codec
from minutch.plugin.chains import ScoringFilters
from minutch.plugin.points import Parse, ParseResult
from minutch.records.crawldatum import STATUS_FETCH_SUCCESS, STATUS_PARSE_FAILED
from minutch.records.metadata import (
    FETCH_STATUS_KEY,
    FETCH_TIME_KEY,
    SEGMENT_NAME_KEY,
    SIGNATURE_KEY,
)
from minutch.records.parsedata import MAJOR_NAMES, ParseData
from minutch.records.protocol import Content, is_truncated

log = logging.getLogger(__name__)

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,10}")

SKIPPED_NO_STATUS: Final = "skipped_no_fetch_status"
SKIPPED_NOT_FETCHED: Final = "skipped_not_fetched"
SKIPPED_PARSE_FAILED: Final = "skipped_parse_failed"
SKIPPED_TRUNCATED: Final = "skipped_truncated"
SKIPPED_NO_PARSER: Final = "skipped_no_parser"


@dataclass(slots=True)
class ReadPage:
    """A page on its way through the step, and the time (ms) that its new records carry.

    `result` is what the parsers made of it, or why it was passed over. In the end there are a
    counter's name for each document in it, and their records.
    """

    content: Content
    time: int
    result: ParseResult | str = ""
    outcomes: list[str] = field(default_factory=list)
    records: list[PageRecords] = field(default_factory=list)


class PageParser:
    """The parse step for pages, as configured."""

    def __init__(
        self, conf: Configuration, segment_name: str | None = None, *, fetching: bool = False
    ) -> None:
        """`segment_name` is what documents get as their segment's, None: each page's own.
        `fetching`: the pages come from a fetch that is under way, all of them fetched with success.

        Then links are always filtered, and documents carry the time of the fetch.
        """
        self._segment_name = segment_name
        self._fetching = fetching
        self._parsers = ParseUtil(conf)
        self._signature = make_signature(conf)
        self._scoring = ScoringFilters(conf)
        self._output = PageRecordsMaker(conf, self._scoring, filtered=False if fetching else None)
        self._skips_truncated = conf.get_boolean("parser.skip.truncated")
        self.deletes_failed = conf.get_boolean("parser.delete.failed.parse")

    def read(self, content: Content) -> ParseResult | str:
        """Does the first half: has the parsers read a page, or says why it is passed over."""
        reason = self.reason_to_skip(content)
        if reason:
            log.debug("%s: %s", content.url, reason)
            return reason
        try:
            return self._parsers.parse(content)
        except ParserNotFound as error:
            log.warning("%s: %s", content.url, error)
            return SKIPPED_NO_PARSER

    def finish(self, pages: Sequence[ReadPage]) -> None:
        """The second half, for many pages at once: outcomes, and the records of what was read.
        Passed-over pages have none.
        """
        documents = [_documents(page) for page in pages]
        self._describe(pages, documents)
        links = [(url, parse.data.outlinks) for found in documents for url, parse in found]
        kept = iter(self._output.keep(links))
        for page, found in zip(pages, documents, strict=True):
            self._finish(page, found, kept)

    def signature_of(self, content: Content) -> bytes:
        """Returns the signature of a page that was not parsed."""
        return self._signature.calculate(content, "")

    def _finish(
        self, page: ReadPage, found: Sequence[tuple[str, Parse]], kept: Iterator[KeptLinks]
    ) -> None:
        """Makes the records of a page's documents, whose links `kept` gives one document after the
        other.
        """
        page.outcomes, page.records = [page.result] if isinstance(page.result, str) else [], []
        for url, parse in found:
            links, unread, external = mine = next(kept)
            self._output.note(parse.data, mine)
            page.outcomes.append(MAJOR_NAMES[parse.data.status.major])
            page.outcomes += [
                name for name, count in ((CUT, unread), (EXTERNAL, external)) if count
            ]
            if self._fetching:
                # scores are shared out among the links kept, not among all (FetcherThread.output)
                parse.data.outlinks = links
            page.records.append(self._output.records(url, parse, links, page.time))

    def reason_to_skip(self, content: Content) -> str:
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
        code = int(status) if _INTEGER.fullmatch(status) else 0
        if self.deletes_failed and code == STATUS_PARSE_FAILED:
            return SKIPPED_PARSE_FAILED
        return "" if code == STATUS_FETCH_SUCCESS else SKIPPED_NOT_FETCHED

    def _describe(
        self, pages: Sequence[ReadPage], documents: Sequence[Sequence[tuple[str, Parse]]]
    ) -> None:
        """Segment name, signature and score into the content metadata of all documents."""
        described = [
            (page, *document)
            for page, found in zip(pages, documents, strict=True)
            for document in found
        ]
        for page, url, parse in described:
            digest = self._signature.calculate(page.content, parse.text)
            metadata = parse.data.content_meta
            name = self._segment_name
            if name is None:
                name = page.content.metadata.get(SEGMENT_NAME_KEY) or ""
            metadata.set(SEGMENT_NAME_KEY, name)
            metadata.set(SIGNATURE_KEY, digest.hex())
            try:
                self._scoring.pass_score_after_parsing(url, page.content, parse)
            except MinutchError as error:
                log.warning("%s: score not passed on: %s", url, error)
            if self._fetching:
                metadata.set(FETCH_TIME_KEY, str(page.time))


def _documents(page: ReadPage) -> list[tuple[str, Parse]]:
    """Returns the documents of a page with their URLs; a failed parse is empty."""
    if isinstance(page.result, str):
        return []
    return [(url, _emptied(url, parse)) for url, parse in page.result.items()]


def _emptied(url: str, parse: Parse) -> Parse:
    """Returns the parse, without text and data if it has failed."""
    status = parse.data.status
    if status.is_success:
        return parse
    log.warning("%s: not parsed: %s", url, status)
    return Parse("", ParseData(status), parse.is_original)


UNREADABLE = "unreadable_content"
CUT = "documents_with_links_cut"
"""Counts documents that have more links than db.max.outlinks.per.page."""
EXTERNAL = "documents_with_external_links_left_out"
"""Counts documents with links that db.ignore.external.links leaves out."""

OUTCOMES: Final = frozenset(
    {
        *MAJOR_NAMES,
        CUT,
        EXTERNAL,
        UNREADABLE,
        SKIPPED_NO_STATUS,
        SKIPPED_NOT_FETCHED,
        SKIPPED_PARSE_FAILED,
        SKIPPED_TRUNCATED,
        SKIPPED_NO_PARSER,
    }
)
"""The outcomes of pages and documents: names of counters."""

R = TypeVar("R")


def are_usable(outcomes: Iterable[str], documents: Iterable[PackedDocument]) -> bool:
    """Tells whether outcomes are known ones, and the records of documents follow one another: a
    length that is wrong would cost a file all records after it.
    """
    return OUTCOMES.issuperset(outcomes) and all(
        are_records(document.crawl) for document in documents
    )


class PackedPage(NamedTuple):
    """The result of a page and the packed records of its documents; `damage` to its file is an
    error.
    """

    outcomes: list[str]
    documents: list[PackedDocument]
    damage: str = ""


class ParseTask(Generic[R]):
    """The task of a `WorkerPool` over pages; R is what the parent gets of each."""

    def __init__(self, parser: PageParser, packer: DocumentPacker) -> None:
        self._parser = parser
        self._packer = packer

    result_type: Any
    """The type of results."""

    @abstractmethod
    def accepts(self, result: R) -> bool:
        """Tells whether a page's outcomes are known ones, and its records are such."""

    @abstractmethod
    def _page(self, item: bytes) -> ReadPage:
        """Returns the page in an item, not parsed yet unless nothing is to be parsed. Raises
        FormatError for damage.
        """

    @abstractmethod
    def _packed(self, page: ReadPage, documents: list[PackedDocument]) -> R:
        """Makes the parent's result of a page, given the packed records of its documents."""

    @abstractmethod
    def _damaged(self, error: FormatError) -> R:
        """Makes the parent's result of an item that is no page."""

    def run(self, item: bytes) -> ReadPage | FormatError:
        """Parses a page."""
        try:
            page = self._page(item)
        except FormatError as error:
            return error
        page.result = page.result or self._parser.read(page.content)
        return page

    def finish(self, pages: Sequence[ReadPage | FormatError]) -> list[R]:
        """Returns the records of parsed pages, whose links are filtered together."""
        whole = [page for page in pages if isinstance(page, ReadPage)]
        try:
            self._parser.finish(whole)
        except Exception as error:  # noqa: BLE001 - one bad page is that page's failure
            log.debug("pages are finished one by one: %s", error)
            for page in whole:
                self._finish(page)
        packed = map(self._packed, whole, self._documents(whole))
        return [
            next(packed) if isinstance(page, ReadPage) else self._damaged(page) for page in pages
        ]

    def fail(self, item: bytes, reason: str) -> R:
        """Returns the records of a page whose parser hangs, dies or takes too much memory."""
        try:
            page = self._page(item)
        except FormatError as error:
            return self._damaged(error)
        self._fail(page, reason)
        return self._packed(page, *self._documents([page]))

    def _finish(self, page: ReadPage) -> None:
        try:
            self._parser.finish([page])
        except Exception as error:  # noqa: BLE001 - one bad page is that page's failure
            log.warning("%s: no records of its parse: %s", page.content.url, error)
            self._fail(page, f"{type(error).__name__}: {error}")

    def _fail(self, page: ReadPage, reason: str) -> None:
        skipped = page.result or self._parser.reason_to_skip(page.content)
        page.result = (
            skipped
            if isinstance(skipped, str) and skipped
            else failed_result(page.content.url, reason)
        )
        self._parser.finish([page])

    def _documents(self, pages: Sequence[ReadPage]) -> list[list[PackedDocument]]:
        """Returns the packed records of the documents of each page."""
        found = [
            (records, records.url != page.content.url) for page in pages for records in page.records
        ]
        packed = iter(self._packer.pack_all(found))
        return [list(islice(packed, len(page.records))) for page in pages]


class SegmentTask(ParseTask[PackedPage]):
    """The task of the parse job: its items are values of `content` as the files hold them."""

    result_type = PackedPage

    def __init__(
        self,
        make_parser: Callable[[], PageParser],
        settings: PartSettings,
        now: int,
        *,
        compression: str | None = None,
    ) -> None:
        """`compression` is the codec by which each item is compressed; `now` (ms) is the time that
        records carry.
        """
        super().__init__(make_parser(), DocumentPacker.for_segment(settings))
        self._decompress = codec(compression).decompress if compression else bytes
        self._now = now

    def _page(self, item: bytes) -> ReadPage:
        """Content that can't be read is a loss that is counted and logged, not an error."""
        data = self._decompress(item)
        try:
            return ReadPage(Content.from_bytes(data), self._now)
        except FormatError as error:
            log.error("content left out: %s", error)
            return ReadPage(Content(), self._now, UNREADABLE)

    def accepts(self, result: PackedPage) -> bool:
        return are_usable(result.outcomes, result.documents)

    def _packed(self, page: ReadPage, documents: list[PackedDocument]) -> PackedPage:
        return PackedPage(page.outcomes, documents)

    def _damaged(self, error: FormatError) -> PackedPage:
        return PackedPage([], [], str(error))
