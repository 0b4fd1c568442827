"""Says when an ideal crawler would have which page: one that starts with all hosts at once.

For a host whose robots.txt takes r, whose pages take l1, l2, … and which is promised pauses of d:
page k is there at r + l1 + … + lk + (k - 1) d. As in Nutch, a pause begins when a request ends, and
there is none between robots.txt and the first page. Hosts whose pages can't be had don't count.
Where a crawler has CPU for so many requests a second only, the bound is that of one that always
asks the host with the most pages left. Pure.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from tests.benchmarks.broad.web import Floats, Web


@dataclass(frozen=True)
class Curve:
    """When pages are there: seconds after the begin, in order."""

    ends: Floats

    @property
    def pages(self) -> int:
        """All of them."""
        return len(self.ends)

    def done(self, seconds: float) -> int:
        """How many pages are there by then."""
        return int(np.searchsorted(self.ends, seconds, side="right"))

    def within(self, since: float, until: float) -> int:
        """How many come after `since`, up to `until`."""
        return self.done(until) - self.done(since)

    def time(self, share: float) -> float:
        """When that share of the pages is there."""
        if not self.pages:
            return float("nan")
        return float(self.ends[max(0, int(np.ceil(share * self.pages)) - 1)])


def ideal(web: Web) -> Curve:
    """The bound of a web."""
    hosts = web.slot_hosts
    within = np.arange(len(hosts)) - web.first[hosts]
    passed = np.cumsum(web.latencies, dtype=np.int64)
    before = np.concatenate(([0], passed))[web.first[hosts]]
    ends = (passed - before) / 1000 + np.maximum(within - 1, 0) * web.promised[hosts]
    return Curve(np.sort(ends[(within > 0) & web.counted[hosts]]))


def limited(web: Web, requests_per_second: float) -> Curve:
    """The bound of a web for a crawler that begins no more requests than that."""
    latencies = (web.latencies / 1000).tolist()
    first, sizes, promised = web.first.tolist(), web.sizes.tolist(), web.promised.tolist()
    slots = dict.fromkeys(np.flatnonzero(web.counted).tolist(), 0)
    resting: list[tuple[float, int]] = []
    ready = [(-sizes[host], host) for host in slots]
    heapq.heapify(ready)
    ends = []
    now = 0.0
    while resting or ready:
        if not ready:
            now = max(now, resting[0][0])
        while resting and resting[0][0] <= now:
            host = heapq.heappop(resting)[1]
            heapq.heappush(ready, (slots[host] - 1 - sizes[host], host))
        host = heapq.heappop(ready)[1]
        slot = slots[host]
        end = now + latencies[first[host] + slot]
        if slot:
            ends.append(end)
        if slot < sizes[host]:
            slots[host] = slot + 1
            heapq.heappush(resting, (end + (promised[host] if slot else 0.0), host))
        now += 1 / requests_per_second
    return Curve(np.sort(ends))


def mean_latencies(web: Web) -> Floats:
    """Of each host's pages, in seconds."""
    hosts = web.slot_hosts
    is_page = np.arange(len(hosts)) > web.first[hosts]
    spent = np.bincount(hosts[is_page], web.latencies[is_page] / 1000, minlength=web.plan.hosts)
    return np.asarray(spent / web.sizes)
