"""The state of a running fetch, shown once a second in a terminal, on the live page, in metrics."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from minutch.cycle.fetch.frontier.queues import FetchQueues
from minutch.cycle.fetch.stats import Failure, FetchStats, HostTimes

ROWS: Final = 10
"""Hosts, queues and failures that details have."""
QUEUES_A_SECOND: Final = 10_000
"""Queues that are looked through in a second at most."""


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
    "active",
    "threads",
    "waiting",
    "queues",
    "blocked",
    "pages",
    "errors",
    "bytes",
    "done",
    "pages_last_second",
    "bytes_last_second",
    "requests",
    "request_ms",
    "hosts",
    "resting",
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
