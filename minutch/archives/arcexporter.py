"""Writes the pages of segments to ARC files, in the folders of Common Crawl.

    -layout parse-output (2012)
    <out>/segment/<time of the segment, ms>/<time of the first page, ms>_<number>.arc.gz

    -layout crawl-001 (2008 to 2010)
    <out>/<yyyy>/<MM>/<dd>/<number>/<time of the first page, ms>_<number>.arc.gz

An ARC record is the response of a server, so pages without content have none. Its head is the
stored one (store.http.headers), adjusted to the body; if none was stored, a generated head says so
(`X-Crawler-Head`). ARC records neither requests, nor truncation, nor milliseconds.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from minutch.archives.captures import Capture, captures, find_segments
from minutch.cycle.segment.store import CONTENT, CRAWL_FETCH, Segment
from minutch.hadoop.formats.writables import Text
from minutch.job import Counters, JobContext
from minutch.records.crawldatum import STATUS_FETCH_REDIR_PERM, STATUS_FETCH_REDIR_TEMP, CrawlDatum
from minutch.records.metadata import IP_ADDRESS_KEY, RESPONSE_CODE_KEY, RESPONSE_HEADERS_KEY
from minutch.records.protocol import Content
from minutch.warc.jsontext import valid
from minutch.warc.pagewriter import fetch_time, fitted_head, rebuilt_head
from minutch.warc.warcfile import ARC_LIMIT, NO_URI, ArcFiles, Output, uri_of
from minutch.work.tables.install import mark_success
from minutch.work.tables.textparts import output_folder, require_absent

log = logging.getLogger(__name__)
PARSE_OUTPUT: Final = "parse-output"
CRAWL_001: Final = "crawl-001"
WRITTEN: Final = "pages written"
NO_CONTENT: Final = "pages without content"
NO_TIME: Final = "pages without a fetch time"
FILES: Final = "ARC files"
_CODE: Final = Text(RESPONSE_CODE_KEY)
_BY_STATUS: Final = {STATUS_FETCH_REDIR_PERM: 301, STATUS_FETCH_REDIR_TEMP: 302}


@dataclass(frozen=True, slots=True)
class ArcExportOptions:
    """Options of export arc."""

    layout: str = PARSE_OUTPUT
    """Layout of folders: PARSE_OUTPUT or CRAWL_001."""
    limit: int = ARC_LIMIT
    """Size in bytes after which the next file begins."""


def export_arc(
    paths: Sequence[Path],
    out: Path,
    options: ArcExportOptions = ArcExportOptions(),
    *,
    context: JobContext,
) -> Counters:
    """Writes the pages of the segments at `paths` to ARC files in the new folder `out`.

    Raises StoreError if there are no segments or `out` exists, FormatError for damage.
    """
    segments = find_segments(paths)
    require_absent(out)
    counters = Counters(dict.fromkeys((WRITTEN, NO_CONTENT, NO_TIME, NO_URI, FILES), 0))
    with output_folder(out) as work, context.progress("arc", unit="pages") as progress:
        for segment in segments:
            log.info("arc: adding segment: %s", segment.path)
            folder = _SegmentFolder(work, options.layout, segment, counters)
            with ArcFiles(folder.open_file, limit=options.limit) as files:
                for capture in captures([segment], [CONTENT], if_there=[CRAWL_FETCH]):
                    counters.add(_write(files, capture))
                    progress.advance()
        mark_success(context.conf, work)
    return counters


class _SegmentFolder:
    """The output folder of a segment."""

    def __init__(self, work: Path, layout: str, segment: Segment, counters: Counters) -> None:
        self._work, self._layout, self._segment, self._counters = work, layout, segment, counters

    def open_file(self, number: int, time: int) -> tuple[str, Output]:
        folder = self._work / self._folder(number, time)
        folder.mkdir(parents=True, exist_ok=True)
        while (folder / (name := f"{time}_{number}.arc.gz")).exists():
            number += 1  # slices of one segment share a folder
        self._counters.add(FILES)
        return name, (folder / name).open("xb")

    def _folder(self, number: int, time: int) -> str:
        if self._layout == CRAWL_001:
            return f"{datetime.fromtimestamp(time / 1000, UTC):%Y/%m/%d}/{number}"
        return f"segment/{_segment_millis(self._segment.name, time)}"


def _segment_millis(name: str, time: int) -> int:
    """Converts a segment's name (yyyyMMddHHmmss, local time) to ms; returns `time` for others."""
    try:
        return int(datetime.strptime(name[:14], "%Y%m%d%H%M%S").timestamp() * 1000)
    except ValueError:
        return time


def _write(files: ArcFiles, capture: Capture) -> str:
    """Writes the record of a page; returns the name of the counter."""
    content, datum = capture.content, capture.datum
    if content is None:
        return NO_CONTENT
    time = _time(content, datum)
    if time is None:
        return NO_TIME
    target = uri_of(capture.url)
    if target is None:
        return NO_URI
    head = fitted_head(content.metadata.first(RESPONSE_HEADERS_KEY) or "", len(content.content))
    block = (
        valid(head or rebuilt_head(_code(datum), content.metadata, len(content.content))).encode()
        + content.content
    )
    media_type = (content.metadata.field("Content-Type") or content.content_type).partition(";")[0]
    address = content.metadata.first(IP_ADDRESS_KEY) or ""
    files.write(target, time, block, media_type=media_type, address=address)
    return WRITTEN


def _time(content: Content, datum: CrawlDatum | None) -> int | None:
    """Time of the fetch (ms): from its record, or, for a robots.txt without one, from the page's
    metadata.
    """
    return fetch_time(content) if datum is None else datum.fetch_time


def _code(datum: CrawlDatum | None) -> int:
    """HTTP status of a page."""
    known = "" if datum is None else str(datum.metadata.get(_CODE, ""))
    if known.isascii() and known.isdigit() and len(known) == 3:
        return int(known)
    return _BY_STATUS.get(0 if datum is None else datum.status, 200)
