"""Decides which pages may be fetched now, and by which value they are sorted. Pure: no I/O.

Every rejection is counted under the name of Nutch's counter. Where there are several reasons to
leave a page out, the first one in Nutch's order counts. Which of the pages that are due get a place
is decided in `select`, how many of a pattern may be due in `budget`. Source:
org.apache.nutch.crawl.Generator.SelectorMapper.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from minutch.conf import Configuration, Settings, prop
from minutch.cycle.crawldb.schedule import AbstractFetchSchedule
from minutch.cycle.fetchlist.budget import PatternBudget
from minutch.errors import PluginError
from minutch.hadoop.formats.javahash import float32
from minutch.hadoop.formats.writables import LongWritable
from minutch.job import Counters
from minutch.plugin.chains import ScoringFilters, URLFilters
from minutch.records import crawldatum_columns
from minutch.records.crawldatum import STATUS_DB_UNFETCHED, status_by_name
from minutch.records.crawldatum_columns import CRAWLDB_SCHEMA
from minutch.records.metadata import GENERATE_TIME_KEY
from minutch.records.rawmap import text_key, values_of
from minutch.urls.hostcolumns import hosts_of, map_distinct
from minutch.urls.hostname import canonical_host
from minutch.work.tables.frame import decode_keys

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
BUSY: Final = "host_busy_total"
FEW: Final = "list_too_short_total"
PATTERN: Final = "urls_skipped_per_pattern_total"

REASONS: Final = {
    FILTERED: "rejected by the URL filters",
    NOT_DUE: "not due yet",
    WAITING: "in a fetch list whose results are awaited (crawl.gen.delay)",
    EXPRESSION: "for which the expression is not true",
    STATUS: "with another status than generate.restrict.status",
    LOW_SCORE: "with a score below generate.min.score",
    INTERVAL: "with a fetch interval above generate.min.interval",
    BUSY: "of hosts that asked not to be called yet (Retry-After)",
    PATTERN: "of patterns that give too little for more of them now (generate.pattern.budget)",
    FEW: "due, and too few to be worth a list (crawl.list.min)",
}
"""Counter of entries that were left out -> its meaning."""

SCHEMA: Final = pl.Schema({**CRAWLDB_SCHEMA, "sort": pl.Float32()})
"""Entries that are due, with their sort value."""
GENERATE_TIME: Final = text_key(GENERATE_TIME_KEY)
_FIRST_SORT_VALUE: Final = 1.0


def _status(conf: Configuration, name: str) -> int:
    status = conf.get_trimmed(name) or ""
    code = status_by_name(status) if status else -1
    if status and code < 0:
        raise conf.wrong(name, "the name of a status such as db_unfetched", status)
    return code


@dataclass(frozen=True, slots=True)
class Conditions(Settings):
    """The conditions for an entry besides URL filters and the fetch schedule. Times in ms."""

    now: int
    expression: Expression | None
    generate_delay: int = prop("crawl.gen.delay", Configuration.get_long)
    min_score: float = prop("generate.min.score")
    min_interval: int = prop("generate.min.interval")
    status: int = prop("generate.restrict.status", _status)
    busy_hosts: Mapping[str, int] = field(default_factory=dict)
    """Hosts that asked not to be called, as queues name them, and until when."""
    taken: pl.Series | None = None
    """Keys of pages that a segment has which is being fetched."""
    patterns: PatternBudget | None = None
    """How many URLs of each pattern may be asked for."""
    least: int = 0
    """Entries that are worth a list; fewer wait for more (`until`)."""
    late: float = 0.0
    """The share of their interval for which they do."""


@dataclass(frozen=True, slots=True)
class Later:
    """When entries will be due that are not due yet; ms."""

    times: pl.Series
    """Those of the first ones, in order: as many as make a list, one at least."""
    patience: int | None
    """When the first of all has been due for too long (`until`)."""

    @classmethod
    def together(cls, parts: Iterable[Later], least: int) -> Later:
        """Joins those of several stretches of a CrawlDb."""
        found = list(parts)
        times = pl.concat([pl.Series("at", [], pl.Int64), *(part.times for part in found)])
        ends = [part.patience for part in found if part.patience is not None]
        return cls(times.bottom_k(max(1, least)).sort(), min(ends, default=None))


@dataclass(frozen=True, slots=True)
class Due:
    """The `entries` that are due, of SCHEMA, in their order."""

    entries: pl.DataFrame
    counters: Counters
    later: Later  # when the others will be due
    left_out: dict[str, pl.DataFrame]  # the others by the reason (REASONS), if they are wanted

    @property
    def next_due(self) -> int | None:
        """Returns when the first of the others will be due (ms)."""
        return first(self.later.times)


def first(times: pl.Series) -> int | None:
    """Returns the earliest time; None without any."""
    return int(times.min()) if len(times) else None  # type: ignore[arg-type]


def until(late: float) -> pl.Expr:
    """Returns until when (ms) an entry that is due can wait for others: for the share `late` of its
    interval; one that was never asked for does not wait.
    """
    is_new = (pl.col("status") == STATUS_DB_UNFETCHED) & (pl.col("retries") == 0)
    patience = (pl.col("fetch_interval").cast(pl.Int64) * (1000 * late)).cast(pl.Int64)
    return pl.col("fetch_time") + pl.when(is_new).then(0).otherwise(patience)


def due(
    frame: pl.DataFrame,
    conditions: Conditions,
    schedule: AbstractFetchSchedule,
    scoring: ScoringFilters,
    filters: URLFilters | None,
    *,
    with_others: bool = False,
) -> Due:
    """Returns the entries of `frame` that may be fetched, with the changes of the schedule."""
    counters = Counters()
    left_out: dict[str, pl.DataFrame] = {}

    def keep(table: pl.DataFrame, mask: pl.Series, reason: str) -> pl.DataFrame:
        # Most masks keep all: no copy then.
        kept = table if mask.all() else table.filter(mask)
        if with_others and len(kept) < len(table):
            left_out[reason] = table.filter(~mask)
        counters.add(reason, len(table) - len(kept))
        return kept

    if filters is not None:
        frame = keep(
            frame,
            filters.filter_column(decode_keys(frame["key"]), distinct=True).is_not_null(),
            FILTERED,
        )
    # SelectorMapper's order: each entry is counted under its first reason.
    frame, is_due = schedule.should_fetch_columns(frame, conditions.now)
    later = frame.filter(~is_due).select(at="fetch_time", until=until(conditions.late))
    frame = keep(frame, is_due, NOT_DUE)
    frame = keep(frame, ~awaits_update(frame, conditions), WAITING)
    frame = frame.with_columns(sort=_sort_values(frame, scoring))
    if conditions.expression is not None:
        from minutch.work.tables.matching import matching

        frame = keep(frame, matching(frame, conditions.expression), EXPRESSION)
    if conditions.status != -1:
        frame = keep(frame, frame["status"] == conditions.status, STATUS)
    # NaN is Nutch's default for "no limit".
    if not math.isnan(conditions.min_score):
        # Not `>=`: a sort value of NaN passes in Java.
        frame = keep(frame, ~(frame["sort"] < conditions.min_score).fill_null(False), LOW_SCORE)
    if conditions.min_interval != -1:
        frame = keep(frame, frame["fetch_interval"] <= conditions.min_interval, INTERVAL)
    # After Nutch's conditions: a place for a page that is not due would be lost.
    if conditions.patterns is not None:
        frame = keep(frame, conditions.patterns.have_place(frame), PATTERN)
    if conditions.busy_hosts:
        free = _busy_until(frame, conditions.busy_hosts)
        frame = keep(frame, free <= conditions.now, BUSY)
        free = free.filter(free > conditions.now)
        later = later.vstack(pl.DataFrame({"at": free, "until": free}))
    others = Later.together([Later(later["at"], first(later["until"]))], conditions.least)
    return Due(frame, counters, others, left_out)


def worth_it_at(few: Sequence[pl.DataFrame], later: Later, least: int, late: float) -> int | None:
    """Returns when (ms) there will be `least` pages for a list, or one of them has waited too long:
    of the `few` that are due and of others. None if there are none at all.
    """
    ends = [later.patience, *(first(table.select(until(late)).to_series()) for table in few)]
    times = [end for end in ends if end is not None]
    missing = least - sum(map(len, few))
    if len(later.times) >= missing:
        # By then so many have joined the few.
        times.append(int(later.times[missing - 1]))
    return min(times, default=None)


def _busy_until(frame: pl.DataFrame, busy_hosts: Mapping[str, int]) -> pl.Series:
    """Returns the time until which the host of each entry asked not to be called; 0 for most."""
    hosts = hosts_of(decode_keys(frame["key"]))
    until = map_distinct(hosts, lambda host: busy_hosts.get(canonical_host(host), 0), pl.Int64())
    return until.fill_null(0)


def awaits_update(frame: pl.DataFrame, conditions: Conditions) -> pl.Series:
    """Returns the mask of entries listed before whose result may still come, or now fetched."""
    waiting = np.zeros(len(frame), dtype=bool)
    for row, value in values_of(frame["metadata"], GENERATE_TIME).items():
        if isinstance(value, LongWritable):
            waiting[row] = awaited_until(value.value, conditions) > conditions.now
    if conditions.taken is not None and len(conditions.taken):
        waiting |= frame["key"].is_in(conditions.taken.implode()).to_numpy()
    return pl.Series(waiting)


def awaited_until(generated: int, conditions: Conditions) -> int:
    """Returns until when (ms) the result of an entry may come that was listed at `generated`."""
    return generated + conditions.generate_delay


def _sort_values(frame: pl.DataFrame, scoring: ScoringFilters) -> pl.Series:
    """Returns the sort values of entries; the initial one where a scoring filter fails."""
    init = pl.repeat(_FIRST_SORT_VALUE, len(frame), dtype=pl.Float32, eager=True).alias("sort")
    try:
        return scoring.generator_sort_value_columns(frame, init).alias("sort")
    except PluginError as exc:
        log.warning("a scoring filter failed, going on record by record: %s", exc)
    values = []
    for url, datum in crawldatum_columns.records(frame):
        try:
            values.append(float32(scoring.generator_sort_value(url, datum, _FIRST_SORT_VALUE)))
        except PluginError as exc:
            log.warning("no sort value for %s: %s", url, exc)
            values.append(_FIRST_SORT_VALUE)
    return pl.Series("sort", values, dtype=pl.Float32)
