"""Files of Nutch's records as tables, and tables as files.

    CrawlDatum     CrawlDb parts, crawl_generate, crawl_fetch, crawl_parse; a MapFile (a directory
                   with `data` and `index`) or a plain SequenceFile, in every compression and
                   version
    packed         the same as they lie in files, for jobs that look at little of most of them
    Inlinks        LinkDb parts; and the outlinks of ParseData (parse_data), also with dates
    LinkDatum, Node    the parts of a WebGraph

    PACKED_SCHEMA  key, status, fetch time, score, and as `value` the serialized CrawlDatum, version
                   7, as minutch writes it

A packed table is read without taking the records apart, and written by copying them. Only what a
job looks at more closely is decoded (`take`), and only what it changes is encoded (`Patched`).
Records that minutch would write in other bytes than those in the file (older versions, an empty
map) are written anew as they are read, so that a packed table always holds what `unpack` and `pack`
would make of it.

Source: org.apache.nutch.crawl.LinkDb, org.apache.nutch.parse.ParseOutputFormat,
org.apache.nutch.scoring.webgraph.WebGraph.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from minutch.errors import FormatError
from minutch.hadoop.formats.batch import Offsets, Places, string_column
from minutch.hadoop.formats.sequencewriter import RECORD
from minutch.kernels import sort
from minutch.kernels.arrow import from_series
from minutch.records import crawldatum_columns, webgraph
from minutch.records.crawldatum import CrawlDatum
from minutch.records.crawldatum_columns import PACKED_SCHEMA
from minutch.records.links import LAYOUT_METADATA, Inlinks
from minutch.records.links_columns import InlinksEncoder, LinkSets, decode_inlinks, decode_outlinks
from minutch.records.parsedata import ParseData
from minutch.records.webgraph import LinkDatum, Node
from minutch.work.tables import spans
from minutch.work.tables.database import data_file
from minutch.work.tables.frame import concat
from minutch.work.tables.spannedfile import SPAN_SIZE, SpannedFile
from minutch.work.tables.spans import InputSplit
from minutch.work.tables.writer import TableWriter

CRAWL_DATUM = CrawlDatum.class_name
_STRETCH = 1 << 20
"""Bytes that are looked at, or not, when few records are looked for."""
_KEPT = [name for name in PACKED_SCHEMA if name != "value"]


def scan(
    path: InputSplit, *, threads: int = 0, span_size: int = SPAN_SIZE
) -> Iterator[pl.DataFrame]:
    """Returns the records of the file or MapFile at `path`, in its order, in tables of
    CRAWLDB_SCHEMA; see `spans.scan`.
    """
    return spans.scan(
        path, CRAWL_DATUM, crawldatum_columns.decode, threads=threads, span_size=span_size
    )


def scan_having(path: Path, part: bytes) -> Iterator[pl.DataFrame]:
    """Scans like `scan`, without stretches whose values lack these bytes: for few records."""
    file = SpannedFile(data_file(path), span_size=_STRETCH)
    file.require(CRAWL_DATUM)
    for span in file.spans_with(part, of_values=True):
        for batch in file.batches(span):
            try:
                yield crawldatum_columns.decode(batch)
            except FormatError as exc:
                raise exc.within(file.path) from exc


def read(path: Path, *, threads: int = 0) -> pl.DataFrame:
    """Returns all records of the file or MapFile at `path`."""
    return concat(list(scan(path, threads=threads)))


class CrawlDataWriter(TableWriter[pl.DataFrame]):
    """Writes tables of CRAWLDB_SCHEMA; options as `TableWriter`."""

    def __init__(self, path: Path, **options: Any) -> None:
        super().__init__(path, CRAWL_DATUM, crawldatum_columns.stored_records, **options)


def scan_packed(path: InputSplit) -> Iterator[pl.DataFrame]:
    """Scans like `crawldata.scan`, in tables of PACKED_SCHEMA."""
    return spans.scan(
        path,
        CRAWL_DATUM,
        crawldatum_columns.decode_packed,
        decode_plain=crawldatum_columns.scan_packed,
    )


def pack(frame: pl.DataFrame) -> pl.DataFrame:
    """Returns the packed table of one of CRAWLDB_SCHEMA."""
    return frame.select(*_KEPT, string_column("value", *crawldatum_columns.encode(frame)))


def unpack(table: pl.DataFrame) -> pl.DataFrame:
    """Unpacks a table to CRAWLDB_SCHEMA."""
    values = from_series(table["value"])
    every = np.arange(len(table), dtype=np.uint32)
    out = np.empty(int(values.views[:, 0].sum(dtype=np.int64)), np.uint8)
    at, length = np.empty(len(table), np.int64), np.empty(len(table), np.int32)
    # Values one after the other, as a kernel decodes them from a buffer.
    sort.pack(values.views, values.addresses, every, out, at, length)
    return pl.DataFrame([table["key"], *crawldatum_columns.decode_values(out, at, length)])


def take(table: pl.DataFrame, at: Offsets) -> pl.DataFrame:
    """Returns the rows of a packed table at positions `at`, unpacked; all null for -1."""
    is_there = at >= 0
    has_all = bool(is_there.all())
    rows = pl.Series(at if has_all else at[is_there])
    found = unpack(table.select(pl.col("key", "value").gather(pl.lit(rows))))
    if has_all:
        return found
    # gather takes null for a row of nulls.
    own = pl.Series(np.cumsum(is_there) - 1).set(pl.Series(~is_there), None)
    return found.select(pl.all().gather(pl.lit(own)))


@dataclass(frozen=True)
class Patched:
    """A packed table with `rows` (CRAWLDB_SCHEMA) put in: row i in place of row at[i], or, if that
    is -1, before row before[i].

    Both are sorted by key. Other rows, those `scored`, only have new `scores` (Float32).
    """

    table: pl.DataFrame
    rows: pl.DataFrame
    at: Offsets
    before: Offsets
    scored: Offsets = field(default_factory=lambda: np.empty(0, np.int64))
    scores: pl.Series = field(default_factory=lambda: pl.Series(dtype=pl.Float32))

    def __len__(self) -> int:
        # Rows put in place of others make the table no longer.
        return len(self.table) + int((self.at < 0).sum())

    @property
    def changed(self) -> pl.DataFrame:
        """The entries (CRAWLDB_SCHEMA) that have changed: those put in, those with new scores."""
        scored = take(self.table, self.scored).with_columns(score=self.scores)
        return pl.concat([self.rows.select(scored.columns), scored])

    def records(self) -> Iterator[Places]:
        """Returns the entries, in order, as they go into a file."""
        return crawldatum_columns.patched_records(
            self.table, self.rows, self.at, self.before, self.scored, self.scores
        )


class PatchedWriter(TableWriter[Patched]):
    """Writes patched tables, ordered by key, to a MapFile at `path`; options as `TableWriter`."""

    def __init__(self, path: Path, **options: Any) -> None:
        super().__init__(path, CRAWL_DATUM, Patched.records, **options)


LINKS_SPAN = SPAN_SIZE // 4
"""Bytes of a compressed file that are read at a time: they grow by inflating."""


def scan_inlinks(path: InputSplit, layout: str) -> Iterator[pl.DataFrame]:
    """Returns the links of a LinkDb part, in its order, in tables of INLINKS_SCHEMA; no record is
    spread over two tables.

    A key whose Inlinks are empty has one row, with null in `from_url`. Raises FormatError for a
    record that is not in `layout`.
    """
    decode = partial(decode_inlinks, layout=layout)
    return spans.scan(path, Inlinks.class_name, decode, span_size=LINKS_SPAN)


def scan_outlinks(path: InputSplit) -> Iterator[pl.DataFrame]:
    """Returns the outlinks of a parse_data part, in its order, in tables of OUTLINKS_SCHEMA."""
    return spans.scan(path, ParseData.class_name, decode_outlinks, span_size=LINKS_SPAN)


class InlinksWriter(TableWriter[LinkSets]):
    """Writes sets of links to a LinkDb part, a MapFile whose records are compressed one by one.

    Options are those of `TableWriter`. Keys ascend. A row with null in `from_url` makes a key
    without links.
    """

    def __init__(self, path: Path, layout: str = LAYOUT_METADATA, **options: Any) -> None:
        encoder = InlinksEncoder(layout)
        super().__init__(
            path,
            Inlinks.class_name,
            encoder.records,
            # The encoder compresses each value itself.
            deflated=True,
            **{"compression": RECORD, **options},
        )


def scan_link_data(path: Path) -> Iterator[pl.DataFrame]:
    """Returns the links of a part, in its order, in tables of GRAPH_LINKS_SCHEMA."""
    return spans.scan(path, LinkDatum.class_name, webgraph.decode_link_data)


def scan_nodes(path: Path) -> Iterator[pl.DataFrame]:
    """Returns the nodes of a part, in its order, in tables of NODES_SCHEMA."""
    return spans.scan(path, Node.class_name, webgraph.decode_nodes)


def scan_dated_outlinks(path: Path) -> Iterator[pl.DataFrame]:
    """Returns a parse_data part's outlinks in tables of OUTLINKS_SCHEMA and `timestamp`."""
    return spans.scan(
        path, ParseData.class_name, webgraph.decode_dated_outlinks, span_size=LINKS_SPAN
    )


class LinkDataWriter(TableWriter[pl.DataFrame]):
    """Writes tables of GRAPH_LINKS_SCHEMA; options as `TableWriter`."""

    def __init__(self, path: Path, **options: Any) -> None:
        super().__init__(path, LinkDatum.class_name, webgraph.link_data_records, **options)


class NodeWriter(TableWriter[pl.DataFrame]):
    """Writes tables of NODES_SCHEMA; options as `TableWriter`."""

    def __init__(self, path: Path, **options: Any) -> None:
        super().__init__(path, Node.class_name, webgraph.node_records, **options)
