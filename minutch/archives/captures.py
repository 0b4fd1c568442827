"""The segments that an export reads, and the pages in them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Final

from minutch.cycle.segment.store import CONTENT, CRAWL_GENERATE, LAYOUTS, Segment, segments_in
from minutch.cycle.segment.storedrecords import decode
from minutch.errors import StoreError
from minutch.hadoop.formats.javaio import decode_text
from minutch.hadoop.formats.writables import lookup
from minutch.records.content import Content
from minutch.records.crawldatum import CrawlDatum
from minutch.records.parsedata import ParseData
from minutch.records.parsetext import ParseText

log = logging.getLogger(__name__)

_SEGMENTS: Final = "segments"


def segments_at(paths: Sequence[Path], needs: Sequence[str] = ()) -> list[Segment]:
    """The segments at `paths`, in the folders there, and of the crawls there, in the order of their
    names.

    In a folder those that have not all of `needs`, as they are not fetched yet, are left out with a
    warning. StoreError if nothing is left.
    """
    found: list[Segment] = []
    for path in paths:
        segment = Segment(path)
        if any(map(segment.has, LAYOUTS)):
            found.append(segment)
        else:
            folder = path / _SEGMENTS
            inside = segments_in(folder if folder.is_dir() else path)
            found += [each for each in inside if _has(each, needs)]
    return _some(found, paths)


def _some(found: list[Segment], paths: Sequence[Path]) -> list[Segment]:
    if not found:
        raise StoreError(f"No segment directories found in [{', '.join(map(str, paths))}]")
    return found


def _has(segment: Segment, needs: Sequence[str]) -> bool:
    """Whether a segment has all folders that are needed; a warning if not."""
    missing = next((folder for folder in needs if not segment.has(folder)), None)
    if missing is not None:
        log.warning("%s has no %s: skipped", segment.path, missing)
    return missing is None


def find_segments(paths: Iterable[Path]) -> list[Segment]:
    """Those of the segments at `paths` that have content.

    What is not fetched yet is left out with a warning; StoreError if nothing is left.
    """
    given = list(paths)
    return _some([segment for segment in segments_at(given) if _has(segment, (CONTENT,))], given)


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


def captures(
    segments: Sequence[Segment], folders: Iterable[str], *, if_there: Iterable[str] = ()
) -> Iterator[Capture]:
    """What `folders` of the segments hold, URL by URL, and of each URL in the order of the
    segments.

    Folders `if_there` may be missing; StoreError for another one that is.
    """
    streams = [
        _records(segment, number, folder)
        for number, segment in enumerate(segments)
        for folder in folders
    ]
    for folder in if_there:
        streams += [
            _records(segment, n, folder)
            for n, segment in enumerate(segments)
            if segment.has(folder)
        ]
    for (url, number), group in groupby(merge(*streams, key=_place), key=_place):
        capture = Capture(decode_text(url))
        for _, _, folder, data in group:
            path = segments[number].path / folder
            value = decode(lookup(LAYOUTS[folder].value_class), data, path, None, url)
            if isinstance(value, Content):
                capture.content = value
            elif isinstance(value, ParseData):
                capture.parse_data = value
            elif isinstance(value, ParseText):
                capture.parse_text = value
            elif folder == CRAWL_GENERATE and isinstance(value, CrawlDatum):
                capture.listed = value
            elif isinstance(value, CrawlDatum) and (
                capture.datum is None or value.has_fetch_status()
            ):
                capture.datum = value
        yield capture


_place = itemgetter(0, 1)


def _records(segment: Segment, number: int, folder: str) -> Iterator[tuple[bytes, int, str, bytes]]:
    for url, value in segment.raw_sorted(folder):
        yield url, number, folder, value
