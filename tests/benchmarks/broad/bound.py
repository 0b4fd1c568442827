"""Says when an ideal crawler would have which page: one that starts with all hosts at once.

For a host whose robots.txt takes r, whose pages take l1, l2, … and which is promised pauses of d:
page k is there at r + l1 + … + lk + (k - 1) d. As in Nutch, a pause begins when a request ends, and
there is none between robots.txt and the first page. Hosts whose pages can't be had don't count.
Pure.
"""

from __future__ import annotations

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


def mean_latencies(web: Web) -> Floats:
    """Of each host's pages, in seconds."""
    hosts = web.slot_hosts
    is_page = np.arange(len(hosts)) > web.first[hosts]
    spent = np.bincount(hosts[is_page], web.latencies[is_page] / 1000, minlength=web.plan.hosts)
    return np.asarray(spent / web.sizes)
