"""Writes the pages of segments to ARC files as Common Crawl did, and to WARC files as Nutch does.

Each fetch of a page is a capture. Its head is the stored one (store.http.headers), adjusted to the
body; if none was stored, a generated head says so (`X-Crawler-Head`).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from minutch.archives.captures import Capture, captures, find_segments
from minutch.conf import Configuration, Settings, made_by, prop
from minutch.cycle.segment.store import (
    CONTENT,
    CRAWL_FETCH,
    PARSE_DATA,
    PARSE_TEXT,
    Segment,
    segments_at,
)
from minutch.hadoop.formats.checksum import ChecksumWriter
from minutch.hadoop.formats.writables import Text
from minutch.job import Counters, JobContext
from minutch.records.crawldatum import (
    STATUS_FETCH_NOTMODIFIED,
    STATUS_FETCH_REDIR_PERM,
    STATUS_FETCH_REDIR_TEMP,
    STATUS_FETCH_SUCCESS,
    CrawlDatum,
)
from minutch.records.metadata import IP_ADDRESS_KEY, RESPONSE_CODE_KEY, RESPONSE_HEADERS_KEY
from minutch.records.protocol import Content
from minutch.warc.jsontext import valid
from minutch.warc.pagewriter import (
    fetch_time,
    fitted_head,
    rebuilt_head,
    write_page,
    write_parse_data,
    write_parse_text,
)
from minutch.warc.warcfile import (
    ARC_LIMIT,
    DEFAULT_LIMIT,
    NO_URI,
    ArcFiles,
    Output,
    WarcFiles,
    level_of,
    uri_of,
)
from minutch.work.tables.compression import is_compressed
from minutch.work.tables.install import mark_success
from minutch.work.tables.textparts import output_folder, require_absent

# Writes the pages of segments to ARC files, in the folders of Common Crawl.
#
#     -layout parse-output (2012)
#     <out>/segment/<time of the segment, ms>/<time of the first page, ms>_<number>.arc.gz
#
#     -layout crawl-001 (2008 to 2010)
#     <out>/<yyyy>/<MM>/<dd>/<number>/<time of the first page, ms>_<number>.arc.gz
#
# An ARC record is the response of a server, so pages without content have none. ARC records neither
# requests, nor truncation, nor milliseconds.

log = logging.getLogger(__name__)
PARSE_OUTPUT: Final = "parse-output"
CRAWL_001: Final = "crawl-001"
WRITTEN: Final = "pages written"
NO_CONTENT: Final = "pages without content"
NO_TIME: Final = "pages without a fetch time"
FILES: Final = "ARC files"
_CODE: Final = Text(RESPONSE_CODE_KEY)
_BY_STATUS: Final = {STATUS_FETCH_REDIR_PERM: 301, STATUS_FETCH_REDIR_TEMP: 302}
NO_DATUM: Final = "pages without a fetch record"
NO_SUCCESS: Final = "pages without success"
RECORDS: Final = "WARC records"
_SUCCESSFUL: Final = (STATUS_FETCH_SUCCESS, STATUS_FETCH_NOTMODIFIED)


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
                    counters.add(_write_arc(files, capture))
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


def _write_arc(files: ArcFiles, capture: Capture) -> str:
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
    head = fitted_head(content.metadata.get(RESPONSE_HEADERS_KEY) or "", len(content.content))
    block = (
        valid(head or rebuilt_head(_code(datum), content.metadata, len(content.content))).encode()
        + content.content
    )
    media_type = (content.metadata.field("Content-Type") or content.content_type).partition(";")[0]
    address = content.metadata.get(IP_ADDRESS_KEY) or ""
    files.write(target, time, block, media_type=media_type, address=address)
    return WRITTEN


def _time(content: Content, datum: CrawlDatum | None) -> int | None:
    """Time of the fetch (ms): from its record, or, for a robots.txt, from the page's metadata."""
    return fetch_time(content) if datum is None else datum.fetch_time


def _code(datum: CrawlDatum | None) -> int:
    """HTTP status of a page."""
    known = "" if datum is None else str(datum.metadata.get(_CODE, ""))
    if known.isascii() and known.isdigit() and len(known) == 3:
        return int(known)
    return _BY_STATUS.get(0 if datum is None else datum.status, 200)


