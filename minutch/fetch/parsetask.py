"""The task of a fetch's parse workers: pages that were just fetched in, their records for the fetch log out.

    item = long fetch time (ms), serialized Content

Source: the parsing half of org.apache.nutch.fetcher.FetcherThread.output.
"""

from __future__ import annotations

import struct
from typing import Final

from minutch.conf import Configuration
from minutch.errors import FormatError
from minutch.fetch.closing import stored_compression
from minutch.fetch.recorder import ParsedPage
from minutch.parse.output import PageOutput
from minutch.parse.packing import DocumentPacker, PackedDocument
from minutch.parse.page import PageParser, PageResult, ReadPage
from minutch.parse.task import ParseTask
from minutch.plugin.points import ParseResult
from minutch.records.content import Content
from minutch.records.crawldatum import STATUS_FETCH_SUCCESS
from minutch.records.metadata import FETCH_STATUS_KEY
from minutch.records.parsestatus import ParseStatus

_HEAD: Final = struct.Struct(">q")


def pack_page(content: Content, fetch_time: int) -> bytes:
    """A page as it goes to a worker."""
    return _HEAD.pack(fetch_time) + content.to_bytes()


class FetchTask(ParseTask[ParsedPage]):
    """Parses pages that were fetched with success."""

    answers = (ParsedPage, PackedDocument, ParseStatus)

    def __init__(self, conf: Configuration, segment_name: str, *, links: bool, events: bool) -> None:
        """`links` and `events`: the fetcher wants to know the outlinks, and the data of REPORT events."""
        parser = PageParser(conf, segment_name, fetching=True)
        super().__init__(parser, DocumentPacker.compressing(stored_compression(conf)))
        self._links = links
        self._events = events

    def run(self, item: bytes) -> ReadPage | FormatError:
        """Parse a page. Its fetch status is added afterwards: most parsers hand the page's own metadata on."""
        page = super().run(item)
        if isinstance(page, ReadPage) and isinstance(page.result, ParseResult):
            page.content.metadata.add(FETCH_STATUS_KEY, str(STATUS_FETCH_SUCCESS))
        return page

    def _page(self, item: bytes) -> ReadPage:
        return ReadPage(Content.from_bytes(item[_HEAD.size :]), *_HEAD.unpack_from(item))

    def _packed(self, page: ReadPage, result: PageResult) -> ParsedPage:
        content = page.content
        parsed = ParsedPage(self._documents(page, result))
        if isinstance(page.result, str) and not result.outputs:
            parsed.signature = self._parser.signature_of(content)
        parsed.failed = self._is_given_up(page, result)
        for output in result.outputs:
            if self._links:
                parsed.outlinks.append((output.url, [link.to_url for link in output.data.outlinks]))
            if self._events:
                parsed.events.append((output.url, _event(output, page.time)))
            if output.url == content.url:
                parsed.status = output.data.status
        return parsed

    def _is_given_up(self, page: ReadPage, result: PageResult) -> bool:
        succeeded = isinstance(page.result, ParseResult) and page.result.is_success
        return self._parser.deletes_failed and not succeeded and not result.outputs

    def _damaged(self, error: FormatError) -> ParsedPage:
        raise error  # the fetcher itself has just serialized the page


def _event(output: PageOutput, fetch_time: int) -> dict[str, object]:
    """The data of a REPORT event (org.apache.nutch.fetcher.FetcherThreadEvent); the fetcher adds the score."""
    data = output.data
    return {
        "outlinks": [{"url": link.to_url, "anchor": link.anchor} for link in data.outlinks],
        "title": data.title,
        "content-type": data.content_meta.first("content-type"),
        "fetchTime": fetch_time,
        "content-language": data.content_meta.first("content-language"),
    }
