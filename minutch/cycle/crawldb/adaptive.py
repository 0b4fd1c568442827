"""Schedules that learn how often a page changes: the interval shrinks after a change and grows
without one.

    interval × (1 - dec_rate)   if the page changed           bounded by min_interval and
                                max_interval,
    interval × (1 + inc_rate)   if it did not                 or by the host's own bounds
    sync_delta                  the next fetch moves towards the time of the last change, but not
                                nearer than min_interval

A page with `fixedInterval` in its metadata keeps that interval. Bounds of hosts and rates of MIME
types come from rule files, whose invalid lines are reported with file and line number, and ignored:

    adaptive-host-specific-intervals.txt    host, shortest, longest interval in s between blanks; 0
                                            or `default` for the general bound
    adaptive-mimetypes.txt                  type, inc_rate, dec_rate between tabs

Arithmetic is Java's, in 32-bit floats and long integers, quirks included: the fraction of the
interval by which sync_delta would move a page that has been unchanged for longer than the maximum
interval is an integer division, so 0. Not Nutch's are the limits of the wait itself: there, a page
that has been the same for longer than max_interval ÷ sync_delta_rate is asked for again and again,
at ever shorter waits.

`simulate` tries a schedule on a page that changes every 30 days: day by day, for 10,000 days.
Source: org.apache.nutch.crawl.AdaptiveFetchSchedule, MimeAdaptiveFetchSchedule, and their main
methods.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from minutch.conf import Configuration
from minutch.cycle.crawldb.schedule import (
    STATUS_MODIFIED,
    STATUS_NOTMODIFIED,
    AbstractFetchSchedule,
    PlannedFetch,
    ScheduleStep,
    round_int,
)
from minutch.errors import ConfigError, UrlError
from minutch.hadoop.formats.javahash import float32
from minutch.hadoop.formats.javaio import decode_text
from minutch.hadoop.formats.writables import FloatWritable, Text, Writable
from minutch.records import rawmap
from minutch.records.crawldatum import SECONDS_PER_DAY, CrawlDatum, java_round
from minutch.records.metadata import CONTENT_TYPE_KEY, FIXED_INTERVAL_KEY
from minutch.urls.uri import parse_uri

log = logging.getLogger(__name__)

HOST_FILE = "adaptive-host-specific-intervals.txt"

Bounds = tuple[float, float]


def read_host_bounds(conf: Configuration, least: float, most: float) -> dict[str, Bounds]:
    """Returns host -> (shortest, longest interval in s). Invalid lines are reported and ignored, as
    in Nutch.
    """
    bounds: dict[str, Bounds] = {}
    for number, line in _lines(conf, HOST_FILE):
        try:
            host, shortest, longest = _parse_bounds(line, least, most)
        except ValueError as exc:
            log.error("%s, line %d: %s; line ignored: %s", HOST_FILE, number, exc, line)
        else:
            bounds[host] = shortest, longest
    return bounds


def _parse_bounds(line: str, least: float, most: float) -> tuple[str, float, float]:
    """Parses a line of the host file. Raises ValueError with the reason."""
    parts = line.split()
    if len(parts) != 3:
        raise ValueError("expected a host, a shortest and a longest interval")
    shortest, longest = (
        0.0 if part.lower() == "default" else _java_float(part) for part in parts[1:]
    )
    if shortest == 0 and longest == 0:
        raise ValueError("both intervals are the default")
    shortest, longest = shortest or least, longest or most
    if shortest < 0 or longest < 0:
        raise ValueError("intervals can't be negative")
    if shortest > longest:
        raise ValueError("the shortest interval is above the longest")
    if shortest < least:
        raise ValueError(f"the shortest interval is below the general one, {least:g}")
    if longest > most:
        raise ValueError(f"the longest interval is above the general one, {most:g}")
    return parts[0].lower(), shortest, longest


def _java_float(text: str) -> float:
    """java.lang.Float.parseFloat. Raises ValueError."""
    return float32(float(text[:-1] if text[-1:] in "fFdD" and text[-2:-1].isdigit() else text))


def read_mime_rates(conf: Configuration, name: str) -> dict[str, tuple[float, float]]:
    """Returns MIME type -> (inc_rate, dec_rate)."""
    found: dict[str, tuple[float, float]] = {}
    for number, line in _lines(conf, name):
        parts = line.rstrip("\t").split("\t")
        try:
            mime, inc_rate, dec_rate = parts
            found[mime.lower()] = _java_float(inc_rate.strip()), _java_float(dec_rate.strip())
        except ValueError:
            log.warning(
                "%s, line %d: expected a type, inc_rate and dec_rate between tabs; ignored: %s",
                name,
                number,
                line,
            )
    return found


def _lines(conf: Configuration, name: str) -> list[tuple[int, str]]:
    """Returns a rule file's lines with numbers, without blank ones, comments; none if missing."""
    try:
        text = conf.read_resource(name)
    except ConfigError as exc:
        log.error("%s; going on without it", exc)
        return []
    lines = enumerate(text.splitlines(), 1)
    return [(number, line) for number, line in lines if line.strip() and not line.startswith("#")]


