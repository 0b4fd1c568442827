"""Inlinks and outlinks in bulk: from the values of a Batch to the rows of a table, and back.

The bytes are those of the codec for single records (`links_columns`), which tests hold against this one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from minutch.formats import columns_kernels
from minutch.formats.columns import Batch, Lengths, Offsets
from minutch.formats.columns_arrow import from_series
from minutch.formats.columns_reading import string_column
from minutch.formats.columns_writing import BulkWriter
from minutch.records import links_kernels
from minutch.records.links import LAYOUT_METADATA

_KEYS_AT_A_TIME = 50_000


def decode_inlinks(batch: Batch, layout: str) -> pl.DataFrame | None:
    """The inlinks of `batch` as a table (key, from_url, anchor, metadata), one row with nulls for a record without any.

    None if a record is not of `layout`, or holds metadata beyond strings and numbers.
    """
    flag = layout == LAYOUT_METADATA
    links = _decode(batch, parse_data=False, flag=flag)
    if links is None:
        return None
    key, (url, anchor, metadata) = links
    columns = [
        key,
        string_column("from_url", batch.values, *url, least=0),
        string_column("anchor", batch.values, *anchor, least=0),
        string_column("metadata", batch.values, *metadata, least=1),
    ]
    return pl.DataFrame(columns)


def decode_outlinks(batch: Batch) -> pl.DataFrame | None:
    """The outlinks of a batch of ParseData as a table (key, to_url, anchor); None if a record is not what is known."""
    links = _decode(batch, parse_data=True, flag=True)
    if links is None:
        return None
    key, (url, anchor, _) = links
    columns = [key, string_column("to_url", batch.values, *url), string_column("anchor", batch.values, *anchor)]
    return pl.DataFrame(columns)


def _decode(batch: Batch, parse_data: bool, flag: bool) -> tuple[pl.Series, list[tuple[Offsets, Lengths]]] | None:
    first, count = np.empty(batch.size, np.int64), np.empty(batch.size, np.int64)
    total = links_kernels.count_links(batch.values, batch.value_at, batch.value_len, parse_data, flag, first, count)
    if total < 0:
        return None
    rows = total if parse_data else int(np.maximum(count, 1).sum())
    record = np.empty(rows, np.int64)
    places = [(np.empty(rows, np.int64), np.empty(rows, np.int32)) for _ in range(3)]
    fields: list[Any] = [record, *(array for place in places for array in place)]
    links_kernels.read_links(batch.values, len(batch.values), first, count, flag, not parse_data, *fields)
    key = string_column("key", batch.keys, batch.key_at[record], batch.key_len[record])
    return key, places


class InlinksSink:
    """A file of <Text, Inlinks> that takes tables; the rows of a key lie together in one table."""

    def __init__(self, file: BulkWriter, layout: str) -> None:
        self._file = file
        self._flag = layout == LAYOUT_METADATA
        self.close, self.discard = file.close, file.discard

    def write(self, frame: pl.DataFrame) -> None:
        """Append the records of `frame`."""
        if not len(frame):
            return
        starts = frame.select((pl.col("key") != pl.col("key").shift(1)).fill_null(True).arg_true())["key"].to_numpy()
        ends = np.append(starts[1:], len(frame)).astype(np.int64)
        for i in range(0, len(starts), _KEYS_AT_A_TIME):
            part = starts[i : i + _KEYS_AT_A_TIME].astype(np.int64)
            last = int(ends[min(i + _KEYS_AT_A_TIME, len(ends)) - 1])
            self._write(frame[int(part[0]) : last], np.append(part, last) - part[0])

    def _write(self, frame: pl.DataFrame, starts: Offsets) -> None:
        present = frame["from_url"].is_not_null().to_numpy()
        urls, anchors, maps = (from_series(frame[name]) for name in ("from_url", "anchor", "metadata"))
        count = len(starts) - 1
        at, length = np.empty(count, np.int64), np.empty(count, np.int32)
        links_kernels.inlinks_sizes(starts, present, urls.views, anchors.views, maps.views, self._flag, length)
        buffer = np.empty(int(columns_kernels.running_sum(length, at)), np.uint8)
        columns = [*urls[:2], *anchors[:2], *maps[:2], self._flag]
        links_kernels.write_inlinks(buffer, at, starts, present, *columns)
        keys = from_series(frame["key"].gather(starts[:-1]))
        self._file.write(keys, buffer, at, length)
