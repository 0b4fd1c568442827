"""One fetched page through the parse step: is it to be parsed, its parse, its signature, its records.

Used by the parse job for the pages of a segment and by the fetcher (fetcher.parse) for a page as it comes. Matches
org.apache.nutch.parse.ParseSegment (map, isTruncated) and the parsing half of FetcherThread.output.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from minutch.conf import Configuration
from minutch.errors import MinutchError
from minutch.parse.dispatch import ParserNotFound, ParseUtil, failed_result
from minutch.parse.output import OutputRules, PageOutput
from minutch.parse.signature import from_conf as signature_from_conf
from minutch.plugin.chains import ScoringFilters
from minutch.plugin.points import Parse, ParseResult
from minutch.records.content import Content
from minutch.records.crawldatum import STATUS_FETCH_SUCCESS, STATUS_PARSE_FAILED
from minutch.records.links import Outlink
from minutch.records.metadata import FETCH_STATUS_KEY, FETCH_TIME_KEY, SEGMENT_NAME_KEY, SIGNATURE_KEY
from minutch.records.parsedata import ParseData
from minutch.records.parsestatus import MAJOR_NAMES

log = logging.getLogger(__name__)

TRUNCATED_KEY: Final = "http.content.truncated"
CONTENT_LENGTH_KEY: Final = "Content-Length"
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,10}")

SKIPPED_NO_STATUS: Final = "skipped_no_fetch_status"
SKIPPED_NOT_FETCHED: Final = "skipped_not_fetched"
SKIPPED_PARSE_FAILED: Final = "skipped_parse_failed"
SKIPPED_TRUNCATED: Final = "skipped_truncated"
SKIPPED_NO_PARSER: Final = "skipped_no_parser"

Documents = list[tuple[str, Parse]]
"""The documents of a page with their URLs."""


@dataclass(slots=True)
class PageResult:
    """What became of a page: a counter's name for each document in it, and their records."""

    outcomes: list[str]
    outputs: list[PageOutput]


@dataclass(slots=True)
class FetchedResult:
    """What the fetcher learns of a page that it has parsed.

    `signature` goes into the page's CrawlDatum, `failed` asks for the status parse_failed (with
    parser.delete.failed.parse). `outputs` are the page's records for parse_data, parse_text and crawl_parse.
    """

    signature: bytes | None
    failed: bool
    outputs: list[PageOutput]


