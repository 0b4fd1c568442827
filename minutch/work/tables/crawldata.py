"""Files of <Text, CrawlDatum> as tables: CrawlDb parts, crawl_generate, crawl_fetch, crawl_parse.

A path is a MapFile (a directory with `data` and `index`) or a plain SequenceFile; every compression
and every version of CrawlDatum is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from minutch.errors import FormatError
from minutch.records import crawldatum_columns
from minutch.records.crawldatum import CrawlDatum
from minutch.work.tables import spans
from minutch.work.tables.frame import concat
from minutch.work.tables.spannedfile import SPAN_SIZE, SpannedFile, data_file
from minutch.work.tables.spans import InputSplit
from minutch.work.tables.writer import TableWriter

CRAWL_DATUM = CrawlDatum.class_name
_STRETCH = 1 << 20
"""Bytes that are looked at, or not, when few records are looked for."""


def scan(
    path: InputSplit, *, threads: int = 0, span_size: int = SPAN_SIZE
) -> Iterator[pl.DataFrame]:
    """Returns the records of the file or MapFile at `path`, in its order, in tables of
    CRAWLDB_SCHEMA; see `spans.scan`.
    """
    return spans.scan(
        path, CRAWL_DATUM, crawldatum_columns.decode, threads=threads, span_size=span_size
    )


def scan_having(path: Path, part: bytes) -> Iterator[pl.DataFrame]:
    """Scans like `scan`, but skips stretches of the file whose values lack these bytes: for few
    records.
    """
    file = SpannedFile(data_file(path), span_size=_STRETCH)
    file.require(CRAWL_DATUM)
    for span in file.spans_with(part, of_values=True):
        for batch in file.batches(span):
            try:
                yield crawldatum_columns.decode(batch)
            except FormatError as exc:
                raise exc.within(file.path) from exc


def read(path: Path, *, threads: int = 0) -> pl.DataFrame:
    """Returns all records of the file or MapFile at `path`."""
    return concat(list(scan(path, threads=threads)))


class CrawlDataWriter(TableWriter[pl.DataFrame]):
    """Writes tables of CRAWLDB_SCHEMA; options as `TableWriter`."""

    def __init__(self, path: Path, **options: Any) -> None:
        super().__init__(path, CRAWL_DATUM, crawldatum_columns.stored_records, **options)
