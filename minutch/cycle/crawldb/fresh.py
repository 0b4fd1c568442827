"""Decides how a given number of requests keeps the most copies fresh: each page is asked for again
when a request is worth as much there as anywhere else.

A page changes by chance (Poisson), at a rate that nobody knows. What is known of it is a gamma
distribution of `shape` and `time` (s), its mean shape ÷ time, which each visit sharpens, w seconds
after the one before:

    no change                      time + w
    changed, s seconds ago         shape + 1, time + s: where Last-Modified tells
    changed at some moment         the gamma distribution whose means of rate and 1 ÷ rate are those
                                   of what is then left, by the likelihood 1 - exp(-rate w)

These are the estimators of Cho and Garcia-Molina for irregular visits and for dates of
modification; what their corrections of bias mend, pages that never or always changed so far, the
prior does: at first a page is taken to change once in its interval (db.fetch.interval.default, the
changefreq of its sitemap, what another schedule found out). What a visit contradicts is forgotten:
rates shift.

A copy whose page is asked for every T seconds is fresh for E[(1 - exp(-rate T)) ÷ rate T] of the
time. One more request is worth, at the page's importance (its score),

    importance × E[(1 - (1 + rate T) exp(-rate T)) ÷ rate]        seconds of freshness

and the best plan has the same worth for all pages (Cho and Garcia-Molina; Azar and others): the
Lagrange multiplier, found by `surveyed` in one pass over the CrawlDb, as the one that spends
db.fetch.schedule.fresh.budget. Pages that change too often get the longest interval, where nobody
could keep them fresh; those of which little is known do not, for the expectation is over all rates
that are possible.

generate surveys, and so decides by the CrawlDb as it is: nothing is kept beside it. The multiplier
travels with the fetch list to updatedb, which writes interval and fetch time by it: what Nutch, or
another schedule, goes on with. Dropped: a multiplier kept in a file of the crawl, which is stale
when the CrawlDb grows and belongs to none when that is copied; and the pages of the highest worth
now as a fetch list (no multiplier, the same plan in the end), since then all pages are always due:
nobody could say when one comes back, and a crawl would not know how long to rest.

    metadata `_fresh_`    last visit (s since the epoch), visits compared, changes, shape (10^-6),
                          time (s), the multiplier, or -

Source: J. Cho, H. Garcia-Molina: Estimating Frequency of Change, ACM TOIT 3 (2003), and Effective
Page Refresh Policies for Web Crawlers, ACM TODS 28 (2003); Y. Azar, E. Horvitz, E. Lubetzky, Y.
Peres, D. Shahaf: Tractable near-optimal policies for crawling, PNAS 115 (2018).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from typing import Final, NamedTuple, Self
from zlib import crc32

import numpy as np
import polars as pl
from numpy.typing import NDArray

from minutch.conf import Configuration
from minutch.cycle.crawldb.adaptive import fixed_intervals
from minutch.cycle.crawldb.schedule import (
    STATUS_MODIFIED,
    STATUS_UNKNOWN,
    DefaultFetchSchedule,
    PlannedFetch,
    ScheduleStep,
)
from minutch.records import crawldatum as status
from minutch.records import crawldatum_columns, metadata_columns, validators
from minutch.records.crawldatum import SECONDS_PER_DAY, CrawlDatum
from minutch.records.metadata import FIXED_INTERVAL_KEY
from minutch.terminal import counted

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

KEY: Final = "_fresh_"
HELD: Final = (status.STATUS_DB_FETCHED, status.STATUS_DB_NOTMODIFIED, status.STATUS_DB_DUPLICATE)
"""Statuses of entries of whose page the crawl has a copy."""
_REDIRECTS: Final = (
    status.STATUS_FETCH_REDIR_TEMP, status.STATUS_FETCH_REDIR_PERM,
    status.STATUS_DB_REDIR_TEMP, status.STATUS_DB_REDIR_PERM,
)  # fmt: skip
_SHAPE: Final = 0.5
"""Of the prior: any rate from a thousandth to three times the mean is as good a guess."""
_SHIFTS: Final = 0.02
"""How likely a page's rate shifts from one visit to the next. What was known counts as much as it
is probable, by what a visit has seen, that it still holds.
"""
_MICRO: Final = 1_000_000
_LEAST_SHAPE, _MOST_SHAPE = 1e-3, 1e6
_MOST_TIME: Final = 1e11
_MOST_SCORE: Final = 1e6
_INT_MAX: Final = 0x7FFF_FFFF
_HALVINGS: Final = 20  # of intervals from the shortest to the longest: to 1 in 100,000
_TRIES: Final = 128  # intervals that a kind of page is tried with
_KINDS: Final = 20_000
"""Kinds of pages that are told apart at most, by shape, time and importance. Pages of a kind are
counted by their mean: wide kinds missed a budget by a sixth, where many pages are just not worth a
request. So kinds are narrow at first, and wider only where there are too many: whatever the order
of the entries, and sums are of whole numbers, which come out the same in any order, too.
"""
_FINE: Final = 1 << 20  # of a doubling
_FINEST: Final = 14  # bits of it that make a kind
_TURNS: Final = 40
_TEXT: Final = (
    r"^([0-9]{1,12}) ([0-9]{1,9}) ([0-9]{1,9}) ([0-9]{1,13}) ([0-9]{1,12})"
    r" (-|[0-9][.][0-9]{6}e[+-][0-9]{2})$"
)
_NO_WORTH: Final = "-"
_MAP: Final = b"\0\0\0\0\1" + metadata_columns.stored(KEY.encode()) + b"%c" % metadata_columns.TEXT
"""The metadata of a Text under KEY, up to its length."""
_PROBES: Final = 16.0
"""A page that each visit found changed may change once a week or each minute. So its next visit
comes sooner, at an interval down to a 16th (a chance of its own, for each visit): that one tells
more. Pages of which nothing is known, and which were found together, come back around their
interval, from half of it to as much again.
"""
_PROBED: Final = math.log(_PROBES) / (1 - 1 / _PROBES)
_STIR: Final = np.uint64(0x9E37_79B9_7F4A_7C15)
_HTTP_DATE: Final = "%a, %d %b %Y %H:%M:%S GMT"


def _bounded(shape: Floats, time: Floats) -> tuple[Floats, Floats]:
    return np.clip(shape, _LEAST_SHAPE, _MOST_SHAPE), np.clip(time, 1.0, _MOST_TIME)


def learned(
    shape: Floats, time: Floats, waited: Floats, changed: Mask, since: Floats
) -> tuple[Floats, Floats]:
    """Returns shape and time (s) after a visit `waited` s after the one before; `since` are the s
    from a change to the visit, NaN where nobody knows.
    """
    dated = changed & ~np.isnan(since)
    more = np.where(dated, np.nan_to_num(since), waited)
    same = np.exp(-shape * np.log1p(waited / time))
    seen = np.where(changed, 1 - same, same) * (1 - _SHIFTS)
    memory = seen / (seen + _SHIFTS / 2)
    shape, time = _bounded(shape * memory, time * memory)
    log = np.log1p(waited / time)
    left = -np.expm1(-shape * log)  # the probability of a change
    mean = shape / time * (-np.expm1(-(shape + 1) * log) / left)
    inverse = _inverse(shape, time, log) / left
    guessed = changed & ~dated
    known = np.maximum(mean * inverse - 1, 1 / _MOST_SHAPE)
    shape = np.where(guessed, 1 / known + 1, shape + dated)
    return _bounded(shape, np.where(guessed, shape / mean, time + more))


def _inverse(shape: Floats, time: Floats, log: Floats) -> Floats:
    """Returns the mean of (1 - exp(-rate w)) ÷ rate (s), `log` of 1 + w ÷ time."""
    less = shape - 1
    small = np.abs(less) < 1e-9
    found: Floats = np.where(small, log, -np.expm1(-less * log) / np.where(small, 1, less))
    return time * found


def worth_of(shape: Floats, time: Floats, interval: Floats) -> Floats:
    """Returns the seconds of freshness that one more request is worth for a page of importance 1
    that is asked for every `interval` s.
    """
    log = np.log1p(interval / time)
    return _inverse(shape, time, log) - interval * np.exp(-shape * log)


def interval_of(
    shape: Floats, time: Floats, importance: Floats, worth: Floats, bounds: tuple[float, float]
) -> Floats:
    """Returns the interval (s), within `bounds`, at which one more request is `worth` as much; the
    longest one where it never is.
    """
    low, high = (np.full(len(shape), np.log(bound)) for bound in bounds)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        above = importance * worth_of(shape, time, np.exp(middle)) > worth
        high, low = np.where(above, middle, high), np.where(above, low, middle)
    found: Floats = np.exp(high)
    return found


def multiplier(
    shape: Floats,
    time: Floats,
    importance: Floats,
    count: Floats,
    probes: Floats,
    budget: float,
    bounds: tuple[float, float],
) -> float:
    """Returns the worth of a request at which `count` pages of each kind are asked for `budget`
    times a second, `probes` times as often as their intervals say if these are not the longest.
    """
    tries = np.geomspace(*bounds, _TRIES)
    worths = importance[:, None] * worth_of(shape[:, None], time[:, None], tries)
    worths = np.log(np.maximum(worths, 1e-300))
    worths = np.maximum.accumulate(worths, axis=1)
    rates = np.append(1 / tries, 1 / bounds[1])
    low, high = float(worths[:, 0].min()) - 1, float(worths[:, -1].max()) + 1
    for _ in range(_TURNS):
        middle = (low + high) / 2
        at = (worths < middle).sum(axis=1)
        # between two tries the logarithm of the interval is nearly straight by that of the worth
        inside = (at > 0) & (at < _TRIES)
        row, before = np.flatnonzero(inside), at[inside] - 1
        first, then = worths[row, before], worths[row, before + 1]
        share = (middle - first) / np.maximum(then - first, 1e-12)
        demand = count * rates[at] * np.where(at < _TRIES, probes, 1)
        demand[row] *= (rates[before] / rates[before + 1]) ** (1 - share)
        low, high = (middle, high) if demand.sum() > budget else (low, middle)
    return float(np.exp(high))


class PageHistories(NamedTuple):
    """What visits told of pages, a row for each."""

    last: Ints
    """The last visit (s since the epoch); 0 before the first."""
    visits: Ints
    """Visits that told whether the page had changed since the one before."""
    changes: Ints
    shape: Floats
    time: Floats  # s
    worth: pl.Series
    """The multiplier by which the page was listed, as text."""

    @classmethod
    def of(cls, frame: pl.DataFrame, default_interval: int) -> PageHistories:
        """Reads those of entries; new ones where there are none, or damaged ones."""
        texts = metadata_columns.text_values(frame["metadata"], frame["key"], KEY)
        fields = texts.cast(pl.String, strict=False).str.extract_groups(_TEXT).struct.unnest()
        numbers = fields[:, :5].cast(pl.Int64)
        interval = frame["fetch_interval"].to_numpy().astype(np.float64)
        prior = _SHAPE * np.where(interval > 0, interval, default_interval)
        known = fields[:, 0].is_not_null().to_numpy()
        last, visits, changes, shape, time = numbers.fill_null(0).to_numpy().T
        return cls(
            last,
            visits,
            changes,
            *_bounded(np.where(known, shape / _MICRO, _SHAPE), np.where(known, time, prior)),
            fields[:, 5].fill_null(_NO_WORTH),
        )

    @property
    def unsteady(self) -> Mask:
        """Pages that each visit found changed, be there none: nobody knows how often they do."""
        found: Mask = self.visits == self.changes
        return found

    def put_into(self, metadata: pl.Series) -> pl.Series:
        """Returns metadata with these in it."""
        whole = (np.rint(self.shape * _MICRO), np.rint(self.time))
        numbers = np.stack([*self[:3], *whole], axis=1).astype(np.int64)
        table = pl.DataFrame(numbers, schema=[*"lvcst"])
        texts = table.select(pl.concat_str([*table.columns, self.worth], separator=" ")).to_series()
        others = [_MAP + bytes((len(text),)) + text for text in texts.cast(pl.Binary)]
        return metadata_columns.with_all(metadata, pl.Series(others, dtype=pl.Binary))


class FreshnessFetchSchedule(DefaultFetchSchedule):
    """Spends a number of requests a day where they keep most copies fresh."""

    def __init__(self, conf: Configuration) -> None:
        super().__init__(conf)
        self.budget = conf.get_float("db.fetch.schedule.fresh.budget")
        longest = float(max(1, self.max_interval))
        shortest = max(1.0, conf.get_float("db.fetch.schedule.adaptive.min_interval"))
        self.bounds = min(shortest, longest), longest
        self.worth = _NO_WORTH
        """The multiplier for the CrawlDb, once it is `surveyed`."""
        self.early = 0
        """Half the time since the last round (ms): what will be due sooner than in the middle
        between this round and the next one is due. Otherwise each page would wait for half a round
        more than it is to, and the budget would not be spent.
        """

    def surveyed(self, tables: Callable[[], Iterable[pl.DataFrame]], now: int) -> Self:
        kinds: Ints = np.zeros((0, 4), np.int64)
        sums: Ints = np.zeros((0, 5), np.int64)  # the number of pages, and of their logarithms
        coarse = _FINEST
        fixed = held = 0.0
        newest = 0
        for table in tables():
            pages = table.filter(pl.col("status").is_in(HELD))
            own = self._settled(pages)
            held += len(pages)
            last = self.calculate_last_fetch_time_columns(pages)
            newest = max([newest, *last.filter(last <= now).top_k(1)])
            fixed += float(np.nansum(1 / np.maximum(own, 1)))
            pages = pages.filter(pl.Series(np.isnan(own)))
            known = PageHistories.of(pages, self.default_interval)
            probes = np.where(known.unsteady & (known.visits > 0), _PROBED, 1)
            values = np.stack([known.shape, known.time, _importance(pages), probes], axis=1)
            logs = np.rint(_FINE * np.log2(values)).astype(np.int64)
            kinds = np.concatenate([kinds, logs >> coarse])
            sums = np.concatenate([sums, np.insert(logs, 0, 1, axis=1)])
            kinds, sums = _summed(kinds, sums)
            while len(kinds) > _KINDS:
                coarse += 1
                kinds, sums = _summed(kinds >> 1, sums)
        found = copy(self)
        if len(kinds):
            budget = self.budget / SECONDS_PER_DAY
            if self.budget <= 0:
                budget = held / self.default_interval
            counts, *logarithms = sums.T
            shape, time, importance, probes = (2.0 ** (one / counts / _FINE) for one in logarithms)
            worth = multiplier(shape, time, importance, counts, probes, budget - fixed, self.bounds)
            found.worth = f"{worth:.6e}"
            found.early = (now - newest) // 2
        return found

    def _settled(self, frame: pl.DataFrame) -> Floats:
        """Returns the intervals (s) of pages that keep their dates whatever the multiplier is now,
        NaN for all others.

        Pages that were not worth a request are among them. They would all be due at once when the
        multiplier falls below what they are worth, and be given up again: a seventh of a budget
        went there.
        """
        own: Floats = fixed_intervals(frame["metadata"]).astype(np.float64)
        interval = frame["fetch_interval"].to_numpy()
        return np.where(np.isnan(own) & (interval == self.bounds[1]), interval, own)

    def _intervals_of(self, frame: pl.DataFrame, known: PageHistories) -> Floats:
        """Returns the intervals of pages (s), NaN where there is no multiplier."""
        worth = known.worth.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
        found = interval_of(known.shape, known.time, _importance(frame), worth, self.bounds)
        some = np.flatnonzero(known.unsteady & (found < self.bounds[1]))
        sums = np.fromiter(map(crc32, frame["key"].gather(some)), np.uint64, len(some))
        turns = sums + known.visits[some].astype(np.uint64)
        chance = (turns * _STIR >> np.uint64(40)) / 2.0**24  # sums of like URLs are alike
        found[some] *= np.where(known.visits[some] > 0, _PROBES**-chance, 0.5 + chance)
        whole: Floats = np.clip(np.rint(found), *self.bounds)
        return np.where(np.isnan(worth), np.nan, whole)

    # -- tables ------------------------------------------------------------------------------------

    def set_fetch_schedule_columns(
        self,
        frame: pl.DataFrame,
        prev_fetch_time: pl.Series,
        prev_modified_time: pl.Series,
        fetch_time: pl.Series,
        modified_time: pl.Series,
        state: pl.Series,
    ) -> pl.DataFrame:
        known = PageHistories.of(frame, self.default_interval)
        fetched, kind = fetch_time.to_numpy(), state.to_numpy()
        is_page = ~frame["status"].is_in(_REDIRECTS).to_numpy()
        # longer than any interval: the crawl was stopped, or its clock set, which changed no page
        waited = np.minimum(fetched / 1000 - known.last, self.bounds[1])
        tells = is_page & (kind != STATUS_UNKNOWN) & (known.last > 0) & (waited > 0)
        changed = tells & (kind == STATUS_MODIFIED)
        is_new = is_page & (known.last == 0) & (kind == STATUS_UNKNOWN)
        since = (fetched - _modified(frame, modified_time, changed | is_new)) / 1000
        since[~((since > 0) & (is_new | (since < waited)))] = np.nan
        shape, time = learned(known.shape, known.time, np.where(tells, waited, 1), changed, since)
        # as old as its date says, if not older: a page that is made changes, and none before it
        steady = known.time + np.where(is_new, np.nan_to_num(since), 0)
        known = known._replace(
            last=np.where(is_page, fetched // 1000, known.last),
            visits=known.visits + tells,
            changes=known.changes + changed,
            shape=np.where(tells, shape, known.shape),
            time=np.where(tells, time, np.minimum(steady, _MOST_TIME)),
        )
        own = fixed_intervals(frame["metadata"])
        wanted = np.where(np.isnan(own), self._intervals_of(frame, known), own)
        stays = np.isnan(wanted) | ~is_page
        wanted = np.clip(np.rint(np.nan_to_num(wanted)), 0, _INT_MAX)
        interval = np.where(stays, self._intervals(frame).to_numpy(), wanted)
        frame = frame.with_columns(
            fetch_interval=pl.Series(interval.astype(np.int32)),
            metadata=known.put_into(frame["metadata"]),
        )
        return super().set_fetch_schedule_columns(
            frame, prev_fetch_time, prev_modified_time, fetch_time, modified_time, state
        )

    def should_fetch_columns(self, frame: pl.DataFrame, now: int) -> tuple[pl.DataFrame, pl.Series]:
        """Decides of pages that are held by the multiplier of today, of all others by their fetch
        time. Those that are due learn the multiplier, and when they were fetched last.
        """
        last = self.calculate_last_fetch_time_columns(frame).to_numpy()
        frame, due = super().should_fetch_columns(frame, now)
        if self.worth == _NO_WORTH:
            return frame, due
        held = frame["status"].is_in(HELD).to_numpy()
        held &= np.isnan(self._settled(frame))
        known = PageHistories.of(frame, self.default_interval)
        worth = pl.Series([self.worth]).new_from_index(0, len(frame))
        known = known._replace(last=np.where(held, last // 1000, known.last), worth=worth)
        interval = np.nan_to_num(self._intervals_of(frame, known)).astype(np.int64)
        planned = last + interval * 1000
        # never within the shortest interval: in rounds of 20 s pages came back after 52 s of 60
        soonest = last + int(self.bounds[0] * 1000)
        soon = np.maximum(planned - np.minimum(self.early, interval * 500), soonest) <= now
        is_due = np.where(held, soon | (last > now), due.to_numpy())
        waits = held & ~is_due
        frame = frame.with_columns(
            fetch_time=np.where(waits, planned, frame["fetch_time"]),
            fetch_interval=np.where(waits, interval, frame["fetch_interval"]).astype(np.int32),
        )
        rows = np.flatnonzero(is_due)
        listed = PageHistories._make(column[rows] for column in known)
        metadata = frame["metadata"].scatter(rows, listed.put_into(frame["metadata"][rows]))
        return frame.with_columns(metadata=metadata), pl.Series(is_due)

    # -- one record: a table with one row ----------------------------------------------------------

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
        frame = crawldatum_columns.to_frame([(url, datum)])
        values = (prev_fetch_time, prev_modified_time, fetch_time, modified_time, state)
        columns = (pl.Series([value], dtype=pl.Int64) for value in values)
        _take(datum, self.set_fetch_schedule_columns(frame, *columns))

    def should_fetch(self, url: str, datum: CrawlDatum, now: int) -> bool:
        frame, due = self.should_fetch_columns(crawldatum_columns.to_frame([(url, datum)]), now)
        _take(datum, frame)
        return bool(due[0])

    def plan(
        self, url: str, datum: CrawlDatum, fetch_time: int, modified_time: int, state: int
    ) -> PlannedFetch:
        after = datum.copy()
        self.set_fetch_schedule(url, after, 0, 0, fetch_time, modified_time, state)
        frame = crawldatum_columns.to_frame([(url, after)])
        known = PageHistories.of(frame, self.default_interval)
        steps = tuple(self._steps(frame, known, after.fetch_interval))
        return PlannedFetch(after.fetch_interval, after.fetch_time, after.modified_time, steps)

    def _steps(
        self, frame: pl.DataFrame, known: PageHistories, interval: int
    ) -> Iterator[ScheduleStep]:
        visits, often = int(known.visits[0]), float(known.time[0] / known.shape[0])
        told = f"{counted(visits, 'visits')} compared, {known.changes[0]} with a change"
        yield ScheduleStep(f"{told}: it is taken to change every", often)
        if not np.isnan(fixed_intervals(frame["metadata"])[0]):
            yield ScheduleStep(f"fixed by {FIXED_INTERVAL_KEY}", interval)
        elif known.worth[0] == _NO_WORTH:
            yield ScheduleStep("listed without a survey of the crawldb: as before", interval)
        else:
            yield ScheduleStep(
                "one more request has to be worth, in time that a copy is fresh, times score",
                float(known.worth[0]),
            )
            by = f"it is, for a score of {frame['score'][0]:g}, after"
            if interval >= self.bounds[1]:
                by = "it never is: the longest interval (db.fetch.interval.max)"
            elif known.unsteady[0]:
                by += " about (at a chance by its URL, as no visit found it unchanged)"
            yield ScheduleStep(by, interval)


def _summed(kinds: Ints, sums: Ints) -> tuple[Ints, Ints]:
    """Adds up what belongs to equal kinds (rows)."""
    found, at = np.unique(kinds, axis=0, return_inverse=True)
    totals: Ints = np.zeros((len(found), sums.shape[1]), np.int64)
    np.add.at(totals, at.reshape(-1), sums)
    return found, totals


def _importance(frame: pl.DataFrame) -> Floats:
    score = frame["score"].to_numpy().astype(np.float64)
    found: Floats = np.clip(np.nan_to_num(score, posinf=_MOST_SCORE), 1 / _MOST_SCORE, _MOST_SCORE)
    return found


def _modified(frame: pl.DataFrame, modified_time: pl.Series, wanted: Mask) -> Floats:
    """Returns when pages say that they were modified (ms), NaN where not `wanted` or unknown: the
    Last-Modified of the copy, or the modified time, where a protocol or a sitemap has set it.
    """
    time = modified_time.to_numpy().astype(np.float64)
    rows = np.flatnonzero(wanted)
    some = frame[rows]
    name = str(validators.VALIDATORS_KEY)
    texts = metadata_columns.text_values(some["metadata"], some["key"], name)
    dates = texts.cast(pl.String, strict=False).str.splitn(" ", 4).struct.field("field_3")
    said = dates.str.to_datetime(_HTTP_DATE, time_unit="ms", strict=False).dt.epoch("ms")
    found = np.full(len(frame), np.nan)
    found[rows] = said.cast(pl.Float64).fill_null(pl.Series(time[rows])).to_numpy()
    found[~(found > 0)] = np.nan
    return found


def _take(datum: CrawlDatum, frame: pl.DataFrame) -> None:
    ((_, after),) = crawldatum_columns.records(frame)
    for name in ("fetch_time", "fetch_interval", "modified_time", "retries", "metadata"):
        setattr(datum, name, getattr(after, name))
