"""Inlinks, and the outlinks of a ParseData, as columns: from a batch to a table; and Inlinks back.

    Inlinks      int count | count × Inlink
    Inlink       text URL | text anchor | in layout 1.21: boolean | MapWritable, if true
    ParseData    byte 5 | ParseStatus | text title | int count | count × Outlink | two Metadata
    ParseStatus  byte 2 | byte major | short minor | int count | count × text
    Outlink      text URL | text anchor | boolean | MapWritable, if true

A table has one row per Inlink or Outlink, in the order of the record. `LinkSets` are Inlinks as
rows that stay where they are: sorting and merging moves the rows' numbers.

Metadata is carried as it was stored, an empty map as none. Kernels pass over metadata of strings
and numbers; a batch with any other, or with damage, goes through the dataclasses, which know the
errors. Source: org.apache.nutch.crawl.Inlinks, Inlink; org.apache.nutch.parse.ParseData,
ParseStatus, Outlink.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from minutch.errors import FormatError
from minutch.hadoop.formats.batch import Batch, Offsets, Places, string_column
from minutch.hadoop.formats.javaio import DataInput, encode_text
from minutch.kernels import deflate
from minutch.kernels import links as kernels
from minutch.kernels.arrow import Strings, from_series
from minutch.kernels.clibrary import compressor, libdeflate
from minutch.kernels.native import Slices
from minutch.records.links import LAYOUT_METADATA, Inlink, Outlink, layouts_of
from minutch.records.parsedata import VERSION, ParseStatus

INLINKS_SCHEMA = pl.Schema(
    {
        "key": pl.Binary(),  # the URL that is linked to
        "from_url": pl.Binary(),  # null in the one row of a key whose Inlinks are empty
        "anchor": pl.Binary(),
        "metadata": pl.Binary(),  # null = none, else Hadoop's MapWritable as it was stored
    }
)

OUTLINKS_SCHEMA = pl.Schema(
    {
        "key": pl.Binary(),  # the page's URL
        "to_url": pl.Binary(),
        "anchor": pl.Binary(),
    }
)


Rows = npt.NDArray[np.uint32]
_KEYS_AT_A_TIME = 8192  # what they become fits into a core's cache
_LEVEL = 1  # small records gain nothing from more

_Row = tuple[bytes, bytes | None, bytes | None, bytes | None]


@dataclass(frozen=True, slots=True)
class LinkSets:
    """Inlinks records: number i has the links `rows[starts[i] : starts[i + 1]]`, in this order.

    `links` is a table with the columns of INLINKS_SCHEMA, or without the last one.
    """

    links: pl.DataFrame
    rows: Rows
    starts: npt.NDArray[np.int64]

    @classmethod
    def of(cls, links: pl.DataFrame) -> Self:
        """Returns the records of a table in which the rows of a key lie together."""
        is_first = links["key"].ne_missing(links["key"].shift()).to_numpy()
        starts = np.append(np.flatnonzero(is_first), len(links))
        return cls(links, np.arange(len(links), dtype=np.uint32), starts.astype(np.int64))

    def __len__(self) -> int:
        """Number of links."""
        return int(self.starts[-1] - self.starts[0])

    @property
    def records(self) -> int:
        """Number of records."""
        return len(self.starts) - 1

    def batches(self, records: int) -> Iterator[Self]:
        """Yields the same, so many records at a time."""
        for first in range(0, self.records, records):
            yield type(self)(self.links, self.rows, self.starts[first : first + records + 1])

    def table(self) -> pl.DataFrame:
        """Returns the rows in a table of INLINKS_SCHEMA, those of a key one after the other."""
        table = self.links[self.rows[self.starts[0] : self.starts[-1]]]
        return (
            table
            if "metadata" in table.columns
            else table.with_columns(metadata=pl.lit(None, pl.Binary))
        )


def decode_inlinks(batch: Batch, layout: str) -> pl.DataFrame:
    """Returns the inlinks of `batch` as a table of INLINKS_SCHEMA, one row with nulls for a record
    without any.

    Raises FormatError for a record that is not of `layout`.
    """
    links = _decode(batch, parse_data=False, flag=layout == LAYOUT_METADATA)
    if links is None:
        found = _by_record(batch, lambda data: _read_inlinks(data, layout), layout, empty_row=True)
        return found.drop("record")
    columns = [
        _keys(batch, links),
        string_column("from_url", batch.values, links.url_at, links.url_len, least=0),
        string_column("anchor", batch.values, links.anchor_at, links.anchor_len, least=0),
        string_column("metadata", batch.values, links.map_at, links.map_len, least=1),
    ]
    return pl.DataFrame(columns)


def decode_outlinks(batch: Batch, of: npt.NDArray[np.uint32] | None = None) -> pl.DataFrame:
    """Returns the outlinks of a batch of ParseData as a table of OUTLINKS_SCHEMA, with a number of
    each record, if given, as `of`. Raises FormatError.
    """
    links = _decode(batch, parse_data=True, flag=True)
    if links is None:
        found = _by_record(batch, _read_outlinks, None).rename({"from_url": "to_url"})
        numbers = [] if of is None else [pl.Series("of", of[found["record"]])]
        return found.select("key", "to_url", "anchor", *numbers)
    columns = [] if of is None else [pl.Series("of", of[links.record])]
    columns[:0] = [
        _keys(batch, links),
        string_column("to_url", batch.values, links.url_at, links.url_len),
        string_column("anchor", batch.values, links.anchor_at, links.anchor_len),
    ]
    return pl.DataFrame(columns)


def _keys(batch: Batch, links: kernels.LinkPlaces) -> pl.Series:
    return string_column("key", batch.keys, batch.key_at[links.record], batch.key_len[links.record])


def _decode(batch: Batch, parse_data: bool, flag: bool) -> kernels.LinkPlaces | None:
    first, count = np.empty(batch.size, np.int64), np.empty(batch.size, np.int64)
    total = kernels.count_links(
        batch.values, batch.value_at, batch.value_len, parse_data, flag, first, count
    )
    if total < 0:
        return None
    # A key without inlinks has a row, too.
    rows = total if parse_data else int(np.maximum(count, 1).sum())
    links = kernels.new_link_places(rows)
    kernels.read_links(batch.values, first, count, flag, not parse_data, links)
    return links


def _by_record(
    batch: Batch,
    read: Callable[[bytes], list[_Row]],
    layout: str | None,
    *,
    empty_row: bool = False,
) -> pl.DataFrame:
    """Returns the links of a batch by the dataclasses: the URL of the other end, anchor, metadata,
    and the number of the record.
    """
    rows: list[_Row] = []
    records: list[int] = []
    for number in range(batch.size):
        key, value = batch.key(number), batch.value(number)
        try:
            links = read(value)
        except FormatError as exc:
            error = exc if layout is None else _misfit(exc, value, layout)
            raise error.at(f"record of {key!r}") from exc
        # The readers know no key.
        rows += [(key, *link[1:]) for link in links]
        if not links and empty_row:
            rows.append((key, None, None, None))
        records += [number] * (len(rows) - len(records))
    names = ("key", "from_url", "anchor", "metadata")
    table = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.Binary), orient="row")
    return table.with_columns(record=pl.Series(records, dtype=pl.UInt32))


def _row(url: str, link: Inlink | Outlink) -> _Row:
    metadata = link.metadata.to_bytes() if link.metadata else None
    return b"", encode_text(url), encode_text(link.anchor), metadata


def _read_inlinks(record: bytes, layout: str) -> list[_Row]:
    """Returns the links of a serialized Inlinks in `layout`. FormatError unless it fits exactly."""
    data = DataInput(record)
    count = data.read_int()
    if not 0 <= count <= data.remaining:
        raise FormatError("impossible number of inlinks", offset=0, found=count)
    links = [Inlink.read(data, layout) for _ in range(count)]
    if data.remaining:
        raise FormatError(
            "bytes left over after Inlinks", offset=data.pos, expected=data.pos, found=data.end
        )
    return [_row(link.from_url, link) for link in links]


def _read_outlinks(record: bytes) -> list[_Row]:
    """Returns the outlinks of a serialized ParseData; what follows them is not read."""
    data = DataInput(record)
    version = data.read_byte()
    if version != VERSION:
        raise FormatError("unknown version of ParseData", offset=0, expected=VERSION, found=version)
    ParseStatus.read(data)
    data.skip(data.read_vint())
    start = data.pos
    count = data.read_int()
    if not 0 <= count <= data.remaining:
        raise FormatError("impossible number of outlinks", offset=start, found=count)
    return [_row(link.to_url, link) for link in (Outlink.read(data) for _ in range(count))]


def _misfit(error: FormatError, value: bytes, layout: str) -> FormatError:
    """Returns the error for a record not in `layout`: a mixture of layouts, or `error`."""
    fitting = layouts_of(value) - {layout}
    if not fitting:  # damaged in either
        return error
    return FormatError(
        "LinkDb with records in two layouts of Inlinks",
        offset=0,
        expected=layout,
        found=", ".join(fitting),
    )


class _LinkStrings(NamedTuple):
    """The columns of a table of links as kernels take them."""

    key: Strings
    present: npt.NDArray[np.bool_]  # whether the row is a link
    from_url: Strings
    anchor: Strings
    metadata: Strings  # empty if no link has any

    @classmethod
    def of(cls, links: pl.DataFrame) -> _LinkStrings:
        """Returns the strings of a table of INLINKS_SCHEMA, with or without the last column."""
        present = links["from_url"].is_not_null().to_numpy()
        key, from_url, anchor = (from_series(links[name]) for name in ("key", "from_url", "anchor"))
        bare = "metadata" not in links.columns or links["metadata"].null_count() == len(links)
        return cls(
            key, present, from_url, anchor, _NOTHING if bare else from_series(links["metadata"])
        )


_NOTHING = Strings(np.zeros((0, 4), np.int32), np.zeros(1, np.uint64), None)


class InlinksEncoder:
    """Makes Inlinks records of sets of links, each compressed to a zlib stream of its own."""

    def __init__(self, layout: str) -> None:
        self._flag = layout == LAYOUT_METADATA
        self._buffer = np.empty(0, np.uint8)
        self._places = deflate.new_places()

    def records(self, sets: LinkSets) -> Iterator[Places]:
        """Yields the records as they go into a file; each piece is good until the next one."""
        links = _LinkStrings.of(sets.links)
        with compressor(_LEVEL) as state:
            for first in range(0, sets.records, _KEYS_AT_A_TIME):
                yield self._encode(
                    links, sets.rows, sets.starts[first : first + _KEYS_AT_A_TIME + 1], state
                )

    def _encode(self, links: _LinkStrings, rows: Rows, starts: Offsets, state: int) -> Places:
        count, size = len(starts) - 1, int(starts[-1] - starts[0])
        at, length = np.empty(count, np.int64), np.empty(count, np.int32)
        every = (links.key, links.from_url, links.anchor, links.metadata)
        sizes = (count, size, size, size if len(links.metadata.views) else 0)
        own = [
            strings._replace(views=np.zeros((n, 4), np.int32))
            for strings, n in zip(every, sizes, strict=True)
        ]
        sums = np.empty(2, np.int64)
        views, own_views = (
            kernels.LinkViews(*(strings.views for strings in some)) for some in (every, own)
        )
        kernels.take_links(starts, rows, links.present, views, self._flag, length, own_views, sums)
        total, longest = sums.tolist()
        # Streams, and one record before it is compressed.
        room = total + longest + deflate.LIBRARY_OVERHEAD * count
        if room > len(self._buffer):  # kept from piece to piece
            self._buffer = np.empty(room, np.uint8)
        streams = Slices(self._buffer, at, length)
        compressor = deflate.Compressor(self._places, state, libdeflate().zlib_compress)
        keys, urls, anchors, maps = (strings.column for strings in own)
        kernels.write_inlinks(streams, starts, keys, urls, anchors, maps, self._flag, compressor)
        return Places.of(own[0], self._buffer, at, length)
