"""Learns from visits how a page changes, by chance or by the clock, and says what one more request
is worth. Pure.

By chance (Poisson), at a rate that nobody knows: a gamma distribution of `shape` and `time` (s),
its mean shape ÷ time, which each visit sharpens, w seconds after the one before:

    no change                      time + w
    changed, s seconds ago         shape + 1, time + s: where Last-Modified tells
    changed at some moment         the gamma distribution whose means of rate and 1 ÷ rate are those
                                   of what is then left, by the likelihood 1 - exp(-rate w)

These are the estimators of Cho and Garcia-Molina for irregular visits and for dates of
modification; what their corrections of bias mend, pages that never or always changed so far, the
prior does. What a visit contradicts is forgotten: rates shift. After what could hardly have been
nothing is left of it.

By the clock, each day or each week at the same time: both are taken apart into 24 phases. A visit
rules out those in which the page would have changed and had not, or had changed and would not
have; they get less likely by `_MISS` bits, not impossible, as clocks slip and editors have
holidays. A page keeps time once that explains what was seen 2^`_SURE` times as well as chance does;
where chance explains it better all is forgotten, so that a page may begin to keep time at any age.
A visit after the change is the best that a request can buy: the copy is fresh for the whole period,
where by chance it would be for 0.63 of it. The phases that are left are halved by visits between
them until they are an eighth of the period; from then on the page is asked for at their end.

Dropped: other periods than people's, as each adds 24 digits to an entry; and any period at all,
since a phase is lost after a few turns of one that is not known exactly.

Source: J. Cho, H. Garcia-Molina: Estimating Frequency of Change, ACM TOIT 3 (2003), and Effective
Page Refresh Policies for Web Crawlers, ACM TODS 28 (2003); Y. Azar, E. Horvitz, E. Lubetzky, Y.
Peres, D. Shahaf: Tractable near-optimal policies for crawling, PNAS 115 (2018); E. S. Page:
Continuous Inspection Schemes, Biometrika 41 (1954), for odds that begin anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

PERIODS: Final = (86_400.0, 604_800.0)
"""s."""
TEXT: Final = r"[0-9a-f]{48}(?: -?[0-9]{1,3}){2}"
"""`Clocks` as text: the phases of day and week, then the odds of both in tenths of a bit."""
_SHIFTS: Final = 0.02
"""How likely a page's rate shifts from one visit to the next. What was known counts as much as it
is probable, by what a visit has seen, that it still holds.
"""
_WRONG: Final = 0.002
"""What a page hardly ever does by what is known of it: that was wrong, and the visit is the first.
Forgetting alone keeps the mean: after ten visits pages that had been taken for old ones were still
asked for a tenth as often as they should have been.
"""
SHAPE, STEADY = 0.2, 0.06
"""Of a page of which nothing is known: nearly any rate is as good a guess, as if it had not changed
for so much of its interval. In an emulated crawl of a changing web with few requests that was at
0.935 of the bound, with 0.5 and 0.5 at 0.910 and copies by a fifth older: what changes quickly was
taken for slow for a long time.
"""
CALM: Final = 0.5
"""Shape and share of the interval by which clocks are surprised. By those above they were found too
late: 0.89 of the bound where half change daily or weekly, 1.02 with these.
"""
_LEAST_SHAPE, _MOST_SHAPE = 1e-3, 1e6
MOST_TIME: Final = 1e11
_PHASES: Final = 24
_MISS: Final = 5.0
_SURE: Final = 6.5
"""Bits. With 5, pages that change by chance were taken to keep time too often: 0.93 of the bound
where important pages change often (four rounds a day), 0.97 with this, 0.98 without any clocks.
"""
_NEVER: Final = -3.0  # bits: so much likelier is chance
_MOST_BITS: Final = 15.0
_MOST_ODDS: Final = _SURE + 4
"""Bits. Less than one miss above what is needed: a page that fails a test is left to chance."""
_TESTED, _SELDOM, _QUIET = 1 / 2, 1 / 16, 1 / 4
"""How often a page is asked for before its time, if a quarter of its period or more has passed: one
that changes by chance seven times a week looks as if it kept time if it is asked for once a week.
So it is tested at each second visit, and now and then once it has passed.
"""
_DOUBT: Final = 0.25
"""Bits that a visit costs which finds a change after a whole period, as it does at any page."""
_WIDE: Final = 1 / 8
_FOUND: Final = 0.9  # of what is likely has passed at the end of a phase
_KEPT, _SPREAD = 0.7, 0.25
"""The share of its period for which a page that is asked for at its time is fresh: 0.95. It counts
as less by a chance of its URL, so that a budget which suffices for some of many equal pages is
spent.
"""
_OLD, _LOWLY = 8.0, 1 / 4
"""How little age counts, and by which power of scores. In webs where a fifth of the pages always
changes copies were 7 days out of date with none of it (adaptive 5), 1.1 with this, for 0.5 % less
freshness. In an emulated changing web by the score itself they were older than with the adaptive
schedule (4.0 and 3.0 days, with many requests 0.84 and 0.56), with this 3.0 and 0.63, by none at
all 3.0 and 0.59; at 0.927, 0.932 and 0.918 of the bound (0.964, 0.961, 0.960).
"""
_AT_ONCE: Final = 1 << 15
"""Pages whose clocks are in memory at once: 300,000 took 0.5 GB, and twice the time."""
_HALVINGS: Final = 20  # of intervals from the shortest to the longest: to 1 in 100,000
_TRIES: Final = 128  # intervals that a kind of page is tried with
_TURNS: Final = 40


def bounded(shape: Floats, time: Floats) -> tuple[Floats, Floats]:
    return np.clip(shape, _LEAST_SHAPE, _MOST_SHAPE), np.clip(time, 1.0, MOST_TIME)


def learned(
    shape: Floats, time: Floats, waited: Floats, changed: Mask, since: Floats
) -> tuple[Floats, Floats]:
    """Returns shape and time (s) after a visit `waited` s after the one before; `since` are the s
    from a change to the visit, NaN where nobody knows.
    """
    dated = changed & ~np.isnan(since)
    more = np.where(dated, np.nan_to_num(since), waited)
    same = np.exp(-shape * np.log1p(waited / time))
    # What was expected is believed; a surprise may mean that the page has changed its ways.
    likely = np.where(changed, 1 - same, same)
    seen = likely * (1 - _SHIFTS)
    memory = seen / (seen + _SHIFTS / 2)
    wrong = likely < _WRONG
    shape, time = bounded(
        np.where(wrong, CALM, shape * memory), np.where(wrong, CALM * waited, time * memory)
    )
    log = np.log1p(waited / time)
    left = -np.expm1(-shape * log)  # the probability of a change
    mean = shape / time * (-np.expm1(-(shape + 1) * log) / left)
    inverse = _inverse(shape, time, log) / left
    guessed = changed & ~dated
    known = np.maximum(mean * inverse - 1, 1 / _MOST_SHAPE)
    shape = np.where(guessed, 1 / known + 1, shape + dated)
    return bounded(shape, np.where(guessed, shape / mean, time + more))


def _inverse(shape: Floats, time: Floats, log: Floats) -> Floats:
    """Returns the mean of (1 - exp(-rate w)) ÷ rate (s), `log` of 1 + w ÷ time."""
    less = shape - 1
    small = np.abs(less) < 1e-9  # the limit for a shape of 1
    found: Floats = np.where(small, log, -np.expm1(-less * log) / np.where(small, 1, less))
    return time * found


def worth_of(shape: Floats, time: Floats, interval: Floats) -> Floats:
    """Returns the seconds of freshness that one more request is worth for a page of importance 1
    that is asked for every `interval` s.
    """
    log = np.log1p(interval / time)
    return _inverse(shape, time, log) - interval * np.exp(-shape * log)


class Prospects(NamedTuple):
    """What requests for pages, or for kinds of them, are worth: a row for each."""

    shape: Floats
    time: Floats  # s
    importance: Floats
    calm: Floats
    """0 where a page is given up: whenever it is asked for it has changed; else 1."""
    period: Floats
    """s; 0 where a page does not keep time."""
    kept: Floats
    """The share of its period for which a page that keeps time is fresh, by `kept_share`."""
    probes: Floats
    """How many times as often as planned pages are asked for, where it is for freshness."""
    usual: Floats | float = 1.0
    """The importance of a usual page of the crawl."""

    def fresh(self, interval: Floats) -> Floats:
        """Returns the seconds of freshness, by importance, that one more request is worth for a
        page that is asked for every `interval` s.
        """
        return self.importance * self.calm * worth_of(self.shape, self.time, interval)

    def worth(self, interval: Floats) -> Floats:
        """Returns the same, and that a copy gets less old.

        One more request makes it younger by about T² ÷ 2 s, where the page changes more than once
        in T. Weighed by the worth λ of a request it counts as T² ÷ 2 `_OLD` λ, so that a page which
        nobody can keep fresh is asked for every 4 λ: λ = fresh + T² ÷ 2 `_OLD` λ, at usual
        importance. Of others the fourth root counts, as copies of lowly pages get old as well;
        powers sum to 2, so that plans are the same at any scale of scores.
        """
        often = self.shape / self.time * interval
        weight = self.importance**_LOWLY * self.usual ** (2 - _LOWLY)
        younger = weight * interval**2 / 2 * often / (often + 1.5)
        fresh = self.fresh(interval)
        found: Floats = (fresh + np.sqrt(fresh**2 + 4 * younger / _OLD)) / 2
        return found

    def timely(self, worth: Floats | float) -> Mask:
        """Returns where a page keeps time, and is worth a request each period."""
        found: Mask = self.importance * self.period * self.kept > worth
        return found & (self.period > 0)

    def intervals(self, worth: Floats, bounds: tuple[float, float]) -> Floats:
        """Returns the intervals (s), within `bounds`, at which one more request is `worth` as much;
        the longest one where it never is.
        """
        low, high = (np.full(len(self.shape), np.log(bound)) for bound in bounds)
        for _ in range(_HALVINGS):  # worth falls with shorter intervals
            middle = (low + high) / 2
            above = self.worth(np.exp(middle)) > worth
            high, low = np.where(above, middle, high), np.where(above, low, middle)
        found: Floats = np.exp(high)
        return found

    def multiplier(self, count: Floats, budget: float, bounds: tuple[float, float]) -> float:
        """Returns the worth of a request at which `count` pages of each kind are asked for `budget`
        times a second.
        """
        tries = np.geomspace(*bounds, _TRIES)
        columns = Prospects(*(np.reshape(one, (-1, 1)) for one in self))
        worths = np.log(np.maximum(columns.worth(tries), 1e-300))
        worths = np.maximum.accumulate(worths, axis=1)  # searched below: must not fall
        fresh = self.fresh(np.full(len(count), bounds[1]))
        rates = np.append(1 / tries, 1 / bounds[1])
        low, high = float(worths[:, 0].min()) - 1, float(worths[:, -1].max()) + 1
        for _ in range(_TURNS):
            middle = (low + high) / 2
            worth = np.exp(middle)
            at = (worths < middle).sum(axis=1)
            # between two tries the interval is nearly straight by the worth, in logarithms
            inside = (at > 0) & (at < _TRIES)
            row, before = np.flatnonzero(inside), at[inside] - 1
            first, then = worths[row, before], worths[row, before + 1]
            share = (middle - first) / np.maximum(then - first, 1e-12)
            demand = rates[at] * np.where(fresh > worth, self.probes, 1)
            demand[row] *= (rates[before] / rates[before + 1]) ** (1 - share)
            demand = np.where(self.timely(worth), 1 / np.maximum(self.period, 1), demand)
            low, high = (middle, high) if (count * demand).sum() > budget else (low, middle)
        return float(np.exp(high))


class Clocks(NamedTuple):
    """Whether pages keep time."""

    bits: Floats
    """(pages, periods, phases): how much less likely than the likeliest each phase is."""
    odds: Floats
    """(pages, periods), bits: of the clock, were its phase the likeliest one, against chance."""

    @classmethod
    def of(cls, texts: pl.Series) -> Self:
        """Reads texts of this form; all is open where there is none."""
        bits = np.zeros((len(texts), len(PERIODS), _PHASES))
        odds = np.zeros((len(texts), len(PERIODS)))
        some = np.flatnonzero((texts != "").to_numpy())
        if len(some):
            parts = texts.gather(some).str.splitn(" ", 3).struct.unnest()
            digits = np.frombuffer("".join(parts[:, 0]).encode(), np.uint8)
            values = np.where(digits >= ord("a"), digits - ord("a") + 10, digits - ord("0"))
            bits[some] = values.reshape(-1, len(PERIODS), _PHASES)
            odds[some] = parts[:, 1:].cast(pl.Int64).to_numpy() / 10
        return cls(bits, odds)

    def texts(self) -> pl.Series:
        """Returns them as `of` reads them, empty where all is open."""
        digits = np.frombuffer(b"0123456789abcdef", np.uint8)[self.bits.astype(np.uint8)]
        width = len(PERIODS) * _PHASES
        phases = np.ascontiguousarray(digits.reshape(-1, width)).view(f"S{width}").ravel()
        whole = np.rint(self.odds * 10).astype(np.int64)
        table = pl.DataFrame([phases.astype(f"U{width}"), *whole.T], schema=list("pdw"))
        is_open = pl.Series((self.bits == 0).all(axis=(1, 2)) & (whole == 0).all(axis=1))
        found = table.select(pl.concat_str(pl.all(), separator=" ")).to_series()
        return found.zip_with(~is_open, pl.repeat("", len(found), eager=True))

    def after(self, time: Floats, waited: Floats, changed: Mask, chance: Floats) -> Clocks:
        """Returns them after a visit at `time` (s since the epoch), `waited` s after the one
        before; `chance` is how probable what it found is if pages change by chance.
        """
        bits, odds = self.bits.copy(), self.odds - np.log2(np.maximum(chance, 1e-6))[:, None]
        untested = changed[:, None] & (waited[:, None] >= np.array(PERIODS)) & (_spread(bits) < -1)
        odds -= np.where(untested, _DOUBT, 0)
        for number, period in enumerate(PERIODS):
            seen = _overlap(time, waited, period)
            likely = np.where(changed[:, None], seen, 1 - seen)
            bits[:, number] += np.minimum(-np.log2(np.maximum(likely, 1e-9)), _MISS)
        least = bits.min(axis=2)
        bits = np.minimum(np.rint(bits - least[..., None]), _MOST_BITS)
        odds = np.minimum(odds - least, _MOST_ODDS - _spread(bits))
        gone = odds + _spread(bits) < _NEVER
        bits[gone], odds[gone] = 0, 0  # begins anew
        return Clocks(bits, odds)

    def plan(self, time: Floats, chance: Floats) -> tuple[Floats, Floats]:
        """Returns for each page its period (s) and after how many s it is to be asked for again,
        counted from `time` (s since the epoch); 0 and NaN where it does not keep time. `chance` (0
        to 1) decides which of them are tested.
        """
        spread = _spread(self.bits)
        sure = self.odds + spread
        best = sure.argmax(axis=1)
        rows = np.arange(len(best))
        kept = sure[rows, best] >= _SURE
        period = np.where(kept, np.array(PERIODS)[best], 0.0)
        wait = np.full(len(best), np.nan)
        some = np.flatnonzero(kept)
        if len(some):
            tested = chance < np.where(sure[rows, best] < _MOST_ODDS - 1, _TESTED, _SELDOM)
            wait[some] = _next(self.bits[some, best[some]], time[some], period[some], tested[some])
        return period, wait


def after_visits(
    texts: pl.Series, time: Floats, waited: Floats, changed: Mask, chance: Floats
) -> pl.Series:
    """Returns the `Clocks` of pages after visits, both as text: see `Clocks.after`."""
    found = [
        Clocks.of(texts[some]).after(time[some], waited[some], changed[some], chance[some]).texts()
        for some in _pieces(len(texts))
    ]
    return pl.concat(found) if found else texts


def next_visits(texts: pl.Series, time: Floats, chance: Floats) -> tuple[Floats, Floats]:
    """Returns period and wait of pages by their `Clocks` as text: see `Clocks.plan`."""
    period, wait = np.zeros(len(texts)), np.full(len(texts), np.nan)
    for some in _pieces(len(texts)):
        period[some], wait[some] = Clocks.of(texts[some]).plan(time[some], chance[some])
    return period, wait


def _pieces(count: int) -> Iterator[slice]:
    for start in range(0, count, _AT_ONCE):
        yield slice(start, start + _AT_ONCE)


def _spread(bits: Floats) -> Floats:
    """Returns the mean likelihood of all phases by that of the likeliest one, in bits."""
    found: Floats = np.log2((2.0**-bits).mean(axis=-1))
    return found


def _overlap(time: Floats, waited: Floats, period: float) -> Floats:
    """Returns how much (0 to 1) of each phase lies in the `waited` s before `time`."""
    width = period / _PHASES
    begin = ((time - waited) % period)[:, None]
    first = np.arange(_PHASES) * width
    found: Floats = np.zeros((len(time), _PHASES))
    for turn in (0.0, period):  # the wait may go over the period's end
        low = np.maximum(begin, first + turn)
        high = np.minimum(begin + waited[:, None], first + width + turn)
        found += np.clip(high - low, 0, None)
    return np.where(waited[:, None] >= period, 1.0, found / width)


def _next(bits: Floats, time: Floats, period: Floats, tested: Mask) -> Floats:
    """Returns after how many s to ask again: at the end of what is likely, in the middle of it if
    that is long, or before it begins, where a page is tested.
    """
    width = period / _PHASES
    phase, into = np.divmod(time % period, width)
    into = np.minimum(into / width, 1.0)
    order = (phase.astype(np.int64)[:, None] + np.arange(_PHASES + 1)) % _PHASES
    mass = np.take_along_axis(2.0**-bits, order, axis=1)
    # The current phase comes twice: its rest first, its beginning last.
    mass[:, 0] *= 1 - into
    mass[:, -1] *= into
    passed = np.cumsum(mass, axis=1) / mass.sum(axis=1)[:, None]
    ends = np.append(np.arange(1, _PHASES + 1), _PHASES)[None, :] - into[:, None]
    ends[:, -1] = _PHASES

    def end(share: float) -> Floats:
        found: Floats = np.take_along_axis(ends, (passed >= share).argmax(axis=1)[:, None], 1)
        return found[:, 0]

    first, last = end(1 - _FOUND) - 1, end(_FOUND)
    wide = last - first > _WIDE * _PHASES
    found: Floats = np.where(wide, end(1 / 2), last)
    return np.where(tested & ~wide & (first > _QUIET * _PHASES), first, found) * width


def kept_share(chance: Floats) -> Floats:
    """Returns for how much of their periods pages that keep time count as fresh; `chance` (0 to 1)
    is that of their URLs.
    """
    return _KEPT + _SPREAD * chance
