"""LinkDatum and Node as columns, and the outlinks of ParseData with the time of the fetch: tables
and back.

A link's URL, anchor, score, timestamp and type are columns of their own. Of a node, counts and
score are; its metadata stays as it was stored, none where it is empty. A batch that makes no sense
to a kernel goes through the dataclasses, which know the errors. Source:
org.apache.nutch.scoring.webgraph.LinkDatum, Node, WebGraph.OutlinkDb.getFetchTime.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from minutch.errors import FormatError
from minutch.hadoop.formats.batch import Batch, Places, places, string_column
from minutch.hadoop.formats.javaio import DataInput
from minutch.hadoop.formats.writables import Writable
from minutch.kernels import webgraph as kernels
from minutch.kernels.arrow import Views, from_series, to_series
from minutch.records.links.columns import decode_outlinks
from minutch.records.metadata import FETCH_TIME_KEY
from minutch.records.parsedata import ParseData
from minutch.records.webgraph.graph import LinkDatum, Node

_COUNTS: Final = 12  # bytes of a Node before its metadata
_NO_METADATA: Final = bytes(4)
_ROWS_AT_A_TIME: Final = 1 << 16
_TIME_NAME: Final = np.frombuffer(FETCH_TIME_KEY.encode(), np.uint8)


def decode_link_data(batch: Batch) -> pl.DataFrame:
    """Returns the links of a batch as a table of GRAPH_LINKS_SCHEMA. Raises FormatError."""
    size = batch.size
    url_at, anchor_at, timestamp = (np.empty(size, np.int64) for _ in range(3))
    url_len, anchor_len, score_bits = (np.empty(size, np.int32) for _ in range(3))
    kind = np.empty(size, np.int8)
    fields = (url_at, url_len, anchor_at, anchor_len, score_bits, timestamp, kind)
    _require(
        kernels.read_link_data(batch.values, batch.value_at, batch.value_len, *fields),
        batch,
        LinkDatum,
    )
    return pl.DataFrame(
        [
            string_column("key", batch.keys, batch.key_at, batch.key_len),
            string_column("url", batch.values, url_at, url_len),
            string_column("anchor", batch.values, anchor_at, anchor_len),
            pl.Series("score", score_bits.view(np.float32)),
            pl.Series("timestamp", timestamp),
            pl.Series("link_type", kind),
        ]
    )


def link_data_records(table: pl.DataFrame) -> Iterator[Places]:
    """Yields the records of a table of GRAPH_LINKS_SCHEMA as they go into a file."""
    for rows in table.iter_slices(_ROWS_AT_A_TIME):
        keys, urls, anchors = (from_series(rows[name]) for name in ("key", "url", "anchor"))
        at, length = np.empty(len(rows), np.int64), np.empty(len(rows), np.int32)
        out = np.empty(kernels.measure_link_data(urls.views, anchors.views, at, length), np.uint8)
        numbers = (
            rows["score"].to_numpy().view(np.int32),
            rows["timestamp"].to_numpy(),
            rows["link_type"].to_numpy(),
        )
        kernels.write_link_data(
            out, at, urls.column, anchors.column, *map(np.ascontiguousarray, numbers)
        )
        yield Places.of(keys, out, at, length)


def decode_nodes(batch: Batch) -> pl.DataFrame:
    """Returns the nodes of a batch as a table of NODES_SCHEMA. Raises FormatError."""
    if batch.size and batch.value_len.min() < _COUNTS + len(_NO_METADATA):
        _require(int(batch.value_len.argmin()), batch, Node)
    counts = (
        batch.values[batch.value_at[:, None] + np.arange(_COUNTS)]
        .view(">i4")
        .astype(np.int32)
        .reshape(-1, 3)
    )
    metadata_at, metadata_len = batch.value_at + _COUNTS, batch.value_len - np.int32(_COUNTS)
    return pl.DataFrame(
        [
            string_column("key", batch.keys, batch.key_at, batch.key_len),
            pl.Series("num_inlinks", np.ascontiguousarray(counts[:, 0])),
            pl.Series("num_outlinks", np.ascontiguousarray(counts[:, 1])),
            pl.Series("inlink_score", np.ascontiguousarray(counts[:, 2]).view(np.float32)),
            string_column(
                "metadata", batch.values, metadata_at, metadata_len, least=len(_NO_METADATA) + 1
            ),
        ]
    )


def node_values(table: pl.DataFrame) -> pl.Series:
    """Returns the serialized nodes of a table of NODES_SCHEMA."""
    views: Views = np.empty((len(table), 4), np.int32)
    views[:, 0] = _COUNTS
    for column, name in enumerate(("num_inlinks", "num_outlinks"), 1):
        views[:, column] = table[name].to_numpy().byteswap()
    views[:, 3] = table["inlink_score"].to_numpy().view(np.int32).byteswap()
    return to_series("value", views, []) + table["metadata"].fill_null(_NO_METADATA)


def node_records(table: pl.DataFrame) -> Iterator[Places]:
    """Yields the records of a table of NODES_SCHEMA as they go into a file."""
    for rows in table.iter_slices(_ROWS_AT_A_TIME):
        yield places_of(rows["key"], node_values(rows))


def places_of(keys: pl.Series, values: pl.Series) -> Places:
    """Records whose keys and values are columns of byte strings."""
    own, others = from_series(keys), from_series(values)
    return Places(*places(own), *places(others), (own, others))


def decode_dated_outlinks(batch: Batch) -> pl.DataFrame:
    """Returns the outlinks of a batch of ParseData with the time of the fetch, null where the page
    does not say it.

    OUTLINKS_SCHEMA and `timestamp`. Raises FormatError.
    """
    links, times = np.empty(batch.size, np.int64), np.empty(batch.size, np.int64)
    start = 0
    while True:
        values = batch.values, batch.value_at, batch.value_len
        start = kernels.content_times(*values, _TIME_NAME, start, links, times)
        if start < 0:
            break
        links[start], times[start] = _read_time(batch, start)
        start += 1
    timestamp = pl.Series("timestamp", np.repeat(times, links))
    return decode_outlinks(batch).with_columns(timestamp.replace(kernels.NO_TIME, None))


def _read_time(batch: Batch, number: int) -> tuple[int, int]:
    """Reads like the kernel, by the dataclass."""
    try:
        page = ParseData.read(DataInput(batch.value(number)))
    except FormatError as exc:
        raise exc.at(f"record of {batch.key(number)!r}") from exc
    text = page.content_meta.first(FETCH_TIME_KEY) or ""
    return len(page.outlinks), int(text) if re.fullmatch(
        "[+-]?[0-9]{1,18}", text
    ) else kernels.NO_TIME


def _require(wrong: int, batch: Batch, record: type[Writable]) -> None:
    """Raises the error for the record of that number, unless it is -1."""
    if wrong < 0:
        return
    value = batch.value(wrong)
    try:
        data = DataInput(value)
        record.read(data)
        raise FormatError(
            "bytes left over after a record", offset=data.pos, expected=data.pos, found=len(value)
        )
    except FormatError as exc:
        raise exc.at(f"record of {batch.key(wrong)!r}") from exc
