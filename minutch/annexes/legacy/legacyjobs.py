"""The jobs of segments of Nutch 0.4 to 0.7: `minutch import legacy` and `minutch export legacy`."""

from __future__ import annotations

import logging
import pickle
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Final

from minutch.annexes.legacy.oldsegment import (
    CLASSES,
    FETCHER,
    FETCHLIST,
    UNPARSED,
    FetchedPage,
    OldArrayFileWriter,
    OldSegment,
    RawFetchedPage,
    content_of,
    fetch_datum,
    fetch_list_entry,
    fetcher_output,
    listed_datum,
    old_content,
    old_parse_data,
    parse_data_of,
)
from minutch.archives.captures import Capture, captures, given_segments
from minutch.conf import Configuration
from minutch.cycle.crawldb.partitions import EntryFilter
from minutch.cycle.crawldb.schedule import fetch_schedule
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.crawldb.transitions import UpdateSettings
from minutch.cycle.crawldb.updatedb import is_merged, merge_files
from minutch.cycle.parse.mime import MimeUtil
from minutch.cycle.parse.outlinks import KeptLinks
from minutch.cycle.parse.pagerecords import DocumentPacker
from minutch.cycle.parse.partwriters import PartSettings, PartWriters
from minutch.cycle.segment.places import segment_name
from minutch.cycle.segment.store import (
    CONTENT,
    CRAWL_FETCH,
    CRAWL_GENERATE,
    CRAWL_PARSE,
    LAYOUTS,
    PARSE_DATA,
    PARSE_TEXT,
    Segment,
    part_writer,
)
from minutch.errors import StoreError
from minutch.hadoop.formats.javahash import partition
from minutch.hadoop.formats.javaio import decode_text, encode_text, encode_vlong
from minutch.hadoop.formats.mapfile import sort_records
from minutch.hadoop.formats.writables import Writable
from minutch.job import Counters, JobContext, Progress
from minutch.plugin.chains import ScoringFilters
from minutch.plugin.extension import Parse
from minutch.records.crawldatum import STATUS_FETCH_SUCCESS, CrawlDatum, status_name
from minutch.records.legacy import FetcherContent, FetcherText, OldParseText
from minutch.records.legacyfetch import WITH_PARSE, WITHOUT_PARSE
from minutch.work.engine import engine_of
from minutch.work.tables.compression import compression_type
from minutch.work.tables.database import OutputSettings
from minutch.work.tables.install import work_folder
from minutch.work.tables.textparts import output_folder, require_absent

# Converts segments of Nutch 0.4 to 0.7 to the current format, and adds their pages to a CrawlDb.
#
#     <segments>/<name>/      crawl_generate; if fetched, crawl_fetch and content;
#                             if parsed, crawl_parse, parse_data and parse_text
#     <crawldb>/              the result of updatedb, and all entries of fetch lists
#
# A segment keeps its name if that is a date. Pages are sorted by URL on disk, so memory does not
# grow with a segment. All outlinks are kept and scored by the scoring filters; URL filters and
# normalizers are not applied. The media type of a page of Nutch 0.4 that has none is detected as
# in a fetch.

log = logging.getLogger(__name__)
SEGMENTS: Final = "segments"
LISTED: Final = "entries of fetch lists"
ANCHORS: Final = "anchors in fetch lists, which are lost"
REPEATED: Final = "pages omitted: repeated URLs"
PARSED: Final = "parsed pages"
_MERGED: Final = (CRAWL_GENERATE, CRAWL_FETCH, CRAWL_PARSE)
_DATE: Final = re.compile(r"\d{14}")
WRITTEN: Final = "pages written"
NOT_EXPRESSIBLE: Final = "pages omitted: redirects, and URLs not requested"
NOT_FETCHED: Final = "entries of fetch lists without a fetch"

_OLD_FOLDERS: Final = {
    "0.4": (FETCHER, "fetcher_content", "fetcher_text"),
    "0.5": (FETCHER, "content", "parse_text", "parse_data"),
}
_FETCHED_FOLDERS: Final = (CRAWL_FETCH, CONTENT, PARSE_DATA, PARSE_TEXT)


@dataclass(frozen=True, slots=True)
class LegacyImportOptions:
    """Options of import legacy."""

    crawldb: Path | None = None
    """CrawlDb to update, created if missing; None: `crawldb` beside the folder of segments."""


def import_legacy(
    paths: Sequence[Path],
    target: Path,
    options: LegacyImportOptions = LegacyImportOptions(),
    *,
    context: JobContext,
) -> Counters:
    """Converts the old segments at `paths` to segments in `target`, and adds these to the CrawlDb.

    A segment of an earlier import that was stopped before it updated the CrawlDb is kept if it is
    identical. Raises StoreError (no old segment, or a different one of its name exists),
    FormatError (damage), LockedError.
    """
    crawldb = options.crawldb or target.parent / "crawldb"
    old = [OldSegment(path) for path in paths]
    names = [_name(segment, context.clock.now()) for segment in old]
    conf, counters = context.conf, Counters()
    schedule = fetch_schedule(conf)
    with CrawlDb(crawldb).lock():  # no segment appears before its CrawlDb can be updated
        for existing in (Segment(target / name) for name in names):
            if existing.path.exists() and (
                not existing.has(CRAWL_FETCH) or is_merged(existing, CrawlDb(crawldb), schedule)
            ):
                require_absent(existing.path)
        for segment, name in zip(old, names, strict=True):
            log.info("Import: %s", segment.path)
            with _new_segment(Segment(target / name)) as work:
                counters.merge(_Import(segment, work, name, conf).run())
            counters.add(SEGMENTS, 1)
        log.info("Import: CrawlDb %s", crawldb)
        made = [Segment(target / name) for name in names]
        files = [
            path
            for segment in made
            for folder in _MERGED
            for path in (segment.parts(folder) if segment.has(folder) else [])
        ]
        with context.progress("updatedb") as progress:
            merged = merge_files(
                CrawlDb(crawldb),
                files,
                UpdateSettings.from_conf(conf),
                EntryFilter(),
                context.clock.now(),
                engine=engine_of(conf),
                output=OutputSettings.from_conf(conf),
                progress=progress,
            )
    counters.merge(Counters({f"CrawlDb: {name}": count for name, count in merged.items()}))
    return counters


