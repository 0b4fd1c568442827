"""Reads the texts of segments with the marks of their lines (`records.textblocks`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import polars as pl

from minutch.cycle.segment.store import LAYOUTS, PARSE_DATA, PARSE_TEXT, Segment
from minutch.hadoop.formats.batch import keys_of
from minutch.records.parsedata_columns import decode, decode_texts
from minutch.records.textblocks import BLOCKS_KEY, SIZE, read_marks
from minutch.work.tables.frame import decode_keys
from minutch.work.tables.keyranges import KeyRange, SortedPart, cut
from minutch.work.tables.parallel import ordered

RANGE_SIZE: Final = 1 << 22
"""Bytes of a segment that are read at a time."""


def parses(segment: Segment, only: pl.Series | None = None) -> Iterator[pl.DataFrame]:
    """Yields the pages of a segment that were parsed, by URL, some at a time: `key`, `url`,
    `title`, `text`, `marks` (Binary; null for none); those of the keys `only`. Raises FormatError.
    """
    if not (segment.has(PARSE_DATA) and segment.has(PARSE_TEXT)):
        return
    data, texts = parts_of(segment)
    ranges = cut([*data, *texts], RANGE_SIZE)
    if only is not None:
        wanted = only.sort()
        # A page or two: most of the segment is not read.
        ranges = [keys for keys in ranges if keys.mask(wanted).any()]
    yield from ordered(lambda keys: parses_between(data, texts, keys, only), ranges)


def parts_of(segment: Segment) -> tuple[list[SortedPart], list[SortedPart]]:
    """Returns the parts of a segment with its parses, and those with their texts."""
    data, texts = (
        [SortedPart(path, LAYOUTS[folder].value_class) for path in segment.parts(folder)]
        for folder in (PARSE_DATA, PARSE_TEXT)
    )
    return data, texts


def parses_between(
    data: Sequence[SortedPart],
    texts: Sequence[SortedPart],
    keys: KeyRange,
    only: pl.Series | None = None,
) -> pl.DataFrame:
    """Returns the `parses` in a range of keys."""
    tables, written = [], []
    for part in data:
        batch = part.batch(keys, only)
        table = decode(batch)
        marks = table.first_values(BLOCKS_KEY, "parse").alias("marks")
        columns = [keys_of(batch), table.titles(), marks, table.is_success.alias("is_parsed")]
        tables.append(pl.DataFrame(columns))
    for part in texts:
        batch = part.batch(keys, only)
        written.append(pl.DataFrame([keys_of(batch), decode_texts(batch).alias("text")]))
    # A URL may be in a segment twice: its nth parse has the nth text.
    nth = pl.int_range(pl.len()).over("key").alias("nth")
    found = pl.concat(tables).sort("key", maintain_order=True).with_columns(nth)
    found = found.join(
        pl.concat(written).with_columns(nth),
        on=["key", "nth"],
        how="left",
        maintain_order="left",
    ).filter("is_parsed")
    texts_of = [decode_keys(found[name]) for name in ("title", "text")]
    return found.select("key", decode_keys(found["key"]).alias("url"), *texts_of, "marks")


def has_marks(pages: pl.DataFrame) -> pl.Series:
    """Returns the mask of the pages whose text is the one that their marks are of."""
    lines = pl.col("text").str.count_matches("\n", literal=True) + 1
    # A parse filter may have changed the text since: then marks are of other lines.
    return pages.select((pl.col("marks").bin.size() == lines * SIZE).fill_null(False)).to_series()


def lines_of(pages: pl.DataFrame) -> pl.DataFrame:
    """Returns the lines of pages that have marks: `row` of the page, `number` in it, `line`,
    `chance`, `place`.
    """
    chances, places = read_marks(b"".join(pages["marks"].to_list()))
    found = pages.select(
        row=pl.int_range(pl.len(), dtype=pl.UInt32), line=pl.col("text").str.split("\n")
    )
    return found.explode("line").select(
        "row",
        pl.int_range(pl.len(), dtype=pl.UInt32).over("row").alias("number"),
        "line",
        pl.Series("chance", chances.astype(np.uint8)),
        pl.Series("place", places.astype(np.uint32)),
    )
