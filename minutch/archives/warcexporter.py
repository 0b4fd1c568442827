"""warc: the pages of segments as WARC files (org.apache.nutch.tools.warc.WARCExporter).

    <output>/part-r-00000.seg-NNNNN.attempt-00000.warc[.gz]

`warc.output.segment.size` says after how many bytes the next file begins; with
`mapreduce.output.fileoutputformat .compress` each record is a gzip member. Each fetch of a page is
a capture: a page of two segments is written twice.

Different from Nutch on purpose: `WARC-IP-Address` is the address, not `IP`; cut-off pages are
marked; resource records have a type, and all records digests; what no URI may hold is encoded,
where Nutch left the page out; of a page in several segments Nutch wrote one fetch, by chance.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from minutch.archives.captures import Capture, captures
from minutch.conf import Configuration
from minutch.cycle.segment.store import Segment
from minutch.errors import ConfigError
from minutch.hadoop.formats.checksum import ChecksumWriter
from minutch.job import Counters, JobContext
from minutch.records.crawldatum import STATUS_FETCH_NOTMODIFIED, STATUS_FETCH_SUCCESS
from minutch.warc.pagewriter import write_page, write_parse_data, write_parse_text
from minutch.warc.targeturi import NO_URI, uri_of
from minutch.warc.warcfile import DEFAULT_LIMIT, Output, WarcFiles, level_of
from minutch.work.tables.compression import is_compressed
from minutch.work.tables.success import mark_success
from minutch.work.tables.textparts import output_folder, require_absent

log = logging.getLogger(__name__)
SIZE_PROPERTY: Final = "warc.output.segment.size"
WRITTEN: Final = "pages written"
NO_CONTENT: Final = "pages without content"
NO_DATUM: Final = "pages without a fetch record"
NO_SUCCESS: Final = "pages without success"
RECORDS: Final = "WARC records"
_SUCCESSFUL: Final = (STATUS_FETCH_SUCCESS, STATUS_FETCH_NOTMODIFIED)


def export(
    segments: Sequence[Segment],
    out: Path,
    folders: Sequence[str],
    context: JobContext,
    *,
    only_successful: bool = False,
) -> Counters:
    """Write what `folders` of `segments` hold to WARC files in the new directory `out`.

    StoreError if `out` exists or a segment lacks a folder, FormatError for damage.
    """
    require_absent(out)
    compress = is_compressed(context.conf)
    limit = _limit(context.conf)
    for segment in segments:
        for folder in folders:
            segment.parts(folder)
    counters = Counters(dict.fromkeys((WRITTEN, NO_CONTENT, NO_DATUM, NO_SUCCESS, NO_URI), 0))
    with output_folder(out) as work, context.progress("warc", unit="pages") as progress:

        def open_file(number: int) -> tuple[str, Output]:
            name = f"part-r-00000.seg-{number:05}.attempt-00000.warc{'.gz' if compress else ''}"
            return name, ChecksumWriter(work / name)

        with WarcFiles(
            open_file, compress=compress, limit=limit, level=level_of(context.conf)
        ) as files:
            for segment in segments:
                log.info("warc-exporter: adding segment: %s", segment.path)
            for capture in captures(segments, folders):
                counters.add(_write(files, capture, only_successful))
                progress.advance()
            counters.add(RECORDS, files.records)
        mark_success(context.conf, work)
    return counters


def _limit(conf: Configuration) -> int:
    limit = conf.get_int(SIZE_PROPERTY, DEFAULT_LIMIT) or DEFAULT_LIMIT
    if limit < 0:
        raise ConfigError(f"{SIZE_PROPERTY}: expected a number of bytes, found {limit}")
    return limit


def _write(files: WarcFiles, capture: Capture, only_successful: bool) -> str:
    """The records of a capture; returns what is counted."""
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
