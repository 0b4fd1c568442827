"""Finds the segments that an export reads, and reads the pages in them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Final

from minutch.cycle.segment.store import (
    CONTENT,
    CRAWL_GENERATE,
    LAYOUTS,
    Segment,
    segments_at,
    segments_in,
)
from minutch.cycle.segment.storedrecords import decode
from minutch.errors import StoreError
from minutch.hadoop.formats.javaio import decode_text
from minutch.hadoop.formats.writables import lookup
from minutch.records.crawldatum import CrawlDatum
from minutch.records.parsedata import ParseData, ParseText
from minutch.records.protocol import Content

log = logging.getLogger(__name__)

_SEGMENTS: Final = "segments"


def given_segments(paths: Sequence[Path], needs: Sequence[str] = ()) -> list[Segment]:
    """Returns the segments at `paths`, in the order of their names within each path.

    A path is a segment, a folder of segments, or the folder of a crawl. Segments in a folder that
    lack one of the folders `needs` (they are not fetched yet) are skipped with a warning. Raises
    StoreError if none is left.
    """
    found: list[Segment] = []
    for path, segment in zip(paths, segments_at(paths), strict=True):
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
    """Returns whether a segment has all folders that are needed; logs a warning if not."""
    missing = next((folder for folder in needs if not segment.has(folder)), None)
    if missing is not None:
        log.warning("%s has no %s: skipped", segment.path, missing)
    return missing is None


def find_segments(paths: Iterable[Path]) -> list[Segment]:
    """Returns the segments at `paths` (see `given_segments`) that have content.

    Segments not yet fetched are skipped with a warning. Raises StoreError if none is left.
    """
    paths = list(paths)
    return _some([segment for segment in given_segments(paths) if _has(segment, (CONTENT,))], paths)


def pages(segment: Segment) -> Iterator[tuple[str, Content]]:
    """Yields URL and content of each page, in the order of the part files."""
    for url, value in segment.records(CONTENT):
        if isinstance(value, Content):
            yield url, value


@dataclass(slots=True)
class Capture:
    """The records of one URL in a segment: the last one of each folder, None if it has none."""

    url: str
    content: Content | None = None
    datum: CrawlDatum | None = None
    parse_data: ParseData | None = None
    parse_text: ParseText | None = None
    listed: CrawlDatum | None = None
    """Entry of the fetch list."""


def captures(
    segments: Sequence[Segment], folders: Iterable[str], *, if_there: Iterable[str] = ()
) -> Iterator[Capture]:
    """Yields the captures in `folders` of the segments, by URL, then in the order of the segments.

    The folders `if_there` may be missing; raises StoreError for any other that is.
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
    for (url, number), group in groupby(merge(*streams, key=_url_and_number), key=_url_and_number):
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


_url_and_number = itemgetter(0, 1)


def _records(segment: Segment, number: int, folder: str) -> Iterator[tuple[bytes, int, str, bytes]]:
    for url, value in segment.raw_sorted(folder):
        yield url, number, folder, value
