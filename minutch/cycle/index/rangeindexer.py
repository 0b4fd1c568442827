"""Indexes one range of keys, in a thread or worker process: from records to what writers are sent.

    batches → rows by key → outcomes → Pages and Documents → scoring and indexing filters → bytes
    for each writer

Of URLs that are not indexed, only the few columns that decide about them are read.
Source: org.apache.nutch.indexer.IndexerMapReduce.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Self

import polars as pl

from minutch.conf import Configuration
from minutch.cycle.index import indexrules
from minutch.cycle.index.inputs import CONTENTS, PARSE, IndexRange, Inputs
from minutch.cycle.index.rangerecords import RangeRecords
from minutch.cycle.index.writers import Encoded, Encoders
from minutch.cycle.parse.robotsdirectives import forbids_index
from minutch.hadoop.formats.writables import MapWritable, Text
from minutch.job import Counters
from minutch.plugin.chains import (
    SCOPE_INDEXER,
    IndexingFilters,
    ScoringFilters,
    URLFilters,
    URLNormalizers,
)
from minutch.plugin.documents import Documents, Pages
from minutch.records.metadata import REPR_URL_KEY, SEGMENT_NAME_KEY, SIGNATURE_KEY
from minutch.records.metadata_columns import text_values
from minutch.work.tables.frame import decode_keys


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
    ) -> None:
        self._inputs, self._settings, self._rules = inputs, settings, rules
        self._plugins, self._encoders = plugins, encoders
        self._forbids = (
            partial(
                forbids_index,
                agents=rules.agents,
                now=settings.now,
                none=rules.none_is_noindex,
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
        rules = indexrules.IndexRules.from_conf(conf, delete=settings.delete_gone)
        return cls(inputs, settings, rules, plugins, Encoders.from_conf(conf))

    @property
    def is_columnar(self) -> bool:
        """True if nothing is done document by document, so that threads run in parallel."""
        columnar = self._plugins.are_columnar and self._encoders.are_columnar
        return columnar and not self._settings.content

    def __call__(self, index_range: IndexRange) -> RangeResult:
        """Indexes a range. Raises FormatError for damage; errors of one document are counted and
        logged.
        """
        found = RangeRecords(self._inputs, index_range)
        counters = Counters()
        urls = self._filtered(found.urls(), counters)
        records = found.joined(urls)
        outcomes = self._rules.outcomes(found.facts(records, self._forbids))
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

    def _filtered(self, urls: pl.Series, counters: Counters) -> pl.Series:
        """Keeps the URLs (of segments) that pass the filters and that normalizers don't change."""
        kept = decode_keys(urls)
        if self._plugins.normalizers is not None:
            normal = self._plugins.normalizers.normalize_column(kept).str.strip_chars()
            counters.add(indexrules.SKIPPED_BY_URL, int(normal.is_null().sum()))
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
        """Makes documents of the pages in `records`; returns the outcome of each page as well (key,
        outcome).
        """
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
        changed.append(metadata.to_bytes())
    metadata_column = (
        pages.fetch["metadata"].clone().scatter(other, pl.Series(changed, dtype=pl.Binary))
    )
    pages.fetch = pages.fetch.with_columns(metadata_column)
