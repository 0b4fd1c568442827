"""Reads the records of a range of keys, each kind as a table, and joins them by URL."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np
import polars as pl

from minutch.cycle.index.inputs import (
    CONTENTS,
    CRAWLDB,
    FETCH,
    LINKS,
    PARSE,
    TEXT,
    IndexRange,
    Inputs,
    within,
)
from minutch.cycle.parse.robotsdirectives import is_over
from minutch.errors import FormatError
from minutch.hadoop.formats.batch import Batch, keys_of
from minutch.plugin.documents import Links, Pages
from minutch.records import crawldatum as status
from minutch.records.content import Content
from minutch.records.crawldatum import columns as crawldatum_columns
from minutch.records.crawldatum.table import CRAWLDB_SCHEMA
from minutch.records.links.columns import decode_inlinks
from minutch.records.links.table import INLINKS_SCHEMA
from minutch.records.metadata import ROBOTS_KEY
from minutch.records.parsedata.columns import ParseTable, decode, decode_texts
from minutch.urls.hostcolumns import map_distinct
from minutch.work.tables.frame import concat, decode_keys

ROW: Final = "row"
_NOINDEX: Final = r"(?:^|[\s,;])noindex(?:$|[\s,;])"
"""The directive, as a whole word. `none` is not it: Nutch does not delete such a page."""


class RangeRecords:
    """The records of a range, each kind as a table with a column `key`."""

    def __init__(self, inputs: Inputs, index_range: IndexRange) -> None:
        self._inputs, self._range = inputs, index_range
        self._contents: list[Batch] = []
        self._rows: dict[str, pl.DataFrame] = {}
        self.db = self._data(CRAWLDB).filter(pl.col("status").is_between(1, status.STATUS_DB_MAX))
        fetches = self._data(FETCH)
        self._seen = fetches["key"]
        self.fetch = fetches.filter(_is_fetch(pl.col("status")))
        self.parse = self._parse()
        self.texts = self._texts()
        self.links = self._links()
        self._rows[CRAWLDB], self._rows[FETCH] = _last(self.db["key"]), _last(self.fetch["key"])
        if inputs.of(CONTENTS):
            self._rows[CONTENTS] = self._content_rows()

    def urls(self) -> pl.Series:
        """Returns the URLs of the segments, sorted."""
        keys = [self._seen, *(self._rows[kind]["key"] for kind in (PARSE, TEXT))]
        return pl.concat(keys).unique().sort().alias("key")

    def joined(self, urls: pl.Series) -> pl.DataFrame:
        """Joins to each URL its row number in the table of each kind, null if it has none."""
        table = urls.to_frame("key")
        for kind, rows in self._rows.items():
            table = table.join(
                rows.rename({ROW: kind}), on="key", how="left", maintain_order="left"
            )
        return table

    def facts(self, records: pl.DataFrame, noindex_at: int | None) -> pl.DataFrame:
        """Returns the table that `IndexRules.outcomes` takes; None where it is no matter which
        pages are not for the index at a time.
        """
        robots = pl.Series([False]).new_from_index(0, len(records))
        if noindex_at is not None:
            robots = self._noindex(noindex_at).gather(records[PARSE]).fill_null(False)
        return pl.DataFrame(
            {
                "fetch": self.fetch["status"].gather(records[FETCH]),
                "db": self.db["status"].gather(records[CRAWLDB]),
                "parsed": self.parse.is_success.gather(records[PARSE]),
                "text": records[TEXT].is_not_null(),
                "noindex": robots,
            }
        )

    def pages(self, records: pl.DataFrame) -> Pages:
        """Returns the pages whose rows `records` holds."""
        db = self.db.select(pl.all().gather(pl.lit(records[CRAWLDB])))
        start, count = self._links_of(records["key"])
        return Pages(
            records["key"],
            self.fetch.select(pl.all().gather(pl.lit(records[FETCH]))),
            db.with_columns(records["key"]),
            self.parse.take(records[PARSE]),
            self.texts.gather(records[TEXT]),
            Links(self.links, start, count),
        )

    def content(self, row: int) -> Content | None:
        """Returns a page's content as it was fetched. Raises FormatError."""
        for batch in self._contents:
            if row < batch.size:
                return Content.from_bytes(batch.value(row))
            row -= batch.size
        return None

    # -- reading -----------------------------------------------------------------------------------

    def _tables(
        self, kind: str, read: Callable[[Batch], pl.DataFrame], only: pl.Series | None = None
    ) -> list[pl.DataFrame]:
        """Reads the tables of all batches of a kind, limited to the keys `only`."""
        tables = []
        for batch, path in self._inputs.batches(kind, self._range, only):
            try:
                tables.append(read(batch))
            except FormatError as error:
                raise within(error, path) from error
        return tables

    def _data(self, kind: str) -> pl.DataFrame:
        return concat(self._tables(kind, crawldatum_columns.decode), CRAWLDB_SCHEMA)

    def _parse(self) -> ParseTable:
        parsed: list[ParseTable] = []

        def read(batch: Batch) -> pl.DataFrame:
            table = decode(batch)
            base = sum(map(len, parsed))
            parsed.append(table)
            return _numbered(keys_of(batch), base)

        tables = self._tables(PARSE, read)
        self._rows[PARSE] = _last_row(tables)
        return ParseTable.concat(parsed)

    def _texts(self) -> pl.Series:
        texts: list[pl.Series] = []

        def read(batch: Batch) -> pl.DataFrame:
            base = sum(map(len, texts))
            texts.append(decode_texts(batch))
            return _numbered(keys_of(batch), base)

        tables = self._tables(TEXT, read)
        self._rows[TEXT] = _last_row(tables)
        return pl.concat(texts) if texts else pl.Series("text", [], dtype=pl.Binary)

    def _content_rows(self) -> pl.DataFrame:
        def read(batch: Batch) -> pl.DataFrame:
            base = sum(known.size for known in self._contents)
            self._contents.append(batch)
            return _numbered(keys_of(batch), base)

        return _last_row(self._tables(CONTENTS, read))

    def _links(self) -> pl.DataFrame:
        """Reads the links to the URLs of the segments."""
        read = partial(decode_inlinks, layout=self._inputs.layout)
        return concat(self._tables(LINKS, read, only=self.urls()), INLINKS_SCHEMA)

    def _links_of(self, keys: pl.Series) -> tuple[np.ndarray, np.ndarray]:
        """Returns the first row and the number of links of each URL; -1 links if it is not in the
        LinkDb.
        """
        runs = (
            self.links.with_row_index(ROW)
            .with_columns(pl.col("key").rle_id().alias("run"))
            .group_by("run", maintain_order=True)
            .agg(
                pl.col("key").first(),
                pl.col(ROW).first().cast(pl.Int64),
                pl.len().cast(pl.Int64).alias("count"),
            )
            .unique("key", keep="last")
            .drop("run")
        )
        found = keys.to_frame("key").join(runs, on="key", how="left", maintain_order="left")
        return found[ROW].fill_null(0).to_numpy(), found["count"].fill_null(-1).to_numpy()

    def _noindex(self, now: int) -> pl.Series:
        """Returns for each parse whether its robots directives have noindex at the time `now`: any
        of those of the parse, else the first of the content.
        """
        own = self.parse.all_values(ROBOTS_KEY, "parse")
        robots = decode_keys(self.parse.first_values(ROBOTS_KEY, "content"))
        forbids = _forbids(robots, now).fill_null(False)
        forbids = forbids.scatter(own["row"], False)
        return forbids.scatter(own["row"].filter(_forbids(decode_keys(own["value"]), now)), True)


