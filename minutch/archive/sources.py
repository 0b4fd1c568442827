"""The segments that an export reads, and the pages in them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import merge
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from minutch.errors import StoreError
from minutch.formats.javaio import decode_text
from minutch.formats.writables import lookup
from minutch.records.content import Content
from minutch.records.crawldatum import CrawlDatum
from minutch.records.parsedata import ParseData
from minutch.records.parsetext import ParseText
from minutch.segment.store import CONTENT, CRAWL_GENERATE, LAYOUTS, Segment, decode, segments_in

log = logging.getLogger(__name__)


def find_segments(paths: Iterable[Path]) -> list[Segment]:
    """The segments with content that are at `paths` or in the folders there, in the order of their names.

    What is not fetched yet is left out with a warning; StoreError if nothing is left.
    """
    found, given = [], list(paths)
    for path in given:
        segment = Segment(path)
        is_segment = any(map(segment.has, LAYOUTS))
        for each in [segment] if is_segment else segments_in(path):
            if each.has(CONTENT):
                found.append(each)
            else:
                log.warning("%s has no %s: skipped", each.path, CONTENT)
    if not found:
        raise StoreError(f"No segment directories found in [{', '.join(map(str, given))}]")
    return found


def pages(segment: Segment) -> Iterator[tuple[str, Content]]:
    """URL and content of each page, in the order in which they lie."""
    for url, value in segment.records(CONTENT):
        if isinstance(value, Content):
            yield url, value


@dataclass(slots=True)
class Capture:
    """What a segment holds of one URL: the last record of each folder, None where there is none."""

    url: str
    content: Content | None = None
    datum: CrawlDatum | None = None
    parse_data: ParseData | None = None
    parse_text: ParseText | None = None
    listed: CrawlDatum | None = None
    """The entry of the fetch list."""


def captures(segment: Segment, folders: Iterable[str]) -> Iterator[Capture]:
    """What `folders` of a segment hold, URL by URL in their order. StoreError for a folder that is not there."""
    streams = [_records(segment, folder) for folder in folders]
    for url, group in groupby(merge(*streams, key=itemgetter(0)), key=itemgetter(0)):
        capture = Capture(decode_text(url))
        for _, folder, data in group:
            value = decode(lookup(LAYOUTS[folder].value_class), data, segment.path / folder, None, url)
            if isinstance(value, Content):
                capture.content = value
            elif isinstance(value, ParseData):
                capture.parse_data = value
            elif isinstance(value, ParseText):
                capture.parse_text = value
            elif folder == CRAWL_GENERATE and isinstance(value, CrawlDatum):
                capture.listed = value
            elif isinstance(value, CrawlDatum) and (capture.datum is None or value.has_fetch_status()):
                capture.datum = value
        yield capture


def _records(segment: Segment, folder: str) -> Iterator[tuple[bytes, str, bytes]]:
    for url, value in segment.raw_sorted(folder):
        yield url, folder, value
