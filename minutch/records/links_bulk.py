"""Inlinks and outlinks in bulk: from the values of a Batch to the rows of a table, and back.

The bytes are those of the codec for single records (`links_columns`), which tests hold against this one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from minutch.formats.sequencefile import RECORD
from minutch.kernels import deflate as deflate_kernels
from minutch.kernels import links as links_kernels
from minutch.kernels.arrow import Strings, from_series
from minutch.kernels.native import Libdeflate, compressor
from minutch.records.links import LAYOUT_METADATA
from minutch.records.linksets import LinkSets, Rows
from minutch.tables.spans import Batch, Lengths, Offsets
from minutch.tables.spans_reading import string_column
from minutch.tables.writer import LEVEL, ZLIB_OVERHEAD, BulkMapWriter

_KEYS_AT_A_TIME = 8192  # what they become fits into a core's cache


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


class LinkStrings(NamedTuple):
    """The columns of a table of links as kernels take them."""

    key: Strings
    present: npt.NDArray[np.bool_]  # whether the row is a link
    from_url: Strings
    anchor: Strings
    metadata: Strings  # empty if no link has any

    @classmethod
    def of(cls, links: pl.DataFrame) -> LinkStrings:
        """The strings of a table with the columns of INLINKS_SCHEMA, or without the last one."""
        present = links["from_url"].is_not_null().to_numpy()
        key, from_url, anchor = (from_series(links[name]) for name in ("key", "from_url", "anchor"))
        bare = "metadata" not in links.columns or links["metadata"].null_count() == len(links)
        return cls(key, present, from_url, anchor, _NOTHING if bare else from_series(links["metadata"]))


_NOTHING = Strings(np.zeros((0, 4), np.int32), np.zeros(1, np.uint64), None)


class InlinksSink:
    """A new MapFile of <Text, Inlinks>, compressed record by record, that takes sets of links."""

    def __init__(
        self, path: Path, value_class: str, layout: str, library: Libdeflate, syncs: tuple[bytes | None, bytes | None]
    ) -> None:
        sync, index_sync = syncs
        self._file = BulkMapWriter(path, value_class, library, compression=RECORD, sync=sync, index_sync=index_sync)
        self._library = library
        self._flag = layout == LAYOUT_METADATA
        self._buffer = np.empty(0, np.uint8)
        self._places = deflate_kernels.new_places()
        self.close, self.discard = self._file.close, self._file.discard

    def write(self, sets: LinkSets) -> None:
        """Append records."""
        links = LinkStrings.of(sets.links)
        with compressor(LEVEL) as state:
            for first in range(0, sets.records, _KEYS_AT_A_TIME):
                self._write(links, sets.rows, sets.starts[first : first + _KEYS_AT_A_TIME + 1], state)

    def _write(self, links: LinkStrings, rows: Rows, starts: Offsets, state: int) -> None:
        count, size = len(starts) - 1, int(starts[-1] - starts[0])
        at, length = np.empty(count, np.int64), np.empty(count, np.int32)
        every = (links.key, links.from_url, links.anchor, links.metadata)
        sizes = (count, size, size, size if len(links.metadata.views) else 0)
        own = [strings._replace(views=np.zeros((n, 4), np.int32)) for strings, n in zip(every, sizes, strict=True)]
        found: list[Any] = [length, *(strings.views for strings in own)]
        columns: list[Any] = [links.present, *(strings.views for strings in every), self._flag, *found]
        total, longest = links_kernels.take_links(starts, rows, *columns)
        room = total + longest + ZLIB_OVERHEAD * count
        if room > len(self._buffer):
            self._buffer = np.empty(room, np.uint8)
        columns = [array for strings in own for array in strings[:2]]
        columns += [self._flag, self._places, state, self._library.zlib_compress]
        links_kernels.write_inlinks(self._buffer, at, length, starts, *columns)
        self._file.write(own[0], self._buffer, at, length)
