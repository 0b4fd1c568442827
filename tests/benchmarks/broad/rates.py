"""Compares what a fetch did with the bound, over time. Pure.

Time 0 is the begin of the first request. At each second there are three shares. Of the bound's
rate: what was fetched in the five seconds before, over what the bound fetches in them; a fetch that
is late gets more than 1 for what it catches up with. Of the bound's pages: what was fetched so far,
over what the bound has by then. Of what hosts can give: what was fetched in the five seconds, over
what an ideal crawler would have fetched in them with the pages that were left then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from tests.benchmarks.broad.bound import Curve, limited, mean_latencies
from tests.benchmarks.broad.requestlog import QUESTION, ROBOTS, Requests
from tests.benchmarks.broad.runs import Sample
from tests.benchmarks.broad.web import Floats, Numbers, Web

WINDOW: Final = 5
FEWEST: Final = 10
"""A window in which the bound has fewer pages than this says nothing."""
FULL: Final = 0.9
"""The share of the places, or of a core used or waited for, from which on they are the limit."""
STEPS: Final = (0, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 240, 300, 420, 600, 900, 1800, 3600)
SHARES: Final = (0.5, 0.9, 0.99, 1.0)


@dataclass(frozen=True)
class Row:
    """What was so from one time to another, in seconds."""

    since: float
    until: float
    rate: float
    """Pages a second."""
    bound: float
    """That of the bound."""
    done: float
    """The share of the bound's pages at `until`."""
    possible: float
    """Pages a second that an ideal crawler would fetch with the pages left at `since`."""
    requests: float
    """A second, all of them."""
    in_flight: float
    hosts: int
    """That had pages left at `since`."""
    cores: float
    """CPU seconds of the fetch a second."""
    wanted: float
    """And with those that it waited for."""
    megabytes: float


class Share(NamedTuple):
    """The shares at one second; nan where what they are of is too little to say something."""

    rate: float
    """Of the bound's rate."""
    done: float
    """Of the bound's pages."""
    given: float
    """Of what hosts can give."""
    free: bool
    """Neither places nor CPU were the limit."""


@dataclass(frozen=True)
class Rates:
    """A fetch beside its bound."""

    rows: list[Row]
    times: list[tuple[float, float, float, float]]
    """Of SHARES: the share, the fetch's seconds (nan if it did not come so far), the bound's, and
    those of the bound for a crawler with one core that needs as much CPU for a request.
    """
    capacity: float
    """Requests a second that such a crawler can make."""
    shares: list[Share]
    """At each second from the fifth on."""
    late: tuple[float, float]
    """Median and 99 % of the ms by which answers came later than planned: the server's own delay,
    and that of the machine.
    """


def compare(
    requests: Requests, web: Web, bound: Curve, samples: Sequence[Sample], places: int = 0
) -> Rates:
    """The comparison. `places`: the most requests that the fetch may have in progress; 0: any
    number.
    """
    requests = requests[(requests["page"] != QUESTION) & (requests["host"] >= 0)]
    zero = int(requests["begin"].min())
    begins, ends = (requests["begin"] - zero) / 1e6, (requests["end"] - zero) / 1e6
    is_page = (requests["page"] > ROBOTS) & (requests["status"] == 200)
    is_page &= web.counted[requests["host"]]
    flown = _Flown(begins, ends)
    done = Curve(np.sort(ends[is_page]))
    cpu = _Cpu(samples, zero / 1e6)
    possible = _Possible(web, requests[is_page], ends[is_page])
    rows = []
    for since, until in _periods(done.time(1.0) if done.pages else float(ends.max())):
        seconds = until - since
        rows.append(
            Row(
                since,
                until,
                done.within(since, until) / seconds,
                bound.within(since, until) / seconds,
                done.done(until) / max(1, bound.done(until)),
                possible.within(since, until) / seconds,
                float(((begins >= since) & (begins < until)).sum()) / seconds,
                flown.mean(since, until),
                possible.hosts(since),
                cpu.cores(since, until),
                cpu.wanted(since, until),
                cpu.megabytes(since, until),
            )
        )
    shares = []
    for at in range(WINDOW, int(done.time(1.0) if done.pages else 0) + 1):
        since = at - WINDOW
        full = flown.mean(since, at) / places if places else 0.0
        shares.append(
            Share(
                _share(done.within(since, at), bound.within(since, at)),
                _share(done.done(at), bound.done(at)),
                _share(done.within(since, at), possible.within(since, at)),
                max(full, cpu.wanted(since, at)) < FULL,
            )
        )
    capacity = len(requests) / max(cpu.used, 1e-3)
    with_cpu = limited(web, capacity)
    return Rates(
        rows,
        [
            (share, _time(done, share, bound.pages), bound.time(share), with_cpu.time(share))
            for share in SHARES
        ],
        capacity,
        shares,
        _late(requests[is_page], web),
    )


