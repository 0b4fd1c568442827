"""Indexes one range of keys, in a thread or worker process: from records to what writers are sent.

    batches → rows by key → outcomes → Pages and Documents → scoring and indexing filters → bytes
    for each writer

Records of a range are read each kind as a table, and joined by URL. Of several fetches of a URL the
newest counts, by the times of the fetches (of equally new ones that of the last segment, by the
order of names; within a segment the last, which a page may have inside another one), and with it
the parse, text and content of its segment. A failure that is tried again counts only where there is
nothing else; a page that was found not modified is the newest one that was fetched. Where a segment
lacks the parse, that of the last segment that has one counts. Of URLs that are not indexed, only
the few columns that decide about them are read. Source: org.apache.nutch.indexer.IndexerMapReduce.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, NamedTuple, Self

import numpy as np
import polars as pl

from minutch.conf import Configuration
from minutch.cycle.index import indexrules
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
from minutch.cycle.index.writers import CRAWL_PROPERTY, Encoded, Encoders
from minutch.cycle.owntext.frames import SiteFrames
from minutch.cycle.owntext.texts import frames_of, own_of
from minutch.cycle.parse.robotsdirectives import forbids_index
from minutch.hadoop.formats.batch import Batch, keys_of
from minutch.hadoop.formats.writables import MapWritable, Text
from minutch.job import Counters
from minutch.paths import as_path
from minutch.plugin.chains import (
    SCOPE_INDEXER,
    IndexingFilters,
    ScoringFilters,
    URLFilters,
    URLNormalizers,
)
from minutch.plugin.documents import Documents, PageLinks, Pages
from minutch.records import crawldatum as status
from minutch.records import crawldatum_columns
from minutch.records.crawldatum_columns import CRAWLDB_SCHEMA
from minutch.records.links_columns import INLINKS_SCHEMA, decode_inlinks
from minutch.records.metadata import REPR_URL_KEY, ROBOTS_KEY, SEGMENT_NAME_KEY, SIGNATURE_KEY
from minutch.records.metadata_columns import text_values
from minutch.records.parsedata_columns import ParseTable, decode, decode_texts
from minutch.records.protocol import Content
from minutch.records.textblocks import BLOCKS_KEY
from minutch.urls.hostcolumns import map_distinct
from minutch.work.tables.frame import concat, decode_keys
from minutch.work.tables.spans import DecodeNumbered, Numbers, decoded

TEXT_PROPERTY: Final = "indexer.text"
OWN, BOTH = "own", "both"
ROW: Final = "row"
SEGMENT: Final = "segment"
_ROWS: Final = pl.Schema({"key": pl.Binary(), SEGMENT: pl.UInt32()})
_OUTCOME: Final = ("status", "fetch_time")


class RangeRecords:
    """The records of a range, each kind as a table with a column `key`."""

    def __init__(self, inputs: Inputs, index_range: IndexRange) -> None:
        self._inputs, self._range = inputs, index_range
        self._contents: list[Batch] = []
        self._rows: dict[str, pl.DataFrame] = {}
        tables = self._tables(CRAWLDB, lambda batch, _: crawldatum_columns.decode(batch))
        self.db = concat(tables, CRAWLDB_SCHEMA).filter(
            # CrawlDatum.hasDbStatus.
            pl.col("status").is_between(1, status.STATUS_DB_MAX)
        )
        self.fetch = self._fetches()
        self.parse = self._parse()
        self.texts = self._texts()
        self.links = self._links()
        self._rows[CRAWLDB] = _last(self.db.select("key").with_row_index(ROW))
        if inputs.of(CONTENTS):
            self._rows[CONTENTS] = self._fetched(CONTENTS, self._contents.append)

    def urls(self) -> pl.Series:
        """Returns the URLs of the segments, sorted."""
        # Not of the CrawlDb, nearly all of whose entries lie in no segment of this job.
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
        directives whether its page is not for the index; None where that does not matter. A fetch
        without success is none where the CrawlDb knows of a success since: its entry is due later
        than that fetch was.
        """
        robots = pl.Series([False]).new_from_index(0, len(records))
        if forbids is not None:
            robots = self._noindex(forbids).gather(records[PARSE]).fill_null(False)
        fetch, fetched = (self.fetch[name].gather(records[FETCH]) for name in _OUTCOME)
        db, due = (self.db[name].gather(records[CRAWLDB]) for name in _OUTCOME)
        # It may have been fetched in a segment that this job is not given.
        is_over = db.is_in(status.STORED) & (due > fetched) & (fetch != status.STATUS_FETCH_SUCCESS)
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
            PageLinks(self.links, start, count),
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
        # Only where segments share a URL: a join and a sort of all rows for nothing otherwise.
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

        # A LinkDb has many times the URLs of a segment: links of others are not decoded.
        return concat(self._tables(LINKS, read, only=self.urls()), INLINKS_SCHEMA)

    def _links_of(self, keys: pl.Series) -> tuple[np.ndarray, np.ndarray]:
        """Returns the first row and number of links of each URL; -1 if it is not in the LinkDb."""
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
    # Within a segment no times are compared: a document inside a page has the page's.
    rows = rows.unique(["key", SEGMENT], keep="last", maintain_order=True)
    rows = rows.sort(code != status.STATUS_FETCH_RETRY, "fetch_time", maintain_order=True)
    newest = rows.unique("key", keep="last", maintain_order=True)
    # The answer 304 has no content: the page is that of the fetch before.
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


