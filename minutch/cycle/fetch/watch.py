"""Shows a running job, and lets others see it, hold it and stop it.

Jobs have a `Watch` as `JobContext.watch`: they write there in their own thread, the server of the
live page reads in another; what is read is small and copied at once. A fetch says every second
where it is (`show`), and obeys whoever wants it held (`obeying`). crawl writes down its rounds, and
looks between steps whether it is to wait or to end.

A fetch is shown as a live line in a terminal (`Display`), as Nutch's status lines in a pipe:

    fetch: 37 of 50 pages, 0:04 left, 3.1/s, 12 KB/s, 2 hosts, 1 error

Rates are those of the last 30 seconds; what is too long for the terminal is cut off at its end.
With -v Nutch's lines come every second. They are those of Fetcher.FetcherRun: `-activeThreads=…,
spinWaiting=…, fetchQueues.totalSize=…` and the task status with threads, queues, pages, errors and
rates.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final, TextIO

from minutch.clock import Clock
from minutch.cycle.fetch.ledger import Ledger
from minutch.cycle.fetch.stats import Details, FetchStats, Snapshot
from minutch.job import PLAIN_INTERVAL, JobContext, Progress, time_text
from minutch.job import live_line as show
from minutch.terminal import agreeing, counted

log = logging.getLogger(__name__)

ROUNDS: Final = 50
"""Rounds that are remembered."""
SECONDS: Final = 3600
"""Seconds of fetching whose pages are remembered, one number for each."""


@dataclass
class Step:
    """A step of a round that has ended, and what it says of itself."""

    name: str
    seconds: float
    result: str


@dataclass
class WatchedRound:
    """A round, or what comes before the first one."""

    title: str
    began: int
    """ms since the epoch."""
    steps: list[Step] = field(default_factory=list)


@dataclass(slots=True)
class Totals:
    """Counts of all fetches that have ended; a running one comes on top."""

    pages: int = 0
    bytes: int = 0
    errors: int = 0
    requests: int = 0
    request_ms: int = 0
    urls: int = 0
    events: Counter[str] = field(default_factory=Counter)

    def plus(self, other: FetchStats | Snapshot, urls: int) -> Totals:
        """The sum of these and of a fetch, after `urls` of its list."""
        return Totals(
            self.pages + other.pages,
            self.bytes + other.bytes,
            self.errors + other.errors,
            self.requests + other.requests,
            self.request_ms + other.request_ms,
            self.urls + urls,
            self.events + Counter(dict(other.events)),  # copied at once: a fetch may run
        )


class Pausable:
    """Holds a fetch, or lets it go on, as any thread says."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free = threading.Event()
        self._free.set()
        self._hold: Callable[[bool], None] | None = None

    @property
    def paused(self) -> bool:
        return not self._free.is_set()

    def pause(self, wanted: bool) -> None:
        """Holds it, or lets it go on."""
        with self._lock:
            if wanted:
                self._free.clear()
            else:
                self._free.set()
            # Under the lock: of two calls the last one wins in the fetch, too.
            if self._hold is not None:
                self._hold(wanted)

    @contextmanager
    def obeying(self, hold: Callable[[bool], None]) -> Iterator[None]:
        """While this lasts, `hold` is called from any thread with what is wanted; at once, if that
        is a pause.
        """
        with self._lock:
            self._hold = hold
            if self.paused:
                hold(True)
        try:
            yield
        finally:
            with self._lock:
                self._hold = None


class Watch(Pausable):
    """One job that is watched; `title` names it."""

    def __init__(self, title: str, clock: Clock, *, can_stop: bool = False) -> None:
        super().__init__()
        self.title = title
        self.clock = clock
        self.can_stop = can_stop
        """Whether the job has rounds, after one of which it may end."""
        self.started = clock.now()
        self.stopping = False
        """The job is to end after this round."""
        self.step = ""
        self.step_since = clock.monotonic()
        self.place = ""
        """Where the job is, such as `round 1 of 3`."""
        self.rounds: deque[WatchedRound] = deque(maxlen=ROUNDS)
        self.round_count = 0
        """Rounds that have ended."""
        self.step_seconds: dict[str, float] = {}
        """By step, of all rounds."""
        self.statuses: Mapping[str, int] = {}
        """The entries of the CrawlDb."""
        self.progress: Progress | None = None
        self.fetch: Snapshot | None = None
        """The fetch that runs."""
        self.details: Details | None = None
        """Of the fetch that runs, or of the last one."""
        self.pages: deque[tuple[int, int]] = deque(maxlen=SECONDS)
        """The end (ms since the epoch) and the pages of each second that something was fetched
        in.
        """
        self._before = Totals()

    # -- pause and stop ----------------------------------------------------------------------------

    def stop(self, wanted: bool) -> None:
        """Lets the job end after this round, or not after all."""
        self.stopping = wanted and self.can_stop

    def wait_while_paused(self) -> None:
        """Before something that should not begin now. Ctrl-C ends the waiting."""
        self._free.wait()

    # -- what a fetch says -------------------------------------------------------------------------

    def show(self, snapshot: Snapshot) -> None:
        """The state of a fetch, once a second."""
        if self.fetch is None:
            self.details = None
        self.fetch = snapshot
        self.details = snapshot.details or self.details
        self.pages.append((self.clock.now(), snapshot.pages_last_second))

    def fetched(self, stats: FetchStats, urls: int) -> None:
        """A fetch has ended, after `urls` of its list: its counts join those before."""
        with self._lock:
            self._before, self.fetch = self._before.plus(stats, urls), None

    @property
    def totals(self) -> Totals:
        """The counts of all fetches up to now."""
        with self._lock:
            # Under the lock, or a fetch that ends now would count twice or not at all.
            before, now = self._before, self.fetch
        return before if now is None else before.plus(now, now.done)

    # -- what crawl says ---------------------------------------------------------------------------

    def begin(self, title: str) -> None:
        """A round begins."""
        self.rounds.append(WatchedRound(title, self.clock.now()))

    @contextmanager
    def running(self, step: str, place: str) -> Iterator[None]:
        """While a step runs."""
        self.step, self.place, self.step_since = step, place, self.clock.monotonic()
        try:
            yield
        finally:
            self.step, self.progress = "", None

    def row(self, step: str, seconds: float, result: str) -> None:
        """A step has ended."""
        if not self.rounds:
            self.begin("")
        self.rounds[-1].steps.append(Step(step, seconds, result))
        self.step_seconds[step] = self.step_seconds.get(step, 0.0) + seconds

    def ended(self, statuses: Mapping[str, int]) -> None:
        """A round has ended; the CrawlDb has so many entries of each status."""
        self.round_count += 1
        self.statuses = statuses


# -- in a terminal ---------------------------------------------------------------------------------

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


def watch_of(context: JobContext) -> Watch:
    """Returns the watch of a job, or one that nobody looks at."""
    watch = context.watch
    return watch if isinstance(watch, Watch) else Watch(context.label, context.clock)


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
            # Thirty states would keep thirty tables of hosts.
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
