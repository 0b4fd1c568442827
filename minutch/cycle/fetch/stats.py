"""Counts requests of a fetch, and tells others what happens in it: the status line, the live page,
metrics, message queues.
"""

from __future__ import annotations

import heapq
import logging
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from minutch.conf import Configuration
from minutch.cycle.fetch.frontier.queues import FetchQueues
from minutch.errors import MinutchError
from minutch.plugin.points import NutchPublisher
from minutch.plugin.repository import PluginRepository

log = logging.getLogger(__name__)

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


# -- the state, once a second ----------------------------------------------------------------------

ROWS: Final = 10
"""Hosts, queues and failures that details have."""
QUEUES_A_SECOND: Final = 10_000
"""Queues that are looked through in a second at most: of a million, all of them took 0.1 s and more
of each second.
"""


@dataclass(slots=True)
class QueueState:
    """One queue: items that wait, requests under way, ms that it still rests, ms between two
    requests.
    """

    id: str
    waiting: int
    in_progress: int
    rest: int
    delay: int


@dataclass(slots=True)
class Details:
    """The figures that take longer to find, and are shown less often."""

    slowest: list[tuple[str, HostTimes]] = field(default_factory=list)
    longest: list[QueueState] = field(default_factory=list)
    """The queues in which most waits."""
    failures: list[Failure] = field(default_factory=list)
    """The last requests that failed, latest first."""
    time: int = 0
    """When they were found, in ms since the epoch."""


@dataclass(slots=True)
class Snapshot:
    """The state; rates are per second."""

    active: int
    threads: int
    waiting: int
    queues: int
    blocked: int
    pages: int
    errors: int
    bytes: int
    pages_last_second: int
    bytes_last_second: int
    seconds: float
    longest_rest: float
    done: int
    total: int | None
    events: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[int] = field(default_factory=Counter)
    """URLs by their outcome's number: those that `done` counts, and links that were followed."""
    oldest_wait: float = 0.0
    """Seconds for which the oldest chain in flight has been under way."""
    longest_queue: float = 0.0
    """Seconds that the longest queue takes for its rests and requests."""
    requests: int = 0
    request_ms: int = 0
    """What all requests took together."""
    hosts: int = 0
    """Those that the list had at first."""
    resting: int = 0
    """Of `queues`, those that fail, or have asked for a rest."""
    paused: bool = False
    details: Details | None = None


_SUMS: Final = (
    *("active", "threads", "waiting", "queues", "blocked", "pages", "errors", "bytes", "done"),
    *("pages_last_second", "bytes_last_second", "requests", "request_ms", "hosts", "resting"),
)


def details_of(stats: FetchStats, queues: FetchQueues, now: int) -> Details:
    """Details of one process's share."""
    longest = heapq.nlargest(ROWS, queues.queues.values(), key=lambda queue: queue.waiting)
    return Details(
        stats.slowest(ROWS),
        [
            QueueState(
                queue.id,
                queue.waiting,
                queue.in_progress,
                max(0, queue.next_fetch - now),
                queue.delay,
            )
            for queue in longest
            if queue.waiting
        ],
        list(stats.failures)[: -ROWS - 1 : -1],
        now,
    )


class LongestWaits:
    """The longest rest and the longest queue of a fetch, and how many rest."""

    def __init__(self) -> None:
        self._due = 0
        self._found = 0, 0, 0

    def of(self, queues: FetchQueues, stats: FetchStats, now: int) -> tuple[int, int, int]:
        """Returns the first two in ms; of many queues, as they were when they were looked through
        last.
        """
        count = len(queues.queues)
        if count < QUEUES_A_SECOND or now >= self._due:
            # A million queues: every 100 s.
            self._due = now + 1000 * count // QUEUES_A_SECOND
            rests, lengths, resting = [0], [0], 0
            for queue in queues.with_items():
                rests.append(queue.yields_at - now)
                resting += queue.is_resting(now)
                lengths.append(queue.waiting * (queue.delay + int(stats.mean_ms(queue.id))))
            self._found = max(rests), max(lengths), resting
        return self._found


def together(snapshots: Sequence[Snapshot], total: int | None) -> Snapshot:
    """Returns the sum of several processes' states; `total` URLs in all."""
    first, *others = snapshots
    result = replace(first, events=first.events.copy(), outcomes=first.outcomes.copy(), total=total)
    for other in others:
        for name in _SUMS:
            setattr(result, name, getattr(result, name) + getattr(other, name))
        result.longest_rest = max(result.longest_rest, other.longest_rest)
        result.longest_queue = max(result.longest_queue, other.longest_queue)
        result.oldest_wait = max(result.oldest_wait, other.oldest_wait)
        result.events += other.events
        result.outcomes += other.outcomes
    result.details = _details_together(
        [shot.details for shot in snapshots if shot.details is not None]
    )
    return result


def _details_together(parts: Sequence[Details]) -> Details | None:
    if not parts:
        return None
    slowest = [row for part in parts for row in part.slowest]
    longest = [row for part in parts for row in part.longest]
    failures = [row for part in parts for row in part.failures]
    return Details(
        heapq.nlargest(ROWS, slowest, key=lambda row: row[1].mean_ms),
        heapq.nlargest(ROWS, longest, key=lambda row: row.waiting),
        heapq.nlargest(ROWS, failures, key=lambda row: row.time),
        min(part.time for part in parts),
    )


# -- who is told -----------------------------------------------------------------------------------


class Publishers:
    """Publishes events of a running fetch to message queues.

    With fetcher.publisher=true every active NutchPublisher gets START, END and REPORT events, in
    the order of publisher.order; all have to accept their configuration, or nothing is published at
    all. What people and Prometheus see of a fetch is in `minutch/inspect/live/`. Source:
    org.apache.nutch.publisher.NutchPublishers.
    """

    def __init__(self, conf: Configuration) -> None:
        found = PluginRepository.of(conf).ordered(NutchPublisher, "publisher.order")
        ready = [publisher.set_config() for publisher in found]
        if not all(ready):
            log.warning(
                "fetcher.publisher: not every publisher could be set up, nothing is published"
            )
        self._publishers = found if all(ready) else []
        self._clock = conf.clock

    def publish(self, kind: str, url: str, data: dict[str, object]) -> None:
        """Tells every publisher; a failure is only logged."""
        event = {"eventType": kind, "url": url, "timestamp": self._clock.now(), "eventData": data}
        for publisher in self._publishers:
            try:
                publisher.publish(event)
            except (MinutchError, OSError) as exc:
                log.warning("can't publish %s of %s: %s", kind, url, exc)

    def close(self) -> None:
        """Lets every publisher end."""
        for publisher in self._publishers:
            try:
                publisher.close()
            except (MinutchError, OSError) as exc:
                log.warning("can't close %s: %s", type(publisher).__name__, exc)
