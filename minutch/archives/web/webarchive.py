"""A crawl as a web archive: the captures of segments as records of WARC files, and what is made
beside them.

    <prefix>-NNNNN.warc.gz     for each capture: response or revisit, request, metadata, conversion

Captures of one URL stand together, in the order of their segments: so what a revisit refers to
stands before it, and memory does not grow with the crawl. A page that lies in two segments with the
same time and the same bytes (mergesegs has made one of them of the other) is one capture. The files
depend on segments and configuration alone: whoever makes something beside them (`beside`) may leave
them out, and describes the same files nevertheless.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from minutch.archives.captures import Capture, captures
from minutch.archives.web.languagecodes import three_letters
from minutch.cycle.segment.store import CONTENT, CRAWL_FETCH, PARSE_DATA, PARSE_TEXT, Segment
from minutch.hadoop.formats.writables import Text
from minutch.job import Counters, Progress
from minutch.records import crawldatum as status
from minutch.records.content import Content
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import RESPONSE_CODE_KEY
from minutch.warc.pagetimes import fetch_time
from minutch.warc.pagewriter import (
    IDENTICAL,
    NOT_MODIFIED,
    Original,
    write_fetch_data,
    write_page,
    write_parse_text,
    write_request,
    write_revisit,
)
from minutch.warc.targeturi import NO_URI, uri_of
from minutch.warc.warcfile import (
    DEFAULT_LIMIT,
    SHA1,
    V1_1,
    Output,
    WarcFiles,
    WrittenRecord,
)

log = logging.getLogger(__name__)

PAGES: Final = "pages written"
UNCHANGED: Final = "revisits: not modified"
SAME: Final = "revisits: same content"
TWICE: Final = "pages written before"
NO_CONTENT: Final = "URLs without content"
RECORDS: Final = "WARC records"

_LANGUAGE: Final = "lang"
"""Where language-identifier notes its finding."""
_BY_STATUS: Final = {status.STATUS_FETCH_REDIR_PERM: 301, status.STATUS_FETCH_REDIR_TEMP: 302}
_OK: Final = 200
_CODE: Final = Text(RESPONSE_CODE_KEY)


@dataclass(frozen=True, slots=True)
class ArchiveSpec:
    """What is archived, and in what form."""

    segments: Sequence[Segment]
    prefix: str
    limit: int = DEFAULT_LIMIT
    digest: str = SHA1
    time: int = 0
    """When the files were made, by their own account (ms): when the last segment was."""
    level: int = 0
    """Compression level of ISA-L, 0 to 3."""
    crawler: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Fields of the warcinfo record, by WARC version."""


def time_of(segment: Segment) -> int:
    """When a segment was made, by its name; else when its fetch was written."""
    with suppress(ValueError, OverflowError):
        return int(datetime.strptime(segment.name[:14], "%Y%m%d%H%M%S").timestamp()) * 1000
    return int((segment.path / CONTENT).stat().st_mtime) * 1000


class ArchiveListener:
    """What is made of the records beside the files that they are in."""

    def begin(self, name: str) -> None:
        """A file begins."""

    def record(self, record: WrittenRecord) -> None:
        """A record was written."""

    def capture(self, capture: Capture, target: str, time: int) -> None:
        """The records of a capture, a whole page with a head or without one, follow."""


class DiscardedOutput:
    """A file that nobody wants: only where things would be in it is of interest."""

    def write(self, data: bytes, /) -> None:
        """Forget."""

    def close(self) -> None:
        """Nothing to close."""


