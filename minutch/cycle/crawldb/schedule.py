"""Decides when to fetch a page again: fetch time, interval and retries.

`db.fetch.schedule.class` names the schedule (`fetch_schedule`), by Nutch's Java name or as a Python
class. A schedule has each method twice: for one record (`set_fetch_schedule`), and for a table
(`set_fetch_schedule_columns`). Your own class may define the first alone: the second then loops
over the rows.

    class Weekly(DefaultFetchSchedule):
        def set_fetch_schedule(self, url, datum, prev_fetch_time, prev_modified_time, fetch_time,
        modified_time, state):
            datum.fetch_interval = 7 * 86400
            ...

Times are milliseconds since the epoch, intervals seconds; intervals are rounded as Java does it in
32-bit floats. A failed page is not planned for later than `db.fetch.interval.max`: the next
generate would take that for due at once (`should_fetch`), and the one after it too.

Source: org.apache.nutch.crawl.FetchSchedule, AbstractFetchSchedule, DefaultFetchSchedule,
FetchScheduleFactory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from minutch.conf import Configuration
from minutch.conf.properties import class_named
from minutch.hadoop.formats.javahash import float32
from minutch.records import crawldatum_columns
from minutch.records.crawldatum import (
    STATUS_DB_FETCHED,
    STATUS_DB_NOTMODIFIED,
    STATUS_DB_UNFETCHED,
    CrawlDatum,
    java_round,
)

STATUS_UNKNOWN: Final = 0
STATUS_MODIFIED: Final = 1
STATUS_NOTMODIFIED: Final = 2

CHANGING: Final = ("status", "fetch_time", "modified_time", "fetch_interval", "retries")
"""The columns that a schedule changes."""
PROPERTY: Final = "db.fetch.schedule.class"
DEFAULT_CLASS: Final = "org.apache.nutch.crawl.DefaultFetchSchedule"
_BUILT_IN: Final = {
    DEFAULT_CLASS: "minutch.cycle.crawldb.schedule:DefaultFetchSchedule",
    "org.apache.nutch.crawl.AdaptiveFetchSchedule": (
        "minutch.cycle.crawldb.adaptive:AdaptiveFetchSchedule"
    ),
    "org.apache.nutch.crawl.MimeAdaptiveFetchSchedule": (
        "minutch.cycle.crawldb.adaptive:MimeAdaptiveFetchSchedule"
    ),
}

_GONE_FACTOR: Final = 1.5  # how much later a page that is gone is tried again
_MAX_FACTOR: Final = float32(0.9)  # of db.fetch.interval.max, for intervals that would exceed it
_INT_MIN, _INT_MAX = -0x8000_0000, 0x7FFF_FFFF


@dataclass(frozen=True, slots=True)
class ScheduleStep:
    """One step towards a date: what was done, and the interval (s) after it, if any."""

    text: str
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class PlannedFetch:
    """The next fetch of a page, at intervals in seconds; `steps` explain them."""

    interval: int
    fetch_time: int
    modified_time: int
    steps: tuple[ScheduleStep, ...] = ()


def _mask_loop(
    schedule: AbstractFetchSchedule, frame: pl.DataFrame, now: int
) -> tuple[pl.DataFrame, pl.Series]:
    due: list[bool] = []
    frame = crawldatum_columns.map_rows(
        frame, lambda url, datum: due.append(schedule.should_fetch(url, datum, now))
    )
    return frame, pl.Series(due, dtype=pl.Boolean)


_LOOPS: dict[str, Callable[..., Any]] = {
    "initialize_schedule": lambda schedule, frame, now: crawldatum_columns.map_rows(
        frame, lambda url, datum: schedule.initialize_schedule(url, datum, now)
    ),
    "set_fetch_schedule": lambda schedule, frame, *columns: crawldatum_columns.map_rows(
        frame, schedule.set_fetch_schedule, *columns
    ),
    "set_page_gone_schedule": lambda schedule, frame, *columns: crawldatum_columns.map_rows(
        frame, schedule.set_page_gone_schedule, *columns
    ),
    "set_page_retry_schedule": lambda schedule, frame, *columns: crawldatum_columns.map_rows(
        frame, schedule.set_page_retry_schedule, *columns
    ),
    "calculate_last_fetch_time": lambda schedule, frame: pl.Series(
        [
            schedule.calculate_last_fetch_time(datum)
            for _, datum in crawldatum_columns.records(frame)
        ],
        dtype=pl.Int64,
    ),
    "should_fetch": _mask_loop,
    "force_refetch": lambda schedule, frame, asap, now: crawldatum_columns.map_rows(
        frame, lambda url, datum: schedule.force_refetch(url, datum, asap, now)
    ),
}
"""Row method -> the same for a table, one record after the other."""


class AbstractFetchSchedule:
    """The base of all schedules: pages that are gone, retries, the upper limit of intervals.

    `now` and all other times are arguments: a schedule asks no clock.
    """

    def __init_subclass__(cls, **named: Any) -> None:
        """A subclass that overrides a method for one record, but not the one for tables, gets the
        loop for tables.
        """
        super().__init_subclass__(**named)
        for method, loop in _LOOPS.items():
            columns = f"{method}_columns"
            # Else the inherited method for tables would not ask the class's own rule.
            if method in vars(cls) and columns not in vars(cls):
                setattr(cls, columns, loop)

    def __init__(self, conf: Configuration) -> None:
        self.default_interval = conf.get_int("db.fetch.interval.default")
        self.max_interval = conf.get_int("db.fetch.interval.max")
        self.retry_interval = conf.get_int("db.fetch.retry.interval")
        # AbstractFetchSchedule: max * 0.9f.
        self._shortened = java_round(float32(float32(self.max_interval) * _MAX_FACTOR))

    def surveyed(self, tables: Callable[[], Iterable[pl.DataFrame]], now: int) -> Self:
        """Returns the schedule as generate asks it, which has looked at all entries of the CrawlDb
        if it wants to; `tables` begins a pass over them. Not Nutch's.
        """
        return self

    # -- one record --------------------------------------------------------------------------------

    def initialize_schedule(self, url: str, datum: CrawlDatum, now: int) -> None:
        """Schedules a new page: at once, with the default interval."""
        datum.fetch_time = now
        datum.fetch_interval = self.default_interval
        datum.retries = 0

    def set_fetch_schedule(
        self,
        url: str,
        datum: CrawlDatum,
        prev_fetch_time: int,
        prev_modified_time: int,
        fetch_time: int,
        modified_time: int,
        state: int,
    ) -> None:
        """Schedules a fetched page; `state` is one of STATUS_UNKNOWN, _MODIFIED, _NOTMODIFIED."""
        datum.retries = 0

    def plan(
        self, url: str, datum: CrawlDatum, fetch_time: int, modified_time: int, state: int
    ) -> PlannedFetch:
        """Returns what `set_fetch_schedule` would set for a fetched page; `datum` stays."""
        after = datum.copy()
        self.set_fetch_schedule(
            url, after, 0, datum.modified_time, fetch_time, modified_time, state
        )
        return PlannedFetch(after.fetch_interval, after.fetch_time, after.modified_time)

    def set_page_gone_schedule(
        self,
        url: str,
        datum: CrawlDatum,
        prev_fetch_time: int,
        prev_modified_time: int,
        fetch_time: int,
    ) -> None:
        """Schedules a page that is gone: the interval grows by half, up to the maximum; a page
        without an interval had the default.
        """
        # Java multiplies floats.
        longer = float32(float32(datum.fetch_interval or self.default_interval) * _GONE_FACTOR)
        datum.fetch_interval = (
            java_round(longer) if longer < float32(self.max_interval) else self._shortened
        )
        datum.fetch_time = fetch_time + datum.fetch_interval * 1000

    def set_page_retry_schedule(
        self,
        url: str,
        datum: CrawlDatum,
        prev_fetch_time: int,
        prev_modified_time: int,
        fetch_time: int,
    ) -> None:
        """Schedules a page that could not be fetched this time: again after
        db.fetch.retry.interval.
        """
        datum.fetch_time = fetch_time + min(self.retry_interval, self.max_interval) * 1000
        # A byte in Java: after 127 comes -128.
        datum.retries = (datum.retries + 1 + 0x80) % 0x100 - 0x80

    def calculate_last_fetch_time(self, datum: CrawlDatum) -> int:
        """Returns the time of the last fetch; 0 if there was none."""
        return (
            0
            if datum.status == STATUS_DB_UNFETCHED
            else datum.fetch_time - datum.fetch_interval * 1000
        )

    def should_fetch(self, url: str, datum: CrawlDatum, now: int) -> bool:
        """Returns True if the page is due; one due later than the maximum interval is due now."""
        # Nutch: no page waits for longer than segments are kept.
        if datum.fetch_time - now > self.max_interval * 1000:
            if datum.fetch_interval > self.max_interval:
                datum.fetch_interval = self._shortened
            datum.fetch_time = now
        return datum.fetch_time <= now

    def force_refetch(self, url: str, datum: CrawlDatum, asap: bool, now: int) -> None:
        """Forgets the content, so that the page is fetched as if new: now, or when it is due."""
        if datum.fetch_interval > self.max_interval:
            datum.fetch_interval = self._shortened
        datum.status = STATUS_DB_UNFETCHED
        datum.retries = 0
        datum.signature = None  # whatever comes next counts as new
        datum.modified_time = 0
        if asap:
            datum.fetch_time = now

    # -- tables ------------------------------------------------------------------------------------
    # `frame` has the columns of CRAWLDB_SCHEMA (others stay as they are); the other arguments are
    # columns beside it.

    def initialize_schedule_columns(self, frame: pl.DataFrame, now: int) -> pl.DataFrame:
        return frame.with_columns(
            fetch_time=pl.lit(now, pl.Int64),
            fetch_interval=pl.lit(self.default_interval, pl.Int32),
            retries=pl.lit(0, pl.Int8),
        )

    def set_fetch_schedule_columns(
        self,
        frame: pl.DataFrame,
        prev_fetch_time: pl.Series,
        prev_modified_time: pl.Series,
        fetch_time: pl.Series,
        modified_time: pl.Series,
        state: pl.Series,
    ) -> pl.DataFrame:
        return frame.with_columns(retries=pl.lit(0, pl.Int8))

    def set_page_gone_schedule_columns(
        self,
        frame: pl.DataFrame,
        prev_fetch_time: pl.Series,
        prev_modified_time: pl.Series,
        fetch_time: pl.Series,
    ) -> pl.DataFrame:
        before = self._intervals(frame).to_numpy().astype(np.float32)
        longer = before * np.float32(_GONE_FACTOR)
        interval = np.where(
            longer < np.float32(self.max_interval), round_int(longer), np.int32(self._shortened)
        )
        return frame.with_columns(
            fetch_interval=pl.Series(interval, dtype=pl.Int32),
            fetch_time=fetch_time + pl.Series(interval, dtype=pl.Int64) * 1000,
        )

    def set_page_retry_schedule_columns(
        self,
        frame: pl.DataFrame,
        prev_fetch_time: pl.Series,
        prev_modified_time: pl.Series,
        fetch_time: pl.Series,
    ) -> pl.DataFrame:
        return frame.with_columns(
            fetch_time=fetch_time + min(self.retry_interval, self.max_interval) * 1000,
            # Wraps as Java's byte does.
            retries=pl.Series(frame["retries"].to_numpy() + np.int8(1), dtype=pl.Int8),
        )

    def _intervals(self, frame: pl.DataFrame) -> pl.Series:
        """Returns the intervals of pages, the default where a page has none."""
        found = frame["fetch_interval"]
        return found.set(found == 0, self.default_interval)

    def calculate_last_fetch_time_columns(self, frame: pl.DataFrame) -> pl.Series:
        fetched = frame["fetch_time"] - frame["fetch_interval"].cast(pl.Int64) * 1000
        return fetched.set(frame["status"] == STATUS_DB_UNFETCHED, 0)

    def should_fetch_columns(self, frame: pl.DataFrame, now: int) -> tuple[pl.DataFrame, pl.Series]:
        """Returns `frame` as `should_fetch` changes it, and the mask of the pages that are due."""
        too_late = pl.col("fetch_time") - now > self.max_interval * 1000
        too_long = pl.col("fetch_interval") > self.max_interval
        frame = frame.with_columns(
            fetch_interval=pl.when(too_late & too_long)
            .then(self._shortened)
            .otherwise("fetch_interval")
            .cast(pl.Int32),
            fetch_time=pl.when(too_late).then(now).otherwise("fetch_time").cast(pl.Int64),
        )
        return frame, frame["fetch_time"] <= now

    def force_refetch_columns(self, frame: pl.DataFrame, asap: bool, now: int) -> pl.DataFrame:
        too_long = pl.col("fetch_interval") > self.max_interval
        frame = frame.with_columns(
            fetch_interval=pl.when(too_long)
            .then(pl.lit(self._shortened, pl.Int32))
            .otherwise("fetch_interval"),
            status=pl.lit(STATUS_DB_UNFETCHED, pl.UInt8),
            retries=pl.lit(0, pl.Int8),
            signature=pl.lit(None, pl.Binary),
            modified_time=pl.lit(0, pl.Int64),
        )
        return frame.with_columns(fetch_time=pl.lit(now, pl.Int64)) if asap else frame


class DefaultFetchSchedule(AbstractFetchSchedule):
    """Fetches a page again after its own interval, whether it has changed or not."""

    def set_fetch_schedule(
        self,
        url: str,
        datum: CrawlDatum,
        prev_fetch_time: int,
        prev_modified_time: int,
        fetch_time: int,
        modified_time: int,
        state: int,
    ) -> None:
        super().set_fetch_schedule(
            url, datum, prev_fetch_time, prev_modified_time, fetch_time, modified_time, state
        )
        plan = DefaultFetchSchedule.plan(self, url, datum, fetch_time, modified_time, state)
        datum.fetch_interval, datum.fetch_time, datum.modified_time = (
            plan.interval,
            plan.fetch_time,
            plan.modified_time,
        )

    def plan(
        self, url: str, datum: CrawlDatum, fetch_time: int, modified_time: int, state: int
    ) -> PlannedFetch:
        interval = datum.fetch_interval or self.default_interval
        # DefaultFetchSchedule.setFetchSchedule.
        modified = fetch_time if modified_time <= 0 or state == STATUS_MODIFIED else modified_time
        text = (
            "the page's own interval"
            if datum.fetch_interval
            else "the page has none: db.fetch.interval.default"
        )
        return PlannedFetch(
            interval, fetch_time + interval * 1000, modified, (ScheduleStep(text, interval),)
        )

    def set_fetch_schedule_columns(
        self,
        frame: pl.DataFrame,
        prev_fetch_time: pl.Series,
        prev_modified_time: pl.Series,
        fetch_time: pl.Series,
        modified_time: pl.Series,
        state: pl.Series,
    ) -> pl.DataFrame:
        interval = self._intervals(frame)
        fetched_now = (modified_time <= 0) | (state == STATUS_MODIFIED)
        return frame.with_columns(
            retries=pl.lit(0, pl.Int8),
            fetch_interval=interval,
            fetch_time=fetch_time + interval.cast(pl.Int64) * 1000,
            modified_time=fetch_time.zip_with(fetched_now, modified_time),
        )


def round_int(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Math.round of 32-bit floats: half up, clipped to 32 bits; 0 for NaN."""
    # In 64 bits: no rounding before the floor.
    wide = np.clip(np.floor(values.astype(np.float64) + 0.5), _INT_MIN, _INT_MAX)
    rounded: np.ndarray[Any, Any] = np.nan_to_num(wide, nan=0.0).astype(np.int32)
    return rounded