MIME_FILE_PROPERTY = "db.fetch.schedule.mime.file"

_FIXED_KEY = rawmap.text_key(FIXED_INTERVAL_KEY)
_TYPE_KEY = rawmap.text_key(CONTENT_TYPE_KEY)


class AdaptiveFetchSchedule(AbstractFetchSchedule):
    """Intervals follow the page's own rate of change."""

    def __init__(self, conf: Configuration) -> None:
        super().__init__(conf)
        self.inc_rate = conf.get_float("db.fetch.schedule.adaptive.inc_rate")
        self.dec_rate = conf.get_float("db.fetch.schedule.adaptive.dec_rate")
        self.min_interval = conf.get_float("db.fetch.schedule.adaptive.min_interval")
        self.longest_interval = conf.get_float("db.fetch.schedule.adaptive.max_interval")
        self.sync_delta = conf.get_boolean("db.fetch.schedule.adaptive.sync_delta")
        self.sync_delta_rate = conf.get_float("db.fetch.schedule.adaptive.sync_delta_rate")
        self.host_bounds = read_host_bounds(conf, self.min_interval, self.longest_interval)

    def bounds(self, url: str) -> Bounds:
        """Shortest and longest interval of the page's host, in seconds."""
        if self.host_bounds:
            return self.host_bounds.get(
                uri_host(url) or "", (self.min_interval, self.longest_interval)
            )
        return self.min_interval, self.longest_interval

    def rates(self, datum: CrawlDatum) -> tuple[float, float]:
        """Rates by which the page's interval grows without a change, and shrinks after one."""
        return self.inc_rate, self.dec_rate

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
        plan = AdaptiveFetchSchedule.plan(self, url, datum, fetch_time, modified_time, state)
        datum.fetch_interval, datum.fetch_time, datum.modified_time = (
            plan.interval,
            plan.fetch_time,
            plan.modified_time,
        )

    def plan(
        self, url: str, datum: CrawlDatum, fetch_time: int, modified_time: int, state: int
    ) -> PlannedFetch:
        fixed = datum.metadata.get(Text(FIXED_INTERVAL_KEY))
        if isinstance(fixed, FloatWritable):
            steps = [ScheduleStep(f"fixed by {FIXED_INTERVAL_KEY}", fixed.value)]
            return self._plan(fixed.value, fetch_time, 0, 0, modified_time, steps)
        if modified_time <= 0 or state == STATUS_MODIFIED:
            modified_time = fetch_time
        interval, steps = self._adapted(datum, state)
        shortest, longest = self.bounds(url)
        offset = 0
        if self.sync_delta:
            delta = fetch_time - modified_time
            if float32(delta) > float32(interval * 1000):  # Nutch compares floats here
                interval = float32(_divide(delta, 1000))
                steps.append(
                    ScheduleStep("sync_delta: as long as the page has been the same", interval)
                )
            offset = self._offset(delta, int(longest) * 1000)
            if offset:
                steps.append(
                    ScheduleStep(
                        "sync_delta: earlier, towards the time of the last change, by",
                        offset / 1000,
                    )
                )
        if interval < shortest or interval > longest:
            interval = shortest if interval < shortest else longest
            steps.append(ScheduleStep(f"not outside of {shortest:g} to {longest:g} s", interval))
        return self._plan(interval, fetch_time, offset, shortest, modified_time, steps)

    def _plan(
        self,
        interval: float,
        fetch_time: int,
        offset: int,
        shortest: float,
        modified_time: int,
        steps: list[ScheduleStep],
    ) -> PlannedFetch:
        """Plans a fetch `interval` seconds less `offset` ms after the last, but not sooner than
        `shortest` seconds after it.
        """
        wait = _round(interval * 1000.0) - offset
        if wait < (least := _round(shortest * 1000.0)):
            wait = least
            steps.append(ScheduleStep("not sooner than after", shortest))
        return PlannedFetch(java_round(interval), fetch_time + wait, modified_time, tuple(steps))

    def _adapted(self, datum: CrawlDatum, state: int) -> tuple[float, list[ScheduleStep]]:
        """Returns the interval after a change or none, and how it came about."""
        interval = float32(datum.fetch_interval or self.default_interval)
        steps = [ScheduleStep("the interval before", interval)]
        inc_rate, dec_rate = self.rates(datum)
        if state == STATUS_MODIFIED:
            interval = float32(interval * float32(1 - dec_rate))
            steps.append(ScheduleStep(f"the page had changed: × (1 - {dec_rate:g})", interval))
        elif state == STATUS_NOTMODIFIED:
            interval = float32(interval * float32(1 + inc_rate))
            steps.append(ScheduleStep(f"the page was the same: × (1 + {inc_rate:g})", interval))
        else:
            steps.append(ScheduleStep("not known whether the page had changed: the interval stays"))
        return interval, steps

    def _offset(self, delta: int, longest: int) -> int:
        """Returns the ms by which the next fetch moves forward, `delta` ms after the last
        change.
        """
        offset = _round(delta * self.sync_delta_rate)
        # 0, unless the rate is 1 or more.
        return offset // delta * longest if delta > 0 and offset > longest else offset

    def set_fetch_schedule_columns(
        self,
        frame: pl.DataFrame,
        prev_fetch_time: pl.Series,
        prev_modified_time: pl.Series,
        fetch_time: pl.Series,
        modified_time: pl.Series,
        state: pl.Series,
    ) -> pl.DataFrame:
        fetched, modified = fetch_time.to_numpy(), modified_time.to_numpy()
        kind = state.to_numpy()
        fixed = fixed_intervals(frame["metadata"])
        interval = self._intervals(frame).to_numpy().astype(np.float32)
        inc_rate, dec_rate = self.rates_columns(frame)
        changed, same = kind == STATUS_MODIFIED, kind == STATUS_NOTMODIFIED
        modified = np.where(((modified <= 0) | changed) & np.isnan(fixed), fetched, modified)
        # In Java's order: rate, sync_delta, bounds, fixedInterval.
        interval = np.where(changed, interval * (np.float32(1) - dec_rate), interval)
        interval = np.where(same, interval * (np.float32(1) + inc_rate), interval)
        shortest, longest = self._bounds_columns(frame["key"])
        offset: np.ndarray[Any, Any] | int = 0
        if self.sync_delta:
            delta = fetched - modified
            late = delta.astype(np.float32) > interval * np.float32(1000)
            quotient: np.ndarray[Any, Any] = np.sign(delta) * (np.abs(delta) // 1000)
            interval = np.where(late, quotient.astype(np.float32), interval)
            offset = np.where(np.isnan(fixed), self._offset_columns(delta, longest), 0)
        interval = np.where(
            interval < shortest, shortest, np.where(interval > longest, longest, interval)
        )
        interval = np.where(np.isnan(fixed), interval, fixed)
        least = np.where(np.isnan(fixed), _round_columns(shortest.astype(np.float64) * 1000.0), 0)
        # Nutch lacks this limit of the wait.
        wait = np.maximum(_round_columns(interval.astype(np.float64) * 1000.0) - offset, least)
        return frame.with_columns(
            retries=pl.lit(0, pl.Int8),
            fetch_interval=pl.Series(round_int(interval), dtype=pl.Int32),
            fetch_time=pl.Series(fetched + wait, dtype=pl.Int64),
            modified_time=pl.Series(modified, dtype=pl.Int64),
        )

    def rates_columns(
        self, frame: pl.DataFrame
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """`rates` of each row, as 32-bit floats."""
        return np.full(len(frame), self.inc_rate, np.float32), np.full(
            len(frame), self.dec_rate, np.float32
        )

    def _bounds_columns(self, keys: pl.Series) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        shortest = np.full(len(keys), self.min_interval, np.float32)
        longest = np.full(len(keys), self.longest_interval, np.float32)
        for host, (least, most) in self.host_bounds.items():
            # Few URLs name the host at all: only those are parsed.
            near = keys.bin.contains(host.encode()).arg_true()
            mine = [
                i
                for i, key in zip(near, keys.gather(near), strict=True)
                if uri_host(decode_text(key)) == host
            ]
            shortest[mine], longest[mine] = least, most
        return shortest, longest

    def _offset_columns(
        self, delta: np.ndarray[Any, Any], longest: np.ndarray[Any, Any]
    ) -> np.ndarray[Any, Any]:
        offset = _round_columns(delta.astype(np.float64) * self.sync_delta_rate)
        millis = longest.astype(np.int64) * 1000
        too_far = (delta > 0) & (offset > millis)
        return np.where(too_far, offset // np.where(delta > 0, delta, 1) * millis, offset)


class MimeAdaptiveFetchSchedule(AdaptiveFetchSchedule):
    """AdaptiveFetchSchedule whose rates depend on the page's Content-Type."""

    def __init__(self, conf: Configuration) -> None:
        super().__init__(conf)
        self.mime_rates = read_mime_rates(conf, conf.get_text(MIME_FILE_PROPERTY))

    def rates(self, datum: CrawlDatum) -> tuple[float, float]:
        return self._rates_of(datum.metadata.get(Text(CONTENT_TYPE_KEY)))

    def _rates_of(self, content_type: Writable | None) -> tuple[float, float]:
        own = (self.inc_rate, self.dec_rate)
        return (
            own
            if content_type is None
            else self.mime_rates.get(clean_mime_type(str(content_type)), own)
        )

    def rates_columns(
        self, frame: pl.DataFrame
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        inc_rate, dec_rate = super().rates_columns(frame)
        for i, content_type in rawmap.values_of(frame["metadata"], _TYPE_KEY).items():
            inc_rate[i], dec_rate[i] = self._rates_of(content_type)
        return inc_rate, dec_rate


def clean_mime_type(content_type: str) -> str:
    """Returns a Content-Type without its parameters, as MimeUtil.cleanMimeType cuts it."""
    first, _, rest = content_type.partition(";")
    return first if rest.strip(";") else content_type  # MimeUtil splits at `;`, and wants two parts


def uri_host(url: str) -> str | None:
    """Returns the host of a URL as java.net.URI.getHost gives it; None where it has none or rejects
    the URL.
    """
    try:
        return parse_uri(url).host
    except UrlError:
        return None


def fixed_intervals(metadata: pl.Series) -> np.ndarray[Any, Any]:
    """Returns the intervals (s) that pages have by their metadata, NaN where there is none."""
    fixed = np.full(len(metadata), np.nan, np.float32)
    for i, value in rawmap.values_of(metadata, _FIXED_KEY).items():
        if isinstance(value, FloatWritable):
            fixed[i] = value.value
    return fixed


def _divide(value: int, divisor: int) -> int:
    """Java's integer division: towards zero."""
    return -(-value // divisor) if value < 0 else value // divisor


def _round(value: float) -> int:
    """Math.round of a double: half up, without the error of adding one half first."""
    floor = math.floor(value)
    return floor + (value - floor >= 0.5)  # 0.49999999999999994 + 0.5 is 1.0


def _round_columns(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    floor = np.floor(value)
    rounded: np.ndarray[Any, Any] = (floor + (value - floor >= 0.5)).astype(np.int64)
    return rounded


_DAY = SECONDS_PER_DAY * 1000
_CHANGES_EVERY = 30 * _DAY
_DAYS = 10_000


def simulate(
    schedule: AbstractFetchSchedule,
    url: str,
    page: CrawlDatum,
    show: Callable[[object], None],
    missed: str = "\tmissed",
) -> None:
    """Prints when the page is fetched, and how many days a change waits for the next fetch."""
    show(page)
    changed = True
    last_modified = miss = total_miss = max_miss = fetches = changes = 0
    for day in range(_DAYS):
        now = day * _DAY
        if last_modified + _CHANGES_EVERY < now:
            changed, last_modified = True, now
            changes += 1
        show(f"{day}. {str(changed).lower()}\twill fetch at {_plan(page)}{missed} {miss}")
        if page.fetch_time <= now:
            fetches += 1
            state = STATUS_MODIFIED if changed else STATUS_NOTMODIFIED
            schedule.set_fetch_schedule(
                url, page, page.fetch_time, page.modified_time, now, last_modified, state
            )
            show(f"\tfetched and adjusted:\twill fetch at {_plan(page)}")
            miss += not changed
            max_miss = max(max_miss, miss)
            total_miss += miss
            changed, miss = False, 0
        miss += changed
    show(f"Total missed: {total_miss}, max miss: {max_miss}")
    show(f"Page changed {changes} times, fetched {fetches} times.")


def _plan(page: CrawlDatum) -> str:
    return f"{page.fetch_time // _DAY}\tinterval {page.fetch_interval // SECONDS_PER_DAY} days"
