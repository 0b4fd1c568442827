"""Defines what a job gets (`JobContext`) and returns (`Counters`), and shows its progress.

A job never looks at argv, environment, working directory or the process's streams: all it needs is
here. Progress shows only in jobs that take longer than a second: a live line in a terminal, a log
line a minute in a pipe.
"""

from __future__ import annotations

import logging
import shutil
import sys
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self, TextIO

from minutch import processwide
from minutch.clock import Clock, SystemClock
from minutch.conf import Configuration
from minutch.paths import store_settings
from minutch.terminal import PLAIN, raw

counters_log = logging.getLogger("minutch.counters")
progress_log = logging.getLogger("minutch.progress")

SHOW_AFTER = 1.0
"""Seconds before progress shows."""
PLAIN_INTERVAL = 60.0
"""Seconds between two plain lines."""
RATE_SECONDS = 30.0
"""Seconds that the rate shown is that of, and with it the time left."""
LIVE_INTERVAL = 0.1
"""Seconds between two refreshes of the live line."""
CLEAR = "\r\x1b[2K"
"""Empties a terminal's line. All that goes to a terminal with a live line begins with it."""


Total = int | Callable[[], int] | None


class Counters(dict[str, int]):
    """Named counts of a job in the order of their first mention; the job's result."""

    def add(self, name: str, count: int = 1) -> None:
        """Counts `count` more under `name`; a count of zero still makes the name appear."""
        self[name] = self.get(name, 0) + count

    def merge(self, other: Mapping[str, int]) -> None:
        """Adds up the counts of another part of the job."""
        for name, count in other.items():
            self.add(name, count)

    def __str__(self) -> str:
        return ", ".join(f"{name} {count}" for name, count in self.items())


class JobWatch(Protocol):
    """Sees a job from outside, and may hold it or end it: `minutch.cycle.fetch.watch`."""

    progress: Progress | None
    """The progress of the step that runs."""

    @property
    def stopping(self) -> bool:
        """True if the job is to end after this round."""
        ...

    @property
    def paused(self) -> bool:
        """True if the job is held."""
        ...

    def wait_while_paused(self) -> None:
        """Waits until the job may go on."""

    def begin(self, title: str) -> None:
        """Notes that a round begins."""

    def running(self, step: str, place: str) -> AbstractContextManager[None]:
        """Returns a context manager for the time of a step; `place` is such as `round 1 of 3`."""
        ...

    def row(self, step: str, seconds: float, result: str) -> None:
        """Notes that a step has ended."""

    def ended(self, statuses: Mapping[str, int]) -> None:
        """Notes that a round has ended, with the CrawlDb's entries by status."""


@dataclass
class JobContext:
    """Everything a job may use from outside: configuration, time, streams."""

    conf: Configuration
    clock: Clock = field(default_factory=SystemClock)
    out: TextIO = field(default_factory=lambda: sys.stdout)
    err: TextIO = field(default_factory=lambda: sys.stderr)
    stdin: TextIO = field(default_factory=lambda: sys.stdin)
    reports: dict[str, Counters] = field(default_factory=dict)
    """Counters that the job has reported, by title; crawl shows them."""
    label: str = ""
    """Label of the progress, instead of the job's name."""
    verbose: bool = False
    watch: JobWatch | None = None
    """Sees the job from outside, and may hold it."""
    colour: bool = False
    """True if `out` takes colours."""

    def __post_init__(self) -> None:
        """Lets plugins, which know the configuration, see the job's clock."""
        self.conf.clock = self.clock

    def print(self, *values: object, end: str = "\n", style: str = "") -> None:
        """Writes data for the user to `out` as the built-in print; `style` is a colour."""
        if self.out.isatty() and self.err.isatty():
            raw(self.out).write(CLEAR)
        raw(self.out).write(style)
        self.out.write(" ".join(map(str, values)))
        raw(self.out).write(PLAIN if style else "")
        self.out.write(end)

    def progress(self, name: str, total: Total = None, unit: str = "records") -> Progress:
        """Returns a context manager that reports how far the job is; `total` in `unit`, None if
        unknown.

        A function is asked for the total once progress shows, so that a short job need not know.
        """
        return Progress(
            self.label or name, total, clock=self.clock, err=self.err, unit=unit, watch=self.watch
        )

    def report(self, title: str, counters: Mapping[str, int]) -> None:
        """Prints a job's counters at its end, one line each, and keeps them in `reports`."""
        self.reports[title] = Counters(counters)
        width = max(map(len, counters), default=0)
        for name, count in counters.items():
            counters_log.info("%s: %-*s %d", title, width, name, count)


