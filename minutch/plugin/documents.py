"""Holds the documents for the index, and the pages that they are made of, as columns.

    Pages        what a chunk of the index job knows of its pages, a row each
    Documents    the documents made of them, a row each: a column per field

A plugin that has only row methods sees neither: the base classes in `points` make records of the
rows (`Pages.rows`, `Documents.rows`), once for all plugins of a chain. A column of a field is null
where a document lacks the field, and is

    String, Boolean, Int32, Int64, Float32, Datetime("ms")     where no document has more than one
    value
    List of one of them                                        where some have several
    Object: Python lists of values                             where values of one field differ in
    type

for str, bool, int, Long, float and Date of `records.document`. Dates are in UTC.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from minutch.errors import MinutchError
from minutch.hadoop.formats.javaio import decode_text
from minutch.hadoop.formats.writables import MapWritable, Text
from minutch.plugin.extension import Parse
from minutch.plugin.fieldcolumns import (
    as_lists,
    column_of,
    cut_texts,
    joined_fields,
    lists_of,
    texts_of,
)
from minutch.records.crawldatum import CrawlDatum
from minutch.records.crawldatum_columns import to_datum
from minutch.records.document import NutchDocument, NutchField
from minutch.records.links import Inlink, Inlinks
from minutch.records.metadata import CONTENT_TYPE_KEY
from minutch.records.metadata_columns import text_values
from minutch.records.parsedata import ParseData
from minutch.records.parsedata_columns import ParseTable
from minutch.work.tables.frame import decode_keys
from minutch.work.tables.textparts import float_texts

log = logging.getLogger(__name__)

__all__ = [
    "Documents", "PageLinks", "PageRow", "Pages", "as_lists", "column_of", "content_type",
    "cut_texts", "described", "map_documents", "map_scores", "texts_of",
]  # fmt: skip


# -- pages -----------------------------------------------------------------------------------------


class PageRow(NamedTuple):
    """A page as an indexing filter gets it, with its entry in the CrawlDb (None: not there)."""

    url: str
    parse: Parse
    datum: CrawlDatum
    db_datum: CrawlDatum | None
    inlinks: Inlinks | None


@dataclass
class PageLinks:
    """The links to pages: rows of INLINKS_SCHEMA, `count[i]` of page i from `start[i]`, or -1."""

    rows: pl.DataFrame
    start: npt.NDArray[np.int64]
    count: npt.NDArray[np.int64]


@dataclass
class Pages:
    """Pages as columns, row for row.

    `keys` are URLs as bytes; `fetch` what became of the fetch, with the signature of the CrawlDb,
    and `db` the entries of the CrawlDb (null everywhere where there is none), both of
    CRAWLDB_SCHEMA; `texts` (Binary) and `parse` come from the parse; `links` from the LinkDb.
    """

    keys: pl.Series
    fetch: pl.DataFrame
    db: pl.DataFrame
    parse: ParseTable
    texts: pl.Series
    links: PageLinks
    _rows: list[PageRow] | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def urls(self) -> pl.Series:
        """The URLs as strings."""
        return decode_keys(self.keys)

    @cached_property
    def text(self) -> pl.Series:
        """The plain texts as strings."""
        return decode_keys(self.texts)

    @cached_property
    def titles(self) -> pl.Series:
        """The titles as strings."""
        return decode_keys(self.parse.titles())

    def meta(self, name: str) -> pl.Series:
        """Returns the first value of `name` in the parse's metadata, else in the content's
        (ParseData.getMeta), or null.
        """
        own = self.parse.first_values(name, "parse")
        if own.null_count():
            # ParseData.getMeta asks the parse's metadata first.
            own = own.zip_with(own.is_not_null(), self.parse.first_values(name, "content"))
        return decode_keys(own)

    def content_meta(self, name: str) -> pl.Series:
        """Returns the first value of `name` in the content's metadata, in any case, or null."""
        return decode_keys(self.parse.first_values(name, "content"))

    def parse_meta(self, name: str) -> pl.Series:
        """Returns the first value of `name` in the parse's metadata, or null."""
        return decode_keys(self.parse.first_values(name, "parse"))

    def content_values(self, name: str) -> pl.DataFrame:
        """Returns all values of `name` in the content's metadata in order, whatever its case: `row`
        (of the page), `value` (String).
        """
        return self._values(name, "content")

    def parse_values(self, name: str) -> pl.DataFrame:
        """Returns all values of `name` in the parse's metadata in the same form."""
        return self._values(name, "parse")

    def _values(self, name: str, of: str) -> pl.DataFrame:
        found = self.parse.all_values(name, of)
        return found.with_columns(decode_keys(found["value"]))

    def content_types(self) -> pl.Series:
        """Returns `content_type` for each page."""
        found = self.fetch_meta(CONTENT_TYPE_KEY)
        return (
            found.zip_with(found.is_not_null(), self.meta(CONTENT_TYPE_KEY))
            if found.null_count()
            else found
        )

    def fetch_meta(self, name: str) -> pl.Series:
        """Returns the value of `name` in the metadata of `fetch` as text, or null."""
        return decode_keys(text_values(self.fetch["metadata"], self.keys, name))

    def inlinks(self) -> pl.DataFrame:
        """Returns the links to the pages, in LinkDb order: `row`, `from_url`, `anchor` (String)."""
        # -1: the LinkDb does not know the page.
        count = np.maximum(self.links.count, 0)
        row = np.repeat(np.arange(len(self)), count)
        # Row r of a page is start + r minus all counts before it: one index for all links.
        first = np.repeat(self.links.start - np.concatenate(([0], np.cumsum(count)[:-1])), count)
        taken = (
            self.links.rows[pl.Series(first + np.arange(len(row)))]
            if len(row)
            else self.links.rows[:0]
        )
        strings = [decode_keys(taken[name]) for name in ("from_url", "anchor")]
        return pl.DataFrame([pl.Series("row", row, dtype=pl.Int64), *strings]).filter(
            pl.col("from_url").is_not_null()
        )

    def outlinks(self) -> pl.DataFrame:
        """Returns the outlinks of the pages, in order: `row` (of the page), `to_url` (String)."""
        found = self.parse.outlinks()
        return found.with_columns(decode_keys(found["to_url"]))

    def rows(self) -> list[PageRow]:
        """Returns the pages as records, made once: a filter sees what the one before changed."""
        if self._rows is None:
            self._rows = list(self._read_rows())
        return self._rows

    def filter(self, mask: pl.Series) -> Pages:
        """Returns the pages where `mask` is true."""
        if mask.all():
            return self
        chosen = mask.to_numpy()
        kept = Pages(
            self.keys.filter(mask),
            self.fetch.filter(mask),
            self.db.filter(mask),
            self.parse.filter(mask),
            self.texts.filter(mask),
            PageLinks(self.links.rows, self.links.start[chosen], self.links.count[chosen]),
        )
        if self._rows is not None:
            # What filters have changed in these records stays.
            kept._rows = [page for page, stays in zip(self._rows, chosen, strict=True) if stays]
        return kept

    def _read_rows(self) -> Iterator[PageRow]:
        fetch, db = (frame.drop("key").iter_rows() for frame in (self.fetch, self.db))
        links = self.links.rows.select("from_url", "anchor", "metadata").rows()
        for number, (url, text, fetched, known) in enumerate(
            zip(self.urls, self.text, fetch, db, strict=True)
        ):
            entry = None if known[0] is None else to_datum(known)
            start, count = int(self.links.start[number]), int(self.links.count[number])
            inlinks = None if count < 0 else _inlinks(links[start : start + count])
            yield PageRow(
                url, Parse(text, self.parse.record(number)), to_datum(fetched), entry, inlinks
            )


