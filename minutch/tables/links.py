"""Files of <Text, Inlinks> (LinkDb parts) and the outlinks of <Text, ParseData> (parse_data) as tables.

Large files are read and written by kernels on all cores, small ones (and what kernels do not know) record by record.
Source: org.apache.nutch.crawl.LinkDb, org.apache.nutch.parse.ParseOutputFormat.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import polars as pl

from minutch.errors import FormatError
from minutch.formats.javaio import DataInput, encode_vlong
from minutch.formats.mapfile import MapFileWriter
from minutch.formats.sequencefile import RECORD
from minutch.records.links import LAYOUT_METADATA
from minutch.records.links_columns import decode_inlinks, decode_outlinks, encode_inlinks, layout_of
from minutch.records.linksets import LinkSets
from minutch.tables.crawldata import TEXT, check_classes, data_file
from minutch.tables.frame import INLINKS_SCHEMA, OUTLINKS_SCHEMA
from minutch.tables.parallel import ordered
from minutch.tables.spans import SPAN_SIZE, BulkFile, Span
from minutch.tables.writing import Sink, TableWriter

INLINKS = "org.apache.nutch.crawl.Inlinks"
PARSE_DATA = "org.apache.nutch.parse.ParseData"
LINKS_SPAN = SPAN_SIZE // 4
"""Bytes of a compressed file that are read at a time: they grow by inflating."""


def scan_inlinks(path: Path, layout: str, *, threads: int = 0) -> Iterator[pl.DataFrame]:
    """The links of a LinkDb part, in its order, in tables of INLINKS_SCHEMA; no record is spread over two tables.

    A key whose Inlinks are empty has one row, with null in `from_url`. Raises FormatError for a record that is not in
    `layout`.
    """
    file = BulkFile(data_file(path), span_size=LINKS_SPAN)
    check_classes(file, INLINKS)
    return ordered(lambda span: _read_inlinks(file, span, layout), file.spans(), threads)


def _read_inlinks(file: BulkFile, span: Span, layout: str) -> pl.DataFrame:
    batch = file.batch(span)
    if batch is not None:
        from minutch.records import links_bulk

        frame = links_bulk.decode_inlinks(batch, layout)
        if frame is not None:
            return frame
    rows: list[tuple[bytes | None, ...]] = []
    for key, value in file.rows(span):
        try:
            url = DataInput(key).read_text_bytes()
            links = decode_inlinks(value, layout)
        except FormatError as exc:
            raise _misfit(exc, value, layout).at(f"{file.path}, record of {key!r}") from exc
        rows += [(url, *link) for link in links] or [(url, None, None, None)]
    return pl.DataFrame(rows, schema=INLINKS_SCHEMA, orient="row")


def _misfit(error: FormatError, value: bytes, layout: str) -> FormatError:
    """The error for a record that is not in `layout`: a mixture of layouts, or the damage that `error` tells of."""
    try:
        found = layout_of([value])
    except FormatError:
        return error
    return FormatError("LinkDb with records in two layouts of Inlinks", offset=0, expected=layout, found=found)


def scan_outlinks(path: Path, *, threads: int = 0) -> Iterator[pl.DataFrame]:
    """The outlinks of a parse_data part, in its order, in tables of OUTLINKS_SCHEMA."""
    file = BulkFile(data_file(path), span_size=LINKS_SPAN)
    check_classes(file, PARSE_DATA)
    return ordered(lambda span: _read_outlinks(file, span), file.spans(), threads)


def _read_outlinks(file: BulkFile, span: Span) -> pl.DataFrame:
    batch = file.batch(span)
    if batch is not None:
        from minutch.records import links_bulk

        frame = links_bulk.decode_outlinks(batch)
        if frame is not None:
            return frame
    rows: list[tuple[bytes, bytes, bytes]] = []
    for key, value in file.rows(span):
        try:
            url = DataInput(key).read_text_bytes()
            rows += [(url, link.url, link.anchor) for link in decode_outlinks(value)]
        except FormatError as exc:
            raise exc.at(f"{file.path}, record of {key!r}") from exc
    return pl.DataFrame(rows, schema=OUTLINKS_SCHEMA, orient="row")


class InlinksWriter(TableWriter[LinkSets]):
    """Writes sets of links to a LinkDb part, a MapFile whose records are compressed one by one.

    Keys ascend. A row with null in `from_url` makes a key without links. `sync` and `index_sync` give the markers.
    """

    def __init__(
        self,
        path: Path,
        layout: str = LAYOUT_METADATA,
        *,
        sync: bytes | None = None,
        index_sync: bytes | None = None,
    ) -> None:
        super().__init__()
        self.path, self.layout = path, layout
        self._syncs = (sync, index_sync)

    def _open_rows(self) -> Sink[LinkSets]:
        sync, index_sync = self._syncs
        file = MapFileWriter(self.path, TEXT, INLINKS, compression=RECORD, sync=sync, index_sync=index_sync)
        return _RowSink(file, self.layout)

    def _open_bulk(self) -> Sink[LinkSets] | None:
        from minutch.kernels.native import libdeflate
        from minutch.records import links_bulk

        library = libdeflate()
        if library is None:
            return None
        return links_bulk.InlinksSink(self.path, INLINKS, self.layout, library, self._syncs)


class _RowSink:
    """Writes record by record."""

    def __init__(self, file: MapFileWriter, layout: str) -> None:
        self._file, self._layout = file, layout
        self.close, self.discard = file.close, file.discard

    def write(self, sets: LinkSets) -> None:
        rows = sets.table().select(INLINKS_SCHEMA.names()).iter_rows()
        for key, group in groupby(rows, key=lambda row: row[0]):
            links = [row[1:] for row in group if row[1] is not None]
            self._file.append_raw(encode_vlong(len(key)) + key, encode_inlinks(links, self._layout))
