"""export arc: the pages of segments as ARC files, where Common Crawl put them.

    <out>/segment/<segment's time, ms>/<first page's time, ms>_<number>.arc.gz     -layout
    parse-output (2012)
    <out>/<yyyy>/<MM>/<dd>/<number>/<first page's time, ms>_<number>.arc.gz        -layout crawl-001
    (2008 to 2010)

An ARC record has the answer of the server, so pages without content have none. The head is as it
was stored (store.http.headers), fitted to the body; where none was stored, one is made and says so
(`X-Crawler-Head`). ARC keeps neither requests, nor that a page is cut off, nor milliseconds.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from minutch.archives.captures import Capture, captures
from minutch.cycle.segment.store import CONTENT, CRAWL_FETCH, Segment
from minutch.hadoop.formats.writables import Text
from minutch.job import Counters, JobContext
from minutch.records.content import Content
from minutch.records.crawldatum import STATUS_FETCH_REDIR_PERM, STATUS_FETCH_REDIR_TEMP, CrawlDatum
from minutch.records.metadata import IP_ADDRESS_KEY, RESPONSE_CODE_KEY, RESPONSE_HEADERS_KEY
from minutch.warc.arcfile import DEFAULT_LIMIT, ArcFiles
from minutch.warc.httpheaders import fitted_head, rebuilt_head
from minutch.warc.jsontext import valid
from minutch.warc.pagetimes import fetch_time
from minutch.warc.targeturi import NO_URI, uri_of
from minutch.warc.warcfile import Output
from minutch.work.tables.success import mark_success
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


def export(
    segments: Sequence[Segment],
    out: Path,
    context: JobContext,
    *,
    layout: str = PARSE_OUTPUT,
    size: int = DEFAULT_LIMIT,
) -> Counters:
    """Write the pages of `segments` to ARC files in the new directory `out`. StoreError if it
    exists already.
    """
    require_absent(out)
    counters = Counters(dict.fromkeys((WRITTEN, NO_CONTENT, NO_TIME, NO_URI, FILES), 0))
    with output_folder(out) as work, context.progress("arc", unit="pages") as progress:
        for segment in segments:
            log.info("arc: adding segment: %s", segment.path)
            place = _SegmentFiles(work, layout, segment, counters)
            with ArcFiles(place.open_file, limit=size) as files:
                for capture in captures([segment], [CONTENT], if_there=[CRAWL_FETCH]):
                    counters.add(_write(files, capture))
                    progress.advance()
        mark_success(context.conf, work)
    return counters


class _SegmentFiles:
    """Where the files of a segment go."""

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
    """A segment's name (yyyyMMddHHmmss, local time) as a time in ms; for other names, `time`."""
    try:
        return int(datetime.strptime(name[:14], "%Y%m%d%H%M%S").timestamp() * 1000)
    except ValueError:
        return time


def _write(files: ArcFiles, capture: Capture) -> str:
    """The record of a page; returns what is counted."""
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
    media_type = (content.metadata.first("Content-Type") or content.content_type).partition(";")[0]
    address = content.metadata.first(IP_ADDRESS_KEY) or ""
    files.write(target, time, block, media_type=media_type, address=address)
    return WRITTEN


def _time(content: Content, datum: CrawlDatum | None) -> int | None:
    """When the page was fetched, in ms; of a robots.txt, which has no record of a fetch, as its
    metadata says.
    """
    return fetch_time(content) if datum is None else datum.fetch_time


def _code(datum: CrawlDatum | None) -> int:
    """The HTTP status of a page that was kept."""
    known = "" if datum is None else str(datum.metadata.get(_CODE, ""))
    if known.isascii() and known.isdigit() and len(known) == 3:
        return int(known)
    return _BY_STATUS.get(0 if datum is None else datum.status, 200)