@dataclass(frozen=True, slots=True)
class RangeSettings:
    """The options of the job that decide about URLs and documents, and its time (ms)."""

    now: int
    delete_gone: bool = False
    filtering: bool = False
    normalize: bool = False
    content: bool = False
    as_base64: bool = False


@dataclass(frozen=True, slots=True)
class Plugins:
    """The plugins that URLs and documents pass; None if they are not used."""

    normalizers: URLNormalizers | None
    filters: URLFilters | None
    scoring: ScoringFilters
    indexing: IndexingFilters

    @classmethod
    def from_conf(cls, conf: Configuration, *, normalize: bool, filtering: bool) -> Self:
        """Loads the active plugins."""
        return cls(
            URLNormalizers(conf, SCOPE_INDEXER) if normalize else None,
            URLFilters(conf) if filtering else None,
            ScoringFilters(conf),
            IndexingFilters(conf),
        )

    @property
    def are_columnar(self) -> bool:
        """True if no plugin works document by document."""
        scoring = all(
            f.overrides("indexer_score_columns") or not f.overrides("indexer_score")
            for f in self.scoring.filters
        )
        return scoring and all(f.overrides("filter_columns") for f in self.indexing.filters)


class RangeResult(NamedTuple):
    """The actions of a range for each writer, and the counts of its outcomes."""

    encoded: Encoded
    counters: Counters


