"""Counts requests of a fetch, for the status line, the table at the end and the metrics."""

from __future__ import annotations

import heapq
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Final, NamedTuple

MAX_HOSTS: Final = 20_000
"""Hosts whose times are kept; of more, the slower half stays."""
LAST: Final = 20
"""Failures that are remembered."""
_LONGEST: Final = 500
"""Characters of a failure's URL and text."""


class Failure(NamedTuple):
    """A request that failed: when (ms), of which page, why."""

    time: int
    url: str
    text: str


@dataclass(slots=True)
class HostTimes:
    """Requests to one queue: how many, how long in ms altogether, how many failed."""

    requests: int = 0
    total_ms: int = 0
    longest_ms: int = 0
    errors: int = 0

    @property
    def mean_ms(self) -> float:
        return self.total_ms / self.requests if self.requests else 0.0


@dataclass(slots=True)
class FetchStats:
    """Running totals; `events` are Nutch's counters of the group nutch_fetcher."""

    pages: int = 0
    bytes: int = 0
    errors: int = 0
    requests: int = 0
    request_ms: int = 0
    events: Counter[str] = field(default_factory=Counter)
    hosts: dict[str, HostTimes] = field(default_factory=dict)
    failures: deque[Failure] = field(default_factory=lambda: deque(maxlen=LAST))

    def request(
        self, queue_id: str, milliseconds: int, size: int, *, success: bool, failed: bool
    ) -> None:
        """One request ended; `size` bytes of content."""
        self.requests += 1
        self.request_ms += milliseconds
        self.bytes += size
        self.pages += success
        self.errors += failed
        times = self.hosts.get(queue_id)
        if times is None:
            times = self._new_host(queue_id)
        times.requests += 1
        times.total_ms += milliseconds
        times.longest_ms = max(times.longest_ms, milliseconds)
        times.errors += failed

    def mean_ms(self, queue_id: str) -> float:
        """Returns how long requests to a queue have taken; 0 if nothing is known."""
        times = self.hosts.get(queue_id)
        return 0.0 if times is None else times.mean_ms

    def failed(self, now: int, url: str, text: str) -> None:
        """Remembers a request that failed."""
        self.failures.append(Failure(now, url[:_LONGEST], text[:_LONGEST]))

    def _new_host(self, queue_id: str) -> HostTimes:
        if len(self.hosts) >= MAX_HOSTS:
            slowest = sorted(self.hosts.items(), key=lambda item: item[1].total_ms)[
                MAX_HOSTS // 2 :
            ]
            self.hosts = dict(slowest)
        times = self.hosts[queue_id] = HostTimes()
        return times

    def merge(self, other: FetchStats) -> None:
        """Adds another process's totals; no host is in both."""
        self.pages += other.pages
        self.bytes += other.bytes
        self.errors += other.errors
        self.requests += other.requests
        self.request_ms += other.request_ms
        self.events += other.events
        self.hosts |= other.hosts

    def slowest(self, count: int = 10) -> list[tuple[str, HostTimes]]:
        """Returns the hosts with the longest mean times, slowest first."""
        return heapq.nlargest(count, self.hosts.items(), key=lambda item: item[1].mean_ms)