def write_archive(
    spec: ArchiveSpec,
    open_file: Callable[[str], Output],
    listeners: Sequence[ArchiveListener],
    progress: Progress,
) -> Counters:
    """Writes the segments' captures into files that `open_file` opens by their names."""
    counters = Counters(dict.fromkeys((PAGES, UNCHANGED, SAME, TWICE, NO_CONTENT, NO_URI), 0))
    info = spec.crawler[V1_1]

    def opened(number: int) -> tuple[str, Output]:
        name = f"{spec.prefix}-{number:05}.warc.gz"
        file = open_file(name)
        for each in listeners:
            each.begin(name)
        return name, file

    def written(record: WrittenRecord) -> None:
        for each in listeners:
            each.record(record)

    files = WarcFiles(
        opened,
        compress=True,
        limit=spec.limit,
        version=V1_1,
        info=lambda: (spec.time, info),
        digest=spec.digest,
        written=written if listeners else None,
        level=spec.level,
    )
    with files:
        writer = CaptureWriter(files, listeners)
        for capture in captures(
            spec.segments, [CONTENT], if_there=[CRAWL_FETCH, PARSE_DATA, PARSE_TEXT]
        ):
            counters.add(writer.write(capture))
            progress.advance()
        counters.add(RECORDS, files.records)
    return counters


@dataclass
class CaptureWriter:
    """Makes records of captures, those of one URL one after the other."""

    files: WarcFiles
    listeners: Sequence[ArchiveListener] = ()
    _url: str = ""
    _seen: set[tuple[int, str]] = field(default_factory=set)
    """Times and digests of the captures of the URL."""
    _original: Original | None = None
    """The last whole page of the URL."""

    def write(self, capture: Capture) -> str:
        """The records of a capture; returns what is counted."""
        if capture.url != self._url:
            self._url, self._original = capture.url, None
            self._seen.clear()
        content, datum = capture.content, capture.datum
        unchanged = datum is not None and datum.status == status.STATUS_FETCH_NOTMODIFIED
        time = _time_of(capture)
        if time is None or (content is None and not unchanged):
            return NO_CONTENT
        target = uri_of(capture.url)
        if target is None:
            return NO_URI
        digest = "" if content is None or unchanged else self.files.digest(content.content)
        if (time, digest) in self._seen:
            return TWICE
        self._seen.add((time, digest))
        self.files.begin_page()
        if unchanged:
            self._revisit(capture, target, time, content or Content(), NOT_MODIFIED)
            return UNCHANGED
        assert content is not None
        before = self._original
        if (
            before is not None
            and digest == before.digest
            and before.time <= time
            and content.content
        ):
            self._revisit(capture, target, time, content, IDENTICAL)
            return SAME
        self._page(capture, target, time, content, digest)
        return PAGES

    def _revisit(
        self, capture: Capture, target: str, time: int, content: Content, profile: str
    ) -> None:
        before = (
            self._original if self._original is not None and self._original.time <= time else None
        )
        code = _code(capture, target)
        page = write_revisit(
            self.files, time, target, content, before, profile=profile, code=code, version=V1_1
        )
        write_request(self.files, time, target, content, page)
        answer = content if profile == NOT_MODIFIED else None
        write_fetch_data(self.files, time, target, capture.datum, None, page, answer=answer)

    def _page(
        self, capture: Capture, target: str, time: int, content: Content, digest: str
    ) -> None:
        for each in self.listeners:
            each.capture(capture, target, time)
        page = write_page(
            self.files, time, target, content, code=_code(capture, target), digest=digest
        )
        self._original = Original(time, digest, page)
        write_request(self.files, time, target, content, page)
        write_fetch_data(self.files, time, target, capture.datum, capture.parse_data, page)
        if capture.parse_text is not None:
            language = (
                None
                if capture.parse_data is None
                else three_letters(capture.parse_data.meta(_LANGUAGE))
            )
            write_parse_text(self.files, time, target, capture.parse_text, page, language=language)


def _time_of(capture: Capture) -> int | None:
    """When a URL was fetched: by its record, or, a robots.txt that has none, by the page's
    metadata.
    """
    if capture.datum is not None:
        return capture.datum.fetch_time
    return None if capture.content is None else fetch_time(capture.content)


def _code(capture: Capture, target: str) -> int | None:
    """The HTTP status of a page that was kept; None for what did not come by HTTP."""
    if not target.startswith(("http:", "https:")):
        return None
    datum = capture.datum or CrawlDatum()
    text = str(datum.metadata.get(_CODE, ""))
    if len(text) == 3 and text.isascii() and text.isdigit():
        return int(text)
    return _BY_STATUS.get(datum.status, _OK)
