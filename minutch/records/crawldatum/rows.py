"""Between the two shapes of a CrawlDatum: a row of a table and the record.

For code written for one record at a time (a user's plugin or fetch schedule) inside a job that
works on columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import polars as pl

from minutch.hadoop.formats.javaio import decode_text, encode_text
from minutch.hadoop.formats.writables import MapWritable
from minutch.records.crawldatum.datum import CrawlDatum
from minutch.records.crawldatum.table import CRAWLDB_SCHEMA

_NAMES = CRAWLDB_SCHEMA.names()


def to_datum(row: Sequence[Any]) -> CrawlDatum:
    """Returns the record of a row in the order of CRAWLDB_SCHEMA, `key` left out. FormatError for
    damaged metadata.
    """
    status, fetch_time, modified_time, retries, interval, score, signature, metadata = row
    return CrawlDatum(
        status,
        interval,
        score,
        fetch_time,
        modified_time,
        retries,
        signature,
        MapWritable() if metadata is None else MapWritable.from_bytes(metadata),
    )


def to_row(url: str, datum: CrawlDatum) -> tuple[Any, ...]:
    """Returns the row of CRAWLDB_SCHEMA of a record."""
    return (
        encode_text(url),
        datum.status,
        datum.fetch_time,
        datum.modified_time,
        datum.retries,
        datum.fetch_interval,
        datum.score,
        datum.signature,
        datum.metadata.to_bytes() if datum.metadata else None,
    )


def to_frame(records: Iterable[tuple[str, CrawlDatum]]) -> pl.DataFrame:
    """Returns the table of `records`, in their order."""
    return pl.DataFrame(
        [to_row(url, datum) for url, datum in records], schema=CRAWLDB_SCHEMA, orient="row"
    )


def records(frame: pl.DataFrame) -> Iterator[tuple[str, CrawlDatum]]:
    """URL and record of each row of `frame`."""
    for key, *row in frame.select(_NAMES).iter_rows():
        yield decode_text(key), to_datum(row)


def map_rows(
    frame: pl.DataFrame, change: Callable[..., object], *columns: pl.Series
) -> pl.DataFrame:
    """`frame` after `change(url, datum, *values)` on each row; `values` come from `columns`, one
    per row.

    `change` alters the datum it is given, or returns the one to use instead. Other columns of
    `frame` stay.
    """
    changed = []
    for (url, datum), *values in zip(records(frame), *columns, strict=True):
        result = change(url, datum, *values)
        changed.append((url, result if isinstance(result, CrawlDatum) else datum))
    return frame.with_columns(to_frame(changed).drop("key"))