@contextmanager
def _new_segment(made: Segment) -> Iterator[Segment]:
    """Yields a segment to write, which becomes `made`. StoreError if that exists and differs."""
    if not made.path.exists():
        with output_folder(made.path) as folder:
            yield Segment(folder)
        return
    with work_folder(made.path.parent, f".{made.name}-") as folder:
        yield Segment(folder)
        if not all(_bytes_of(made, name) == _bytes_of(Segment(folder), name) for name in LAYOUTS):
            require_absent(made.path)
    log.info("Import: %s exists already, and is identical", made.path)


def _bytes_of(segment: Segment, folder: str) -> bytes:
    """Returns a digest of the records in a folder; a missing folder counts as empty."""
    digest = sha256()
    for key, value in segment.raw(folder) if segment.has(folder) else ():
        digest.update(encode_vlong(len(key)) + key + encode_vlong(len(value)) + value)
    return digest.digest()


def _name(segment: OldSegment, now: int) -> str:
    """Returns the name of the new segment: the old one's, or the date of its first fetch."""
    if _DATE.fullmatch(segment.path.name):
        return segment.path.name
    first = next(segment.fetched(), None)
    date = segment.read(first).output.fetch_date if first is not None else 0
    return segment_name(date or now)


class _Import:
    """The import of one segment."""

    def __init__(self, old: OldSegment, new: Segment, name: str, conf: Configuration) -> None:
        self.old, self.new, self.name, self.conf = old, new, name, conf
        self.parts = max(1, conf.get_int("mapreduce.job.reduces", 1))
        self.mime = MimeUtil(conf)
        self.parsed_parts = replace(PartSettings.from_conf(conf), stores_text=True)
        self.packer = DocumentPacker(conf, ScoringFilters(conf), self.parsed_parts, filtered=True)
        self.counters = Counters()

    def run(self) -> Counters:
        """Writes the new segment."""
        self._write_list()
        if self.old.fetcher is not None:
            self._write_fetched()
        return self.counters

    def _write_list(self) -> None:
        with part_writer(self.new.path, CRAWL_GENERATE, 0) as append:
            for entry in self.old.fetchlist():
                self.counters.add(LISTED, 1)
                self.counters.add(ANCHORS, len(entry.anchors))
                if entry.fetch:
                    append(entry.page.url, listed_datum(entry))

    def _by_url(self) -> Iterator[tuple[str, FetchedPage]]:
        """Yields the fetched pages by URL, the first one of each URL."""
        rows = (
            (self._url(raw), pickle.dumps((raw.position, raw.values))) for raw in self.old.fetched()
        )
        last = None
        for url, packed in sort_records(rows, directory=self.new.path):
            if url == last:
                self.counters.add(REPEATED, 1)
                continue
            last = url
            yield decode_text(url), self.old.read(RawFetchedPage(*pickle.loads(packed)))

    def _url(self, raw: RawFetchedPage) -> bytes:
        return encode_text(self.old.read_output(raw).entry.page.url)

    def _write_fetched(self) -> None:
        compression = compression_type(self.conf)
        with ExitStack() as stack:
            fetches, contents = (
                [
                    stack.enter_context(part_writer(self.new.path, folder, part, compression))
                    for part in range(self.parts)
                ]
                for folder in (CRAWL_FETCH, CONTENT)
            )
            parsed = None
            if self.old.is_parsed:
                parsed = stack.enter_context(PartWriters(self.new.path, self.parsed_parts))
            for url, page in self._by_url():
                part = partition(encode_text(url), self.parts)
                content = page.content
                kind = None
                if content is not None:
                    kind = self.mime.resolve(content.content_type or None, url, content.content)
                datum = fetch_datum(page.output, kind)
                self.counters.add(status_name(datum.status), 1)
                fetches[part](url, datum)
                if content is not None and (
                    content.content or datum.status == STATUS_FETCH_SUCCESS
                ):
                    contents[part](url, content_of(content, kind or "", self.name, datum))
                if parsed is not None and datum.status == STATUS_FETCH_SUCCESS:
                    data = parse_data_of(page.output, page.data, self.name)
                    if data is not None:
                        found = Parse(page.text or "", data)
                        kept = KeptLinks(data.outlinks)
                        document = (url, found, kept, page.output.fetch_date, False)
                        parsed.write(*self.packer.pack([document]))
                        self.counters.add(PARSED, 1)


# Writes segments in the formats of Nutch 0.4 and 0.5.
#
#     <out>/<segment>/    0.5: fetchlist, fetcher (fetcher_output if not parsed), content,
#                              parse_text, parse_data
#                         0.4: fetchlist, fetcher, fetcher_content, fetcher_text
#
# Pages are in the order of their URLs. Redirects and URLs that were not requested are omitted, and
# counted: the old formats can't express them. As in Nutch, strings end after 21,845 characters.


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
    return [output, old_content(url, content), OldParseText(text), old_parse_data(parsed)]
