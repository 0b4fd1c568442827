"""Decides how a given number of requests keeps the most copies fresh: each page is asked for again
when a request is worth as much there as anywhere else.

What is known of a page are its `habits`: the rate at which it changes by chance, or the time of day
or week at which it does. At first it is taken to change three times in db.fetch.interval.default,
or once in an interval of its own (the changefreq of its sitemap, what another schedule found).

A copy whose page is asked for every T seconds is fresh for E[(1 - exp(-rate T)) ÷ rate T] of the
time. One more request is worth, at the page's importance (its score),

    importance × E[(1 - (1 + rate T) exp(-rate T)) ÷ rate]        seconds of freshness

and the best plan has the same worth for all pages (Cho and Garcia-Molina; Azar and others): the
Lagrange multiplier, found by `surveyed` in one pass over the CrawlDb, as the one that spends
db.fetch.schedule.fresh.budget. Pages that change too often for anybody to keep them fresh are not
worth one; those of which little is known are, for the expectation is over all rates that are
possible. A page that keeps time is asked for after its change, where that is worth it. So
that no copy rots, a request counts for a little where it makes an old copy young; a page that is
asked for just for that is given up until a visit finds it as it was. (Weighed anew each time, when
the multiplier had fallen a little, such pages took a third of a budget.)

generate surveys, and so decides by the CrawlDb as it is: nothing is kept beside it. The multiplier
travels with the fetch list to updatedb, which writes interval and fetch time by it: what Nutch, or
another schedule, goes on with. Dropped: a multiplier in a file of the crawl, stale when the CrawlDb
grows; and the pages of the highest worth now as a fetch list (the same plan in the end): all would
always be due, and a crawl would not know how long to rest.

    metadata `_fresh_`    last visit (s since the epoch), visits compared, changes, shape (10^-6),
                          time (s), the multiplier, or -, with @ and the usual importance where
                          that is not 1; `habits.Clocks`, if any; x if given up

Source: Y. Azar, E. Horvitz, E. Lubetzky, Y. Peres, D. Shahaf: Tractable near-optimal policies for
crawling, PNAS 115 (2018).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from typing import Final, NamedTuple, Self
from zlib import crc32

import numpy as np
import polars as pl

from minutch.conf import Configuration
from minutch.cycle.crawldb.adaptive import fixed_intervals
from minutch.cycle.crawldb.habits import (
    CALM,
    MOST_TIME,
    SHAPE,
    STEADY,
    TEXT,
    Floats,
    Ints,
    Mask,
    Prospects,
    after_visits,
    bounded,
    kept_share,
    learned,
    next_visits,
)
from minutch.cycle.crawldb.schedule import (
    STATUS_MODIFIED,
    STATUS_UNKNOWN,
    DefaultFetchSchedule,
    PlannedFetch,
    ScheduleStep,
)
from minutch.hadoop.formats.javaio import encode_vlong
from minutch.records import crawldatum as status
from minutch.records import crawldatum_columns, metadata_columns, validators
from minutch.records.crawldatum import SECONDS_PER_DAY, CrawlDatum
from minutch.records.metadata import FIXED_INTERVAL_KEY
from minutch.terminal import counted

KEY: Final = "_fresh_"
HELD: Final = (status.STATUS_DB_FETCHED, status.STATUS_DB_NOTMODIFIED, status.STATUS_DB_DUPLICATE)
"""Statuses of entries of whose page the crawl has a copy."""
_REDIRECTS: Final = (
    status.STATUS_FETCH_REDIR_TEMP, status.STATUS_FETCH_REDIR_PERM,
    status.STATUS_DB_REDIR_TEMP, status.STATUS_DB_REDIR_PERM,
)  # fmt: skip
_MOST_STEADY: Final = 3.0
"""How much less often than others a page with an old date is taken to change, at most. A page that
has changed for an hour may have a date of last year. With 10, a web with many such dates and few
requests was at 0.89 of the optimum, 0.91 with this, 0.92 if no old date counts; with true dates at
0.93, 0.92 and 0.92.
"""
_MICRO: Final = 1_000_000
_MOST_SCORE: Final = 1e6
_INT_MAX: Final = 0x7FFF_FFFF
_KINDS: Final = 20_000
"""Kinds of pages that are told apart at most. Pages of a kind are counted by their mean: wide kinds
missed a budget by a sixth, where many pages are just not worth a request. So they are narrow first,
and wider only where there are too many; sums are of whole numbers, the same in any order.
"""
_FINE: Final = 1 << 20  # of a doubling
_LEAST: Final = 1e-9
"""What no field of a kind is below, as its logarithm is taken."""
_FINEST: Final = 14  # bits of it that make a kind
_TEXT: Final = (
    r"^([0-9]{1,12}) ([0-9]{1,9}) ([0-9]{1,9}) ([0-9]{1,13}) ([0-9]{1,12})"
    r" (-|[0-9][.][0-9]{6}e[+-][0-9]{2})(?:@([0-9][.][0-9]{2}e[+-][0-9]{2}))?"
    rf"(?: ({TEXT}))?( x)?$"
)
_NO_WORTH: Final = "-"
_MAP: Final = b"\0\0\0\0\1" + metadata_columns.stored(KEY.encode()) + b"%c" % metadata_columns.TEXT
"""The metadata of a Text under KEY, up to its length."""
_PROBES: Final = 16.0
"""A page that each visit found changed may change once a week or each minute. So its next visit
comes sooner, at an interval down to a 16th (by chance), which tells more. Pages of which nothing is
known, and which were found together, come back around their interval, from half to 1.5 of it.
"""
_PROBED: Final = math.log(_PROBES) / (1 - 1 / _PROBES)
_STIR: Final = np.uint64(0x9E37_79B9_7F4A_7C15)
_HTTP_DATE: Final = "%a, %d %b %Y %H:%M:%S GMT"


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
    usual: Floats
    """The importance of a usual page then."""
    clocks: pl.Series
    """`Clocks` as text."""
    given_up: Mask
    """Pages that changed too often for what a request was worth, and have at each visit since."""

    @classmethod
    def of(cls, frame: pl.DataFrame, default_interval: int) -> PageHistories:
        """Reads those of entries; new ones where there are none, or damaged ones."""
        texts = metadata_columns.text_values(frame["metadata"], frame["key"], KEY)
        fields = texts.cast(pl.String, strict=False).str.extract_groups(_TEXT).struct.unnest()
        numbers = fields[:, :5].cast(pl.Int64)
        interval = frame["fetch_interval"].to_numpy().astype(np.float64)
        # An interval of its own is what a sitemap or another schedule knew of a page.
        was_told = (interval > 0) & (interval != default_interval)
        prior = np.where(was_told, CALM * interval, STEADY * default_interval)
        least = np.where(was_told, CALM, SHAPE)
        known = fields[:, 0].is_not_null().to_numpy()
        last, visits, changes, shape, time = numbers.fill_null(0).to_numpy().T
        return cls(
            last,
            visits,
            changes,
            *bounded(np.where(known, shape / _MICRO, least), np.where(known, time, prior)),
            fields[:, 5].fill_null(_NO_WORTH),
            fields[:, 6].cast(pl.Float64).fill_null(1.0).to_numpy(),
            fields[:, 7].fill_null(""),
            fields[:, 8].is_not_null().to_numpy(),
        )

    def at(self, rows: Ints) -> PageHistories:
        """Returns those of some rows."""
        return PageHistories._make(column[rows] for column in self)

    @property
    def worths(self) -> Floats:
        """The multipliers as numbers, NaN where there is none."""
        return self.worth.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()

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
        usual = [f"@{one:.2e}" if one != 1 else "" for one in self.usual]
        worth = self.worth + pl.Series(usual, dtype=pl.String)
        texts = table.select(pl.concat_str([*table.columns, worth], separator=" ")).to_series()
        texts += (pl.repeat(" ", len(texts), eager=True) + self.clocks).str.strip_chars_end()
        texts += pl.Series(np.where(self.given_up, " x", ""), dtype=pl.String)
        others = [_MAP + encode_vlong(len(text)) + text for text in texts.cast(pl.Binary)]
        return metadata_columns.with_all(metadata, pl.Series(others, dtype=pl.Binary))


class _Plans(NamedTuple):
    """When pages are to be asked for again, a row for each."""

    interval: Floats
    """s; NaN where there is no multiplier."""
    timely: Mask
    """They are asked for after their time, whatever the multiplier will be until then."""
    worthwhile: Mask
    """A request keeps them fresh for as long as it has to; others only get younger."""


class FreshnessFetchSchedule(DefaultFetchSchedule):
    """Spends a number of requests a day where they keep most copies fresh."""

    def __init__(self, conf: Configuration) -> None:
        super().__init__(conf)
        self.budget = conf.get_float("db.fetch.schedule.fresh.budget")
        longest = float(max(1, self.max_interval))
        shortest = max(1.0, conf.get_float("db.fetch.schedule.adaptive.min_interval"))
        self.bounds = min(shortest, longest), longest  # a maximum below the minimum wins
        self.worth = _NO_WORTH
        """The multiplier for the CrawlDb, once it is `surveyed`."""
        self.usual = 1.0
        """The importance of a usual page in it."""
        self.early = 0
        """Half the time since the last round (ms): what is due by the middle between this round and
        the next one is due, or each page would wait for half a round more than it is to.
        """

    def surveyed(self, tables: Callable[[], Iterable[pl.DataFrame]], now: int) -> Self:
        fields = len(Prospects._fields) - 1  # all but what is usual
        kinds: Ints = np.zeros((0, fields), np.int64)
        sums: Ints = np.zeros((0, fields + 1), np.int64)  # the number of pages, and of logarithms
        coarse = _FINEST
        fixed = held = 0.0
        newest = 0
        for table in tables():
            pages = table.filter(pl.col("status").is_in(HELD))
            own = self._settled(pages)
            held += len(pages)
            last = self.calculate_last_fetch_time_columns(pages)
            # A clock that was ahead is no round.
            newest = max([newest, *last.filter(last <= now).top_k(1)])
            fixed += float(np.nansum(1 / np.maximum(own, 1)))
            pages = pages.filter(pl.Series(np.isnan(own)))
            values, _ = _prospects(pages, PageHistories.of(pages, self.default_interval))
            # Logarithms as whole numbers: their sums are the same in any order.
            logs = np.rint(_FINE * np.log2(np.stack(values[:-1], axis=1) + _LEAST)).astype(np.int64)
            kinds = np.concatenate([kinds, logs >> coarse])
            sums = np.concatenate([sums, np.insert(logs, 0, 1, axis=1)])
            kinds, sums = _summed(kinds, sums)
            while len(kinds) > _KINDS:  # twice as wide, until they are few enough
                coarse += 1
                kinds, sums = _summed(kinds >> 1, sums)
        found = copy(self)  # the schedule itself may be asked by other jobs
        if len(kinds):
            budget = self.budget / SECONDS_PER_DAY
            if self.budget <= 0:
                budget = held / self.default_interval  # as the default schedule would spend
            counts, *logarithms = sums.T
            pages_of = Prospects(*(2.0 ** (one / counts / _FINE) for one in logarithms))
            # by roots: a few high scores are not to make age count more at all other pages
            root = np.average(np.sqrt(pages_of.importance), weights=counts)
            found.usual = float(f"{root**2:.2e}")
            pages_of = pages_of._replace(usual=found.usual)
            worth = pages_of.multiplier(counts, budget - fixed, self.bounds)
            found.worth = f"{worth:.6e}"
            found.early = (now - newest) // 2
        return found

    def _settled(self, frame: pl.DataFrame) -> Floats:
        """Returns the intervals (s) of pages that keep their dates whatever the multiplier is now,
        NaN for all others.

        Pages that were not worth a request are among them: when the multiplier fell they would all
        be due at once, and be given up again. A seventh of a budget went there.
        """
        own: Floats = fixed_intervals(frame["metadata"]).astype(np.float64)
        interval = frame["fetch_interval"].to_numpy()
        return np.where(np.isnan(own) & (interval == self.bounds[1]), interval, own)

    def _plans(self, frame: pl.DataFrame, known: PageHistories) -> _Plans:
        worth = known.worths
        pages, wait = _prospects(frame, known)
        found = pages.intervals(worth, self.bounds)
        fresh = pages.fresh(np.full(len(frame), self.bounds[1])) > worth
        some = np.flatnonzero(known.unsteady & fresh)
        turns = known.visits[some]
        chance = _chances(frame["key"].gather(some), turns)
        found[some] *= np.where(turns > 0, _PROBES**-chance, 0.5 + chance)
        timely = pages.timely(worth)
        whole: Floats = np.clip(np.rint(np.where(timely, wait, found)), *self.bounds)
        return _Plans(np.where(np.isnan(worth), np.nan, whole), timely, fresh | timely)

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
        # No date of this change: one in the future, or of our last fetch (in ms) or before.
        since[~((since > 0) & (is_new | (since < waited - 1)))] = np.nan
        shape, time = learned(known.shape, known.time, np.where(tells, waited, 1), changed, since)
        rows = np.flatnonzero(tells)
        # Clocks begin where changes surprise. A date tells the rate itself: not to be surprised at.
        dated, before = (changed & ~np.isnan(since))[rows], known.at(rows)
        steady = before.time + (CALM - STEADY) * self.default_interval
        likely = np.where(dated, shape[rows], before.shape + CALM - SHAPE)
        same = np.exp(-likely * np.log1p(waited[rows] / np.where(dated, time[rows], steady)))
        chance = np.where(changed[rows], 1 - same, same)
        times = fetched[rows] / 1000
        clocks = after_visits(before.clocks, times, waited[rows], changed[rows], chance)
        # as old as its date says, if not older: a page that is made changes, and none before it
        aged = np.where(is_new, np.minimum(np.nan_to_num(since), _MOST_STEADY * known.time), 0)
        known = known._replace(
            last=np.where(is_page, fetched // 1000, known.last),
            visits=known.visits + tells,
            changes=known.changes + changed,
            shape=np.where(tells, shape, known.shape),
            time=np.where(tells, time, np.minimum(known.time + aged, MOST_TIME)),
            clocks=known.clocks.scatter(rows, clocks),
            given_up=known.given_up & ~(tells & ~changed),
        )
        plans = self._plans(frame, known)
        known = known._replace(
            given_up=known.given_up | ~(plans.worthwhile | np.isnan(plans.interval))
        )
        own = fixed_intervals(frame["metadata"])
        wanted = np.where(np.isnan(own), plans.interval, own)
        stays = np.isnan(wanted) | ~is_page  # as before: no survey, or a redirect
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
        known = PageHistories.of(frame, self.default_interval)
        timely = _prospects(frame, known)[0].timely(known.worths)
        held &= np.isnan(self._settled(frame)) & ~timely
        worth = pl.Series([self.worth]).new_from_index(0, len(frame))
        known = known._replace(last=np.where(held, last // 1000, known.last), worth=worth)
        known = known._replace(usual=np.full(len(frame), self.usual))
        interval = np.nan_to_num(self._plans(frame, known).interval).astype(np.int64)
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
        # Only what is listed carries the multiplier: all others stay as they are.
        rows = np.flatnonzero(is_due)
        listed = known.at(rows)
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
            period = _prospects(frame, known)[0].period[0]
            if period and self._plans(frame, known).timely[0]:
                kind = "day" if period == SECONDS_PER_DAY else "week"
                by = f"it keeps time: after its change of each {kind}, or before it, as a test"
            elif interval >= self.bounds[1]:
                by = "it never is: the longest interval (db.fetch.interval.max)"
            elif known.given_up[0]:
                by = "given up until it is found unchanged: so that its copy gets no older than"
            elif known.unsteady[0]:
                by += " about (at a chance by its URL, as no visit found it unchanged)"
            yield ScheduleStep(by, interval)


def _prospects(frame: pl.DataFrame, known: PageHistories) -> tuple[Prospects, Floats]:
    """Returns what requests for pages are worth, and after how long (s) they are next to be asked
    for by the clock, NaN where they do not keep time.
    """
    period, kept, wait = np.zeros(len(frame)), np.zeros(len(frame)), np.full(len(frame), np.nan)
    rows = np.flatnonzero((known.clocks != "").to_numpy())
    chance = _chances(frame["key"].gather(rows), known.visits[rows])
    last = known.last[rows].astype(np.float64)
    period[rows], wait[rows] = next_visits(known.clocks.gather(rows), last, chance)
    kept[rows] = kept_share(_chances(frame["key"].gather(rows), np.zeros(len(rows), np.int64)))
    probes = np.where(known.unsteady & (known.visits > 0), _PROBED, 1)
    calm: Floats = np.where(known.given_up, 0.0, 1.0)
    values = (known.shape, known.time, _importance(frame), calm, period, kept, probes)
    return Prospects(*values, known.usual), wait


def _chances(keys: pl.Series, turns: Ints) -> Floats:
    """Returns a number from 0 to 1 for the URL of each page and its turn."""
    sums = np.fromiter(map(crc32, keys), np.uint64, len(keys)) + turns.astype(np.uint64)
    found: Floats = (sums * _STIR >> np.uint64(40)) / 2.0**24  # sums of like URLs are alike
    return found


def _summed(kinds: Ints, sums: Ints) -> tuple[Ints, Ints]:
    """Adds up what belongs to equal kinds (rows)."""
    found, at = np.unique(kinds, axis=0, return_inverse=True)
    totals: Ints = np.zeros((len(found), sums.shape[1]), np.int64)
    np.add.at(totals, at.reshape(-1), sums)
    return found, totals


def _importance(frame: pl.DataFrame) -> Floats:
    score = np.nan_to_num(frame["score"].to_numpy().astype(np.float64))
    # Without a scoring plugin all pages but the seeds have none. They count as seeds do: counted as
    # next to nothing, they were never asked for again.
    found: Floats = np.where(score == 0, 1.0, np.clip(score, 1 / _MOST_SCORE, _MOST_SCORE))
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