def set_up_process(conf: Configuration) -> None:
    """Applies those settings of a configuration that hold for the whole process: the public suffix
    list, memory, how long a lock is waited for, and Hadoop's properties for paths like hdfs://.

    Programs call it before they run jobs; the command line, `minutch.open` and `minutch.jobs` do.
    """
    processwide.change(
        stores=store_settings(conf),
        suffix_list=conf.resource("effective_tld_names.dat"),
        lock_wait=conf.get_double("minutch.lock.wait"),
        memory=conf.get_size("minutch.memory", 0),
    )


class Progress:
    """Counts records of one job and shows them: `with context.progress("updatedb", n) as p:
    p.advance(1000)`.
    """

    def __init__(
        self,
        name: str,
        total: Total,
        *,
        clock: Clock,
        err: TextIO,
        unit: str = "records",
        watch: JobWatch | None = None,
    ) -> None:
        self.name = name
        self.unit = unit
        self._total = total
        self.done = 0
        self._clock = clock
        self._err = err
        self._started = self._shown = clock.monotonic()
        self._seen = deque([(self._started, 0)])
        """Times, a second apart, and records done by then, of the last RATE_SECONDS."""
        self._is_live = err.isatty()
        self._watch = watch

    def __enter__(self) -> Self:
        self._started = self._shown = self._clock.monotonic()
        self._seen = deque([(self._started, 0)])
        if self._watch is not None:
            self._watch.progress = self
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._watch is not None:
            self._watch.progress = None
        if self._is_live:
            live_line(self._err, "")
        elif kind is None and self.seconds >= SHOW_AFTER:
            progress_log.info(
                "%s: %s %s, %.0f/s, done", self.name, f"{self.done:,}", self.unit, self.rate
            )

    @property
    def total(self) -> int | None:
        """Number of all records, if known; grows with the records done where it was too low."""
        if callable(self._total):
            self._total = self._total() or None
        return None if self._total is None else max(self._total, self.done)

    @property
    def known_total(self) -> int | None:
        """The total, if no function has to be called for it."""
        return None if self._total is None or callable(self._total) else max(self._total, self.done)

    def expect(self, more: Callable[[], int]) -> None:
        """Announces more records after those done; `more` is called late; 0 means unknown."""
        done, before = self.done, self._total

        def total() -> int:
            count = more()
            return done + count if count else (before() if callable(before) else before) or 0

        self._total = total

    @property
    def seconds(self) -> float:
        """Seconds since the job began."""
        return self._clock.monotonic() - self._started

    def advance(self, count: int = 1) -> None:
        """Counts more records as done. Cheap enough for every record, better called per batch."""
        self.done += count
        now = self._clock.monotonic()
        if now - self._started < SHOW_AFTER:
            return
        if now - self._shown < (LIVE_INTERVAL if self._is_live else PLAIN_INTERVAL):
            return
        self._shown = now
        text = self._text(self._recent_rate(now))
        if self._is_live:
            live_line(self._err, text)
        else:
            progress_log.info("%s", text)

    @property
    def rate(self) -> float:
        """Records per second so far."""
        return self.done / self.seconds if self.seconds > 0 else 0.0

    def _recent_rate(self, now: float) -> float:
        """Returns the recent records per second: a job may have been faster or slower before."""
        while len(self._seen) > 1 and self._seen[1][0] <= now - RATE_SECONDS:
            self._seen.popleft()
        time, done = self._seen[0]
        if now - self._seen[-1][0] >= 1:
            self._seen.append((now, self.done))
        return (self.done - done) / (now - time) if now > time else self.rate

    def _text(self, rate: float) -> str:
        of = f" of {self.total:,}" if self.total else ""
        left = "time left unknown"
        if self.total and rate > 0:
            left = f"{time_text(max(0.0, (self.total - self.done) / rate))} left"
        return f"{self.name}: {self.done:,}{of} {self.unit}, {rate:,.0f}/s, {left}"


def live_line(stream: TextIO, text: str) -> None:
    """Replaces a terminal's last line by `text`; does nothing where `stream` is no terminal."""
    if stream.isatty():
        raw(stream).write(CLEAR)
        stream.write(text[: shutil.get_terminal_size().columns - 1])
        stream.flush()


def time_text(seconds: float) -> str:
    """`0:04`, `1:02:03`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
