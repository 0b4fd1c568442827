"""`minutch readseg`: list segments, dump one as text, or show all that a segment holds of one URL.

Different from Nutch on purpose: -list sorts by name and shows `?` for folders that are not there
instead of ending in an error; in a dump, the parts of one URL follow each other in a fixed order;
-get does not wait five seconds.

Source: org.apache.nutch.segment.SegmentReader.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import merge
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from minutch.cycle.segment.store import (
    CONTENT,
    CRAWL_FETCH,
    CRAWL_GENERATE,
    CRAWL_PARSE,
    LAYOUTS,
    PARSE_DATA,
    PARSE_TEXT,
    Segment,
    decode,
)
from minutch.errors import StoreError
from minutch.hadoop.formats.javahash import partition
from minutch.hadoop.formats.javaio import decode_text
from minutch.hadoop.formats.writables import Writable, lookup
from minutch.records.content import Content
from minutch.records.crawldatum import CrawlDatum
from minutch.records.parsedata import ParseData
from minutch.work.tables.wholefile import WholeFile

log = logging.getLogger(__name__)
RECODE_PROPERTY = "segment.reader.content.recode"
_DUMP_ORDER = (CRAWL_GENERATE, CRAWL_FETCH, CRAWL_PARSE, CONTENT, PARSE_DATA, PARSE_TEXT)
_DUMP_TITLES = {CONTENT: "Content", PARSE_DATA: "ParseData", PARSE_TEXT: "ParseText"}

_GET_TITLES = {
    CONTENT: "Content",
    CRAWL_GENERATE: "Crawl Generate",
    CRAWL_FETCH: "Crawl Fetch",
    CRAWL_PARSE: "Crawl Parse",
    PARSE_DATA: "ParseData",
    PARSE_TEXT: "ParseText",
}
SegmentRecord = tuple[bytes, str, Writable]
"""URL, folder and value."""


def dump(
    segment: Segment,
    output: Path,
    folders: Iterable[str],
    *,
    name: str = "dump",
    parts: int = 1,
    recode: bool = False,
) -> Path:
    """Write what `folders` of a segment hold as text, URL by URL, into the file `name` in `output`;
    returns its path.

    With more `parts` (reducers, in Nutch) the URLs of each hash partition follow each other.
    Folders that are not there are left out with a warning; StoreError if none is there.
    """
    log.info("SegmentReader: dump segment: %s", segment.path)
    segment.check()
    present = [
        folder for folder in _DUMP_ORDER if folder in set(folders) and _is_there(segment, folder)
    ]
    if not present:
        raise StoreError(f"No segment subdirectories defined as input: {segment.path}")
    path = output / name
    with WholeFile(path, sums=True) as writer:
        for number, text in enumerate(_dump_texts(segment, present, parts, recode)):
            writer.write(_to_bytes(f"\nRecno:: {number}\n{text}\n"))
    log.info("SegmentReader: done")
    return path


def _is_there(segment: Segment, folder: str) -> bool:
    if not segment.has(folder):
        log.warning(
            "Segment subdirectory %s does not exist in %s - skipping!", folder, segment.path
        )
    return segment.has(folder)


def _to_bytes(text: str) -> bytes:
    """UTF-8 with `\\n` as the only line break; bytes that are not UTF-8 become U+FFFD, as where
    Java decodes a Text.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace").encode("utf-8")


def _dump_texts(segment: Segment, folders: list[str], parts: int, recode: bool) -> Iterator[str]:
    """The text of each URL, without its number."""
    for part in range(parts):
        entries = merge(*(_entries(segment, folder) for folder in folders), key=itemgetter(0))
        for url, group in groupby(entries, key=itemgetter(0)):
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
            last = value
        else:
            texts.append(f"\n{_DUMP_TITLES.get(folder, 'CrawlDatum')}::\n{value}")
    if last is not None:
        texts.append(f"\nContent::\n{last.to_string(_charset(value for _, value in found))}")
    return "".join(texts)


def _charset(values: Iterable[Writable]) -> str:
    """The charset that parsing found, from the last ParseData among `values`; UTF-8 if there is
    none or none known.
    """
    charset = "utf-8"
    for value in values:
        if isinstance(value, ParseData):
            charset = value.charset
    return charset


# -list


@dataclass(slots=True)
class SegmentCounts:
    """Counts of a segment; None where the folder is left out or not there. Times in ms."""

    generated: int | None = None
    start: int | None = None
    end: int | None = None
    fetched: int | None = None
    parsed: int | None = None


def counts_of(segment: Segment, folders: Iterable[str]) -> SegmentCounts:
    """Count the records of a segment. StoreError if it is not there, or a folder of segments."""
    if not segment.path.is_dir():
        raise StoreError(f"Input path does not exist: {segment.path}")
    segment.check()
    stats = SegmentCounts()
    wanted = [folder for folder in folders if segment.has(folder)]
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


def get(
    segment: Segment, url: str, folders: Iterable[str], *, recode: bool = False
) -> Iterator[str]:
    """What `folders` of a segment hold of a URL, one text for each record.

    Folders that are not there are left out with a warning; StoreError if none is there.
    """
    log.info("SegmentReader: get '%s'", url)
    segment.check()
    found: dict[str, list[Writable]] = {}
    wanted = set(folders)
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
                text = value.to_string(_charset(parsed[number : number + 1]))
            yield f"{_GET_TITLES[folder]}::\n{text}"