class PageParser:
    """The parse step for single pages, as configured."""

    def __init__(self, conf: Configuration, segment_name: str) -> None:
        self._segment_name = segment_name
        self._parsers = ParseUtil(conf)
        self._signature = signature_from_conf(conf)
        self._scoring = ScoringFilters(conf)
        self._output = OutputRules(conf, self._scoring)
        self._fetch_output = OutputRules(conf, self._scoring, filtered=False)
        self._skips_truncated = conf.get_boolean("parser.skip.truncated", True)
        self._deletes_failed = conf.get_boolean("parser.delete.failed.parse", False)

    def warm(self) -> None:
        """Many pages of HTML are coming: load what is worth it for many."""
        for parser in self._parsers.factory.parsers("text/html"):
            parser.warm()

    def parse(self, content: Content, now: int) -> PageResult:
        """The page's records; `now` in ms is the time they carry. A page that is passed over has none."""
        return self.finish([(content, self.read(content))], now)[0]

    def read(self, content: Content) -> ParseResult | str:
        """The first half of `parse`: what the parsers make of a page, or why it is passed over."""
        reason = self._skip(content)
        if reason:
            log.debug("%s: %s", content.url, reason)
            return reason
        result = self._parsed(content)
        return SKIPPED_NO_PARSER if result is None else result

    def finish(self, pages: Sequence[tuple[Content, ParseResult | str]], now: int) -> list[PageResult]:
        """The second half of `parse`, for many pages at once: the records of what was read."""
        documents = [self._documents(content, result) for content, result in pages]
        kept = self._kept(self._output, documents)
        results = []
        for (_, result), found in zip(pages, documents, strict=True):
            outputs = [self._output.records(url, parse, next(kept), now) for url, parse in found]
            outcomes = [MAJOR_NAMES[parse.data.status.major] for _, parse in found]
            results.append(PageResult([result] if isinstance(result, str) else outcomes, outputs))
        return results

    def fail(self, content: Content, reason: str, now: int) -> PageResult:
        """The records of a page whose parser died or ran out of time."""
        skipped = self._skip(content)
        if skipped:
            return PageResult([skipped], [])
        return self.finish([(content, failed_result(content.url, reason))], now)[0]

    def read_fetched(self, content: Content) -> ParseResult | None:
        """First half for a page just fetched: what the parsers make of it; None if it is passed over."""
        return None if self._skips_truncated and is_truncated(content) else self._parsed(content)

    def _parsed(self, content: Content) -> ParseResult | None:
        """What the parsers make of a page; None if there is none for its type."""
        try:
            return self._parsers.parse(content)
        except ParserNotFound as error:
            log.warning("%s: %s", content.url, error)
            return None

    def finish_fetched(self, pages: Sequence[tuple[Content, ParseResult | None, int]]) -> list[FetchedResult]:
        """Second half, for many pages at once: the records of what was read, and when it was fetched (ms)."""
        documents = [self._documents(content, result) for content, result, _ in pages]
        kept = self._kept(self._fetch_output, documents)
        return [
            self._fetched(page, found, [next(kept) for _ in found])
            for page, found in zip(pages, documents, strict=True)
        ]

    def _fetched(
        self, page: tuple[Content, ParseResult | None, int], found: Documents, kept: list[Sequence[Outlink]]
    ) -> FetchedResult:
        content, result, fetch_time = page
        if result is None:
            return FetchedResult(self._signature.calculate(content, ""), self._deletes_failed, [])
        failed = self._deletes_failed and not result.is_success
        own, outputs = None, []
        for (url, parse), links in zip(found, kept, strict=True):
            parse.data.content_meta.set(FETCH_TIME_KEY, str(fetch_time))
            parse.data.outlinks = links
            if url == content.url:
                own = bytes.fromhex(parse.data.content_meta.first(SIGNATURE_KEY) or "")
            outputs.append(self._fetch_output.records(url, parse, links, fetch_time))
        return FetchedResult(own, failed, outputs)

    def _documents(self, content: Content, result: ParseResult | str | None) -> Documents:
        """The documents of a page, made ready."""
        if not isinstance(result, ParseResult):
            return []
        return [(url, self._finish(url, content, parse)) for url, parse in result.items()]

    def _kept(self, output: OutputRules, documents: Sequence[Documents]) -> Iterator[Sequence[Outlink]]:
        """The links that are kept of each document, one after the other."""
        return iter(output.keep([(url, parse.data.outlinks) for found in documents for url, parse in found]))

    def _skip(self, content: Content) -> str:
        """Why a page is not parsed; empty if it is."""
        status = content.metadata.first(FETCH_STATUS_KEY)
        if status is None:
            return SKIPPED_NO_STATUS
        code = int(status) if _INTEGER.fullmatch(status) else 0
        if self._deletes_failed and code == STATUS_PARSE_FAILED:
            return SKIPPED_PARSE_FAILED
        if code != STATUS_FETCH_SUCCESS:
            return SKIPPED_NOT_FETCHED
        return SKIPPED_TRUNCATED if self._skips_truncated and is_truncated(content) else ""

    def _finish(self, url: str, content: Content, parse: Parse) -> Parse:
        """Segment name, signature and score into the content metadata; a failed parse is emptied before."""
        status = parse.data.status
        if not status.is_success:
            log.warning("%s: not parsed: %s", url, status)
            parse = Parse("", ParseData(status), parse.is_original)
        metadata = parse.data.content_meta
        metadata.set(SEGMENT_NAME_KEY, self._segment_name)
        metadata.set(SIGNATURE_KEY, self._signature.calculate(content, parse.text).hex())
        try:
            self._scoring.pass_score_after_parsing(url, content, parse)
        except MinutchError as error:
            log.warning("%s: score not passed on: %s", url, error)
        return parse


def is_truncated(content: Content) -> bool:
    """Whether the content is cut off: the protocol's mark if there is one, else by the Content-Length header."""
    mark = content.metadata.first(TRUNCATED_KEY)
    if mark is not None:
        return mark == "true"
    length = (content.metadata.first(CONTENT_LENGTH_KEY) or "").strip()
    if not _INTEGER.fullmatch(length):
        return False
    return int(length) > len(content.content)
