"""Writes segments in the formats of Nutch 0.4 and 0.5.

    <out>/<segment>/    0.5: fetchlist, fetcher (fetcher_output if not parsed), content,
                             parse_text, parse_data
                        0.4: fetchlist, fetcher, fetcher_content, fetcher_text

Pages are in the order of their URLs. Redirects and URLs that were not requested are omitted, and
counted: the old formats can't express them. As in Nutch, strings end after 21,845 characters.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from minutch.archives.captures import Capture, captures, given_segments
from minutch.archives.legacy.oldsegment import CLASSES, FETCHER, FETCHLIST, UNPARSED
from minutch.archives.legacy.translation import (
    fetch_list_entry,
    fetcher_output,
    old_content,
    old_parse_data,
)
from minutch.cycle.segment.store import (
    CONTENT,
    CRAWL_FETCH,
    CRAWL_GENERATE,
    PARSE_DATA,
    PARSE_TEXT,
    Segment,
)
from minutch.errors import StoreError
from minutch.hadoop.formats.arrayfile import OldArrayFileWriter
from minutch.hadoop.formats.writables import Writable
from minutch.job import Counters, JobContext, Progress
from minutch.records.crawldatum import CrawlDatum
from minutch.records.legacy import FetcherContent, FetcherText, ParseText
from minutch.records.legacyfetch import WITH_PARSE, WITHOUT_PARSE
from minutch.work.tables.textparts import output_folder, require_absent

log = logging.getLogger(__name__)
SEGMENTS: Final = "segments"
LISTED: Final = "entries of fetch lists"
WRITTEN: Final = "pages written"
NOT_EXPRESSIBLE: Final = "pages omitted: redirects, and URLs not requested"
NOT_FETCHED: Final = "entries of fetch lists without a fetch"

_OLD_FOLDERS: Final = {
    "0.4": (FETCHER, "fetcher_content", "fetcher_text"),
    "0.5": (FETCHER, "content", "parse_text", "parse_data"),
}
_FETCHED_FOLDERS: Final = (CRAWL_FETCH, CONTENT, PARSE_DATA, PARSE_TEXT)


@dataclass(frozen=True, slots=True)
class LegacyExportOptions:
    """Options of export legacy."""

    version: str = "0.5"
    """Version of Nutch: `0.4` or `0.5`."""


def export_legacy(
    paths: Sequence[Path],
    out: Path,
    options: LegacyExportOptions = LegacyExportOptions(),
    *,
    context: JobContext,
) -> Counters:
    """Writes the segments at `paths` in the format of Nutch 0.4 or 0.5 to the new folder `out`.

    Raises StoreError (no segments, two of the same name, `out` exists), FormatError (damage).
    """
    segments, version = given_segments(paths), options.version
    if len({segment.name for segment in segments}) < len(segments):
        raise StoreError("segments of the same name")
    require_absent(out)
    for segment in segments:
        segment.check()
        if not segment.has(CRAWL_GENERATE) and not segment.has(CRAWL_FETCH):
            raise StoreError(
                f"{segment.path} is no segment: it has neither {CRAWL_GENERATE} nor {CRAWL_FETCH}"
            )
    counters = Counters()
    with output_folder(out) as work, context.progress("export", unit="pages") as progress:
        for segment in segments:
            log.info("Export: %s", segment.path)
            if segment.has(CRAWL_GENERATE):
                _write_list(segment, work / segment.name, counters)
            if segment.has(CRAWL_FETCH):
                _write_fetched(segment, work / segment.name, version, counters, progress)
            counters.add(SEGMENTS, 1)
    return counters


def _write_list(segment: Segment, out: Path, counters: Counters) -> None:
    with OldArrayFileWriter(out / FETCHLIST, CLASSES[FETCHLIST].class_name) as writer:
        for url, datum in segment.records(CRAWL_GENERATE):
            if isinstance(datum, CrawlDatum):
                writer.append_value(fetch_list_entry(url, datum).to_bytes())
                counters.add(LISTED, 1)


def _write_fetched(
    segment: Segment, out: Path, version: str, counters: Counters, progress: Progress
) -> None:
    is_parsed = segment.has(PARSE_DATA)
    names = _OLD_FOLDERS[version] if is_parsed or version == "0.4" else (UNPARSED, "content")
    folders = [name for name in (CRAWL_GENERATE, *_FETCHED_FOLDERS) if segment.has(name)]
    with ExitStack() as stack:
        writers = [
            stack.enter_context(OldArrayFileWriter(out / name, CLASSES[name].class_name))
            for name in names
        ]
        for capture in captures([segment], folders):
            progress.advance()
            records = _records(capture, version)
            if records is None:
                counters.add(NOT_FETCHED if capture.datum is None else NOT_EXPRESSIBLE, 1)
                continue
            for writer, record in zip(writers, records, strict=False):
                writer.append_value(record.to_bytes())
            counters.add(WRITTEN, 1)


def _records(capture: Capture, version: str) -> list[Writable] | None:
    """Returns the records of a page, in the order of the folders."""
    if capture.datum is None:
        return None
    url, content, parsed = capture.url, capture.content, capture.parse_data
    body = content.content if content is not None else b""
    kind = WITH_PARSE if version == "0.4" else WITHOUT_PARSE
    output = fetcher_output(url, capture.datum, capture.listed, body, parsed, kind)
    if output is None:
        return None
    text = capture.parse_text.text if capture.parse_text is not None else ""
    if version == "0.4":
        return [output, FetcherContent(body), FetcherText(text)]
    return [output, old_content(url, content), ParseText(text), old_parse_data(parsed)]
