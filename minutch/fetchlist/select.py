"""Which pages are fetched next: every decision of generate has its home here. No I/O; `now` is an argument.

    due     of all entries those that may be fetched, each rejection counted, with the value that they are sorted by
    Quota   how many of them, best first: topN, segments, and at most so many of one host or domain

Matched: org.apache.nutch.crawl.Generator, SelectorMapper (`due`) and SelectorReducer (`Quota`), the counters' names
included. A page's first reason to be left out is the one that counts, in Nutch's order.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from minutch.conf import Configuration
from minutch.crawldb.schedule import AbstractFetchSchedule
from minutch.errors import ConfigError, PluginError
from minutch.formats.javahash import float32
from minutch.formats.writables import LongWritable
from minutch.job import Counters
from minutch.plugin.chains import ScoringFilters, URLFilters
from minutch.records.crawldatum import status_by_name
from minutch.records.metadata import GENERATE_TIME_KEY
from minutch.records.rawmap import text_key, values_of
from minutch.tables import rows
from minutch.tables.frame import decode_keys

if TYPE_CHECKING:
    from minutch.expressions import Expression

log = logging.getLogger(__name__)

FILTERED: Final = "url_filters_rejected_total"
NOT_DUE: Final = "schedule_rejected_total"
WAITING: Final = "wait_for_update_total"
EXPRESSION: Final = "expr_rejected_total"
STATUS: Final = "status_rejected_total"
LOW_SCORE: Final = "score_too_low_total"
INTERVAL: Final = "interval_rejected_total"
MALFORMED: Final = "malformed_urls_skipped_total"
HOSTS_OVER_LIMIT: Final = "hosts_affected_per_host_overflow_total"
OVER_LIMIT: Final = "urls_skipped_per_host_overflow_total"

GENERATE_TIME: Final = text_key(GENERATE_TIME_KEY)
_FIRST_SORT_VALUE: Final = 1.0


@dataclass(frozen=True, slots=True)
class Conditions:
    """What an entry has to meet besides URL filters and schedule. Times in ms."""

    now: int
    generate_delay: int
    min_score: float
    min_interval: int
    status: int
    expression: Expression | None

    @classmethod
    def from_conf(cls, conf: Configuration, now: int, expression: Expression | None) -> Conditions:
        """From `crawl.gen.delay` and `generate.*`. Raises ConfigError for a status that does not exist."""
        status = conf.get_trimmed("generate.restrict.status") or ""
        code = status_by_name(status) if status else -1
        if status and code < 0:
            raise ConfigError(f"generate.restrict.status: there is no status '{status}'")
        return cls(
            now=now,
            generate_delay=conf.get_long("crawl.gen.delay", 604_800_000),
            min_score=conf.get_float("generate.min.score", math.nan),
            min_interval=conf.get_int("generate.min.interval", -1),
            status=code,
            expression=expression,
        )


@dataclass(frozen=True, slots=True)
class Due:
    """What `due` found: `entries` of CRAWLDB_SCHEMA with `sort` (Float32), in their order."""

    entries: pl.DataFrame
    counters: Counters
    next_due: int | None  # ms: when the first of those that are not due will be


def due(
    frame: pl.DataFrame,
    conditions: Conditions,
    schedule: AbstractFetchSchedule,
    scoring: ScoringFilters,
    filters: URLFilters | None,
) -> Due:
    """The entries of `frame` that may be fetched. Those that the schedule brings forward come out changed."""
    counters = Counters()

    def keep(table: pl.DataFrame, mask: pl.Series, reason: str) -> pl.DataFrame:
        kept = table if mask.all() else table.filter(mask)
        counters.add(reason, len(table) - len(kept))
        return kept

    if filters is not None:
        frame = keep(frame, _passes(frame, filters), FILTERED)
    frame, is_due = schedule.should_fetch_columns(frame, conditions.now)
    later = frame["fetch_time"].filter(~is_due)
    frame = keep(frame, is_due, NOT_DUE)
    frame = keep(frame, ~_awaits_update(frame, conditions), WAITING)
    frame = frame.with_columns(sort=_sort_values(frame, scoring))
    if conditions.expression is not None:
        from minutch.tables.matching import matching

        frame = keep(frame, matching(frame, conditions.expression), EXPRESSION)
    if conditions.status != -1:
        frame = keep(frame, frame["status"] == conditions.status, STATUS)
    if not math.isnan(conditions.min_score):
        frame = keep(frame, ~(frame["sort"] < conditions.min_score).fill_null(False), LOW_SCORE)
    if conditions.min_interval != -1:
        frame = keep(frame, frame["fetch_interval"] <= conditions.min_interval, INTERVAL)
    return Due(frame, counters, int(later.min()) if len(later) else None)  # type: ignore[arg-type]


def _passes(frame: pl.DataFrame, filters: URLFilters) -> pl.Series:
    return filters.filter_column(decode_keys(frame["key"])).is_not_null()


def _awaits_update(frame: pl.DataFrame, conditions: Conditions) -> pl.Series:
    """Which entries are in an earlier fetch list whose result may still come."""
    waiting = np.zeros(len(frame), dtype=bool)
    for row, value in values_of(frame["metadata"], GENERATE_TIME).items():
        if isinstance(value, LongWritable):
            waiting[row] = value.value + conditions.generate_delay > conditions.now
    return pl.Series(waiting)


def _sort_values(frame: pl.DataFrame, scoring: ScoringFilters) -> pl.Series:
    """What entries are sorted by; a filter that fails leaves an entry the value it started with."""
    init = pl.repeat(_FIRST_SORT_VALUE, len(frame), dtype=pl.Float32, eager=True).alias("sort")
    try:
        return scoring.generator_sort_value_columns(frame, init).alias("sort")
    except PluginError as exc:
        log.warning("a scoring filter failed, going on record by record: %s", exc)
    values = []
    for url, datum in rows.records(frame):
        try:
            values.append(float32(scoring.generator_sort_value(url, datum, _FIRST_SORT_VALUE)))
        except PluginError as exc:
            log.warning("no sort value for %s: %s", url, exc)
            values.append(_FIRST_SORT_VALUE)
    return pl.Series("sort", values, dtype=pl.Float32)


def sort_keys(values: pl.Series) -> NDArray[np.int64]:
    """Integers that ascend where the 32-bit `values` descend, in the order of Float.compare."""
    numbers = values.to_numpy()
    bits = numbers.view(np.int32)
    bits = np.where(np.isnan(numbers), np.int32(0x7FC0_0000), np.where(bits < 0, bits ^ 0x7FFF_FFFF, bits))
    return (1 << 31) - bits.astype(np.int64)


class Quota:
    """Deals out the places of one reducer's share of the fetch lists to entries that come best first.

    `limit` is the number of places per segment (negative: no limit), `max_count` the number that a host or domain may
    have in each segment (0 or less: no limit).
    """

    def __init__(self, limit: int, segments: int, max_count: int) -> None:
        self.counters = Counters()
        self._limit = limit
        self._segments = segments
        self._max_count = max_count
        self._count = 0
        self._segment = 1
        self._filled = [0] * (segments + 1)
        self._hosts: dict[str, list[int]] = {}

    @property
    def is_full(self) -> bool:
        """Whether no further entry can get a place."""
        return self._count == self._limit and self._segment >= self._segments

    def deal(self, owners: pl.Series) -> NDArray[Any]:
        """The segment (from 1; 0 = none) of each of the next entries, given by host or domain (null: malformed URL)."""
        if self._max_count <= 0 and self._limit != 0:
            return self._deal_in_order(owners)
        return self._deal_by_owner(owners)

    def _deal_in_order(self, owners: pl.Series) -> NDArray[Any]:
        """Without a limit per host: fill one segment after the other."""
        valid = owners.is_not_null().to_numpy()
        place = (self._segment - 1) * self._limit + self._count + np.cumsum(valid) - 1
        segments = place // self._limit + 1 if self._limit > 0 else np.full(len(place), self._segment)
        examined = int(np.searchsorted(segments, self._segments, side="right"))
        segments = np.where(valid, segments, 0)
        segments[examined:] = 0
        taken = int(np.count_nonzero(segments))
        if taken and self._limit > 0:
            end = (self._segment - 1) * self._limit + self._count + taken - 1
            self._segment, self._count = end // self._limit + 1, end % self._limit + 1
        self.counters.add(MALFORMED, int(np.count_nonzero(~valid[:examined])))
        return segments

    def _deal_by_owner(self, owners: pl.Series) -> NDArray[Any]:
        segments = np.zeros(len(owners), dtype=np.int64)
        for row, owner in enumerate(owners):
            if self._count == self._limit:
                if self._segment >= self._segments:
                    break
                self._count = 0
                self._segment += 1
            if owner is None:
                self.counters.add(MALFORMED)
                continue
            segment = self._segment if self._max_count <= 0 else self._segment_of(owner)
            if segment:
                self._filled[segment] += 1
                self._count += 1
                segments[row] = segment
        return segments

    def _segment_of(self, owner: str) -> int:
        """The segment with a place for another page of `owner`; 0 if it has had all that it may have."""
        state = self._hosts.setdefault(owner, [1, 0])  # its present segment, its pages there
        state[1] += 1
        while self._filled[state[0]] >= self._limit and state[0] < self._segments:
            state[0] += 1
            state[1] = 0
        if state[1] > self._max_count:
            if state[0] >= self._segments:
                if state[1] == self._max_count + 1:
                    self.counters.add(HOSTS_OVER_LIMIT)
                self.counters.add(OVER_LIMIT)
                return 0
            state[0] += 1
            state[1] = 1
        return state[0]
