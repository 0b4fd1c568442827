"""Entries of a CrawlDb or a segment as they lie in files, for jobs that look at little of most of
them.

    PACKED_SCHEMA   key, status, fetch time, score, and as `value` the serialized CrawlDatum,
                    version 7, as minutch writes it

A packed table is read without taking the records apart, and written by copying them. Only what a
job looks at more closely is decoded (`take`), and only what it changes is encoded (`Patched`).
Records that minutch would write in other bytes than those in the file (older versions, an empty
map) are written anew as they are read, so that a packed table always holds what `unpack` and `pack`
would make of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from minutch.hadoop.formats.batch import Offsets, Places, string_column
from minutch.kernels import sort
from minutch.kernels.arrow import from_series
from minutch.records import crawldatum_columns
from minutch.records.crawldatum_columns import CRAWLDB_SCHEMA, PACKED_SCHEMA
from minutch.work.tables import spans
from minutch.work.tables.crawldata import CRAWL_DATUM
from minutch.work.tables.spans import InputSplit
from minutch.work.tables.writer import TableWriter

_KEPT = [name for name in PACKED_SCHEMA if name != "value"]
_FIELDS = {name: dtype for name, dtype in CRAWLDB_SCHEMA.items() if name != "key"}


def scan_packed(path: InputSplit, *, threads: int = 0) -> Iterator[pl.DataFrame]:
    """Scans like `crawldata.scan`, in tables of PACKED_SCHEMA."""
    return spans.scan(path, CRAWL_DATUM, crawldatum_columns.decode_packed, threads=threads)


def pack(frame: pl.DataFrame) -> pl.DataFrame:
    """Returns the packed table of one of CRAWLDB_SCHEMA."""
    return frame.select(*_KEPT, string_column("value", *crawldatum_columns.encode(frame)))


def unpack(table: pl.DataFrame) -> pl.DataFrame:
    """Unpacks a table to CRAWLDB_SCHEMA; rows without a value are null."""
    values = from_series(table["value"])
    every = np.arange(len(table), dtype=np.uint32)
    out = np.empty(int(values.views[:, 0].sum(dtype=np.int64)), np.uint8)
    at, length = np.empty(len(table), np.int64), np.empty(len(table), np.int32)
    sort.pack(values.views, values.addresses, every, out, at, length)
    frame = pl.DataFrame([table["key"], *crawldatum_columns.decode_optional(out, at, length)])
    if not table["value"].null_count():
        return frame
    there = table["value"].is_not_null()
    return frame.with_columns(pl.when(there).then(pl.col(*_FIELDS)))


def take(table: pl.DataFrame, at: Offsets) -> pl.DataFrame:
    """Returns the rows of a packed table at positions `at`, unpacked; all null where the position
    is -1.
    """
    positions = pl.Series(at)
    if len(at) and at.min() < 0:
        positions = positions.set(positions < 0, None)
    return unpack(table.select(pl.col("key", "value").gather(pl.lit(positions))))


@dataclass(frozen=True)
class Patched:
    """A packed table with `rows` (CRAWLDB_SCHEMA) put in: row i in place of row at[i], if that is
    -1 before before[i].

    Both are sorted by key. Other rows, those `scored`, only have new `scores` (Float32).
    """

    table: pl.DataFrame
    rows: pl.DataFrame
    at: Offsets
    before: Offsets
    scored: Offsets = field(default_factory=lambda: np.empty(0, np.int64))
    scores: pl.Series = field(default_factory=lambda: pl.Series(dtype=pl.Float32))

    def __len__(self) -> int:
        return len(self.table) + int((self.at < 0).sum())

    @property
    def changed(self) -> pl.DataFrame:
        """The entries (CRAWLDB_SCHEMA) that are not as they were: those put in, then those with new
        scores.
        """
        scored = take(self.table, self.scored).with_columns(score=self.scores)
        return pl.concat([self.rows.select(scored.columns), scored])

    def records(self) -> Iterator[Places]:
        """Returns the entries, in order, as they go into a file."""
        return crawldatum_columns.patched_records(
            self.table, self.rows, self.at, self.before, self.scored, self.scores
        )


class PatchedWriter(TableWriter[Patched]):
    """Writes patched tables, in ascending order of key, to a MapFile at `path`; options as
    `TableWriter`.
    """

    def __init__(self, path: Path, **options: Any) -> None:
        super().__init__(path, CRAWL_DATUM, Patched.records, **options)