def _forbids(robots: pl.Series, now: int) -> pl.Series:
    return robots.str.to_lowercase().str.contains(_NOINDEX) | map_distinct(
        robots, lambda value: is_over(value, now), pl.Boolean()
    )


def _is_fetch(code: pl.Expr) -> pl.Expr:
    """Tests for fetch statuses (CrawlDatum.hasFetchStatus), except for unmodified pages."""
    fetched = code.is_between(status.STATUS_DB_MAX + 1, status.STATUS_FETCH_MAX) | (
        code == status.STATUS_PARSE_FAILED
    )
    return fetched & (code != status.STATUS_FETCH_NOTMODIFIED)


def _numbered(keys: pl.Series, base: int) -> pl.DataFrame:
    """Adds the numbers of their rows to keys."""
    return pl.DataFrame([keys, pl.Series(ROW, range(base, base + len(keys)), dtype=pl.UInt32)])


def _last(keys: pl.Series) -> pl.DataFrame:
    """Returns the number of the last row of each key."""
    return _numbered(keys.alias("key"), 0).unique("key", keep="last")


def _last_row(tables: list[pl.DataFrame]) -> pl.DataFrame:
    """Does the same for keys that have row numbers."""
    schema = pl.Schema({"key": pl.Binary(), ROW: pl.UInt32()})
    return concat(tables, schema).unique("key", keep="last")
