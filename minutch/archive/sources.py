"""The segments that an export reads, and the pages in them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from pathlib import Path

from minutch.errors import StoreError
from minutch.records.content import Content
from minutch.segment.store import CONTENT, LAYOUTS, Segment, segments_in

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
