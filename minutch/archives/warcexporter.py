"""Writes the pages of segments to WARC files, as Nutch's `warc` does.

    <output>/part-r-00000.seg-NNNNN.attempt-00000.warc[.gz]

`warc.output.segment.size` is the size in bytes after which the next file begins; with
`mapreduce.output.fileoutputformat.compress`, each record is a gzip member. Each fetch of a page is
a capture: a page in two segments is written twice.

Different from Nutch on purpose: `WARC-IP-Address` is the address, not `IP`; truncated pages are
marked; resource records have a type, and all records digests; characters that a URI may not contain
are encoded, where Nutch omitted the page; of a page in several segments, Nutch wrote an arbitrary
fetch only.

Source: org.apache.nutch.tools.warc.WARCExporter.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from minutch.archives.captures import Capture, captures
from minutch.conf import Configuration
from minutch.cycle.segment.store import CONTENT, CRAWL_FETCH, PARSE_DATA, PARSE_TEXT, segments_at
from minutch.errors import ConfigError
from minutch.hadoop.formats.checksum import ChecksumWriter
from minutch.job import Counters, JobContext
from minutch.records.crawldatum import STATUS_FETCH_NOTMODIFIED, STATUS_FETCH_SUCCESS
from minutch.warc.pagewriter import write_page, write_parse_data, write_parse_text
from minutch.warc.warcfile import DEFAULT_LIMIT, NO_URI, Output, WarcFiles, level_of, uri_of
from minutch.work.tables.compression import is_compressed
from minutch.work.tables.install import mark_success
from minutch.work.tables.textparts import output_folder, require_absent

log = logging.getLogger(__name__)
SIZE_PROPERTY: Final = "warc.output.segment.size"
ONLY_SUCCESSFUL_PROPERTY: Final = "warc.exporter.only.successful.responses"
WRITTEN: Final = "pages written"
NO_CONTENT: Final = "pages without content"
NO_DATUM: Final = "pages without a fetch record"
NO_SUCCESS: Final = "pages without success"
RECORDS: Final = "WARC records"
_SUCCESSFUL: Final = (STATUS_FETCH_SUCCESS, STATUS_FETCH_NOTMODIFIED)


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


@dataclass(frozen=True, slots=True)
class _Settings:
    """The configuration of WARC files."""

    compress: bool
    limit: int
    level: int
    only_successful: bool

    @classmethod
    def from_conf(cls, conf: Configuration) -> _Settings:
        """Reads the configuration. Raises ConfigError for a negative size."""
        limit = conf.get_int(SIZE_PROPERTY, DEFAULT_LIMIT) or DEFAULT_LIMIT
        if limit < 0:
            raise ConfigError(f"{SIZE_PROPERTY}: expected a number of bytes, found {limit}")
        only_successful = conf.get_boolean(ONLY_SUCCESSFUL_PROPERTY, False)
        return cls(is_compressed(conf), limit, level_of(conf), only_successful)


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
                counters.add(_write(files, capture, only_successful))
                progress.advance()
            counters.add(RECORDS, files.records)
        mark_success(context.conf, work)
    return counters


def _write(files: WarcFiles, capture: Capture, only_successful: bool) -> str:
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
