"""Finds the parts of CrawlDb, LinkDb and segments that are indexed, and reads ranges of them.

    kind         from
    crawldb      CrawlDb: its entries; over equal keys the last one wins
    links        LinkDb: the links to a page
    fetch        crawl_fetch of each segment, and documents inside pages in crawl_parse
    parse        parse_data
    text         parse_text
    content      content, with -addBinaryContent

Records outside of the range of their key (those of crawl_parse, which is not sorted, and all whose
URL the normalizers change) are misplaced: they are sorted first and passed to their range
(`misplaced`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

import polars as pl

from minutch.cycle.segment.store import (
    CONTENT,
    CRAWL_FETCH,
    LAYOUTS,
    PARSE_DATA,
    PARSE_TEXT,
    Segment,
)
from minutch.hadoop.formats.batch import Batch
from minutch.work.tables.keyranges import KeyRange, SortedPart

CRAWLDB, LINKS, FETCH, PARSE, TEXT, CONTENTS = (
    "crawldb",
    "links",
    "fetch",
    "parse",
    "text",
    "content",
)
_FOLDERS: Final = {FETCH: CRAWL_FETCH, PARSE: PARSE_DATA, TEXT: PARSE_TEXT, CONTENTS: CONTENT}
CRAWL_DATUM: Final = LAYOUTS[CRAWL_FETCH].value_class
INLINKS: Final = "org.apache.nutch.crawl.Inlinks"

MISPLACED: Final = pl.Schema({"key": pl.Binary(), "source": pl.UInt16(), "value": pl.Binary()})
"""Misplaced records: `source` is the index of the Source that they belong to."""


@dataclass
class Source:
    """The parts of a folder."""

    kind: str
    paths: list[Path]
    value_class: str

    @cached_property
    def parts(self) -> list[SortedPart]:
        """The opened parts. Raises FormatError."""
        return [SortedPart(path, self.value_class) for path in self.paths]

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "parts"}


class IndexRange(NamedTuple):
    """A range of keys, and its misplaced records."""

    keys: KeyRange
    misplaced: pl.DataFrame


@dataclass
class Inputs:
    """All sources of a job, in order; each worker process has a copy."""

    sources: list[Source]
    layout: str
    """The layout of the LinkDb's records."""
    _numbers: dict[str, list[int]] = field(default_factory=dict)

    def of(self, kind: str) -> list[int]:
        """Returns the indexes of the sources of a kind."""
        if kind not in self._numbers:
            self._numbers[kind] = [
                i for i, source in enumerate(self.sources) if source.kind == kind
            ]
        return self._numbers[kind]

    def batches(
        self, kind: str, index_range: IndexRange, only: pl.Series | None = None
    ) -> Iterator[tuple[int, Path | None, Batch]]:
        """Reads the records of a kind in a range, limited to the keys `only`, each batch with the
        number of its source among those of the kind (of its segment) and its file (None:
        misplaced).
        """
        keys, misplaced = index_range
        for segment, number in enumerate(self.of(kind)):
            for part in self.sources[number].parts:
                batch = part.batch(keys, only)
                if batch.size:
                    yield segment, part.path, batch
            mine = misplaced.filter(pl.col("source") == number) if len(misplaced) else misplaced
            if only is not None:
                mine = mine.filter(pl.col("key").is_in(only.implode()))
            if len(mine):
                yield segment, None, Batch.of(mine["key"].to_list(), mine["value"].to_list())


def segment_sources(segments: Sequence[Segment], *, content: bool) -> list[Source]:
    """Returns the sources of segments, in the order of their names."""
    found = []
    for segment in sorted(segments, key=lambda segment: segment.name):
        for kind, folder in _FOLDERS.items():
            if kind != CONTENTS or content:
                found.append(Source(kind, segment.parts(folder), LAYOUTS[folder].value_class))
    return found
