"""Scores in an update: the scoring filters, kept from taking the job down.

The filters work on tables. Where one fails on some record, the table is gone over again record by record, the failure
is reported with the URL and counted, and the record keeps the score that it has (a new one gets 0).
Matched: the calls of org.apache.nutch.scoring.ScoringFilters in CrawlDbReducer and Injector.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Final

import polars as pl

from minutch.errors import PluginError
from minutch.job import Counters
from minutch.plugin.chains import ScoringFilters
from minutch.records.crawldatum import CrawlDatum
from minutch.tables import rows
from minutch.tables.packed import unpack

log = logging.getLogger(__name__)

ERRORS: Final = "errors of scoring filters"
_ORPHANED: Final = ("orphaned_score", "orphaned_score_columns")


def injected_scores(frame: pl.DataFrame, scoring: ScoringFilters, counters: Counters) -> pl.DataFrame:
    """Seeds with their scores."""
    return _guarded(frame, scoring.inject_score_columns, lambda: scoring.inject_score, counters)


def initial_scores(frame: pl.DataFrame, scoring: ScoringFilters, counters: Counters) -> pl.DataFrame:
    """Pages found through a link, with their first scores."""

    def change(url: str, datum: CrawlDatum) -> None:
        try:
            scoring.initial_score(url, datum)
        except PluginError:
            datum.score = 0.0
            raise

    return _guarded(frame, scoring.initial_score_columns, lambda: change, counters)


def sees_orphans(scoring: ScoringFilters) -> bool:
    """Whether a filter wants to see the entries without news."""
    return any(scoring_filter.is_written(name) for scoring_filter in scoring.filters for name in _ORPHANED)


def orphaned_scores(
    frame: pl.DataFrame, untouched: pl.Series, scoring: ScoringFilters, counters: Counters
) -> pl.DataFrame:
    """The entries, those without news (mask `untouched`) past the filters."""
    at = untouched.arg_true()
    changed = _guarded(frame[at], scoring.orphaned_score_columns, lambda: scoring.orphaned_score, counters)
    return frame.with_columns(frame[name].scatter(at, changed[name]) for name in frame.columns)


def updated_scores(
    frame: pl.DataFrame, old: pl.DataFrame, inlinked: pl.DataFrame, scoring: ScoringFilters, counters: Counters
) -> pl.DataFrame:
    """The scores after an update: `old` row for row (null status: there is none), links (packed) with their `row`."""
    if not scoring.filters:
        return frame

    def one_by_one() -> Callable[[str, CrawlDatum], None]:
        old_data, inlinks = _optional_records(old), _grouped(inlinked, len(frame))
        return lambda url, datum: scoring.update_db_score(url, next(old_data), datum, next(inlinks))

    return _guarded(frame, lambda table: scoring.update_db_score_columns(table, old, inlinked), one_by_one, counters)


def _guarded(
    frame: pl.DataFrame,
    columns: Callable[[pl.DataFrame], pl.DataFrame],
    make_change: Callable[[], Callable[[str, CrawlDatum], None]],
    counters: Counters,
) -> pl.DataFrame:
    """`columns` of the table; if it fails, the change that `make_change` gives, on each record that lets it."""
    if frame.is_empty():
        return frame
    try:
        return columns(frame)
    except PluginError as exc:
        log.warning("a scoring filter failed, going on record by record: %s", exc)
    change = make_change()

    def guarded(url: str, datum: CrawlDatum) -> None:
        try:
            change(url, datum)
        except PluginError as exc:
            counters.add(ERRORS)
            log.warning("can't score %s: %s", url, exc)

    return rows.map_rows(frame, guarded)


def _optional_records(frame: pl.DataFrame) -> Iterator[CrawlDatum | None]:
    """The record of each row, None where the status is null."""
    has = frame["status"].is_not_null()
    found = rows.records(frame.filter(has))
    return (next(found)[1] if there else None for there in has)


def _grouped(inlinked: pl.DataFrame, count: int) -> Iterator[list[CrawlDatum]]:
    """The links of each of `count` rows, in order."""
    by_row: dict[int, list[CrawlDatum]] = {}
    for row, (_, datum) in zip(inlinked["row"], rows.records(unpack(inlinked)), strict=True):
        by_row.setdefault(row, []).append(datum)
    return (by_row.get(row, []) for row in range(count))
