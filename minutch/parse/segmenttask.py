"""What a parse worker does with a page of a segment: serialized Content in, serialized records out.

Values are compressed in the worker, where the segment's files are compressed record by record.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from minutch.conf import Configuration
from minutch.errors import FormatError
from minutch.formats.compress import codec
from minutch.formats.javaio import encode_text
from minutch.parse.crawlrecords import CrawlRecords, packer
from minutch.parse.dispatch import ParserNotFound
from minutch.parse.output import Linked, PageOutput
from minutch.parse.page import PageParser, PageResult
from minutch.plugin.points import ParseResult
from minutch.records.content import Content
from minutch.records.crawldatum import CrawlDatum
from minutch.records.outlinkrun import OutlinkRun
from minutch.records.parsetext import ParseText
from minutch.segment.store import CRAWL_PARSE, PARSE_DATA, PARSE_TEXT

log = logging.getLogger(__name__)

UNREADABLE = "unreadable_content"


class PackedDocument(NamedTuple):
    """A document's records: `url` in UTF-8, values as the files hold them, `crawl` whole records (see `crawlrecords`).

    `is_extra` says that it was found inside another page (and has a URL of its own).
    """

    url: bytes
    text: bytes | None
    data: bytes
    crawl: bytes
    is_extra: bool = False


class PackedPage(NamedTuple):
    """What became of a page, and the records of the documents in it; `damage` to its file is an error."""

    outcomes: list[str]
    documents: list[PackedDocument]
    damage: str = ""


ReadPage = tuple[Content, ParseResult | str] | FormatError
"""A page, and what the parsers made of it or why it was passed over; or what is wrong with its compressed bytes."""


class SegmentTask:
    """The task of a `WorkerPool` over the contents of one segment."""

    def __init__(
        self, conf: Configuration, segment_name: str, now: int, *, compression: str | None = None, many: bool = False
    ) -> None:
        """`compression` is the codec by which each item is compressed; `many` pages make it worth to get ready."""
        self._unpack = codec(compression).decompress if compression else bytes
        self._parser = PageParser(conf, segment_name)
        self._now = now
        self._pack_text, self._pack_data = packer(PARSE_TEXT, conf), packer(PARSE_DATA, conf)
        self._crawl = CrawlRecords(packer(CRAWL_PARSE, conf))
        if many:
            self._warm()

    def _warm(self) -> None:
        """Load what is worth it for many pages."""
        with suppress(ParserNotFound):
            self._parser.warm()
        self._crawl.pack([Linked(OutlinkRun(0, b""), CrawlDatum())])

    def run(self, item: bytes) -> ReadPage:
        """Parse a page. Content that can't be read is a loss that is counted and logged, not an error."""
        try:
            data = self._unpack(item)
        except FormatError as error:
            return error
        try:
            content = Content.from_bytes(data)
        except FormatError as error:
            log.error("content left out: %s", error)
            return Content(), UNREADABLE
        return content, self._parser.read(content)

    def finish(self, pages: Sequence[ReadPage]) -> list[PackedPage]:
        """The records of parsed pages, their links looked at together."""
        whole = [page for page in pages if isinstance(page, tuple)]
        results = iter(self._parser.finish(whole, self._now))
        return [
            self._pack(page[0].url, next(results)) if isinstance(page, tuple) else PackedPage([], [], str(page))
            for page in pages
        ]

    def fail(self, item: bytes, reason: str) -> PackedPage:
        """The records of a page that could not be parsed."""
        content = Content.from_bytes(self._unpack(item))
        return self._pack(content.url, self._parser.fail(content, reason, self._now))

    def _pack(self, url: str, result: PageResult) -> PackedPage:
        documents = [self._pack_document(output, is_extra=output.url != url) for output in result.outputs]
        return PackedPage(result.outcomes, documents)

    def _pack_document(self, output: PageOutput, *, is_extra: bool) -> PackedDocument:
        return PackedDocument(
            encode_text(output.url),
            None if output.text is None else self._pack_text(ParseText(output.text).to_bytes()),
            self._pack_data(output.data.to_bytes()),
            self._crawl.pack(output.entries),
            is_extra,
        )
