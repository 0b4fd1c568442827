"""Time, in one place: epoch milliseconds as Nutch keeps them, and a clock that tests may fix.

Pure modules take `now` as an argument; only jobs and workers ask a `Clock`.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """A source of time for a job."""

    def now(self) -> int:
        """Milliseconds since the epoch, as java.lang.System.currentTimeMillis."""
        ...

    def monotonic(self) -> float:
        """Seconds that only go forward, for delays and rates."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()


class SteadyClock:
    """A clock that never jumps: what another one shows now, and from then on that one's seconds.

    A job that waits, or keeps pauses, goes by it: the machine's clock may be set meanwhile.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._start = clock.now()
        self._began = clock.monotonic()

    def now(self) -> int:
        return self._start + round((self._clock.monotonic() - self._began) * 1000)

    def monotonic(self) -> float:
        return self._clock.monotonic()


class FakeClock:
    """A clock that stands still until `advance` moves it."""

    def __init__(self, now: int = 0) -> None:
        self._now = now
        self._monotonic = 0.0

    def now(self) -> int:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Moves both times forward by `seconds`."""
        self._now += round(seconds * 1000)
        self._monotonic += seconds
