"""The segments of a crawl: one by one with their folders, and all of them as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, overload

import polars as pl

from minutch.cycle.segment.store import (
    CRAWL_FETCH,
    CRAWL_GENERATE,
    CRAWL_PARSE,
    PARSE_DATA,
    Segment,
    segments_in,
)
from minutch.inspect.query.crawldb import EntriesTable
from minutch.inspect.query.pages import PagesTable
from minutch.inspect.query.parses import ParsesTable
from minutch.inspect.query.table import Table

SEGMENTS: Final = "segments"


class CrawlSegment(Segment):
    """A segment with its tables."""

    @property
    def pages(self) -> PagesTable:
        """The results of its fetch."""
        return PagesTable([self])

    @property
    def parses(self) -> ParsesTable:
        """Its parsed pages."""
        return ParsesTable([self])

    @property
    def folders(self) -> Mapping[str, Table]:
        """The folders that exist, by name: those of CrawlDatums with the columns of `crawldb`, and
        parse_data.
        """
        found: dict[str, Table] = {
            name: EntriesTable(name, partial(self.parts, name))
            for name in (CRAWL_GENERATE, CRAWL_FETCH, CRAWL_PARSE)
            if self.has(name)
        }
        return found | ({PARSE_DATA: self.parses} if self.has(PARSE_DATA) else {})


class Segments(Sequence[CrawlSegment]):
    """The segments in a folder, oldest first, found by number or by name. None if the folder does
    not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        found = segments_in(path) if path.is_dir() else []
        self._segments = tuple(CrawlSegment(segment.path, segment.hold) for segment in found)

    def __repr__(self) -> str:
        return f"Segments({[segment.name for segment in self]})"

    def __len__(self) -> int:
        return len(self._segments)

    @overload
    def __getitem__(self, index: int | str) -> CrawlSegment: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[CrawlSegment]: ...
    def __getitem__(self, index: int | str | slice) -> CrawlSegment | Sequence[CrawlSegment]:
        if not isinstance(index, str):
            return self._segments[index]
        for segment in self._segments:
            if segment.name == index:
                return segment
        raise KeyError(index)

    @property
    def pages(self) -> PagesTable:
        """The fetches of all of them."""
        return PagesTable(self._segments)

    @property
    def parses(self) -> ParsesTable:
        """The parsed pages of all of them."""
        return ParsesTable(self._segments)

    def scan(self) -> pl.LazyFrame:
        """Returns the table of pages as a Polars LazyFrame."""
        return self.pages.scan()