class RangeIndexer:
    """Turns the records of a range of keys into actions for the writers."""

    def __init__(
        self,
        inputs: Inputs,
        settings: RangeSettings,
        rules: indexrules.IndexRules,
        plugins: Plugins,
        encoders: Encoders,
        sites: SiteFrames | None = None,
        text: str = OWN,
    ) -> None:
        self._inputs, self._settings, self._rules = inputs, settings, rules
        self._plugins, self._encoders = plugins, encoders
        self._sites, self._text = sites, text
        self._forbids = (
            partial(
                forbids_index, agents=rules.agents, now=settings.now, none=rules.none_is_noindex
            )
            if rules.delete_noindex
            else None
        )

    @classmethod
    def from_conf(cls, conf: Configuration, inputs: Inputs, settings: RangeSettings) -> Self:
        """Makes the indexer of a process, with plugins of its own."""
        plugins = Plugins.from_conf(
            conf, normalize=settings.normalize, filtering=settings.filtering
        )
        rules = indexrules.IndexRules.from_conf(conf)
        rules = replace(rules, delete=rules.delete or settings.delete_gone)
        sites, text = None, conf.get_text(TEXT_PROPERTY)
        if text in (OWN, BOTH):
            sites = frames_of(as_path(conf.get_text(CRAWL_PROPERTY)), [])
        return cls(inputs, settings, rules, plugins, Encoders.from_conf(conf), sites, text)

    @property
    def is_columnar(self) -> bool:
        """True if nothing is done document by document, so that threads run in parallel."""
        columnar = self._plugins.are_columnar and self._encoders.are_columnar
        return columnar and not self._settings.content

    def __call__(self, index_range: IndexRange) -> RangeResult:
        """Indexes a range. Raises FormatError; errors of one document are counted and logged."""
        found = RangeRecords(self._inputs, index_range)
        counters = Counters()
        urls = self._filtered(found.urls(), counters)
        records = found.joined(urls)
        outcomes = self._rules.outcomes(found.facts(records, self._forbids))
        indexed = outcomes == indexrules.INDEXED
        # Texts, links and metadata are read of those alone that become documents.
        documents, late = self._documents(found, records.filter(indexed))
        early = pl.DataFrame([records["key"], outcomes]).filter(~indexed)
        every = pl.concat([early, late])
        for name, count in every["outcome"].value_counts().iter_rows():
            counters.add(name, count)
        gone = every.filter(pl.col("outcome").is_in(indexrules.DELETED))["key"]
        encoded, unwanted = self._encoders.encode(documents, decode_keys(gone).to_list())
        counters.merge(unwanted)
        return RangeResult(encoded, counters)

    def _filtered(self, urls: pl.Series, counters: Counters) -> pl.Series:
        """Keeps the URLs (of segments) that pass the filters and that normalizers don't change."""
        kept = decode_keys(urls)
        if self._plugins.normalizers is not None:
            normal = self._plugins.normalizers.normalize_column(kept).str.strip_chars()
            counters.add(indexrules.SKIPPED_BY_URL, int(normal.is_null().sum()))
            # Records under another name are misplaced: they come again with their new one.
            stays = (normal == kept).fill_null(False)
            urls, kept = urls.filter(stays), kept.filter(stays)
        if self._plugins.filters is not None:
            passed = self._plugins.filters.filter_column(kept).is_not_null()
            counters.add(indexrules.SKIPPED_BY_URL, int((~passed).sum()))
            urls = urls.filter(passed)
        return urls

    def _documents(
        self, found: RangeRecords, records: pl.DataFrame
    ) -> tuple[Documents, pl.DataFrame]:
        """Makes documents of the pages in `records`; also returns each outcome (key, outcome)."""
        pages = found.pages(records)
        documents = Documents(pages.urls)
        if self._sites is not None:
            marks = pages.parse.first_values(BLOCKS_KEY, "parse")
            titles = decode_keys(pages.parse.titles())
            columns = {"url": pages.urls, "title": titles, "text": pages.text, "marks": marks}
            table = pl.DataFrame(columns)
            # Before the filters, which then see the page's own text.
            own = own_of(self._sites, table)
            pages = replace(pages, texts=own["text"].cast(pl.Binary))
            if self._text == BOTH:
                documents.add("frame", own["frame"])
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
                pages, documents = pages.filter(kept), documents.filter(kept)
                records = records.filter(kept)

        if len(pages):
            # IndexerReducer begins with a boost of 1.0 for each.
            one = pl.Series("boost", [1.0], dtype=pl.Float32).new_from_index(0, len(pages))
            boost = self._plugins.scoring.indexer_score_columns(documents, pages, one)
            documents.boost(boost.fill_null(1.0))
            keep(boost.is_not_null(), lambda _: pl.lit(indexrules.ERRORS_SCORING))
            copy_from_crawldb(pages)
            for indexing in self._plugins.indexing.filters:
                documents, stays = self._plugins.indexing.filter_columns(indexing, documents, pages)
                if stays is not None:
                    keep(stays, self._after_filter)
        if self._settings.content:
            self._add_content(documents, found, records)
        done = pages.keys.to_frame("key").with_columns(outcome=pl.lit(indexrules.INDEXED))
        outcomes.append(done)
        return documents, pl.concat(outcomes)

    def _after_filter(self, stays: pl.Series) -> pl.Expr:
        """Returns the outcome of documents that a filter dropped (False) or failed on (null)."""
        return (
            pl.when(stays.is_null())
            .then(pl.lit(indexrules.ERRORS_INDEXING))
            .otherwise(pl.lit(self._rules.filtered))
        )

    def _add_content(
        self, documents: Documents, found: RangeRecords, records: pl.DataFrame
    ) -> None:
        """Adds the field binaryContent."""
        values: list[str | None] = []
        for content_row, parse_row in records.select(CONTENTS, PARSE).iter_rows():
            content = None if content_row is None else found.content(content_row)
            if content is None:
                values.append(None)
            elif self._settings.as_base64:
                values.append(base64.b64encode(content.content).decode("ascii"))
            else:
                values.append(content.to_string(found.parse.record(parse_row).charset))
        documents.add("binaryContent", pl.Series(values, dtype=pl.String))


def copy_from_crawldb(pages: Pages) -> None:
    """Copies from the CrawlDb's entries to the fetches what indexing filters read there.

    This is the signature; and if the CrawlDb has a representative URL, the page's own URL, as in
    Nutch.
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
        # Entry by entry: few pages have a representative URL.
        changed.append(metadata.to_bytes())
    metadata_column = (
        pages.fetch["metadata"].clone().scatter(other, pl.Series(changed, dtype=pl.Binary))
    )
    pages.fetch = pages.fetch.with_columns(metadata_column)
