"""Finds the parts of CrawlDb, LinkDb and segments that are indexed, and reads ranges of them.

    kind         from
    crawldb      CrawlDb: its entries; over equal keys the last one wins
    links        LinkDb: the links to a page
    fetch        crawl_fetch of each segment, and documents inside pages in crawl_parse
    parse        parse_data
    text         parse_text
    content      content, with -addBinaryContent

Records outside of the range of their key are misplaced: they are sorted first, in memory or on
disk, and passed to their range.

    crawl_parse     the fetches of documents that were found inside pages (a feed's entries, an
                    archive's files); it is not sorted, and nearly all of it is links, which the
                    index does not need
    -normalize      records of URLs that the normalizers change: they belong to the new URL

Source: org.apache.nutch.indexer.IndexerMapReduce.IndexerMapper, parse.ParseOutputFormat
(sub-documents).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from minutch.cycle.segment.store import (
    CONTENT,
    CRAWL_FETCH,
    CRAWL_PARSE,
    LAYOUTS,
    PARSE_DATA,
    PARSE_TEXT,
    Segment,
)
from minutch.hadoop.formats.batch import Batch, string_column
from minutch.plugin.chains import URLNormalizers
from minutch.records import crawldatum as status
from minutch.records.crawldatum_columns import decode_packed
from minutch.scratch import scratch
from minutch.work.tables.database import data_file
from minutch.work.tables.frame import concat, decode_keys, empty, encode_keys
from minutch.work.tables.keyranges import KeyRange, SortedPart
from minutch.work.tables.shuffle import Shuffle
from minutch.work.tables.spannedfile import SpannedFile
from minutch.work.tables.spans import Numbers, scan_numbered

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
_FETCHES = (
    *range(status.STATUS_DB_MAX + 1, status.STATUS_FETCH_MAX + 1),
    status.STATUS_PARSE_FAILED,
)
SHARE = 8
"""Divisor of the job's memory: misplaced records take so small a part of it."""


@dataclass
class IndexSource:
    """The parts of a folder."""

    kind: str
    paths: list[Path]
    value_class: str

    @cached_property
    def parts(self) -> list[SortedPart]:
        """The opened parts. Raises FormatError."""
        return [SortedPart(path, self.value_class) for path in self.paths]

    def __getstate__(self) -> dict[str, object]:
        # Maps of files don't go to another process, which opens its own.
        return {name: value for name, value in self.__dict__.items() if name != "parts"}


class IndexRange(NamedTuple):
    """A range of keys, and its misplaced records."""

    keys: KeyRange
    misplaced: pl.DataFrame


@dataclass
class Inputs:
    """All sources of a job, in order; each worker process has a copy."""

    sources: list[IndexSource]
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


def segment_sources(segments: Sequence[Segment], *, content: bool) -> list[IndexSource]:
    """Returns the sources of segments, in the order of their names."""
    found = []
    # Names are times: of equal fetches the last segment's counts, however they were given.
    for segment in sorted(segments, key=lambda segment: segment.name):
        for kind, folder in _FOLDERS.items():
            if kind != CONTENTS or content:
                found.append(IndexSource(kind, segment.parts(folder), LAYOUTS[folder].value_class))
    return found


class MisplacedRecords:
    """The misplaced records of a job, sorted by key."""

    def __init__(self, frames: Iterable[pl.DataFrame]) -> None:
        self._frames = iter(frames)

    def by_range(self, ranges: Iterable[KeyRange]) -> Iterator[IndexRange]:
        """Adds to each range its misplaced records; the ranges ascend and cover all keys."""
        held = empty(MISPLACED)
        for keys in ranges:
            pieces = []
            while True:
                count = (
                    len(held)
                    # The last range has no end.
                    if keys.high is None
                    else held["key"].search_sorted(keys.high, side="left")
                )
                pieces.append(held[:count])
                held = held[count:]
                if len(held):
                    break
                following = next(self._frames, None)
                if following is None:
                    break
                held = following
            yield IndexRange(keys, concat(pieces, MISPLACED))


@contextmanager
def find_misplaced(
    inputs: Inputs, segments: Sequence[Segment], normalizers: URLNormalizers | None, memory: int
) -> Iterator[MisplacedRecords]:
    """Finds a job's misplaced records; `memory` is that of the job. Raises FormatError."""
    with (
        scratch("index") as folder,
        # One partition: ranges are taken in the order of keys.
        Shuffle(1, MISPLACED, budget=memory // SHARE, spill=folder) as shuffle,
    ):
        for frame in _of_crawl_parse(inputs, segments, normalizers):
            shuffle.add(frame)
        if normalizers is not None:
            for frame in _renamed(inputs, normalizers):
                shuffle.add(frame)
        yield MisplacedRecords(shuffle.sorted(0))


def _of_crawl_parse(
    inputs: Inputs, segments: Sequence[Segment], normalizers: URLNormalizers | None
) -> Iterator[pl.DataFrame]:
    """Reads the fetches in crawl_parse, which come after the same segment's in crawl_fetch."""
    ordered = sorted(segments, key=lambda segment: segment.name)
    parts = [
        (number, path)
        for number, segment in zip(inputs.of(FETCH), ordered, strict=True)
        for path in segment.parts(CRAWL_PARSE)
    ]
    sources = np.array([number for number, _ in parts], np.uint16)

    def fetches(batch: Batch, files: Numbers) -> pl.DataFrame:
        # The status is the second byte of a CrawlDatum: links are left out without being decoded.
        if (batch.value_len > 1).all() and (
            batch.values[batch.value_at] == status.CUR_VERSION
        ).all():
            are_fetches = np.isin(batch.values[batch.value_at + 1], _FETCHES)  # behind the version
            batch, files = batch.filter(are_fetches), files[are_fetches]
        table = decode_packed(batch).with_columns(source=pl.Series(sources[files]))
        # Once more for records of older versions, whose status was not looked at above.
        return table.filter(pl.col("status").is_in(_FETCHES)).select(MISPLACED.names())

    for found in scan_numbered([path for _, path in parts], CRAWL_DATUM, fetches):
        if normalizers is None:
            yield found
        else:
            keys = _normalized(found["key"], normalizers)
            yield found.with_columns(keys).filter(pl.col("key").is_not_null())


def _renamed(inputs: Inputs, normalizers: URLNormalizers) -> Iterator[pl.DataFrame]:
    """Reads the records whose URLs the normalizers change, with their new URLs."""
    for number, source in enumerate(inputs.sources):
        for path in source.paths:
            file = SpannedFile(data_file(path))
            for span in file.spans():
                keys = file.keys(span)
                normal = _normalized(keys, normalizers)
                # Null is a rejected URL, which RangeIndexer leaves out where it is.
                changed = (normal != keys).fill_null(False)
                if changed.any():
                    batch = file.batch(span)
                    values = string_column("value", batch.values, batch.value_at, batch.value_len)
                    rows = pl.DataFrame([normal, values]).filter(changed)
                    yield rows.select("key", pl.lit(number, pl.UInt16).alias("source"), "value")


def _normalized(keys: pl.Series, normalizers: URLNormalizers) -> pl.Series:
    """Normalizes keys; null for those that are rejected."""
    return encode_keys(normalizers.normalize_column(decode_keys(keys)).str.strip_chars()).alias(
        "key"
    )
