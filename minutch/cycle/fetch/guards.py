"""Decides once a second if a fetch is too slow to go on, or has only few hosts left, and how many
requests it may have in flight. Pure.

Source: the loop of org.apache.nutch.fetcher.Fetcher.FetcherRun.run; tail and load are our own.
"""

from __future__ import annotations

import logging
from typing import Final, NamedTuple

from minutch.cycle.fetch.settings import NEVER, PressureSettings

log = logging.getLogger(__name__)

LONGEST_TAIL: Final = 20
"""Seconds that the last hosts of a fetch may take in any case: about what a round costs
beside its fetch.
"""
FIRST_LOAD: Final = 1000
LEAST_LOAD: Final = 50
"""Requests in flight that a machine is trusted with at first, and in any case."""
LATE: Final = 0.2
"""Seconds by which the event loop of a machine that has enough to do may be late."""


class ThroughputGuard:
    """fetcher.throughput.threshold.*: give up after so many seconds with fewer pages than the
    threshold.
    """

    def __init__(self, settings: PressureSettings) -> None:
        self._settings = settings
        self._below = 0
        self._done = settings.min_pages == NEVER

    def too_slow(self, pages_last_second: int, now: int) -> bool:
        """True once, when the threshold was missed `retries` times; the queues are then emptied."""
        settings = self._settings
        if self._done or now <= settings.check_after or pages_last_second >= settings.min_pages:
            return False
        self._below += 1
        log.warning(
            "%d: %d pages in the last second, fewer than fetcher.throughput.threshold.pages=%d",
            self._below, pages_last_second, settings.min_pages,
        )  # fmt: skip
        self._done = self._below == settings.retries
        return self._done


class TailGuard:
    """fetcher.tail.share: leaves the rest of a list to a later fetch when few hosts have URLs left.

    Of the hosts that had some at the same time, fewer than the share are left, and what they have
    takes longer than LONGEST_TAIL.
    """

    def __init__(self, settings: PressureSettings) -> None:
        self._share = settings.tail_share
        self._most = 0

    def is_over(self, hosts: int, time_left: float) -> bool:
        """Says whether to end, asked now and then; `hosts` have URLs left, for so many seconds."""
        self._most = max(self._most, hosts)
        return 0 < hosts < self._share * self._most and time_left > LONGEST_TAIL


class BandwidthGovernor:
    """fetcher.bandwidth.target: adds threads while bandwidth is left, takes them away when there is
    too little.
    """

    def __init__(self, settings: PressureSettings) -> None:
        self._settings = settings
        self._seconds = 0
        self._bytes = 0

    def adjust(self, total_bytes: int, active: int, threads: int, places: int) -> int:
        """Threads to add (positive) or take away (negative); called once a second.

        `active` threads of `threads` are at work, `places` is queues times threads per queue.
        """
        settings = self._settings
        if settings.bits_per_second <= 0:
            return 0
        if self._seconds < settings.check_every:
            self._seconds += 1
            return 0
        self._seconds = 0
        rate = (total_bytes - self._bytes) * 8 // settings.check_every
        self._bytes = total_bytes
        per_thread = rate // active if active > 0 else 0
        if per_thread <= 0:
            return 0
        if rate < settings.bits_per_second:
            if places <= active:
                return 0
            return max(
                0,
                min((settings.bits_per_second - rate) // per_thread, settings.max_threads - active),
            )
        excess = (rate - settings.bits_per_second) // per_thread
        return -excess if excess < threads else 0


class LoadGuard:
    """Bounds what is in flight by what this machine can take: where its own event loop is late,
    requests time out at hosts that are not slow.
    """

    def __init__(self) -> None:
        self.bearable = FIRST_LOAD
        """Requests that may be in flight."""

    def adjust(self, late: float, active: int) -> None:
        """The loop was `late` by so many seconds, with `active` requests in flight; called once a
        second.
        """
        if late > LATE:
            self.bearable = max(LEAST_LOAD, min(self.bearable, active) * 3 // 4)
        elif active >= self.bearable * 3 // 4:
            self.bearable += self.bearable // 2


class Guards(NamedTuple):
    """What may end a list, once it has begun; looked at once a second."""

    throughput: ThroughputGuard
    tail: TailGuard

    @classmethod
    def of(cls, settings: PressureSettings) -> Guards:
        """Returns the guards of a list that begins."""
        return cls(ThroughputGuard(settings), TailGuard(settings))