def fetch_schedule(conf: Configuration) -> AbstractFetchSchedule:
    """Builds the schedule that `db.fetch.schedule.class` names: a Java name of Nutch's,
    `module:Class` or `module.Class`.

    Raises ConfigError for a class that can't be found or is no schedule.
    """
    name = conf.get_trimmed(PROPERTY) or DEFAULT_CLASS
    return class_named(conf, PROPERTY, name, _BUILT_IN, AbstractFetchSchedule)(conf)


def updated(
    schedule: AbstractFetchSchedule,
    entries: pl.DataFrame,
    changed: NDArray[np.bool_],
    now: int,
    max_interval: int,
) -> pl.DataFrame:
    """Returns entries as updatedb writes them after a fetch at `now` (ms).

    An entry whose interval grew beyond `max_interval` becomes db_unfetched and loses its signature:
    at the next fetch it is not known if its page has changed.
    """
    before, fetched = (
        entries["modified_time"],
        pl.Series([now], dtype=pl.Int64).new_from_index(0, len(entries)),
    )
    known = entries["status"].to_numpy() != STATUS_DB_UNFETCHED
    same = known & ~changed
    state = pl.Series(
        np.select([same, known], [STATUS_NOTMODIFIED, STATUS_MODIFIED], STATUS_UNKNOWN).astype(
            np.int8
        )
    )
    frame = entries.with_columns(fetch_time=fetched)
    # Column by column what `transitions` does for a success.
    frame = schedule.set_fetch_schedule_columns(
        frame, entries["fetch_time"], before, fetched, before, state
    )
    codes = np.where(same, STATUS_DB_NOTMODIFIED, STATUS_DB_FETCHED)
    frame = frame.with_columns(
        modified_time=before.zip_with(pl.Series(same), frame["modified_time"]),
        status=pl.Series(codes, dtype=pl.UInt8),
    )
    too_long = frame["fetch_interval"] > max_interval
    if not too_long.any():
        return frame
    forced = schedule.force_refetch_columns(frame, False, now)
    return frame.with_columns(
        forced[name].zip_with(too_long, frame[name]).alias(name) for name in CHANGING
    )
