"""Sorts records that are outside of the range of their key, in memory or on disk.

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

import numpy as np
import polars as pl

from minutch.cycle.index.inputs import FETCH, MISPLACED, IndexRange, Inputs
from minutch.cycle.segment.store import CRAWL_PARSE, Segment
from minutch.hadoop.formats.batch import Batch, string_column
from minutch.plugin.chains import URLNormalizers
from minutch.records import crawldatum as status
from minutch.records.crawldatum_columns import decode_packed
from minutch.scratch import scratch
from minutch.work.tables.frame import concat, decode_keys, empty, encode_keys
from minutch.work.tables.keyranges import KeyRange
from minutch.work.tables.recordfiles import CRAWL_DATUM
from minutch.work.tables.shuffle import Shuffle
from minutch.work.tables.spannedfile import SpannedFile, data_file
from minutch.work.tables.spans import Numbers, scan_numbered

_FETCHES = (
    *range(status.STATUS_DB_MAX + 1, status.STATUS_FETCH_MAX + 1),
    status.STATUS_PARSE_FAILED,
)
SHARE = 8
"""Divisor of the job's memory: misplaced records take so small a part of it."""


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
    """Finds the misplaced records of a job's inputs; `memory` is that of the job. Raises
    FormatError.
    """
    with (
        scratch("index") as folder,
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
    """Reads the fetches in crawl_parse; they belong to, and come after, those in crawl_fetch of the
    same segment.
    """
    ordered = sorted(segments, key=lambda segment: segment.name)
    parts = [
        (number, path)
        for number, segment in zip(inputs.of(FETCH), ordered, strict=True)
        for path in segment.parts(CRAWL_PARSE)
    ]
    sources = np.array([number for number, _ in parts], np.uint16)

    def fetches(batch: Batch, files: Numbers) -> pl.DataFrame:
        if (batch.value_len > 1).all() and (
            batch.values[batch.value_at] == status.CUR_VERSION
        ).all():
            are_fetches = np.isin(batch.values[batch.value_at + 1], _FETCHES)  # behind the version
            batch, files = batch.filter(are_fetches), files[are_fetches]
        table = decode_packed(batch).with_columns(source=pl.Series(sources[files]))
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
                changed = (normal != keys).fill_null(False)
                if changed.any():
                    batch = file.batch(span)
                    values = string_column("value", batch.values, batch.value_at, batch.value_len)
                    yield _rows(normal.filter(changed), number, values.filter(changed))


def _normalized(keys: pl.Series, normalizers: URLNormalizers) -> pl.Series:
    """Normalizes keys; null for those that are rejected."""
    return encode_keys(normalizers.normalize_column(decode_keys(keys)).str.strip_chars()).alias(
        "key"
    )


def _rows(keys: pl.Series, number: int, values: pl.Series) -> pl.DataFrame:
    source = pl.Series("source", [number], dtype=pl.UInt16).new_from_index(0, len(keys))
    return pl.DataFrame([keys.alias("key"), source, values.alias("value")])
