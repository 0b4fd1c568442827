"""Files of <Text, CrawlDatum> as tables: CrawlDb parts, crawl_generate, crawl_fetch, crawl_parse.

A path is a MapFile (a directory with `data` and `index`) or a plain SequenceFile; every compression is read. Files are
read in pieces of whole records (`scan`) or whole (`read`), rows in the order of the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Self

import polars as pl

from minutch.errors import FormatError
from minutch.formats.javaio import DataInput, encode_vlong
from minutch.formats.mapfile import MapFileWriter
from minutch.formats.sequencefile import SequenceFileReader, SequenceFileWriter
from minutch.records.crawldatum_columns import decode_datum, encode_datum
from minutch.tables.frame import CRAWLDB_SCHEMA, concat

TEXT = "org.apache.hadoop.io.Text"
CRAWL_DATUM = "org.apache.nutch.crawl.CrawlDatum"
CHUNK_ROWS = 500_000


def scan(path: Path, rows: int = CHUNK_ROWS) -> Iterator[pl.DataFrame]:
    """The records of the file or MapFile at `path`, in its order, in tables of CRAWLDB_SCHEMA of about `rows` rows.

    Raises FormatError (damage, or other classes than <Text, CrawlDatum>).
    """
    with SequenceFileReader(data_file(path)) as reader:
        check_classes(reader, CRAWL_DATUM)
        records = iter(reader)
        while batch := list(islice(records, rows)):
            try:
                yield _decode(batch)
            except FormatError as exc:
                raise exc.at(f"{reader.name}, record before offset {reader.position}") from exc


def read(path: Path) -> pl.DataFrame:
    """All records of the file or MapFile at `path`."""
    return concat(list(scan(path)))


def data_file(path: Path) -> Path:
    """The file that holds the records of `path`: `data` in a MapFile's directory, else itself."""
    return path / "data" if path.is_dir() else path


def check_classes(reader: SequenceFileReader, value_class: str) -> None:
    """Raise FormatError unless `reader`'s file holds <Text, value_class>."""
    found = (reader.key_class, reader.value_class)
    if found != (TEXT, value_class):
        raise FormatError(
            "unexpected classes", path=reader.name, offset=0, expected=f"<{TEXT}, {value_class}>", found=found
        )


def _decode(batch: list[tuple[bytes, bytes]]) -> pl.DataFrame:
    keys = [DataInput(key).read_text_bytes() for key, _ in batch]
    rows = [decode_datum(value) for _, value in batch]
    frame = pl.DataFrame(rows, schema=dict(list(CRAWLDB_SCHEMA.items())[1:]), orient="row")
    return frame.insert_column(0, pl.Series("key", keys, dtype=pl.Binary))


class CrawlDataWriter:
    """Writes tables of CRAWLDB_SCHEMA to a MapFile (rows in ascending order of key) or to a plain SequenceFile.

    A context manager; the file is complete, with its `.crc` siblings, when it is closed.
    """

    def __init__(self, path: Path, *, mapfile: bool = True, compression: str = "NONE") -> None:
        self._file: MapFileWriter | SequenceFileWriter
        if mapfile:
            self._file = MapFileWriter(path, TEXT, CRAWL_DATUM, compression=compression)
        else:
            self._file = SequenceFileWriter(path, TEXT, CRAWL_DATUM, compression=compression)
        self.rows = 0

    def write(self, frame: pl.DataFrame) -> None:
        """Append the rows of `frame`. FormatError if a MapFile's keys are out of order."""
        for key, *row in frame.select(CRAWLDB_SCHEMA.names()).iter_rows():
            self._file.append_raw(encode_vlong(len(key)) + key, encode_datum(row))
        self.rows += len(frame)

    def close(self) -> None:
        """Finish the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
