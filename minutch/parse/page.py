"""Fetched pages through the parse step: is a page to be parsed, its parse, its signature, its records.

Used by the parse job for the pages of a segment and by the fetcher (fetcher.parse) for pages as they come.
Source: org.apache.nutch.parse.ParseSegment (map, isTruncated) and the parsing half of FetcherThread.output.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from minutch.conf import Configuration
from minutch.errors import MinutchError
from minutch.parse.dispatch import ParserNotFound, ParseUtil
from minutch.parse.output import OutputRules, PageOutput
from minutch.parse.signature import from_conf as signature_from_conf
from minutch.plugin.chains import ScoringFilters
from minutch.plugin.points import Parse, ParseResult
from minutch.records.content import Content
from minutch.records.crawldatum import STATUS_FETCH_SUCCESS, STATUS_PARSE_FAILED
from minutch.records.links import Outlink
from minutch.records.metadata import FETCH_STATUS_KEY, FETCH_TIME_KEY, SEGMENT_NAME_KEY, SIGNATURE_KEY, TRUNCATED_KEY
from minutch.records.parsedata import ParseData
from minutch.records.parsestatus import MAJOR_NAMES

log = logging.getLogger(__name__)

CONTENT_LENGTH_KEY: Final = "Content-Length"
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,10}")

SKIPPED_NO_STATUS: Final = "skipped_no_fetch_status"
SKIPPED_NOT_FETCHED: Final = "skipped_not_fetched"
SKIPPED_PARSE_FAILED: Final = "skipped_parse_failed"
SKIPPED_TRUNCATED: Final = "skipped_truncated"
SKIPPED_NO_PARSER: Final = "skipped_no_parser"

Documents = list[tuple[str, Parse]]
"""The documents of a page with their URLs."""


class ReadPage(NamedTuple):
    """A page, the time (ms) that its new records carry, and what the parsers made of it or why it was passed over."""

    content: Content
    time: int
    result: ParseResult | str = ""


@dataclass(slots=True)
class PageResult:
    """What became of a page: a counter's name for each document in it, and their records."""

    outcomes: list[str]
    outputs: list[PageOutput]


class PageParser:
    """The parse step for pages, as configured."""

    def __init__(self, conf: Configuration, segment_name: str, *, fetching: bool = False) -> None:
        """`fetching`: the pages come from a fetch that is under way, all of them fetched with success.

        Then links are always filtered, and documents carry the time of the fetch.
        """
        self._segment_name = segment_name
        self._fetching = fetching
        self._parsers = ParseUtil(conf)
        self._signature = signature_from_conf(conf)
        self._scoring = ScoringFilters(conf)
        self._output = OutputRules(conf, self._scoring, filtered=False if fetching else None)
        self._skips_truncated = conf.get_boolean("parser.skip.truncated", True)
        self.deletes_failed = conf.get_boolean("parser.delete.failed.parse", False)

    def read(self, content: Content) -> ParseResult | str:
        """The first half: what the parsers make of a page, or why it is passed over."""
        reason = self.reason_to_skip(content)
        if reason:
            log.debug("%s: %s", content.url, reason)
            return reason
        try:
            return self._parsers.parse(content)
        except ParserNotFound as error:
            log.warning("%s: %s", content.url, error)
            return SKIPPED_NO_PARSER

    def finish(self, pages: Sequence[ReadPage]) -> list[PageResult]:
        """The second half, for many pages at once: the records of what was read. Passed-over pages have none."""
        documents = [self._documents(page) for page in pages]
        links = [(url, parse.data.outlinks) for found in documents for url, parse in found]
        kept = iter(self._output.keep(links))
        return [self._finished(page, found, kept) for page, found in zip(pages, documents, strict=True)]

    def signature_of(self, content: Content) -> bytes:
        """The signature of a page that was not parsed."""
        return self._signature.calculate(content, "")

    def _finished(self, page: ReadPage, found: Documents, kept: Iterator[Sequence[Outlink]]) -> PageResult:
        """The records of a page's documents, whose links `kept` gives one document after the other."""
        if isinstance(page.result, str):
            return PageResult([page.result], [])
        outputs = []
        for url, parse in found:
            links = next(kept)
            if self._fetching:  # scores are shared out among the links kept, not among all (FetcherThread.output)
                parse.data.outlinks = links
            outputs.append(self._output.records(url, parse, links, page.time))
        return PageResult([MAJOR_NAMES[parse.data.status.major] for _, parse in found], outputs)

    def _documents(self, page: ReadPage) -> Documents:
        """The documents of a page with their metadata."""
        if isinstance(page.result, str):
            return []
        documents = [(url, self._described(url, page.content, parse)) for url, parse in page.result.items()]
        if self._fetching:
            for _, parse in documents:
                parse.data.content_meta.set(FETCH_TIME_KEY, str(page.time))
        return documents

    def reason_to_skip(self, content: Content) -> str:
        """Why a page is not parsed; empty if it is."""
        unfetched = "" if self._fetching else self._unfetched(content)
        if unfetched:
            return unfetched
        return SKIPPED_TRUNCATED if self._skips_truncated and is_truncated(content) else ""

    def _unfetched(self, content: Content) -> str:
        """Why a page of a segment is no page to parse, by its fetch status."""
        status = content.metadata.first(FETCH_STATUS_KEY)
        if status is None:
            return SKIPPED_NO_STATUS
        code = int(status) if _INTEGER.fullmatch(status) else 0
        if self.deletes_failed and code == STATUS_PARSE_FAILED:
            return SKIPPED_PARSE_FAILED
        return "" if code == STATUS_FETCH_SUCCESS else SKIPPED_NOT_FETCHED

    def _described(self, url: str, content: Content, parse: Parse) -> Parse:
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
