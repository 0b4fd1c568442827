"""When a fetch is too slow to go on, and how many threads it should run. Pure; asked once a second.

Matches the loop of org.apache.nutch.fetcher.Fetcher.FetcherRun.run.
"""

from __future__ import annotations

import logging

from minutch.fetch.settings import NEVER, PressureSettings

log = logging.getLogger(__name__)


class ThroughputGuard:
    """fetcher.throughput.threshold.*: give up after so many seconds with fewer pages than the threshold."""

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


class BandwidthGovernor:
    """fetcher.bandwidth.target: adds threads while bandwidth is left, takes them away when there is too little."""

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
            return max(0, min((settings.bits_per_second - rate) // per_thread, settings.max_threads - active))
        excess = (rate - settings.bits_per_second) // per_thread
        return -excess if excess < threads else 0
