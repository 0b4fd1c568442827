"""What a parse worker does with a page of a segment: serialized Content in, serialized records out.

Values are compressed here, in the worker, where the segment's files are compressed record by record.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import deflate

from minutch.conf import Configuration
from minutch.errors import FormatError
from minutch.formats.javaio import encode_text
from minutch.formats.sequencefile import RECORD
from minutch.parse.output import PageOutput
from minutch.parse.page import PageParser, PageResult
from minutch.plugin.points import ParseResult
from minutch.records.content import Content
from minutch.records.crawldatum import CrawlDatum
from minutch.records.parsetext import ParseText
from minutch.segment.store import CRAWL_PARSE, PARSE_DATA, PARSE_TEXT, compression_of, text_key

log = logging.getLogger(__name__)

UNREADABLE = "unreadable_content"
_REMEMBERED: Final = 4096
_LIBDEFLATE_FROM: Final = 1024
_SHORT: Final = tuple(bytes((size,)) for size in range(128))
"""The length of a short Text, serialized."""


@dataclass(slots=True)
class PackedDocument:
    """A document's records: `url` in UTF-8, keys serialized Texts, values what the files hold.

    `is_extra` says that it was found inside another page (and has a URL of its own).
    """

    url: bytes
    text: bytes | None
    data: bytes
    crawl: list[tuple[bytes, bytes]]
    is_extra: bool = False


@dataclass(slots=True)
class PackedPage:
    """What became of a page, and the records of the documents in it."""

    outcomes: list[str]
    documents: list[PackedDocument]


ReadPage = tuple[Content, ParseResult | str]
"""A page, and what the parsers made of it or why it was passed over."""


class SegmentTask:
    """The task of a `WorkerPool` over the contents of one segment."""

    def __init__(self, conf: Configuration, segment_name: str, now: int) -> None:
        self._parser = PageParser(conf, segment_name)
        self._now = now
        self._packed: dict[tuple[float, ...], bytes] = {}
        self._packs = {folder: _packer(folder, conf) for folder in (PARSE_TEXT, PARSE_DATA, CRAWL_PARSE)}

    def run(self, item: bytes) -> ReadPage:
        """Parse a page. Content that can't be read is a loss that is counted and logged, not an error."""
        try:
            content = Content.from_bytes(item)
        except FormatError as error:
            log.error("content left out: %s", error)
            return Content(), UNREADABLE
        return content, self._parser.read(content)

    def finish(self, pages: Sequence[ReadPage]) -> list[PackedPage]:
        """The records of parsed pages, their links looked at together."""
        self._parser.prepare(result for _, result in pages)
        return [self._pack(content.url, self._parser.records(content, result, self._now)) for content, result in pages]

    def fail(self, item: bytes, reason: str) -> PackedPage:
        """The records of a page that could not be parsed."""
        content = Content.from_bytes(item)
        return self._pack(content.url, self._parser.fail(content, reason, self._now))

    def _pack(self, url: str, result: PageResult) -> PackedPage:
        documents = [self._pack_document(output, is_extra=output.url != url) for output in result.outputs]
        return PackedPage(result.outcomes, documents)

    def _pack_document(self, output: PageOutput, *, is_extra: bool) -> PackedDocument:
        crawl = [(_key(url), self._pack_datum(datum)) for url, datum in output.crawl]
        return PackedDocument(
            encode_text(output.url),
            None if output.text is None else self._packs[PARSE_TEXT](ParseText(output.text).to_bytes()),
            self._packs[PARSE_DATA](output.data.to_bytes()),
            crawl,
            is_extra,
        )

    def _pack_datum(self, datum: CrawlDatum) -> bytes:
        """A datum's value; most links of a page have equal ones, which are made once."""
        if datum.metadata or datum.signature:
            return self._packs[CRAWL_PARSE](datum.to_bytes())
        fields = (datum.status, datum.fetch_interval, datum.score, datum.fetch_time, datum.modified_time, datum.retries)
        packed = self._packed.get(fields)
        if packed is None:
            if len(self._packed) >= _REMEMBERED:
                self._packed.clear()
            packed = self._packed[fields] = self._packs[CRAWL_PARSE](datum.to_bytes())
        return packed


def _key(url: str) -> bytes:
    """The serialized Text of a URL."""
    data = encode_text(url)
    return _SHORT[len(data)] + data if len(data) < len(_SHORT) else text_key(data)


def _packer(folder: str, conf: Configuration) -> Callable[[bytes], bytes]:
    """How values of a folder are made ready: compressed, where its files are compressed by record."""
    if compression_of(folder, conf) == RECORD:
        return _compress
    return bytes


def _compress(data: bytes) -> bytes:
    """A zlib stream; the lowest level of libdeflate takes half the time of zlib's default and little more space."""
    if len(data) < _LIBDEFLATE_FROM:
        return zlib.compress(data)
    return bytes(deflate.zlib_compress(data, 1))