def content_type(datum: CrawlDatum, data: ParseData) -> str | None:
    """Returns a page's Content-Type: its fetch's, else that in metadata of parse or content."""
    found = datum.metadata.get(Text(CONTENT_TYPE_KEY))
    return data.meta(CONTENT_TYPE_KEY) if found is None else str(found)


def _inlinks(rows: list[tuple[bytes | None, bytes, bytes | None]]) -> Inlinks:
    return Inlinks(
        Inlink(
            decode_text(url),
            decode_text(anchor),
            None if data is None else MapWritable.from_bytes(data),
        )
        for url, anchor, data in rows
        if url is not None
    )


# -- documents -------------------------------------------------------------------------------------


class Documents:
    """Documents as columns, row for row; new fields are added at the end."""

    def __init__(self, keys: pl.Series) -> None:
        """Makes documents without fields; `keys` (String) are their URLs, to delete by, too."""
        self.keys = keys
        self.fields: dict[str, pl.Series] = {}
        self.weights = pl.Series("weight", [1.0], dtype=pl.Float32).new_from_index(0, len(keys))
        self._rows: list[NutchDocument] | None = None

    @classmethod
    def of(cls, doc: NutchDocument) -> Documents:
        """Makes a single document; its key is the field `id`."""
        documents = cls(pl.Series([str(doc.first("id") or "")]))
        documents.replace([doc])
        return documents

    def __len__(self) -> int:
        return len(self.keys)

    def column(self, name: str) -> pl.Series | None:
        """Returns the values of a field; None if no document has it."""
        self._settle()
        return self.fields.get(name)

    def names(self) -> list[str]:
        """Returns the names of all fields that any document has."""
        self._settle()
        return list(self.fields)

    def add(self, name: str, values: pl.Series) -> None:
        """Adds a value, or those of a list, to a field of each document; none for null."""
        self._settle()
        if values.null_count() == len(values):
            return
        before = self.fields.get(name)
        self.fields[name] = (values if before is None else joined_fields(before, values)).alias(
            name
        )

    def add_rows(self, name: str, rows: pl.Series, values: pl.Series) -> None:
        """Adds each of `values` in order to a field of the document with the number in `rows`."""
        if not len(rows):
            return
        if rows.is_unique().all():
            column = (
                pl.Series([None], dtype=values.dtype)
                .new_from_index(0, len(self))
                .scatter(rows, values)
            )
        else:
            table = pl.DataFrame([rows.cast(pl.Int64).alias("row"), values.alias("value")])
            lists = table.group_by("row", maintain_order=True).agg("value")
            every = pl.DataFrame({"row": np.arange(len(self))})
            column = every.join(lists, on="row", how="left", maintain_order="left")["value"]
        self.add(name, column)

    def set(self, name: str, values: pl.Series) -> None:
        """Replaces the values of a field."""
        self.remove(name)
        self.add(name, values)

    def boost(self, weights: pl.Series) -> None:
        """Sets the boost of each document (Float32), also in the field `boost`."""
        self._settle()
        self.weights = weights.alias("weight")
        self.add("boost", float_texts(weights))

    def remove(self, name: str) -> pl.Series | None:
        """Removes a field and returns its values."""
        self._settle()
        return self.fields.pop(name, None)

    def copy(self) -> Documents:
        """Returns a copy with the same fields, which can be changed on its own."""
        self._settle()
        twin = Documents(self.keys)
        # Columns are never changed in place, so they are shared.
        twin.fields, twin.weights = dict(self.fields), self.weights
        return twin

    def filter(self, mask: pl.Series) -> Documents:
        """Returns the documents where `mask` is true."""
        if mask.all():
            return self
        kept = Documents(self.keys.filter(mask))
        kept.weights = self.weights.filter(mask)
        if self._rows is not None:
            kept._rows = [row for row, stays in zip(self._rows, mask, strict=True) if stays]
            return kept
        for name, values in self.fields.items():
            kept.add(name, values.filter(mask))
        return kept

    def rows(self) -> list[NutchDocument]:
        """Returns the documents as records; changes to them appear in the columns."""
        if self._rows is None:
            # From now on the records are what counts, until a column is asked for.
            self._rows = [NutchDocument(weight=weight) for weight in self.weights]
            for name, values in self.fields.items():
                for document, found in zip(self._rows, lists_of(values), strict=True):
                    if found is not None:
                        document.fields[name] = NutchField(found)
        return self._rows

    def replace(self, rows: Sequence[NutchDocument]) -> None:
        """Replaces all documents."""
        self._rows = list(rows)

    def _settle(self) -> None:
        """Converts documents that were last used as records to columns."""
        if self._rows is None:
            return
        rows, self._rows = self._rows, None
        self.weights = pl.Series("weight", [row.weight for row in rows], dtype=pl.Float32)
        # In the order in which they first occur.
        names = dict.fromkeys(name for row in rows for name in row.fields)
        self.fields = {}
        for name in names:
            found = [row.fields[name].values if name in row.fields else None for row in rows]
            self.fields[name] = column_of(name, found)


