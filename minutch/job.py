"""What a job is given (`JobContext`) and what it gives back (`Counters`); progress while it runs.

A job never looks at argv, environment, working directory or the process's streams: all it needs is here.
Progress shows only in jobs that take longer than a second: a live line in a terminal, plain log lines in a pipe.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TextIO

from minutch.clock import Clock, SystemClock
from minutch.conf import Configuration

if TYPE_CHECKING:
    import rich.progress

counters_log = logging.getLogger("minutch.counters")
progress_log = logging.getLogger("minutch.progress")

SHOW_AFTER = 1.0
"""Seconds before progress shows."""
PLAIN_INTERVAL = 10.0
"""Seconds between two plain lines."""
LIVE_INTERVAL = 0.1
"""Seconds between two refreshes of the live line."""


Total = int | Callable[[], int] | None


class Counters(dict[str, int]):
    """Named counts of a job in the order of their first mention; the job's result."""

    def add(self, name: str, count: int = 1) -> None:
        """Count `count` more under `name`; a count of zero still makes the name appear."""
        self[name] = self.get(name, 0) + count

    def merge(self, other: Mapping[str, int]) -> None:
        """Add up the counts of another part of the job."""
        for name, count in other.items():
            self.add(name, count)

    def __str__(self) -> str:
        return ", ".join(f"{name} {count}" for name, count in self.items())


@dataclass
class JobContext:
    """Everything a job may use from outside: configuration, time, streams."""

    conf: Configuration
    clock: Clock = field(default_factory=SystemClock)
    out: TextIO = field(default_factory=lambda: sys.stdout)
    err: TextIO = field(default_factory=lambda: sys.stderr)
    stdin: TextIO = field(default_factory=lambda: sys.stdin)
    reports: dict[str, Counters] = field(default_factory=dict)
    """What the job has reported, by title; bin/crawl shows it."""

    def __post_init__(self) -> None:
        """Let plugins, which know the configuration, see the job's clock."""
        self.conf.clock = self.clock

    def print(self, *values: object, end: str = "\n") -> None:
        """Data for the user: to `out`, put together as the built-in print does."""
        self.out.write(" ".join(map(str, values)) + end)

    def progress(self, name: str, total: Total = None) -> Progress:
        """A context manager that reports how far the job is; `total` in records, None if unknown.

        A function is asked for the total once progress shows, so that a short job need not know.
        """
        return Progress(name, total, clock=self.clock, err=self.err)

    def report(self, title: str, counters: Mapping[str, int]) -> None:
        """Print a job's counters, one line each, as its last words, and keep them in `reports`."""
        self.reports[title] = Counters(counters)
        width = max(map(len, counters), default=0)
        for name, count in counters.items():
            counters_log.info("%s: %-*s %d", title, width, name, count)


class Progress:
    """Counts records of one job and shows them: `with context.progress("updatedb", n) as p: p.advance(1000)`."""

    def __init__(self, name: str, total: Total, *, clock: Clock, err: TextIO) -> None:
        self.name = name
        self._total = total
        self.done = 0
        self._clock = clock
        self._err = err
        self._started = self._shown = clock.monotonic()
        self._live: rich.progress.Progress | None = None
        self._task: Any = None

    def __enter__(self) -> Self:
        self._started = self._shown = self._clock.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.update(self._task, completed=self.done, refresh=True)
            self._live.stop()
            self._live = None
        elif kind is None and self.seconds >= SHOW_AFTER:
            self._show_plain("done")

    @property
    def total(self) -> int | None:
        """Records in all, as far as known."""
        if callable(self._total):
            self._total = self._total() or None
        return self._total

    def expect(self, more: Callable[[], int]) -> None:
        """So many records are to come after those that are done; `more` is asked once progress shows, 0: unknown."""
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
        """`count` more records are done. Cheap enough for every record, better called per batch."""
        self.done += count
        now = self._clock.monotonic()
        if now - self._started < SHOW_AFTER:
            return
        if self._live is not None or self._err.isatty():
            if self._live is None or now - self._shown >= LIVE_INTERVAL:
                self._shown = now
                self._show_live()
        elif now - self._shown >= PLAIN_INTERVAL:
            self._shown = now
            self._show_plain(self._left())

    @property
    def rate(self) -> float:
        """Records per second so far."""
        return self.done / self.seconds if self.seconds > 0 else 0.0

    def _left(self) -> str:
        if not self.total or not self.done:
            return "time left unknown"
        return f"{max(0.0, (self.total - self.done) / self.rate):.0f} s left"

    def _show_plain(self, tail: str) -> None:
        of = f" of {self.total:,}" if self.total else ""
        progress_log.info("%s: %s%s records, %s/s, %s", self.name, f"{self.done:,}", of, f"{self.rate:,.0f}", tail)

    def _show_live(self) -> None:
        if self._live is None:
            self._start_live()
        if self._live is not None:
            self._live.update(
                self._task, completed=self.done, total=self.total, rate=f"{self.rate:,.0f}/s", refresh=True
            )

    def _start_live(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._live = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:,.0f} records"),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=Console(file=self._err),
            auto_refresh=False,
        )
        self._live.start()
        self._task = self._live.add_task(self.name, total=self.total, rate="")
