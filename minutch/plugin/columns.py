"""Describes the column methods of plugins: their arguments and results, and helpers to write them.

Jobs work on whole databases as Polars columns. Each method of a URL filter, URL normalizer or
scoring filter that such a job calls has a twin for columns (`filter` and `filter_column`,
`inject_score` and `inject_score_columns` …). A plugin that has only the row method works: the base
class calls it row by row. A twin is written for speed, and has to give exactly what the row method
gives.

URLs come as a Series of strings. A twin returns a Series of the same length and name, with null
where the URL is rejected, dropped or malformed; null stays null. The usual shape: let an expression
decide the plain rows and ask the row method about the rest (`rewrite`, `patch`), or ask once per
distinct host (`host_column`, `map_distinct`).

Records come as a table, a row per page (`schema`); a twin returns it with changed columns, rows in
the same order:

    key             Binary    the URL's bytes, as they stand in the file; `urls_of` decodes them,
                    `keys_of` encodes
    status          UInt8     a CrawlDatum status (minutch.records.crawldatum)
    fetch_time      Int64     milliseconds since the epoch
    modified_time   Int64     milliseconds since the epoch, 0 where unknown
    retries         Int8
    fetch_interval  Int32     seconds
    score           Float32
    signature       Binary    null where there is none
    metadata        Binary    null where empty, else a serialized MapWritable
                    (`MapWritable.from_bytes`)

More columns may follow; they stay as they are. `records` and `map_records` go through a table
record by record, for the rows that need it. `unpack` gives the whole records of a table that has
only key, status, fetch time and score as columns (the `inlinked` of `update_db_score_columns`).

Importing this module does not load Polars: a plugin that only ever sees single records should not
pay for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from minutch.errors import UrlError

if TYPE_CHECKING:
    import polars as pl

    from minutch.records.crawldatum import CrawlDatum


# -- strings ---------------------------------------------------------------------------------------


def map_strings(values: pl.Series, change: Callable[[str], str | None]) -> pl.Series:
    """Applies `change` to each string of a column; null stays null, a UrlError becomes null."""
    import polars as pl

    def safe(value: str | None) -> str | None:
        try:
            return None if value is None else change(value)
        except UrlError:
            return None

    return pl.Series(values.name, [safe(value) for value in values], dtype=pl.String)


def map_distinct(values: pl.Series, function: Callable[[str], str | None]) -> pl.Series:
    """Applies `function` to each distinct string once; null stays null."""
    import polars as pl

    from minutch.urls import hostcolumns

    return hostcolumns.map_distinct(values, function, pl.String())


def patch(column: pl.Series, where: pl.Series, values: pl.Series) -> pl.Series:
    """Returns a copy of the column with `values`, in order, in the rows of the mask `where`."""
    # scatter changes a column in place, and others may hold it.
    return column.clone().scatter(where.arg_true(), values) if len(values) else column


def rewrite(column: pl.Series, where: pl.Series, change: Callable[[str], str | None]) -> pl.Series:
    """Returns a copy of a column with `change` applied to the rows `where`; UrlError means null."""
    # A null of an expression is a row that it did not decide.
    where = where.fill_null(False)
    return patch(column, where, map_strings(column.filter(where), change))


def keep(urls: pl.Series, where: pl.Series) -> pl.Series:
    """Returns the column with null in the rows that the mask `where` does not mark."""
    import polars as pl

    return pl.select(pl.when(where).then(urls)).to_series().alias(urls.name)


def host_column(urls: pl.Series) -> pl.Series:
    """Returns the host of each URL as written; null for null and for a malformed URL."""
    from minutch.urls.hostcolumns import hosts_of

    return hosts_of(urls)


def domain_column(hosts: pl.Series) -> pl.Series:
    """Returns the registered domain of each host; null stays null."""
    from minutch.urls.hostcolumns import domains_of

    return domains_of(hosts)


# -- records ---------------------------------------------------------------------------------------


def schema() -> pl.Schema:
    """Returns the columns that every table of records has, in order, with their types."""
    from minutch.records.crawldatum_columns import CRAWLDB_SCHEMA

    return CRAWLDB_SCHEMA


def urls_of(frame: pl.DataFrame) -> pl.Series:
    """Returns a table's URLs as strings; bytes that are no UTF-8 become U+FFFD (Text.toString)."""
    from minutch.work.tables.frame import decode_keys

    return decode_keys(frame["key"])


def keys_of(urls: pl.Series) -> pl.Series:
    """Returns URLs as the keys of a table."""
    from minutch.work.tables.frame import encode_keys

    return encode_keys(urls)


def records(frame: pl.DataFrame) -> Iterator[tuple[str, CrawlDatum]]:
    """Yields URL and record of each row. Raises FormatError for damaged metadata."""
    from minutch.records import crawldatum_columns

    return crawldatum_columns.records(frame)


def map_records(frame: pl.DataFrame, change: Callable[[str, CrawlDatum], object]) -> pl.DataFrame:
    """Applies `change(url, datum)` to each row, which may alter the datum; keeps other columns."""
    from minutch.records import crawldatum_columns

    return crawldatum_columns.map_rows(frame, change)


def map_updates(
    frame: pl.DataFrame,
    old: pl.DataFrame,
    inlinked: pl.DataFrame,
    update: Callable[[str, CrawlDatum | None, CrawlDatum, list[CrawlDatum]], object],
) -> pl.DataFrame:
    """Applies `update(url, old, datum, inlinked)` to each row (see `update_db_score_columns`)."""
    was_there = old["status"].is_not_null()
    before = records(old.filter(was_there))
    links: dict[int, list[CrawlDatum]] = {}
    for row, (_, link) in zip(inlinked["row"], records(unpack(inlinked)), strict=True):
        links.setdefault(row, []).append(link)
    # Three iterators in step: rows, whether there was an old record, and the old records.
    known = iter(was_there)
    rows = iter(range(len(frame)))

    def change(url: str, datum: CrawlDatum) -> None:
        update(url, next(before)[1] if next(known) else None, datum, links.pop(next(rows), []))

    return map_records(frame, change)


def unpack(table: pl.DataFrame) -> pl.DataFrame:
    """Decodes a packed table to whole records, as a table with the columns of `schema`."""
    from minutch.work.tables import recordfiles

    return recordfiles.unpack(table)


def by_distinct(urls: pl.Series, change: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """Applies `change` to the distinct strings of a column; null stays null."""
    if urls.is_empty():
        return urls
    if urls.null_count():
        import polars as pl

        # The kernel that numbers strings takes no nulls.
        present = urls.is_not_null()
        nothing = pl.repeat(None, len(urls), dtype=pl.String, eager=True).alias(urls.name)
        return nothing.scatter(present.arg_true(), by_distinct(urls.filter(present), change))
    rows, numbers = numbered(urls)
    # Distinct as they are: no copy.
    results = change(urls) if len(rows) == len(urls) else change(urls.gather(rows)).gather(numbers)
    return results.alias(urls.name)


def numbered(values: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Returns the first row of each distinct string, and the number of each row's string.

    The column has no nulls.
    """
    import polars as pl

    from minutch.kernels.arrow import from_series
    from minutch.kernels.keycolumns import numbered as kernel_numbered

    rows, numbers = kernel_numbered(from_series(values).column)
    return pl.Series(rows), pl.Series(numbers)
