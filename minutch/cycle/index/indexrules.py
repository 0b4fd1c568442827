"""Decides whether a URL is indexed, deleted or skipped, by its records. Pure: no I/O.

    records of a URL                                        outcome, the first that applies
    robots noindex in the parse                             deleted if indexer.delete.robots.noindex
    fetched, parse failed for good                          deleted if parser.delete.failed.parse
    fetched, and gone, by the fetch or the CrawlDb          deleted with -deleteGone
    fetched, and a redirect, by the fetch or the CrawlDb    deleted with -deleteGone
    no fetch, no parse or no text                           skipped
    db_duplicate                                            deleted with -deleteGone
    db_notmodified                                          skipped if indexer.skip.notmodified
    not fetched successfully                                skipped
    parse failed                                            skipped
    anything else                                           indexed

Which of several records of a URL count is decided in `rangeindexer`: those of the newest fetch.
Nutch deletes a page for noindex, and for an error or a redirect, in any segment.

Outcomes are named as Nutch's counters; those that Nutch does not count have similar names. Source:
org.apache.nutch.indexer.IndexerMapReduce.IndexerReducer.reduce.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

from minutch.conf import Settings, made_by, prop
from minutch.cycle.parse.robotsdirectives import agents_of
from minutch.records import crawldatum as status

INDEXED: Final = "indexed_total"
DELETED_NOINDEX: Final = "deleted_robots_noindex_total"
DELETED_FAILED_PARSE: Final = "deleted_failed_parse_total"
DELETED_GONE: Final = "deleted_gone_total"
DELETED_REDIRECTS: Final = "deleted_redirects_total"
DELETED_DUPLICATES: Final = "deleted_duplicates_total"
DELETED_BY_FILTER: Final = "deleted_by_indexing_filter_total"
SKIPPED_NOT_MODIFIED: Final = "skipped_not_modified_total"
SKIPPED_BY_FILTER: Final = "skipped_by_indexing_filter_total"
SKIPPED_NOT_FETCHED: Final = "skipped_not_fetched_total"
SKIPPED_NOT_PARSED: Final = "skipped_not_parsed_total"
SKIPPED_FAILED_PARSE: Final = "skipped_failed_parse_total"
SKIPPED_BY_URL: Final = "skipped_by_url_filter_total"
ERRORS_SCORING: Final = "errors_scoring_total"
ERRORS_INDEXING: Final = "errors_indexing_total"

DELETED: Final = (
    DELETED_NOINDEX,
    DELETED_FAILED_PARSE,
    DELETED_GONE,
    DELETED_REDIRECTS,
    DELETED_DUPLICATES,
    DELETED_BY_FILTER,
)
"""The outcomes that delete a document."""

_REDIRECTS: Final = (status.STATUS_FETCH_REDIR_PERM, status.STATUS_FETCH_REDIR_TEMP)
_DB_REDIRECTS: Final = (status.STATUS_DB_REDIR_PERM, status.STATUS_DB_REDIR_TEMP)


@dataclass(frozen=True)
class IndexRules(Settings):
    """The properties that decide; `delete` is -deleteGone or indexer.delete."""

    delete: bool = prop("indexer.delete")
    delete_noindex: bool = prop("indexer.delete.robots.noindex")
    delete_failed_parse: bool = prop("parser.delete.failed.parse")
    delete_filtered: bool = prop("indexer.delete.skipped.by.indexingfilter")
    skip_not_modified: bool = prop("indexer.skip.notmodified")
    none_is_noindex: bool = prop("indexer.delete.robots.none")
    agents: frozenset[str] = made_by(agents_of)
    """The names by which robots directives may call this crawler."""

    @property
    def filtered(self) -> str:
        """Outcome of a document that an indexing filter drops."""
        return DELETED_BY_FILTER if self.delete_filtered else SKIPPED_BY_FILTER

    def outcomes(self, records: pl.DataFrame) -> pl.Series:
        """Returns the outcome of each URL. Columns of `records`, a row per URL:

        fetch    UInt8    status of the fetch, null without one (or where it is over)
        db       UInt8    status in the CrawlDb, null without an entry
        parsed   Boolean  whether the parse succeeded, null without one
        text     Boolean  whether there is a text
        noindex  Boolean  whether the parse's robots directives forbid to index it
        """
        fetch, db = pl.col("fetch"), pl.col("db")
        fetched = fetch.is_not_null()
        # IndexerReducer takes a failed parse from either, too.
        failed = (fetch == status.STATUS_PARSE_FAILED) | (db == status.STATUS_DB_PARSE_FAILED)
        gone = (fetch == status.STATUS_FETCH_GONE) | (db == status.STATUS_DB_GONE)
        redirect = fetch.is_in(_REDIRECTS) | db.is_in(_DB_REDIRECTS)
        complete = fetched & pl.col("parsed").is_not_null() & pl.col("text")
        success = fetch == status.STATUS_FETCH_SUCCESS
        incomplete = (
            pl.when(success).then(pl.lit(SKIPPED_NOT_PARSED)).otherwise(pl.lit(SKIPPED_NOT_FETCHED))
        )
        steps: list[tuple[pl.Expr, str | pl.Expr]] = [
            (self.delete_noindex & pl.col("noindex"), DELETED_NOINDEX),
            (self.delete_failed_parse & fetched & failed, DELETED_FAILED_PARSE),
            (self.delete & fetched & gone, DELETED_GONE),
            (self.delete & fetched & redirect, DELETED_REDIRECTS),
            (~complete, incomplete),
            (self.delete & (db == status.STATUS_DB_DUPLICATE), DELETED_DUPLICATES),
            (self.skip_not_modified & (db == status.STATUS_DB_NOTMODIFIED), SKIPPED_NOT_MODIFIED),
            (~success, SKIPPED_NOT_FETCHED),
            (~pl.col("parsed"), SKIPPED_FAILED_PARSE),
        ]
        outcome = pl.lit(INDEXED)
        # The first step is the outermost condition.
        for condition, name in reversed(steps):
            then = pl.lit(name) if isinstance(name, str) else name
            outcome = pl.when(condition).then(then).otherwise(outcome)
        return records.select(outcome.alias("outcome")).to_series()