# Writes the pages of segments to WARC files, as Nutch's `warc` does.
#
#     <output>/part-r-00000.seg-NNNNN.attempt-00000.warc[.gz]
#
# `warc.output.segment.size` is the size in bytes after which the next file begins; with
# `mapreduce.output.fileoutputformat.compress`, each record is a gzip member. A page in two
# segments is written twice.
#
# Different from Nutch on purpose: `WARC-IP-Address` is the address, not `IP`; truncated pages are
# marked; resource records have a type, and all records digests; characters that a URI may not
# contain are encoded, where Nutch omitted the page; of a page in several segments, Nutch wrote an
# arbitrary fetch only.
#
# Source: org.apache.nutch.tools.warc.WARCExporter.


@dataclass(frozen=True, slots=True)
class NutchWarcOptions:
    """Options of warc."""

    parse_data: bool = False
    """Write a metadata record for each parsed page."""
    parse_text: bool = False
    """Write the text of each parsed page, as a conversion record."""
    only_successful: bool = False
    """Omit pages that were neither fetched nor unchanged; the property
    warc.exporter.only.successful.responses does so, too.
    """


def _limit(conf: Configuration, name: str) -> int:
    limit = conf.get_int(name, DEFAULT_LIMIT) or DEFAULT_LIMIT
    if limit < 0:
        raise conf.wrong(name, "a number of bytes", str(limit))
    return limit


@dataclass(frozen=True, slots=True)
class _Settings(Settings):
    """The configuration of WARC files."""

    compress: bool = made_by(is_compressed)
    limit: int = prop("warc.output.segment.size", _limit)
    level: int = made_by(level_of)
    only_successful: bool = prop("warc.exporter.only.successful.responses", default=False)


def export_nutch_warc(
    segments: Sequence[Path],
    out: Path,
    options: NutchWarcOptions = NutchWarcOptions(),
    *,
    context: JobContext,
) -> Counters:
    """Writes the pages of `segments` to WARC files in the new folder `out`.

    Raises StoreError if `out` exists or a segment lacks a folder, FormatError for damage.
    """
    opened = segments_at(segments)
    settings = _Settings.from_conf(context.conf)
    only_successful = options.only_successful or settings.only_successful
    folders = [CONTENT, CRAWL_FETCH]
    folders += [PARSE_DATA] * options.parse_data + [PARSE_TEXT] * options.parse_text
    require_absent(out)
    for segment in opened:
        for folder in folders:
            segment.parts(folder)
    counters = Counters(dict.fromkeys((WRITTEN, NO_CONTENT, NO_DATUM, NO_SUCCESS, NO_URI), 0))
    with output_folder(out) as work, context.progress("warc", unit="pages") as progress:

        def open_file(number: int) -> tuple[str, Output]:
            suffix = ".warc.gz" if settings.compress else ".warc"
            name = f"part-r-00000.seg-{number:05}.attempt-00000{suffix}"
            return name, ChecksumWriter(work / name)

        with WarcFiles(
            open_file, compress=settings.compress, limit=settings.limit, level=settings.level
        ) as files:
            for segment in opened:
                log.info("warc-exporter: adding segment: %s", segment.path)
            for capture in captures(opened, folders):
                counters.add(_write_warc(files, capture, only_successful))
                progress.advance()
            counters.add(RECORDS, files.records)
        mark_success(context.conf, work)
    return counters


def _write_warc(files: WarcFiles, capture: Capture, only_successful: bool) -> str:
    """Writes the records of a capture; returns the name of the counter."""
    content, datum = capture.content, capture.datum
    if content is None:
        log.debug("Missing content for %s", capture.url)
        return NO_CONTENT
    if datum is None:
        log.debug("Missing fetch datum for %s", capture.url)
        return NO_DATUM
    if only_successful and datum.status not in _SUCCESSFUL:
        return NO_SUCCESS
    target = uri_of(capture.url)
    if target is None:
        return NO_URI
    time = datum.fetch_time
    files.begin_page()
    page = write_page(
        files, time, target, content, can_be_cut_off=datum.status == STATUS_FETCH_SUCCESS
    )
    if capture.parse_data is not None:
        write_parse_data(files, time, target, capture.parse_data, page)
    if capture.parse_text is not None:
        write_parse_text(files, time, target, capture.parse_text, page, end="\r\n")
    return WRITTEN
