"""Files of <Text, Inlinks> (LinkDb parts) and the outlinks of <Text, ParseData> (parse_data) as tables.

Source: org.apache.nutch.crawl.LinkDb, org.apache.nutch.parse.ParseOutputFormat.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, islice
from pathlib import Path
from types import TracebackType
from typing import Self

import polars as pl

from minutch.errors import FormatError
from minutch.formats.javaio import DataInput, encode_vlong
from minutch.formats.mapfile import MapFileWriter
from minutch.formats.sequencefile import SequenceFileReader
from minutch.records.links import LAYOUT_METADATA
from minutch.records.links_columns import decode_inlinks, decode_outlinks, encode_inlinks, layout_of
from minutch.tables.crawldata import TEXT, check_classes, data_file
from minutch.tables.frame import INLINKS_SCHEMA, OUTLINKS_SCHEMA

INLINKS = "org.apache.nutch.crawl.Inlinks"
PARSE_DATA = "org.apache.nutch.parse.ParseData"
CHUNK_RECORDS = 100_000


def scan_inlinks(path: Path, layout: str) -> Iterator[pl.DataFrame]:
    """The links of a LinkDb part, in its order, in tables of INLINKS_SCHEMA; no key is spread over two tables.

    A key whose Inlinks are empty has one row, with null in `from_url`. Raises FormatError for a record that is not in
    `layout`.
    """
    with SequenceFileReader(data_file(path)) as reader:
        check_classes(reader, INLINKS)
        records = iter(reader)
        while batch := list(islice(records, CHUNK_RECORDS)):
            rows: list[tuple[bytes | None, ...]] = []
            for key, value in batch:
                url = DataInput(key).read_text_bytes()
                try:
                    links = decode_inlinks(value, layout)
                except FormatError as exc:
                    raise _misfit(exc, value, layout, url).at(f"{reader.name}, record of {url!r}") from exc
                rows += [(url, *link) for link in links] or [(url, None, None, None)]
            yield pl.DataFrame(rows, schema=INLINKS_SCHEMA, orient="row")


def _misfit(error: FormatError, value: bytes, layout: str, url: bytes) -> FormatError:
    """The error for a record that is not in `layout`: a mixture of layouts, or the damage that `error` tells of."""
    try:
        found = layout_of([value])
    except FormatError:
        return error
    return FormatError("LinkDb with records in two layouts of Inlinks", offset=0, expected=layout, found=found)


def scan_outlinks(path: Path) -> Iterator[pl.DataFrame]:
    """The outlinks of a parse_data part, in its order, in tables of OUTLINKS_SCHEMA."""
    with SequenceFileReader(data_file(path)) as reader:
        check_classes(reader, PARSE_DATA)
        records = iter(reader)
        while batch := list(islice(records, CHUNK_RECORDS // 20)):
            rows = [
                (url, link.url, link.anchor)
                for key, value in batch
                for url in [DataInput(key).read_text_bytes()]
                for link in decode_outlinks(value)
            ]
            yield pl.DataFrame(rows, schema=OUTLINKS_SCHEMA, orient="row")


class InlinksWriter:
    """Writes tables of INLINKS_SCHEMA to a LinkDb part, a MapFile whose records are compressed one by one.

    A context manager. The rows of a key lie together in one table, in the order in which they are to be written; keys
    ascend. A row with null in `from_url` makes a key without links.
    """

    def __init__(self, path: Path, layout: str = LAYOUT_METADATA) -> None:
        self.layout = layout
        self.records = 0
        self._file = MapFileWriter(path, TEXT, INLINKS, compression="RECORD")

    def write(self, frame: pl.DataFrame) -> None:
        """Append the rows of `frame`. FormatError if keys are out of order."""
        rows = frame.select(INLINKS_SCHEMA.names()).iter_rows()
        for key, group in groupby(rows, key=lambda row: row[0]):
            links = [row[1:] for row in group if row[1] is not None]
            self._file.append_raw(encode_vlong(len(key)) + key, encode_inlinks(links, self.layout))
            self.records += 1

    def close(self) -> None:
        """Finish the part."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
