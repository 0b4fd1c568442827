"""Files of <Text, CrawlDatum> as tables: CrawlDb parts, crawl_generate, crawl_fetch, crawl_parse.

A path is a MapFile (a directory with `data` and `index`) or a plain SequenceFile; every compression is read. Files are
read in spans of some megabytes (`scan`) or whole (`read`), rows in the order of the file. Large ones are decoded by
kernels on all cores, small ones (and old versions, and odd layouts) record by record: the tables come out the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from minutch.errors import FormatError
from minutch.formats.javaio import DataInput, encode_vlong
from minutch.formats.mapfile import MapFileWriter
from minutch.formats.sequencefile import NONE, SequenceFileWriter
from minutch.records.crawldatum_columns import decode_datum, encode_datum
from minutch.tables.frame import CRAWLDB_SCHEMA, concat
from minutch.tables.parallel import ordered
from minutch.tables.spans import SPAN_SIZE, BulkFile, Span
from minutch.tables.writing import Sink, TableWriter

TEXT = "org.apache.hadoop.io.Text"
CRAWL_DATUM = "org.apache.nutch.crawl.CrawlDatum"


def scan(path: Path, *, threads: int = 0, span_size: int = SPAN_SIZE) -> Iterator[pl.DataFrame]:
    """The records of the file or MapFile at `path`, in its order, in tables of CRAWLDB_SCHEMA (at least one).

    A table holds the records of about `span_size` bytes of the file. `threads` decode ahead (0 = one per core).
    Raises FormatError (damage, or other classes than <Text, CrawlDatum>).
    """
    file = open_file(path, span_size)
    return ordered(lambda span: read_span(file, span), file.spans(), threads)


def read(path: Path, *, threads: int = 0) -> pl.DataFrame:
    """All records of the file or MapFile at `path`."""
    return concat(list(scan(path, threads=threads)))


def open_file(path: Path, span_size: int = SPAN_SIZE) -> BulkFile:
    """The file or MapFile at `path`. Raises FormatError unless it holds <Text, CrawlDatum>."""
    file = BulkFile(data_file(path), span_size=span_size)
    check_classes(file, CRAWL_DATUM)
    return file


def data_file(path: Path) -> Path:
    """The file that holds the records of `path`: `data` in a MapFile's directory, else itself."""
    return path / "data" if path.is_dir() else path


def check_classes(file: BulkFile, value_class: str) -> None:
    """Raise FormatError unless `file` holds <Text, value_class>."""
    found = (file.key_class, file.value_class)
    if found != (TEXT, value_class):
        raise FormatError(
            "unexpected classes",
            path=file.path,
            offset=0,
            expected=f"<{TEXT}, {value_class}>",
            found=f"<{found[0]}, {found[1]}>",
        )


def read_span(file: BulkFile, span: Span) -> pl.DataFrame:
    """The records of a span."""
    batch = file.batch(span)
    if batch is not None:
        from minutch.records import crawldatum_bulk

        frame = crawldatum_bulk.decode(batch)
        if frame is not None:
            return frame
    return _read_rows(file, span)


def _read_rows(file: BulkFile, span: Span) -> pl.DataFrame:
    """A span record by record: knows every version, and the error of what is damaged."""
    keys: list[bytes] = []
    rows = []
    for key, value in file.rows(span):
        try:
            keys.append(DataInput(key).read_text_bytes())
            rows.append(decode_datum(value))
        except FormatError as exc:
            raise exc.at(f"{file.path}, record of {key!r}") from exc
    frame = pl.DataFrame(rows, schema=dict(list(CRAWLDB_SCHEMA.items())[1:]), orient="row")
    return frame.insert_column(0, pl.Series("key", keys, dtype=pl.Binary))


class CrawlDataWriter(TableWriter[pl.DataFrame]):
    """Writes tables of CRAWLDB_SCHEMA to a MapFile (rows in ascending order of key) or to a plain SequenceFile.

    `compression` is NONE, RECORD or BLOCK; `sync` and `index_sync` give the markers.
    """

    def __init__(
        self,
        path: Path,
        *,
        mapfile: bool = True,
        compression: str = NONE,
        sync: bytes | None = None,
        index_sync: bytes | None = None,
    ) -> None:
        super().__init__()
        self.path, self.mapfile, self.compression = path, mapfile, compression
        self._sync, self._index_sync = sync, index_sync

    def _open_rows(self) -> Sink[pl.DataFrame]:
        options: dict[str, Any] = {"compression": self.compression, "sync": self._sync}
        if self.mapfile:
            return _RowSink(MapFileWriter(self.path, TEXT, CRAWL_DATUM, index_sync=self._index_sync, **options))
        return _RowSink(SequenceFileWriter(self.path, TEXT, CRAWL_DATUM, **options))

    def _open_bulk(self) -> Sink[pl.DataFrame] | None:
        from minutch.records import crawldatum_bulk
        from minutch.tables import writer as columns_writing

        file = columns_writing.open_bulk(
            self.path, CRAWL_DATUM, self.mapfile, self.compression, self._sync, self._index_sync
        )
        return None if file is None else crawldatum_bulk.DatumSink(file)


class _RowSink:
    """Writes row by row."""

    def __init__(self, file: MapFileWriter | SequenceFileWriter) -> None:
        self._file = file
        self.close, self.discard = file.close, file.discard

    def write(self, frame: pl.DataFrame) -> None:
        for key, *row in frame.select(CRAWLDB_SCHEMA.names()).iter_rows():
            self._file.append_raw(encode_vlong(len(key)) + key, encode_datum(row))
