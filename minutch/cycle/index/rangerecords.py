"""Reads the records of a range of keys, each kind as a table, and joins them by URL.

Of several fetches of a URL the newest counts, by the times of the fetches (of equally new ones that
of the last segment, by the order of names; within a segment the last, which a page may have inside
another one), and with it the parse, text and content of its segment. A failure that is tried again
counts only where there is nothing else; a page that was found not modified is the newest one that
was fetched. Where a segment lacks the parse, that of the last segment that has one counts.
"""

from __future__ import annotations

from collections.abc import Callable
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
)
from minutch.hadoop.formats.batch import Batch, keys_of
from minutch.plugin.documents import Links, Pages
from minutch.records import crawldatum as status
from minutch.records import crawldatum_columns
from minutch.records.crawldatum_columns import CRAWLDB_SCHEMA
from minutch.records.links_columns import INLINKS_SCHEMA, decode_inlinks
from minutch.records.metadata import ROBOTS_KEY
from minutch.records.parsedata_columns import ParseTable, decode, decode_texts
from minutch.records.protocol import Content
from minutch.urls.hostcolumns import map_distinct
from minutch.work.tables.frame import concat, decode_keys
from minutch.work.tables.spans import DecodeNumbered, Numbers, decoded

ROW: Final = "row"
SEGMENT: Final = "segment"
_ROWS: Final = pl.Schema({"key": pl.Binary(), SEGMENT: pl.UInt32()})
_OUTCOME: Final = ("status", "fetch_time")
_HELD: Final = (
    status.STATUS_DB_FETCHED,
    status.STATUS_DB_NOTMODIFIED,
    status.STATUS_DB_DUPLICATE,
)
"""The directive, as a whole word. `none` is not it: Nutch does not delete such a page."""