def _periods(last: float) -> Iterator[tuple[float, float]]:
    for since, until in pairwise((*map(float, STEPS), float("inf"))):
        if since < last:
            yield since, min(until, last)


def _time(done: Curve, share: float, pages: int) -> float:
    """When so many of `pages` were there, more than which there may be."""
    needed = int(np.ceil(share * pages))
    return float(done.ends[needed - 1]) if 0 < needed <= done.pages else float("nan")


def _share(found: float, of: float) -> float:
    return found / of if of >= FEWEST else float("nan")


def _late(pages: Requests, web: Web) -> tuple[float, float]:
    if not len(pages):
        return float("nan"), float("nan")
    planned = web.latencies[web.first[pages["host"]] + 1 + pages["page"]]
    late = (pages["end"] - pages["begin"]) / 1000 - planned
    return float(np.median(late)), float(np.quantile(late, 0.99))


class _Possible:
    """What an ideal crawler would fetch from now on, with the pages that are left."""

    def __init__(self, web: Web, pages: Requests, ends: Floats) -> None:
        order = np.argsort(ends)
        self._ends, self._hosts = ends[order], pages["host"][order]
        self._web = web
        self._latencies = mean_latencies(web)
        self._robots = web.latencies[web.first[:-1]] / 1000

    def _left(self, at: float) -> tuple[Numbers, Floats]:
        """Pages of each host, and when it had its last one, or would have had robots.txt."""
        web = self._web
        hosts = self._hosts[: np.searchsorted(self._ends, at, side="right")]
        left = web.sizes - np.bincount(hosts, minlength=web.plan.hosts)
        last = np.zeros(web.plan.hosts)
        last[hosts] = self._ends[: len(hosts)]
        return np.where(web.counted, np.maximum(left, 0), 0), last

    def within(self, since: float, until: float) -> float:
        """Pages."""
        web = self._web
        left, last = self._left(since)
        begun = np.where(last > 0, np.maximum(since, last + web.promised), since + self._robots)
        each = np.maximum(self._latencies + web.promised, 1e-6)
        pages = np.floor((until - begun - self._latencies) / each) + 1
        return float(np.clip(pages, 0, left).sum())

    def hosts(self, at: float) -> int:
        """How many have pages left."""
        return int((self._left(at)[0] > 0).sum())


class _Flown:
    """How many requests were in flight."""

    def __init__(self, begins: Floats, ends: Floats) -> None:
        self._begins = begins
        self._ends = ends

    def mean(self, since: float, until: float) -> float:
        spent = np.minimum(self._ends, until) - np.maximum(self._begins, since)
        return float(np.clip(spent, 0, None).sum()) / (until - since)


class _Cpu:
    """What samples say of a time."""

    def __init__(self, samples: Sequence[Sample], zero: float) -> None:
        self._times = np.array([sample.time for sample in samples]) - zero
        self._cpu = np.array([sample.cpu for sample in samples])
        waited = np.array([sample.waited for sample in samples])
        self._wanted = self._cpu + np.maximum.accumulate(waited)  # a thread that ends takes its own
        self._memory = np.array([sample.pss for sample in samples]) / 1e6

    @property
    def used(self) -> float:
        """Seconds, from the first sample to the last."""
        return float(self._cpu[-1] - self._cpu[0]) if len(self._cpu) else 0.0

    def cores(self, since: float, until: float) -> float:
        """CPU seconds a second."""
        return self._rise(self._cpu, since, until)

    def wanted(self, since: float, until: float) -> float:
        """CPU seconds a second that would have been used had nobody else run."""
        return self._rise(self._wanted, since, until)

    def _rise(self, values: Floats, since: float, until: float) -> float:
        if not len(self._times):
            return float("nan")
        then, now = np.interp([since, until], self._times, values)
        return float(now - then) / (until - since)

    def megabytes(self, since: float, until: float) -> float:
        """The most memory."""
        at = (self._times >= since) & (self._times <= until)
        return float(self._memory[at].max()) if at.any() else float("nan")
