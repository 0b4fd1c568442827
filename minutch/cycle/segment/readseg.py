"""Counts the records of segments, dumps one as text, and finds all records of one URL.

In a dump the records of one URL follow each other in a fixed order, which Nutch leaves open.

Source: org.apache.nutch.segment.SegmentReader.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from minutch.charsets import UTF_8, Charset
from minutch.conf import Configuration
from minutch.cycle.segment.store import (
    CONTENT,
    CRAWL_FETCH,
    CRAWL_GENERATE,
    CRAWL_PARSE,
    LAYOUTS,
    PARSE_DATA,
    PARSE_TEXT,
    Segment,
    segments_at,
)
from minutch.cycle.segment.storedrecords import decode
from minutch.errors import StoreError
from minutch.hadoop.formats.javahash import partition
from minutch.hadoop.formats.javaio import decode_text, java_string
from minutch.hadoop.formats.writables import Writable, lookup
from minutch.job import JobContext
from minutch.records.crawldatum import CrawlDatum
from minutch.records.parsedata import ParseData
from minutch.records.protocol import Content
from minutch.work.tables.install import WholeFile
from minutch.work.tables.parallel import number_of_parts

log = logging.getLogger(__name__)
RECODE_PROPERTY = "segment.reader.content.recode"
DUMP_NAME_PROPERTY = "segment.dump.dir"
_DUMP_ORDER = (CRAWL_GENERATE, CRAWL_FETCH, CRAWL_PARSE, CONTENT, PARSE_DATA, PARSE_TEXT)
_DUMP_TITLES = {CONTENT: "Content", PARSE_DATA: "ParseData", PARSE_TEXT: "ParseText"}

_GET_TITLES = {
    CONTENT: "Content", CRAWL_GENERATE: "Crawl Generate", CRAWL_FETCH: "Crawl Fetch",
    CRAWL_PARSE: "Crawl Parse", PARSE_DATA: "ParseData", PARSE_TEXT: "ParseText",
}  # fmt: skip
SegmentRecord = tuple[bytes, str, Writable]
"""URL, folder and value."""


@dataclass(frozen=True, slots=True)
class ReadsegOptions:
    """The options of readseg."""

    folders: Sequence[str] = tuple(LAYOUTS)
    """Folders of the segment that are read."""
    recode: bool | None = None
    """Whether pages are decoded in the charset that parsing found, instead of UTF-8; None: as
    `segment.reader.content.recode` says.
    """


def readseg_dump(
    path: Path, output: Path, options: ReadsegOptions = ReadsegOptions(), *, context: JobContext
) -> Path:
    """Writes the records of a segment as text, URL by URL, into a file in `output` (named by
    `segment.dump.dir`, else `dump`). Returns its path.

    With mapreduce.job.reduces the URLs of each hash partition follow each other. Folders that do
    not exist are left out with a warning; raises StoreError if there is none.
    """
    [segment], wanted = segments_at([path]), set(options.folders)
    name = context.conf.get(DUMP_NAME_PROPERTY) or "dump"
    parts = number_of_parts(context.conf)
    recode = _recodes(options, context.conf)
    log.info("SegmentReader: dump segment: %s", segment.path)
    segment.check()
    present = [folder for folder in _DUMP_ORDER if folder in wanted and _is_there(segment, folder)]
    if not present:
        raise StoreError(f"No segment subdirectories defined as input: {segment.path}")
    made = output / name
    with WholeFile(made, sums=True) as writer:
        for number, text in enumerate(_dump_texts(segment, present, parts, recode)):
            writer.write(_to_bytes(f"\nRecno:: {number}\n{text}\n"))
    log.info("SegmentReader: done")
    return made


def _recodes(options: ReadsegOptions, conf: Configuration) -> bool:
    return conf.get_boolean(RECODE_PROPERTY) if options.recode is None else options.recode


def _is_there(segment: Segment, folder: str) -> bool:
    if not segment.has(folder):
        log.warning(
            "Segment subdirectory %s does not exist in %s - skipping!", folder, segment.path
        )
    return segment.has(folder)


def _to_bytes(text: str) -> bytes:
    """Encodes text as UTF-8 with `\\n` as the only line break; bytes that are not UTF-8 become
    U+FFFD, as in Java's Text.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return java_string(text).encode("utf-8")


