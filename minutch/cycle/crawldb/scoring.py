"""Calls of the scoring filters, which may fail without stopping the job.

The filters work on tables. Where one fails, the table is processed again record by record: failures
are counted and logged with their URLs, and such a record keeps its score (a new one gets 0).
Source: the calls of org.apache.nutch.scoring.ScoringFilters in CrawlDbReducer and Injector.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Final

import polars as pl

from minutch.errors import PluginError
from minutch.job import Counters
from minutch.plugin.chains import ScoringFilters
from minutch.records import crawldatum_columns
from minutch.records.crawldatum import CrawlDatum
from minutch.work.tables.recordfiles import unpack

log = logging.getLogger(__name__)

ERRORS: Final = "errors of scoring filters"
_ORPHANED: Final = ("orphaned_score", "orphaned_score_columns")


def injected_scores(
    frame: pl.DataFrame, scoring: ScoringFilters, counters: Counters
) -> pl.DataFrame:
    """Returns seeds with their scores."""
    return _guarded(frame, scoring.inject_score_columns, lambda: scoring.inject_score, counters)


def initial_scores(
    frame: pl.DataFrame, scoring: ScoringFilters, counters: Counters
) -> pl.DataFrame:
    """Returns pages found through a link, with their first scores."""

    def change(url: str, datum: CrawlDatum) -> None:
        try:
            scoring.initial_score(url, datum)
        except PluginError:
            datum.score = 0.0  # as CrawlDbReducer where initialScore fails
            raise

    return _guarded(frame, scoring.initial_score_columns, lambda: change, counters)


def sees_orphans(scoring: ScoringFilters) -> bool:
    """Returns True if a filter handles entries that no update touches."""
    return any(
        scoring_filter.overrides(name) for scoring_filter in scoring.filters for name in _ORPHANED
    )


def orphaned_scores(
    frame: pl.DataFrame, untouched: pl.Series, scoring: ScoringFilters, counters: Counters
) -> pl.DataFrame:
    """Returns the entries, after the filters on those without an update (mask `untouched`)."""
    at = untouched.arg_true()
    changed = _guarded(
        frame[at], scoring.orphaned_score_columns, lambda: scoring.orphaned_score, counters
    )
    return frame.with_columns(frame[name].scatter(at, changed[name]) for name in frame.columns)


def updated_scores(
    frame: pl.DataFrame,
    old: pl.DataFrame,
    inlinked: pl.DataFrame,
    scoring: ScoringFilters,
    counters: Counters,
) -> pl.DataFrame:
    """Returns the entries with new scores; `old` by row (null status: none), `inlinked` packed."""
    if not scoring.filters:
        return frame

    def one_by_one() -> Callable[[str, CrawlDatum], None]:
        # New for each try: they are used up as rows are gone through.
        old_data, inlinks = _optional_records(old), _grouped(inlinked, len(frame))
        return lambda url, datum: scoring.update_db_score(url, next(old_data), datum, next(inlinks))

    return _guarded(
        frame,
        lambda table: scoring.update_db_score_columns(table, old, inlinked),
        one_by_one,
        counters,
    )


def linked_scores(
    scores: pl.Series, inlinked: pl.DataFrame, scoring: ScoringFilters
) -> pl.Series | None:
    """Returns new scores of entries to which links were found and nothing else; None if the filters
    may change more, or fail.

    `inlinked` as in `updated_scores`, which is to be called then.
    """
    if sees_orphans(scoring):  # it would have to see the whole entry
        return None
    try:
        return scoring.linked_score_columns(scores, inlinked)
    except PluginError as exc:
        log.warning("a scoring filter failed, continuing with whole entries: %s", exc)
        return None


def _guarded(
    frame: pl.DataFrame,
    columns: Callable[[pl.DataFrame], pl.DataFrame],
    make_change: Callable[[], Callable[[str, CrawlDatum], None]],
    counters: Counters,
) -> pl.DataFrame:
    """`columns` of the table; if that fails, `make_change()` by record, skipping failures."""
    if frame.is_empty():
        return frame
    try:
        return columns(frame)
    except PluginError as exc:
        log.warning("a scoring filter failed, continuing record by record: %s", exc)
    change = make_change()

    def guarded(url: str, datum: CrawlDatum) -> None:
        try:
            change(url, datum)
        except PluginError as exc:
            counters.add(ERRORS)
            log.warning("can't score %s: %s", url, exc)

    return crawldatum_columns.map_rows(frame, guarded)


def _optional_records(frame: pl.DataFrame) -> Iterator[CrawlDatum | None]:
    """Returns the record of each row, None where the status is null."""
    has = frame["status"].is_not_null()
    found = crawldatum_columns.records(frame.filter(has))
    return (next(found)[1] if there else None for there in has)


def _grouped(inlinked: pl.DataFrame, count: int) -> Iterator[list[CrawlDatum]]:
    """Returns the links of each row from 0 to `count` - 1."""
    by_row: dict[int, list[CrawlDatum]] = {}
    for row, (_, datum) in zip(
        inlinked["row"], crawldatum_columns.records(unpack(inlinked)), strict=True
    ):
        by_row.setdefault(row, []).append(datum)
    return (by_row.get(row, []) for row in range(count))
