"""The WebGraph's records (org.apache.nutch.scoring.webgraph), and LinkDatum and Node as columns.

    LinkDatum    text URL, text anchor, float score, long timestamp (ms), byte type (1 inlink, 2
                 outlink)
    Node         int inlinks, int outlinks, float inlink score, Metadata
    LinkNode     utf8 URL, Node
    LinkNodes    int count, LinkNode*; no bytes at all for no nodes
    Route        text outlink URL, text URL looked for, boolean found (Loops, until Nutch 1.11)
    LoopSet      int count, text URL*                                 (Loops, until Nutch 1.11)

A link's URL, anchor, score, timestamp and type are columns of their own. Of a node, counts and
score are; its metadata stays as it was stored, none where it is empty. Outlinks of ParseData have
the time of the fetch beside them. A batch that makes no sense to a kernel goes through the
dataclasses, which know the errors. Source: LinkDatum, Node, WebGraph.OutlinkDb.getFetchTime.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Self

import numpy as np
import polars as pl

from minutch.errors import FormatError
from minutch.hadoop.formats import javahash
from minutch.hadoop.formats.batch import Batch, Places, places, string_column
from minutch.hadoop.formats.javaio import DataInput, DataOutput
from minutch.hadoop.formats.writables import Writable
from minutch.kernels import webgraph as kernels
from minutch.kernels.arrow import Views, from_series, to_series
from minutch.records.links_columns import decode_outlinks
from minutch.records.metadata import FETCH_TIME_KEY, Metadata
from minutch.records.parsedata import ParseData

INLINK: Final = 1
OUTLINK: Final = 2
_LINK_TYPES: Final = {INLINK: "inlink", OUTLINK: "outlink"}
GRAPH_LINKS_SCHEMA = pl.Schema(
    {
        "key": pl.Binary(),  # the page at one end
        "url": pl.Binary(),  # that at the other
        "anchor": pl.Binary(),
        "score": pl.Float32(),
        "timestamp": pl.Int64(),  # ms since the epoch
        "link_type": pl.Int8(),  # whether `key` is linked to or links
    }
)

NODES_SCHEMA = pl.Schema(
    {
        "key": pl.Binary(),
        "num_inlinks": pl.Int32(),
        "num_outlinks": pl.Int32(),
        "inlink_score": pl.Float32(),
        "metadata": pl.Binary(),  # null = none, else Nutch's Metadata as it was stored
    }
)


_COUNTS: Final = 12  # bytes of a Node before its metadata
_NO_METADATA: Final = bytes(4)
_ROWS_AT_A_TIME: Final = 1 << 16
_TIME_NAME: Final = np.frombuffer(FETCH_TIME_KEY.encode(), np.uint8)


@dataclass(slots=True)
class LinkDatum(Writable):
    """A link of the graph, seen from one of its ends."""

    class_name = "org.apache.nutch.scoring.webgraph.LinkDatum"
    url: str
    anchor: str = ""
    score: float = 0.0
    timestamp: int = 0
    link_type: int = 0

    @classmethod
    def read(cls, data: DataInput) -> Self:
        return cls(
            data.read_text(),
            data.read_text(),
            data.read_float(),
            data.read_long(),
            data.read_byte(),
        )

    def write(self, out: DataOutput) -> None:
        out.write_text(self.url)
        out.write_text(self.anchor)
        out.write_float(self.score)
        out.write_long(self.timestamp)
        out.write_byte(self.link_type)

    def __str__(self) -> str:
        kind = _LINK_TYPES.get(self.link_type, "unknown")
        score = javahash.float_to_string(self.score)
        return (
            f"url: {self.url}, anchor: {self.anchor}, score: {score}, timestamp: {self.timestamp},"
            f" link type: {kind}"
        )


@dataclass(slots=True)
class Node(Writable):
    """Link counts and score of one page."""

    class_name = "org.apache.nutch.scoring.webgraph.Node"
    num_inlinks: int = 0
    num_outlinks: int = 0
    inlink_score: float = 1.0
    metadata: Metadata = field(default_factory=Metadata)

    @property
    def outlink_score(self) -> float:
        """The score that each outlink gets, in 32-bit arithmetic."""
        if self.num_outlinks <= 0:
            return self.inlink_score
        return javahash.float32(self.inlink_score / javahash.float32(self.num_outlinks))

    @classmethod
    def read(cls, data: DataInput) -> Self:
        return cls(data.read_int(), data.read_int(), data.read_float(), Metadata.read(data))

    def write(self, out: DataOutput) -> None:
        out.write_int(self.num_inlinks)
        out.write_int(self.num_outlinks)
        out.write_float(self.inlink_score)
        self.metadata.write(out)

    def __str__(self) -> str:
        scores = [
            javahash.float_to_string(score) for score in (self.inlink_score, self.outlink_score)
        ]
        return (
            f"num inlinks: {self.num_inlinks}, num outlinks: {self.num_outlinks}, inlink score:"
            f" {scores[0]}, outlink score: {scores[1]}, metadata: {self.metadata}"
        )


@dataclass(slots=True)
class LinkNode(Writable):
    """A node with its URL (LinkDumper)."""

    class_name = "org.apache.nutch.scoring.webgraph.LinkDumper$LinkNode"
    url: str
    node: Node = field(default_factory=Node)

    @classmethod
    def read(cls, data: DataInput) -> Self:
        return cls(data.read_utf8(), Node.read(data))

    def write(self, out: DataOutput) -> None:
        out.write_utf8(self.url)
        self.node.write(out)


@dataclass(slots=True)
class LinkNodes(Writable):
    """The nodes that link to a page (LinkDumper)."""

    class_name = "org.apache.nutch.scoring.webgraph.LinkDumper$LinkNodes"
    links: list[LinkNode] = field(default_factory=list)

    @classmethod
    def read(cls, data: DataInput) -> Self:
        if not data.remaining:
            return cls()
        start = data.pos
        count = data.read_int()
        if not 0 <= count <= data.remaining:
            raise FormatError("impossible number of nodes", offset=start, found=count)
        return cls([LinkNode.read(data) for _ in range(count)])

    def write(self, out: DataOutput) -> None:
        if self.links:
            out.write_int(len(self.links))
            for link in self.links:
                link.write(out)


@dataclass(slots=True)
class Route(Writable):
    """A path being followed in search of a loop (Loops)."""

    class_name = "org.apache.nutch.scoring.webgraph.Loops$Route"
    outlink_url: str
    looking_for: str
    found: bool = False

    @classmethod
    def read(cls, data: DataInput) -> Self:
        return cls(data.read_text(), data.read_text(), data.read_boolean())

    def write(self, out: DataOutput) -> None:
        out.write_text(self.outlink_url)
        out.write_text(self.looking_for)
        out.write_boolean(self.found)


@dataclass(slots=True)
class LoopSet(Writable):
    """The URLs of one loop (Loops), each once; written in the order of Java's HashSet."""

    class_name = "org.apache.nutch.scoring.webgraph.Loops$LoopSet"
    urls: dict[str, None] = field(default_factory=dict)

    def java_order(self) -> list[str]:
        """Returns the URLs as Java's HashSet iterates over them."""
        urls = list(self.urls)
        return [
            urls[i] for i in javahash.hash_map_order([javahash.string_hash(url) for url in urls])
        ]

    @classmethod
    def read(cls, data: DataInput) -> Self:
        return cls(dict.fromkeys(data.read_text() for _ in range(data.read_int())))

    def write(self, out: DataOutput) -> None:
        out.write_int(len(self.urls))
        for url in self.java_order():
            out.write_text(url)

    def __str__(self) -> str:
        return ",".join(self.java_order())


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
    # The shortest record names the error.
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
    # 12 bytes fit into a view: the three numbers are written where the string stands.
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
        # Links with metadata that kernels don't know, or a damaged record.
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
    text = page.content_meta.get(FETCH_TIME_KEY) or ""
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
