"""Lets others see a running job, hold it and stop it; jobs have it as `JobContext.watch`.

Jobs write here in their own thread, the server of the live page reads in another; what is read is
small and copied at once. A fetch says every second where it is (`show`), and obeys whoever wants it
held (`obeying`). crawl writes down its rounds, and looks between steps whether it is to wait or to
end.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from minutch.clock import Clock
from minutch.cycle.fetch.snapshot import Details, Snapshot
from minutch.cycle.fetch.stats import FetchStats
from minutch.job import Progress

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
class Round:
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

    def plus(self, other: Totals) -> Totals:
        """The sum."""
        return Totals(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))


class Watch:
    """One job that is watched; `title` names it."""

    def __init__(self, title: str, clock: Clock, *, can_stop: bool = False) -> None:
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
        self.rounds: deque[Round] = deque(maxlen=ROUNDS)
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
        self._lock = threading.Lock()
        self._free = threading.Event()
        self._free.set()
        self._hold: Callable[[bool], None] | None = None

    # -- pause and stop ----------------------------------------------------------------------------

    @property
    def paused(self) -> bool:
        return not self._free.is_set()

    def pause(self, wanted: bool) -> None:
        """Holds the job, or lets it go on. Any thread may say so."""
        with self._lock:
            if wanted:
                self._free.clear()
            else:
                self._free.set()
            if self._hold is not None:
                self._hold(wanted)

    def stop(self, wanted: bool) -> None:
        """Lets the job end after this round, or not after all."""
        self.stopping = wanted and self.can_stop

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
        counts = Totals(
            stats.pages,
            stats.bytes,
            stats.errors,
            stats.requests,
            stats.request_ms,
            urls,
            stats.events,
        )
        with self._lock:
            self._before, self.fetch = self._before.plus(counts), None

    @property
    def totals(self) -> Totals:
        """The counts of all fetches up to now."""
        with self._lock:
            before, now = self._before, self.fetch
        if now is None:
            return before
        events = Counter(dict(now.events))
        return before.plus(
            Totals(now.pages, now.bytes, now.errors, now.requests, now.request_ms, now.done, events)
        )

    # -- what crawl says ---------------------------------------------------------------------------

    def begin(self, title: str) -> None:
        """A round begins."""
        self.rounds.append(Round(title, self.clock.now()))

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
