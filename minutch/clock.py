"""Time, in one place: epoch milliseconds as Nutch keeps them, and a clock that tests may fix.

    SystemClock     the machine's; it may be set at any moment
    OnwardClock     a crawl's: follows one that is set forward, never goes back
    SteadyClock     a fetch's: goes on by seconds, whatever is set

    http_time       dates as servers write them

Pure modules take `now` as an argument; only jobs and workers ask a `Clock`.
"""

from __future__ import annotations

import logging
import os
import time
from contextlib import suppress
from datetime import UTC, timedelta
from pathlib import Path
from typing import Final, Protocol

log = logging.getLogger(__name__)

LEAST: Final = 1000
"""ms by which a clock has to be set for anybody to take notice."""
_SAID: Final = 60_000
"""The same for a line in the log."""
_LONGEST_DATE: Final = 100
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")


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

    A job that waits, or keeps pauses, goes by it: the machine's clock may be set meanwhile. Dates
    that are written down are made of its times by `date`, so that a fetch that lasts long gives its
    pages those of the list that they are of (`anchor`).
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._start = clock.now()
        self._began = clock.monotonic()
        self.ahead = 0
        """ms that dates are ahead of its own times."""

    def anchor(self) -> int:
        """Dates are those of the other clock from now on; returns how far they are ahead (ms)."""
        ahead = self._clock.now() - self.now()
        self.ahead = ahead if abs(ahead) > LEAST else 0
        return self.ahead

    def date(self, time: int) -> int:
        """Returns the date at a time of this clock, both in ms since the epoch."""
        return time + self.ahead

    def now(self) -> int:
        return self._start + round((self._clock.monotonic() - self._began) * 1000)

    def monotonic(self) -> float:
        return self._clock.monotonic()


class OnwardClock:
    """A clock that never goes back: where another one is set forward it follows, where that is set
    back it goes on by its seconds. The process that has made it says both in its log; copies in
    others do the same in silence.

    What a crawl has written down is never in its future: it would count as not due until then. With
    a `file` this holds from one process to the next, as long as the machine runs: a line with its
    boot, and the ms by which this clock is ahead of the seconds since then.
    """

    def __init__(self, clock: Clock, file: Path | None = None) -> None:
        self._clock = clock
        self._file = file if isinstance(clock, SystemClock) else None
        self._boot = _read(_BOOT)
        self._maker = os.getpid()
        self._ahead = self._back = self._before(self._of_clock())
        self.now()
        self._keep()

    def now(self) -> int:
        ahead = self._of_clock()
        if ahead - self._ahead > LEAST:
            self._say(
                "the machine's clock was set forward by %s: pages of before are so much older",
                ahead - self._ahead,
            )
            self._ahead = self._back = ahead
            self._keep()
        elif self._ahead - ahead > LEAST and abs(self._back - ahead) >= _SAID:
            self._back = ahead
            self._say(
                "the machine's clock was set back: this crawl's goes on, %s ahead, until the"
                " machine is started anew; nothing that it has would be due before",
                self._ahead - ahead,
            )
        return self._ahead + self._seconds()

    def _say(self, text: str, milliseconds: int) -> None:
        if milliseconds >= _SAID and os.getpid() == self._maker:
            log.warning(text, timedelta(seconds=round(milliseconds / 1000)))

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def _seconds(self) -> int:
        return round(self._clock.monotonic() * 1000)

    def _of_clock(self) -> int:
        return self._clock.now() - self._seconds()

    def _before(self, ahead: int) -> int:
        """Returns how far an earlier process on this machine was ahead, if that is farther."""
        boot, _, text = ("" if self._file is None else _read(self._file)).partition(" ")
        with suppress(ValueError):
            return max(ahead, int(text)) if boot and boot == self._boot else ahead
        return ahead

    def _keep(self) -> None:
        if self._file is None or not self._boot or os.getpid() != self._maker:
            return
        new = self._file.with_name(f".{self._file.name}.new")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            new.unlink(missing_ok=True)  # a link in its place is not followed
            new.write_text(f"{self._boot} {self._ahead}\n", encoding="ascii")
            new.replace(self._file)
        except OSError as exc:
            log.debug("%s: can't be written: %s", self._file, exc)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


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


def http_time(text: str) -> int | None:
    """Returns a date of an HTTP header or a feed in ms since 1970; None if it is not one: any of
    the three forms of RFC 9110, 5.6.7, and those of RFC 822. Without a zone it is in UTC.
    """
    if len(text) > _LONGEST_DATE or not text.isascii():  # whose digits int() reads in any script
        return None
    from email.utils import parsedate_to_datetime

    try:
        found = parsedate_to_datetime(text)
        return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()) * 1000
    except (ValueError, TypeError, OverflowError, OSError, IndexError):
        return None
