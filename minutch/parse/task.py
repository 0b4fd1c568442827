"""What a parse worker does with a page: bytes in, the packed records of its documents out.

`ParseTask` is the whole of it; the parse job (`SegmentTask`) and the fetcher (minutch.fetch.parsetask) say how they
hand pages over and what else they want to know.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

from minutch.conf import Configuration
from minutch.errors import FormatError
from minutch.formats.compress import codec
from minutch.parse.dispatch import failed_result
from minutch.parse.packing import DocumentPacker, PackedDocument
from minutch.parse.page import PageParser, PageResult, ReadPage
from minutch.records.content import Content

log = logging.getLogger(__name__)

UNREADABLE = "unreadable_content"

R = TypeVar("R")


class PackedPage(NamedTuple):
    """What became of a page, and the records of the documents in it; `damage` to its file is an error."""

    outcomes: list[str]
    documents: list[PackedDocument]
    damage: str = ""


class ParseTask(Generic[R]):
    """The task of a `WorkerPool` over pages; R is what the parent gets of each."""

    answers: Sequence[type] = ()

    def __init__(self, parser: PageParser, packer: DocumentPacker) -> None:
        self._parser = parser
        self._packer = packer

    @abstractmethod
    def _page(self, item: bytes) -> ReadPage:
        """The page in an item, not parsed yet unless nothing is to be parsed. Raises FormatError for damage."""

    @abstractmethod
    def _packed(self, page: ReadPage, result: PageResult) -> R:
        """What the parent gets of a page."""

    @abstractmethod
    def _damaged(self, error: FormatError) -> R:
        """What the parent gets of an item that is no page."""

    def run(self, item: bytes) -> ReadPage | FormatError:
        """Parse a page."""
        try:
            page = self._page(item)
        except FormatError as error:
            return error
        return page if page.result else page._replace(result=self._parser.read(page.content))

    def finish(self, pages: Sequence[ReadPage | FormatError]) -> list[R]:
        """The records of parsed pages; the links of all of them are filtered together."""
        whole = [page for page in pages if isinstance(page, ReadPage)]
        try:
            results = iter(self._parser.finish(whole))
        except Exception as error:
            log.debug("pages are finished one by one: %s", error)
            results = iter([self._finish(page) for page in whole])
        return [
            self._packed(page, next(results)) if isinstance(page, ReadPage) else self._damaged(page) for page in pages
        ]

    def fail(self, item: bytes, reason: str) -> R:
        """The records of a page whose parser hangs, dies or takes too much memory."""
        try:
            page = self._page(item)
        except FormatError as error:
            return self._damaged(error)
        return self._packed(page, self._fail(page, reason))

    def _finish(self, page: ReadPage) -> PageResult:
        try:
            return self._parser.finish([page])[0]
        except Exception as error:
            log.warning("%s: no records of its parse: %s", page.content.url, error)
            return self._fail(page, f"{type(error).__name__}: {error}")

    def _fail(self, page: ReadPage, reason: str) -> PageResult:
        skipped = page.result or self._parser.reason_to_skip(page.content)
        result = skipped if isinstance(skipped, str) and skipped else failed_result(page.content.url, reason)
        return self._parser.finish([page._replace(result=result)])[0]

    def _documents(self, page: ReadPage, result: PageResult) -> list[PackedDocument]:
        """The packed records of a page's documents."""
        url = page.content.url
        return [self._packer.pack(output, is_extra=output.url != url) for output in result.outputs]


class SegmentTask(ParseTask[PackedPage]):
    """The task of the parse job: its items are values of `content` as the files hold them."""

    answers = (PackedPage, PackedDocument)

    def __init__(self, conf: Configuration, segment_name: str, now: int, *, compression: str | None = None) -> None:
        """`compression` is the codec by which each item is compressed; `now` (ms) is the time that records carry."""
        super().__init__(PageParser(conf, segment_name), DocumentPacker.for_segment(conf))
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

    def _packed(self, page: ReadPage, result: PageResult) -> PackedPage:
        return PackedPage(result.outcomes, self._documents(page, result))

    def _damaged(self, error: FormatError) -> PackedPage:
        return PackedPage([], [], str(error))
