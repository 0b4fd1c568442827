"""What a parse worker does with a page of a segment: serialized Content in, serialized records out.

Values are compressed here, in the worker, where the segment's files are compressed record by record; the many equal
CrawlDatum values of a page's links only once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from minutch.conf import Configuration
from minutch.errors import FormatError
from minutch.formats.compress import DEFAULT_CODEC, codec
from minutch.formats.javaio import encode_text
from minutch.formats.sequencefile import RECORD
from minutch.parse.output import PageOutput
from minutch.parse.page import PageParser, PageResult
from minutch.records.content import Content
from minutch.records.parsetext import ParseText
from minutch.segment.store import CRAWL_PARSE, PARSE_DATA, PARSE_TEXT, compression_of, text_key

log = logging.getLogger(__name__)

UNREADABLE = "unreadable_content"


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


class SegmentTask:
    """The task of a `WorkerPool` over the contents of one segment."""

    def __init__(self, conf: Configuration, segment_name: str, now: int) -> None:
        self._parser = PageParser(conf, segment_name)
        self._now = now
        self._packs = {folder: _packer(folder, conf) for folder in (PARSE_TEXT, PARSE_DATA, CRAWL_PARSE)}

    def run(self, item: bytes) -> PackedPage:
        """Parse a page. Content that can't be read is a loss that is counted and logged, not an error."""
        try:
            content = Content.from_bytes(item)
        except FormatError as error:
            log.error("content left out: %s", error)
            return PackedPage([UNREADABLE], [])
        return self._pack(content.url, self._parser.parse(content, self._now))

    def fail(self, item: bytes, reason: str) -> PackedPage:
        """The records of a page that could not be parsed."""
        content = Content.from_bytes(item)
        return self._pack(content.url, self._parser.fail(content, reason, self._now))

    def _pack(self, url: str, result: PageResult) -> PackedPage:
        documents = [self._pack_document(output, is_extra=output.url != url) for output in result.outputs]
        return PackedPage(result.outcomes, documents)

    def _pack_document(self, output: PageOutput, *, is_extra: bool) -> PackedDocument:
        pack = self._packs[CRAWL_PARSE]
        packed: dict[bytes, bytes] = {}
        crawl = []
        for url, datum in output.crawl:
            value = datum.to_bytes()
            if value not in packed:
                packed[value] = pack(value)
            crawl.append((text_key(encode_text(url)), packed[value]))
        return PackedDocument(
            encode_text(output.url),
            None if output.text is None else self._packs[PARSE_TEXT](ParseText(output.text).to_bytes()),
            self._packs[PARSE_DATA](output.data.to_bytes()),
            crawl,
            is_extra,
        )


def _packer(folder: str, conf: Configuration) -> Callable[[bytes], bytes]:
    """How values of a folder are made ready: compressed, where its files are compressed by record."""
    if compression_of(folder, conf) == RECORD:
        return codec(DEFAULT_CODEC).compress
    return bytes
