"""Entries of a CrawlDb or a segment as they lie in files, for jobs that look at little of most of them.

    PACKED_SCHEMA   key, status, fetch time, score, and as `value` the serialized CrawlDatum, version 7, as minutch
                    writes it

A packed table is read without taking the records apart, and written by copying them. Only what a job looks at more
closely is decoded (`take`), and only what it changes is encoded (`Patched`). Records that minutch would write in other
bytes than those in the file (older versions, an empty map) are written anew as they are read, so that a packed table
always holds what `unpack` and `pack` would make of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from minutch.formats.javaio import encode_vlong
from minutch.formats.mapfile import MapFileWriter
from minutch.records.crawldatum_columns import decode_datum, encode_datum
from minutch.tables.crawldata import CRAWL_DATUM, TEXT, open_file, read_span
from minutch.tables.frame import CRAWLDB_SCHEMA, PACKED_SCHEMA
from minutch.tables.merge import is_bulk
from minutch.tables.parallel import ordered
from minutch.tables.spans import BulkFile, Span
from minutch.tables.writing import Sink, TableWriter

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

_KEPT = [name for name in PACKED_SCHEMA if name != "value"]
_FIELDS = {name: dtype for name, dtype in CRAWLDB_SCHEMA.items() if name != "key"}


def scan_packed(path: Path, *, threads: int = 0) -> Iterator[pl.DataFrame]:
    """As `crawldata.scan`, in tables of PACKED_SCHEMA."""
    file = open_file(path)
    return ordered(lambda span: _read(file, span), file.spans(), threads)


def _read(file: BulkFile, span: Span) -> pl.DataFrame:
    batch = file.batch(span)
    if batch is not None:
        from minutch.records import crawldatum_bulk

        frame = crawldatum_bulk.packed(batch)
        if frame is not None:
            return frame
    return pack(read_span(file, span))


def pack(frame: pl.DataFrame) -> pl.DataFrame:
    """The packed table of one of CRAWLDB_SCHEMA."""
    if not is_bulk(frame):
        values = [encode_datum(row) for row in frame.select(list(_FIELDS)).iter_rows()]
        return frame.select(*_KEPT, pl.Series("value", values, dtype=pl.Binary))
    from minutch.records import crawldatum_bulk
    from minutch.tables.spans_reading import string_column

    return frame.select(*_KEPT, string_column("value", *crawldatum_bulk.encode(frame)))


def unpack(table: pl.DataFrame) -> pl.DataFrame:
    """The table of CRAWLDB_SCHEMA that a packed one stands for; rows without a value are null."""
    if not is_bulk(table):
        nothing = (None,) * len(_FIELDS)
        rows = [nothing if value is None else decode_datum(value) for value in table["value"]]
        return pl.DataFrame(rows, schema=_FIELDS, orient="row").insert_column(0, table["key"])
    import numpy as np

    from minutch.kernels import sort as sort_kernels
    from minutch.kernels.arrow import from_series
    from minutch.records import crawldatum_bulk

    values = from_series(table["value"])
    every = np.arange(len(table), dtype=np.uint32)
    out = np.empty(int(values.views[:, 0].sum(dtype=np.int64)), np.uint8)
    at, length = np.empty(len(table), np.int64), np.empty(len(table), np.int32)
    sort_kernels.pack(values.views, values.addresses, every, out, at, length)
    columns = crawldatum_bulk.decode_values(out, at, length, optional=True)
    assert columns is not None, "a packed table holds records of version 7 only"
    frame = pl.DataFrame([table["key"], *columns])
    if not table["value"].null_count():
        return frame
    there = table["value"].is_not_null()
    return frame.with_columns(pl.when(there).then(pl.col(*_FIELDS)))


def take(table: pl.DataFrame, at: Ints) -> pl.DataFrame:
    """The rows of a packed table at positions `at`, unpacked; all null where the position is -1."""
    positions = pl.Series(at)
    if len(at) and at.min() < 0:
        positions = positions.set(positions < 0, None)
    return unpack(table.select(pl.col("key", "value").gather(pl.lit(positions))))


@dataclass(frozen=True)
class Patched:
    """A packed table with `rows` (CRAWLDB_SCHEMA) put in: row i in place of row at[i], if that is -1 before before[i].

    Both are sorted by key.
    """

    table: pl.DataFrame
    rows: pl.DataFrame
    at: Ints
    before: Ints

    def __len__(self) -> int:
        return len(self.table) + int((self.at < 0).sum())

    def records(self) -> Iterator[tuple[bytes, bytes]]:
        """Key and serialized CrawlDatum of each entry, in order."""
        old = list(zip(self.table["key"], self.table["value"], strict=True))
        done = 0
        rows = self.rows.select(CRAWLDB_SCHEMA.names()).iter_rows()
        for (key, *row), at, before in zip(rows, self.at.tolist(), self.before.tolist(), strict=True):
            yield from old[done:before]
            yield key, encode_datum(row)
            done = before + (at >= 0)
        yield from old[done:]

    def to_frame(self) -> pl.DataFrame:
        """All entries as a table of CRAWLDB_SCHEMA, for few of them."""
        rows = [(key, *decode_datum(value)) for key, value in self.records()]
        return pl.DataFrame(rows, schema=CRAWLDB_SCHEMA, orient="row")


class PatchedWriter(TableWriter[Patched]):
    """Writes patched tables, in ascending order of key, to a MapFile at `path`; the markers may be given."""

    def __init__(self, path: Path, *, sync: bytes | None = None, index_sync: bytes | None = None) -> None:
        super().__init__()
        self.path = path
        self._syncs: dict[str, Any] = {"sync": sync, "index_sync": index_sync}

    def _open_rows(self) -> Sink[Patched]:
        return _RowSink(MapFileWriter(self.path, TEXT, CRAWL_DATUM, **self._syncs))

    def _open_bulk(self) -> Sink[Patched] | None:
        from minutch.kernels.native import libdeflate
        from minutch.records import crawldatum_bulk
        from minutch.tables.writer import BulkMapWriter

        library = libdeflate()
        if library is None:
            return None
        return crawldatum_bulk.PatchedSink(BulkMapWriter(self.path, CRAWL_DATUM, library, **self._syncs))


class _RowSink:
    """Writes row by row."""

    def __init__(self, file: MapFileWriter) -> None:
        self._file = file
        self.close, self.discard = file.close, file.discard

    def write(self, patched: Patched) -> None:
        for key, value in patched.records():
            self._file.append_raw(encode_vlong(len(key)) + key, value)
