"""One range of an index job, in a worker process: its records are read, joined, made documents,
filtered, encoded.

    batches → rows by key → outcomes → Pages and Documents → scoring and indexing filters → bytes
    for each writer

What is not indexed never becomes more than the few columns that decide about it.
Source: org.apache.nutch.indexer.IndexerMapReduce.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from minutch.conf import Configuration
from minutch.cycle.index import indexrules
from minutch.cycle.index.inputs import CONTENTS, CRAWLDB, FETCH, LINKS, PARSE, TEXT, Inputs, within
from minutch.cycle.index.writers import Encoded, Encoders
from minutch.errors import FormatError
from minutch.hadoop.formats.batch import Batch, keys_of
from minutch.hadoop.formats.writables import MapWritable, Text
from minutch.job import Counters
from minutch.plugin.chains import (
    SCOPE_INDEXER,
    IndexingFilters,
    ScoringFilters,
    URLFilters,
    URLNormalizers,
)
from minutch.plugin.documents import Documents, Links, Pages
from minutch.records import crawldatum as status
from minutch.records.content import Content
from minutch.records.crawldatum import columns as crawldatum_columns
from minutch.records.crawldatum.table import CRAWLDB_SCHEMA
from minutch.records.links.columns import decode_inlinks
from minutch.records.links.table import INLINKS_SCHEMA
from minutch.records.metadata import REPR_URL_KEY, SEGMENT_NAME_KEY, SIGNATURE_KEY
from minutch.records.metadata.columns import text_values
from minutch.records.parsedata.columns import ParseTable, decode, decode_texts
from minutch.work.tables.frame import concat, decode_keys
from minutch.work.tables.keyranges import KeyRange

ROBOTS_KEY: Final = "robots"
ROW: Final = "row"
SEGMENT_KINDS: Final = (FETCH, PARSE, TEXT)


@dataclass(frozen=True)
class IndexOptions:
    """The options of the command that decide what becomes of a URL."""

    delete_gone: bool = False
    filters: bool = False
    normalize: bool = False
    content: bool = False
    as_base64: bool = False


class RangeTask(NamedTuple):
    """A range of keys, and the records of it that lie elsewhere (inputs.MISPLACED)."""

    keys: KeyRange
    misplaced: pl.DataFrame


class RangeResult(NamedTuple):
    """What the writers get of a range, and what became of its URLs."""

    encoded: Encoded
    counters: Counters


class RangeIndexer:
    """Makes of ranges what the writers get."""

    def __init__(self, conf: Configuration, inputs: Inputs, options: IndexOptions) -> None:
        self._inputs = inputs
        self._options = options
        self._rules = indexrules.IndexRules.from_conf(conf, delete=options.delete_gone)
        self._normalizers = URLNormalizers(conf, SCOPE_INDEXER) if options.normalize else None
        self._filters = URLFilters(conf) if options.filters else None
        self._scoring = ScoringFilters(conf)
        self._indexing = IndexingFilters(conf)
        self._encoders = Encoders(conf)

    @property
    def is_columnar(self) -> bool:
        """Whether nothing is done document by document, so that threads get on side by side."""
        scoring = all(
            f.overrides("indexer_score_columns") or not f.overrides("indexer_score")
            for f in self._scoring.filters
        )
        filters = all(f.overrides("filter_columns") for f in self._indexing.filters)
        return scoring and filters and self._encoders.are_columnar and not self._options.content

    def __call__(self, task: RangeTask) -> RangeResult:
        """Raises FormatError for damage; what is wrong with one document is counted and logged."""
        found = _Records(self._inputs, task)
        counters = Counters()
        urls = self._let_through(found.urls(), counters)
        records = found.joined(urls)
        outcomes = self._rules.outcomes(found.facts(records, noindex=self._rules.delete_noindex))
        indexed = outcomes == indexrules.INDEXED
        documents, late = self._documents(found, records.filter(indexed))
        early = pl.DataFrame([records["key"], outcomes]).filter(~indexed)
        every = pl.concat([early, late])
        for name, count in every["outcome"].value_counts().iter_rows():
            counters.add(name, count)
        gone = every.filter(pl.col("outcome").is_in(indexrules.DELETED))["key"]
        encoded, unwanted = self._encoders.encode(documents, decode_keys(gone).to_list())
        counters.merge(unwanted)
        return RangeResult(encoded, counters)

    def _let_through(self, urls: pl.Series, counters: Counters) -> pl.Series:
        """The URLs (of segments) that are not filtered, and that are what the normalizers make of
        them.
        """
        kept = decode_keys(urls)
        if self._normalizers is not None:
            normal = self._normalizers.normalize_column(kept).str.strip_chars()
            counters.add(indexrules.SKIPPED_BY_URL, int(normal.is_null().sum()))
            stays = (normal == kept).fill_null(False)
            urls, kept = urls.filter(stays), kept.filter(stays)
        if self._filters is not None:
            passed = self._filters.filter_column(kept).is_not_null()
            counters.add(indexrules.SKIPPED_BY_URL, int((~passed).sum()))
            urls = urls.filter(passed)
        return urls

    def _documents(self, found: _Records, records: pl.DataFrame) -> tuple[Documents, pl.DataFrame]:
        """The documents of the pages in `records`, and the outcome of each page (key, outcome)."""
        pages = found.pages(records)
        documents = Documents(pages.urls)
        documents.add("id", pages.urls)
        documents.add("segment", pages.content_meta(SEGMENT_NAME_KEY))
        documents.add("digest", pages.content_meta(SIGNATURE_KEY))
        outcomes: list[pl.DataFrame] = []

        def keep(stays: pl.Series, out: Callable[[pl.Series], pl.Expr]) -> None:
            nonlocal pages, documents, records
            kept = stays.fill_null(False)
            if not kept.all():
                lost = pl.DataFrame([pages.keys, stays.alias("stays")]).filter(~kept)
                outcomes.append(lost.select("key", out(lost["stays"]).alias("outcome")))
                pages, documents, records = (
                    pages.filter(kept),
                    documents.filter(kept),
                    records.filter(kept),
                )

        if len(pages):
            one = pl.Series("boost", [1.0], dtype=pl.Float32).new_from_index(0, len(pages))
            boost = self._scoring.indexer_score_columns(documents, pages, one)
            documents.boost(boost.fill_null(1.0))
            keep(boost.is_not_null(), lambda _: pl.lit(indexrules.ERRORS_SCORING))
            _hand_on(pages)
            for indexing in self._indexing.filters:
                documents, stays = self._indexing.filter_columns(indexing, documents, pages)
                if stays is not None:
                    keep(stays, self._after_filter)
        if self._options.content:
            self._add_content(documents, found, records)
        outcomes.append(
            pl.DataFrame(
                [
                    pages.keys,
                    pl.Series("outcome", [indexrules.INDEXED]).new_from_index(0, len(pages)),
                ]
            )
        )
        return documents, pl.concat(outcomes)

    def _after_filter(self, stays: pl.Series) -> pl.Expr:
        """The outcome of documents that a filter has left out (False) or failed at (null)."""
        return (
            pl.when(stays.is_null())
            .then(pl.lit(indexrules.ERRORS_INDEXING))
            .otherwise(pl.lit(self._rules.filtered))
        )

    def _add_content(self, documents: Documents, found: _Records, records: pl.DataFrame) -> None:
        """The field binaryContent."""
        values: list[str | None] = []
        for content_row, parse_row in records.select(CONTENTS, PARSE).iter_rows():
            content = None if content_row is None else found.content(content_row)
            if content is None:
                values.append(None)
            elif self._options.as_base64:
                values.append(base64.b64encode(content.content).decode("ascii"))
            else:
                values.append(content.to_string(found.parse.record(parse_row).charset))
        documents.add("binaryContent", pl.Series(values, dtype=pl.String))


def _hand_on(pages: Pages) -> None:
    """Let the fetch of pages that are in the CrawlDb have what indexing filters want of their
    entries.

    The signature; and where the CrawlDb knows a representative URL, the page's own URL in its
    place, as in Nutch.
    """
    known = pages.db["status"].is_not_null()
    signature = pages.fetch["signature"].zip_with(~known, pages.db["signature"])
    pages.fetch = pages.fetch.with_columns(signature.alias("signature"))
    other = text_values(pages.db["metadata"], pages.keys, REPR_URL_KEY).is_not_null().arg_true()
    if not len(other):
        return
    changed = []
    for row in other:
        data = pages.fetch["metadata"][row]
        metadata = MapWritable() if data is None else MapWritable.from_bytes(data)
        metadata[Text(REPR_URL_KEY)] = Text(pages.urls[row])
        changed.append(metadata.to_bytes())
    metadata_column = (
        pages.fetch["metadata"].clone().scatter(other, pl.Series(changed, dtype=pl.Binary))
    )
    pages.fetch = pages.fetch.with_columns(metadata_column)


class _Records:
    """The records of a range, each kind as a table with a column `key`."""

    def __init__(self, inputs: Inputs, task: RangeTask) -> None:
        self._inputs, self._task = inputs, task
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
        """The URLs that the segments have, sorted."""
        keys = [self._seen, *(self._rows[kind]["key"] for kind in (PARSE, TEXT))]
        return pl.concat(keys).unique().sort().alias("key")

    def joined(self, urls: pl.Series) -> pl.DataFrame:
        """The URLs with the number of the row that counts in the table of each kind, null where
        there is none.
        """
        table = urls.to_frame("key")
        for kind, rows in self._rows.items():
            table = table.join(
                rows.rename({ROW: kind}), on="key", how="left", maintain_order="left"
            )
        return table

    def facts(self, records: pl.DataFrame, *, noindex: bool) -> pl.DataFrame:
        """What `IndexRules.outcomes` wants to know."""
        robots = pl.Series([False]).new_from_index(0, len(records))
        if noindex:
            robots = self._noindex().gather(records[PARSE]).fill_null(False)
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
        """The pages whose rows `records` holds."""
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
        """A page's content as it was fetched. Raises FormatError."""
        for batch in self._contents:
            if row < batch.size:
                return Content.from_bytes(batch.value(row))
            row -= batch.size
        return None

    # -- reading -----------------------------------------------------------------------------------

    def _tables(
        self, kind: str, read: Callable[[Batch], pl.DataFrame], only: pl.Series | None = None
    ) -> list[pl.DataFrame]:
        """The tables of all batches of a kind; of the keys `only`."""
        tables = []
        for batch, path in self._inputs.batches(kind, self._task.keys, self._task.misplaced, only):
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
        """The links to the URLs of the segments."""
        read = partial(decode_inlinks, layout=self._inputs.layout)
        return concat(self._tables(LINKS, read, only=self.urls()), INLINKS_SCHEMA)

    def _links_of(self, keys: pl.Series) -> tuple[np.ndarray, np.ndarray]:
        """Where the links to each URL begin, and how many there are; -1 for a URL that the LinkDb
        lacks.
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

    def _noindex(self) -> pl.Series:
        """Whether the robots directives of each parse hold noindex."""
        own = self.parse.first_values(ROBOTS_KEY, "parse")
        robots = own.zip_with(own.is_not_null(), self.parse.first_values(ROBOTS_KEY, "content"))
        return (
            decode_keys(robots)
            .str.to_lowercase()
            .str.contains("noindex", literal=True)
            .fill_null(False)
        )


def _is_fetch(code: pl.Expr) -> pl.Expr:
    """CrawlDatum.hasFetchStatus, without pages that were not modified."""
    fetched = code.is_between(status.STATUS_DB_MAX + 1, status.STATUS_FETCH_MAX) | (
        code == status.STATUS_PARSE_FAILED
    )
    return fetched & (code != status.STATUS_FETCH_NOTMODIFIED)


def _numbered(keys: pl.Series, base: int) -> pl.DataFrame:
    """Keys with the numbers of their rows."""
    return pl.DataFrame([keys, pl.Series(ROW, range(base, base + len(keys)), dtype=pl.UInt32)])


def _last(keys: pl.Series) -> pl.DataFrame:
    """The number of the last row of each key."""
    return _numbered(keys.alias("key"), 0).unique("key", keep="last")


def _last_row(tables: list[pl.DataFrame]) -> pl.DataFrame:
    """The same, of numbered keys."""
    schema = pl.Schema({"key": pl.Binary(), ROW: pl.UInt32()})
    return concat(tables, schema).unique("key", keep="last")