# -- the loops of the base classes -----------------------------------------------------------------


def map_documents(
    documents: Documents,
    pages: Pages,
    change: Callable[[NutchDocument, PageRow], NutchDocument | None],
) -> pl.Series:
    """Applies `change` to each document; returns a mask of those that are kept: False for None,
    null for an error (logged).
    """
    stays: list[bool | None] = []
    rows = documents.rows()
    for number, (document, page) in enumerate(zip(rows, pages.rows(), strict=True)):
        try:
            changed = change(document, page)
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            stays.append(None)
            log.warning("Error indexing %s: %s", page.url, described(error))
            continue
        if changed is not None:
            rows[number] = changed
        stays.append(changed is not None)
    return pl.Series(stays, dtype=pl.Boolean)


def map_scores(
    documents: Documents, pages: Pages, init: pl.Series, score: Callable[..., float]
) -> pl.Series:
    """Applies `indexer_score` to each document (Float32); null if it failed now or before."""
    results: list[float | None] = []
    for document, page, before in zip(documents.rows(), pages.rows(), init, strict=True):
        url, parse, datum, db_datum, inlinks = page
        try:
            known = before is not None
            results.append(
                score(url, document, db_datum, datum, parse, inlinks, before) if known else None
            )
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            log.warning("Error calculating score %s: %s", url, described(error))
            results.append(None)
    return pl.Series(init.name, results, dtype=pl.Float64).cast(pl.Float32)


def described(error: Exception) -> str:
    """Describes an error for the log: an unexpected one with the name of its class."""
    return str(error) if isinstance(error, MinutchError) else f"{type(error).__name__}: {error}"
