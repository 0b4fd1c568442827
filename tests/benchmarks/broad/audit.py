"""Looks for impolite requests in what the server saw, and for pages asked twice or never. Pure.

A queue is a host. Between the end of a request and the begin of the next there is the promised
pause, and never two are in progress at once; only after robots.txt a page may come at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from tests.benchmarks.broad.requestlog import LEFT, ROBOTS, Requests
from tests.benchmarks.broad.web import Floats, Numbers, Web

TOLERANCE: Final = 20_000
"""µs: a fetcher's clock counts in ms."""
TOLERANCE_LEFT: Final = 100_000
"""µs after a request that the client broke off: a server that is busy learns of it later."""


@dataclass(frozen=True)
class Violation:
    """Two requests that came too soon one after the other; times in seconds after the first."""

    host: int
    end: float
    """Of the earlier one."""
    begin: float
    """Of the later one."""
    promised: float
    pages: tuple[int, int]
    statuses: tuple[int, int]

    def __str__(self) -> str:
        first, second = ("robots.txt" if page == ROBOTS else f"page {page}" for page in self.pages)
        return (
            f"host {self.host}: {first} (status {self.statuses[0]}) ends at {self.end:.3f} s,"
            f" {second} (status {self.statuses[1]}) begins at {self.begin:.3f} s:"
            f" {self.begin - self.end:.3f} s for {self.promised:g} s"
        )


@dataclass(frozen=True)
class Audit:
    """What was found."""

    requests: int
    violations: list[Violation]
    parallel: int
    """The most requests in progress on one queue."""
    excess: float
    """The smallest gap less what was promised, in seconds; the tolerance is not in it."""
    twice: int
    """Counted pages that were answered more than once."""
    never: int
    """Counted pages that were not answered."""

    @property
    def passed(self) -> bool:
        """True if every request was polite."""
        return not self.violations and self.parallel <= 1


def ends_before(hosts: Numbers, ends: Numbers) -> Numbers:
    """Of requests that are sorted by host, the latest end of those before on the same host; that of
    a host's first one is the least value.
    """
    nothing = np.iinfo(np.int64).min // 2
    found = np.full(len(ends), nothing)
    if len(ends):
        low = ends.min()
        span = int(ends.max() - low) + 1
        ranks = np.cumsum(np.concatenate(([0], hosts[1:] != hosts[:-1])))
        latest = np.maximum.accumulate(ends - low + ranks * span) - ranks * span + low
        same = hosts[1:] == hosts[:-1]
        found[1:][same] = latest[:-1][same]
    return found


def tolerance(statuses: Numbers) -> Numbers:
    """µs by which the end of each request may have been noted too late."""
    return np.where(statuses == LEFT, TOLERANCE_LEFT, TOLERANCE)


def most_parallel(hosts: Numbers, begins: Numbers, ends: Numbers) -> int:
    """The most requests that are in progress on one host at once; where one ends when another
    begins, they are not.
    """
    if not len(hosts):
        return 0
    ends = np.maximum(begins + 1, ends)
    times, steps = np.concatenate((begins, ends)), np.repeat((1, -1), len(hosts))
    order = np.lexsort((steps, times, np.concatenate((hosts, hosts))))
    return int(np.cumsum(steps[order]).max())


def gaps(requests: Requests, promised: Floats) -> tuple[Numbers, Floats]:
    """Returns the requests (indices) that follow another one on their host, in an order of their
    own, and for each the seconds by which its gap exceeds what it must be.
    """
    order = np.lexsort((requests["begin"], requests["host"]))
    ordered = requests[order]
    hosts = ordered["host"].astype(np.int64)
    before = ends_before(hosts, ordered["end"])
    later = np.flatnonzero(np.concatenate(([False], hosts[1:] == hosts[:-1])))
    at_once = (ordered["page"][later - 1] == ROBOTS) & (ordered["page"][later] != ROBOTS)
    needed = np.where(at_once, 0.0, promised[hosts[later]])
    return later, (ordered["begin"][later] - before[later]) / 1e6 - needed


def audit(requests: Requests, web: Web) -> Audit:
    """The audit of all requests of a fetch; questions for addresses are passed over."""
    requests = requests[(requests["page"] >= ROBOTS) & (requests["host"] >= 0)]
    later, excess = gaps(requests, web.promised)
    ordered = requests[np.lexsort((requests["begin"], requests["host"]))]
    start = int(ordered["begin"].min()) if len(ordered) else 0
    hosts = ordered["host"].astype(np.int64)
    before = ends_before(hosts, ordered["end"])
    violations = [
        Violation(
            int(hosts[at]),
            (int(before[at]) - start) / 1e6,
            (int(ordered["begin"][at]) - start) / 1e6,
            float(web.promised[hosts[at]]),
            (int(ordered["page"][at - 1]), int(ordered["page"][at])),
            (int(ordered["status"][at - 1]), int(ordered["status"][at])),
        )
        for at in later[excess < -tolerance(ordered["status"][later - 1]) / 1e6].tolist()
    ]
    answered = ordered[(ordered["page"] >= 0) & web.counted[hosts] & (ordered["status"] > LEFT)]
    slots = web.first[answered["host"]] + 1 + answered["page"]
    times = np.bincount(slots, minlength=len(web.slot_hosts))
    return Audit(
        requests=len(ordered),
        violations=sorted(violations, key=lambda found: found.begin),
        parallel=most_parallel(
            hosts, ordered["begin"], ordered["end"] - tolerance(ordered["status"])
        ),
        excess=float(excess.min()) if len(excess) else float("nan"),
        twice=int((times > 1).sum()),
        never=web.counted_pages - int((times > 0).sum()),
    )
