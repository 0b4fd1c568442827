"""Shows a fetch: a live line in a terminal, Nutch's status lines in a pipe, tables at the end.

    fetch: 37 of 50 pages, 0:04 left, 3.1/s, 12 KB/s, 2 hosts, 1 error

Rates are those of the last 30 seconds; what is too long for the terminal is cut off at its end.
With -v Nutch's lines come every second. They are those of Fetcher.FetcherRun: `-activeThreads=…,
spinWaiting=…, fetchQueues.totalSize=…` and the task status with threads, queues, pages, errors and
rates.
"""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import replace
from typing import Final, TextIO

from minutch.cycle.fetch.ledger import Ledger
from minutch.cycle.fetch.snapshot import Snapshot
from minutch.cycle.fetch.stats import FetchStats
from minutch.job import PLAIN_INTERVAL, time_text
from minutch.job import live_line as show
from minutch.terminal import agreeing, counted

log = logging.getLogger(__name__)

SLOWEST: Final = 10
"""Hosts in the table at the end."""
RATE_SECONDS: Final = 30
"""States, one a second, over which rates are reckoned."""
_LEAST: Final = 5
"""Pages from which on their rate says something."""
_KILOBIT: Final = 128
"""Bytes."""


def time_left(snapshot: Snapshot) -> str:
    """Estimates the time left by the rate so far, but no less than the longest queue needs for
    politeness; empty while that is a guess.
    """
    if snapshot.total is None or snapshot.done < _LEAST:
        return ""
    left = max(0, snapshot.total - snapshot.done)
    return f"{time_text(max(left * snapshot.seconds / snapshot.done, snapshot.longest_queue))} left"


def live_line(snapshot: Snapshot, label: str = "fetch", since: Snapshot | None = None) -> str:
    """Returns the line in a terminal, with the rates `since` an earlier state, or the beginning."""
    seconds, done, size = snapshot.seconds, snapshot.done, snapshot.bytes
    if since is not None and since.seconds < seconds:
        seconds, done, size = seconds - since.seconds, done - since.done, size - since.bytes
    seconds = max(seconds, 0.001)
    rate = done / seconds
    of = "" if snapshot.total is None else f" of {snapshot.total:,}"
    parts = [
        f"{label}: {snapshot.done:,}{of} {agreeing(snapshot.total or snapshot.done, 'pages')}",
        "paused" if snapshot.paused else time_left(snapshot),
        f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s",
        f"{size / seconds / 1024:,.0f} KB/s",
        counted(snapshot.queues, "hosts"),
        counted(snapshot.errors, "errors"),
    ]
    return ", ".join(filter(None, parts))


def status_lines(snapshot: Snapshot) -> tuple[str, str]:
    """Nutch's two lines."""
    seconds = max(snapshot.seconds, 1.0)
    waiting = snapshot.threads - snapshot.active
    blocked = f"{snapshot.blocked} queues.max.except., " if snapshot.blocked else ""
    return (
        (
            f"-activeThreads={snapshot.threads}, spinWaiting={waiting}, "
            f"fetchQueues.totalSize={snapshot.waiting}, fetchQueues.getQueueCount={snapshot.queues}"
        ),
        (
            f"{snapshot.threads} threads ({waiting} waiting), {snapshot.queues} queues,"
            f" {blocked}{snapshot.waiting} URLs queued, {snapshot.pages} pages, {snapshot.errors}"
            f" errors, {snapshot.pages / seconds:.2f} pages/s ({snapshot.pages_last_second} last"
            f" sec), {int(snapshot.bytes / _KILOBIT / seconds)} kbits/s"
            f" ({snapshot.bytes_last_second // _KILOBIT} last sec)"
        ),
    )


class Display:
    """Shows snapshots as they come: one line that is written over in a terminal, else lines in the
    log.
    """

    def __init__(self, err: TextIO, label: str = "") -> None:
        self._err = err
        self._label = label or "fetch"
        self._next = PLAIN_INTERVAL
        self._seen: deque[Snapshot] = deque(maxlen=RATE_SECONDS)

    def tick(self, snapshot: Snapshot) -> None:
        """Shows the state of the fetch."""
        if self._err.isatty():
            since = self._seen[0] if self._seen else None
            self._seen.append(replace(snapshot, details=None))
            show(self._err, live_line(snapshot, self._label, since))
            return
        is_due = snapshot.seconds >= self._next
        self._next += PLAIN_INTERVAL if is_due else 0
        for line in status_lines(snapshot):
            log.log(logging.INFO if is_due else logging.DEBUG, "%s", line)

    def clear(self) -> None:
        """Takes the live line away."""
        show(self._err, "")


def result_table(ledger: Ledger) -> list[str]:
    """URLs by outcome."""
    rows = [(label, count) for label, count in ledger.counters().items()]
    width = max(len(label) for label, _ in rows)
    return [f"{label:<{width}} {count:>10,}" for label, count in rows]


def host_table(stats: FetchStats) -> list[str]:
    """Returns the slowest hosts: requests, mean and longest time, failures."""
    slowest = stats.slowest(SLOWEST)
    if not slowest:
        return []
    width = max(len("slowest hosts"), *(len(name) for name, _ in slowest))
    lines = [
        f"{'slowest hosts':<{width}} {'requests':>9} {'mean ms':>9} {'max ms':>9} {'errors':>7}"
    ]
    for name, times in slowest:
        lines.append(
            f"{name:<{width}} {times.requests:>9,} {times.mean_ms:>9,.0f} {times.longest_ms:>9,}"
            f" {times.errors:>7,}"
        )
    return lines
