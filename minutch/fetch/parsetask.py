"""What a parse worker does with a page that was just fetched: bytes in, the page's records for the fetch log out.

    item = long fetch time (ms), byte status, float score, serialized Content

The parse itself is minutch.parse's. Matches the parsing half of org.apache.nutch.fetcher.FetcherThread.output.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from minutch.conf import Configuration
from minutch.errors import MinutchError
from minutch.fetch.closing import stored_codec
from minutch.fetch.log import Part, compressor, pack_records
from minutch.fetch.recorder import ParsedPage
from minutch.parse.crawlrecords import DatumPacker
from minutch.parse.dispatch import failed_result
from minutch.parse.output import PageOutput
from minutch.parse.page import FetchedResult, PageParser
from minutch.plugin.points import ParseResult
from minutch.records.content import Content
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import FETCH_STATUS_KEY
from minutch.records.parsetext import ParseText

log = logging.getLogger(__name__)

_HEAD: Final = struct.Struct(">qBf")


def pack_page(content: Content, datum: CrawlDatum) -> bytes:
    """A page as it goes to a worker."""
    return _HEAD.pack(datum.fetch_time, datum.status, datum.score) + content.to_bytes()


@dataclass(slots=True)
class FetchedPage:
    """A page as a worker has it."""

    content: Content
    fetch_time: int
    status: int
    score: float

    @classmethod
    def of(cls, item: bytes) -> FetchedPage:
        """The page in an item; FormatError if there is none."""
        fetch_time, status, score = _HEAD.unpack_from(item)
        return cls(Content.from_bytes(item[_HEAD.size :]), fetch_time, status, score)


ReadPage = tuple[FetchedPage, ParseResult | None]
"""A page, and what the parsers made of it; None if it was passed over."""


class FetchTask:
    """The task of a `WorkerPool` over fetched pages; the links of a batch are looked at together."""

    def __init__(self, conf: Configuration, segment_name: str, *, links: bool, events: bool) -> None:
        """`links` and `events`: the fetcher wants to know the outlinks, and what a REPORT event tells."""
        self._parser = PageParser(conf, segment_name)
        self._pack = DatumPacker(compressor(stored_codec(conf)) or bytes)
        self._links = links
        self._events = events

    def run(self, item: bytes) -> ReadPage:
        """Parse a page."""
        page = FetchedPage.of(item)
        read = self._parser.read_fetched(page.content)
        if read is not None:  # most parsers hand the page's own metadata on
            page.content.metadata.add(FETCH_STATUS_KEY, str(page.status))
        return page, read

    def finish(self, pages: Sequence[ReadPage]) -> list[ParsedPage]:
        """The records of parsed pages."""
        try:
            return self._records(pages)
        except MinutchError as exc:
            log.debug("pages are finished one by one: %s", exc)
            return [self._record(page, read) for page, read in pages]

    def fail(self, item: bytes, reason: str) -> ParsedPage:
        """The records of a page whose parser hangs, dies or takes too much memory."""
        page = FetchedPage.of(item)
        return self._record(page, failed_result(page.content.url, reason))

    def _record(self, page: FetchedPage, read: ParseResult | None) -> ParsedPage:
        try:
            return self._records([(page, read)])[0]
        except MinutchError as exc:
            log.warning("%s: no records of its parse: %s", page.content.url, exc)
            return self._records([(page, failed_result(page.content.url, str(exc)))])[0]

    def _records(self, pages: Sequence[ReadPage]) -> list[ParsedPage]:
        results = self._parser.finish_fetched([(page.content, read, page.fetch_time) for page, read in pages])
        return [self._packed_page(page, read, result) for (page, read), result in zip(pages, results, strict=True)]

    def _packed_page(self, page: FetchedPage, read: ParseResult | None, result: FetchedResult) -> ParsedPage:
        content = page.content
        parsed = ParsedPage(failed=result.failed and not result.outputs)
        if read is None:
            parsed.signature = result.signature
        for output in result.outputs:
            parsed.entries += self._entries(output)
            if self._links:
                parsed.outlinks.append((output.url, [link.to_url for link in output.data.outlinks]))
            if self._events:
                parsed.events.append((output.url, _event(output, page)))
            if output.url == content.url:
                parsed.status = output.data.status
        return parsed

    def _entries(self, output: PageOutput) -> list[tuple[Part, str, bytes]]:
        crawl = pack_records((url, self._pack(datum)) for url, datum in output.crawl)
        entries = [(Part.CRAWL_PARSE, output.url, crawl), (Part.PARSE_DATA, output.url, output.data.to_bytes())]
        if output.text is not None:
            entries.append((Part.PARSE_TEXT, output.url, ParseText(output.text).to_bytes()))
        return entries


def _event(output: PageOutput, page: FetchedPage) -> dict[str, object]:
    """What a REPORT event tells (org.apache.nutch.fetcher.FetcherThreadEvent)."""
    data = output.data
    return {
        "outlinks": [{"url": link.to_url, "anchor": link.anchor} for link in data.outlinks],
        "title": data.title,
        "content-type": data.content_meta.first("content-type"),
        "score": page.score,
        "fetchTime": page.fetch_time,
        "content-language": data.content_meta.first("content-language"),
    }