class RangeRecords:
    """The records of a range, each kind as a table with a column `key`."""

    def __init__(self, inputs: Inputs, index_range: IndexRange) -> None:
        self._inputs, self._range = inputs, index_range
        self._contents: list[Batch] = []
        self._rows: dict[str, pl.DataFrame] = {}
        self.db = self._data(CRAWLDB).filter(pl.col("status").is_between(1, status.STATUS_DB_MAX))
        self.fetch = self._fetches()
        self.parse = self._parse()
        self.texts = self._texts()
        self.links = self._links()
        self._rows[CRAWLDB] = _last(self.db.select("key").with_row_index(ROW))
        if inputs.of(CONTENTS):
            self._rows[CONTENTS] = self._fetched(CONTENTS, self._contents.append)

    def urls(self) -> pl.Series:
        """Returns the URLs of the segments, sorted."""
        keys = [self.fetch["key"], *(self._rows[kind]["key"] for kind in (PARSE, TEXT))]
        return pl.concat(keys).unique().sort().alias("key")

    def joined(self, urls: pl.Series) -> pl.DataFrame:
        """Joins to each URL its row number in the table of each kind, null if it has none."""
        table = urls.to_frame("key")
        for kind, rows in self._rows.items():
            table = table.join(
                rows.rename({ROW: kind}), on="key", how="left", maintain_order="left"
            )
        return table

    def facts(self, records: pl.DataFrame, forbids: Callable[[str], bool] | None) -> pl.DataFrame:
        """Returns the table that `IndexRules.outcomes` takes. `forbids` says of a value of robots
        directives whether its page is not for the index; None where that is no matter. A fetch
        without success is none where the CrawlDb knows of a success since: its entry is due later
        than that fetch was.
        """
        robots = pl.Series([False]).new_from_index(0, len(records))
        if forbids is not None:
            robots = self._noindex(forbids).gather(records[PARSE]).fill_null(False)
        fetch, fetched = (self.fetch[name].gather(records[FETCH]) for name in _OUTCOME)
        db, due = (self.db[name].gather(records[CRAWLDB]) for name in _OUTCOME)
        is_over = db.is_in(_HELD) & (due > fetched) & (fetch != status.STATUS_FETCH_SUCCESS)
        return pl.DataFrame(
            {
                "fetch": fetch.set(is_over.fill_null(False), None),
                "db": db,
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
        self, kind: str, read: DecodeNumbered, only: pl.Series | None = None
    ) -> list[pl.DataFrame]:
        """Reads the records of a kind, limited to the keys `only`; `read` also gets the number of
        each one's segment.
        """
        return [*decoded(self._inputs.batches(kind, self._range, only), read)]

    def _data(self, kind: str) -> pl.DataFrame:
        tables = self._tables(kind, lambda batch, _: crawldatum_columns.decode(batch))
        return concat(tables, CRAWLDB_SCHEMA)

    def _fetches(self) -> pl.DataFrame:
        def read(batch: Batch, segments: Numbers) -> pl.DataFrame:
            return crawldatum_columns.decode(batch).with_columns(_of(segments))

        schema = pl.Schema({**CRAWLDB_SCHEMA, SEGMENT: pl.UInt32()})
        fetches = concat(self._tables(FETCH, read), schema)
        newest = _newest(fetches)
        self._rows[FETCH], self._segments = newest.drop(SEGMENT), newest.drop(ROW)
        return fetches.drop(SEGMENT)

    def _parse(self) -> ParseTable:
        parsed: list[ParseTable] = []
        self._rows[PARSE] = self._fetched(PARSE, lambda batch: parsed.append(decode(batch)))
        return ParseTable.concat(parsed)

    def _texts(self) -> pl.Series:
        texts = [pl.Series("text", [], dtype=pl.Binary)]
        self._rows[TEXT] = self._fetched(TEXT, lambda batch: texts.append(decode_texts(batch)))
        return pl.concat(texts)

    def _fetched(self, kind: str, take: Callable[[Batch], None]) -> pl.DataFrame:
        """Calls `take` with the records of a kind, batch by batch. Returns the number of the row
        that belongs to the newest fetch of each key.
        """

        def read(batch: Batch, segments: Numbers) -> pl.DataFrame:
            take(batch)
            return pl.DataFrame([keys_of(batch), _of(segments)])

        rows = concat(self._tables(kind, read), _ROWS).with_row_index(ROW)
        if rows["key"].is_duplicated().any():
            own = self._segments.rename({SEGMENT: "own"})
            rows = rows.join(own, on="key", how="left", maintain_order="left").sort(
                (pl.col(SEGMENT) == pl.col("own")).fill_null(value=False), maintain_order=True
            )
        return _last(rows)

    def _links(self) -> pl.DataFrame:
        """Reads the links to the URLs of the segments."""

        def read(batch: Batch, _: Numbers) -> pl.DataFrame:
            return decode_inlinks(batch, layout=self._inputs.layout)

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

    def _noindex(self, forbids: Callable[[str], bool]) -> pl.Series:
        """Returns for each parse whether its robots directives forbid to index it: any of those of
        the parse, else the first of the content.
        """
        own = self.parse.all_values(ROBOTS_KEY, "parse")
        robots = decode_keys(self.parse.first_values(ROBOTS_KEY, "content"))
        found = map_distinct(robots, forbids, pl.Boolean()).fill_null(False)
        found = found.scatter(own["row"], False)
        values = map_distinct(decode_keys(own["value"]), forbids, pl.Boolean())
        return found.scatter(own["row"].filter(values), True)


def _newest(fetches: pl.DataFrame) -> pl.DataFrame:
    """Returns the key, row number and segment of the fetch that counts of each URL."""
    code = pl.col("status")
    is_fetch = code.is_between(status.STATUS_DB_MAX + 1, status.STATUS_FETCH_MAX) | (
        code == status.STATUS_PARSE_FAILED  # CrawlDatum.hasFetchStatus
    )
    rows = fetches.select("key", "status", "fetch_time", SEGMENT).with_row_index(ROW)
    rows = rows.filter(is_fetch).sort(code != status.STATUS_FETCH_RETRY, maintain_order=True)
    rows = rows.unique(["key", SEGMENT], keep="last", maintain_order=True)
    rows = rows.sort(code != status.STATUS_FETCH_RETRY, "fetch_time", maintain_order=True)
    newest = rows.unique("key", keep="last", maintain_order=True)
    live = newest.filter(code == status.STATUS_FETCH_NOTMODIFIED)["key"]
    if len(live):
        pages = rows.filter(
            code == status.STATUS_FETCH_SUCCESS, pl.col("key").is_in(live.implode())
        )
        newest = pl.concat(
            [
                newest.filter(code != status.STATUS_FETCH_NOTMODIFIED),
                pages.unique("key", keep="last", maintain_order=True),
            ]
        )
    return newest.select("key", ROW, SEGMENT)


def _of(segments: Numbers) -> pl.Series:
    return pl.Series(SEGMENT, segments)


def _last(rows: pl.DataFrame) -> pl.DataFrame:
    """Returns the number of the last row of each key."""
    return rows.unique("key", keep="last").select("key", ROW)