def _dump_texts(segment: Segment, folders: list[str], parts: int, recode: bool) -> Iterator[str]:
    """Yields the text of each URL, without its number."""
    for part in range(parts):
        entries = merge(*(_entries(segment, folder) for folder in folders), key=itemgetter(0))
        for url, group in groupby(entries, key=itemgetter(0)):
            # Read once for each part: a dump has one as a rule.
            if parts == 1 or partition(url, parts) == part:
                yield _dump_text(decode_text(url), group, recode)


def _entries(segment: Segment, folder: str) -> Iterator[SegmentRecord]:
    value_type = lookup(LAYOUTS[folder].value_class)
    for url, value in segment.raw_sorted(folder):
        yield url, folder, decode(value_type, value, segment.path / folder, None, url)


def _dump_text(url: str, entries: Iterable[SegmentRecord], recode: bool) -> str:
    found = [(folder, value) for _, folder, value in entries]
    texts = [f"URL:: {url}\n"]
    last = None
    for folder, value in found:
        if recode and isinstance(value, Content):
            # SegmentReader prints the content last when it recodes: by then ParseData has the
            # charset.
            last = value
        else:
            texts.append(f"\n{_DUMP_TITLES.get(folder, 'CrawlDatum')}::\n{value}")
    if last is not None:
        texts.append(f"\nContent::\n{last.to_string(_charset(value for _, value in found))}")
    return "".join(texts)


def _charset(values: Iterable[Writable]) -> Charset:
    """Returns the charset of the last ParseData among `values`; UTF-8 if there is none."""
    charset = UTF_8
    for value in values:
        if isinstance(value, ParseData):
            charset = value.charset
    return charset


# -list


@dataclass(slots=True)
class SegmentCounts:
    """Counts of a segment; None where the folder is left out or does not exist. Times in ms."""

    generated: int | None = None
    start: int | None = None
    end: int | None = None
    fetched: int | None = None
    parsed: int | None = None


def readseg_list(path: Path, options: ReadsegOptions = ReadsegOptions()) -> SegmentCounts:
    """Counts the records of a segment. Raises StoreError if it does not exist, or is none."""
    [segment] = segments_at([path])
    if not segment.path.is_dir():
        raise StoreError(f"Input path does not exist: {segment.path}")
    segment.check()
    stats = SegmentCounts()
    wanted = [folder for folder in options.folders if segment.has(folder)]
    if CRAWL_GENERATE in wanted:
        stats.generated = sum(1 for _ in segment.raw(CRAWL_GENERATE))
    if CRAWL_FETCH in wanted:
        times = [
            value.fetch_time
            for _, value in segment.records(CRAWL_FETCH)
            if isinstance(value, CrawlDatum)
        ]
        stats.start, stats.end, stats.fetched = (
            min(times, default=None),
            max(times, default=None),
            len(times),
        )
    if PARSE_DATA in wanted:
        stats.parsed = sum(1 for _ in segment.raw(PARSE_DATA))
    return stats


def readseg_get(
    path: Path, url: str, options: ReadsegOptions = ReadsegOptions(), *, context: JobContext
) -> Iterator[str]:
    """Yields the records of a URL in a segment as texts.

    Folders that do not exist are left out with a warning; raises StoreError if there is none.
    """
    [segment], recode = segments_at([path]), _recodes(options, context.conf)
    log.info("SegmentReader: get '%s'", url)
    segment.check()
    found: dict[str, list[Writable]] = {}
    wanted = set(options.folders)
    for folder in _GET_TITLES:
        if folder in wanted and segment.has(folder):
            found[folder] = segment.get(folder, url)
        elif folder in wanted:
            log.warning("Segment subdirectory %s does not exist in %s!", folder, segment.path)
    if not found:
        raise StoreError(f"No segment subdirectories specified as input: {segment.path}")
    parsed = found.get(PARSE_DATA, [])
    for folder, values in found.items():
        for number, value in enumerate(values):
            text = str(value)
            if recode and isinstance(value, Content):
                # The nth parse is that of the nth content.
                text = value.to_string(_charset(parsed[number : number + 1]))
            yield f"{_GET_TITLES[folder]}::\n{text}"
