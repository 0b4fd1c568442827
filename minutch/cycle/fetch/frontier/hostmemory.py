"""Remembers from fetch to fetch when hosts may be asked again: `hoststate` what they asked for,
`restlog` what politeness asks for.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from minutch.clock import SteadyClock
from minutch.cycle.fetch.frontier.hoststate import FetchState
from minutch.cycle.fetch.frontier.queues import FetchQueues
from minutch.cycle.fetch.frontier.restlog import Rest, RestLog, read_rests

PRUNE_EVERY: Final = 3600.0
"""Seconds after which what is over is removed from the files of a fetch that lasts."""


class HostMemory:
    """The memory of one process of a fetch, which is number `index`."""

    def __init__(self, folder: Path, index: int, clock: SteadyClock) -> None:
        self._folder = folder
        self._clock = clock
        self._state = FetchState(folder)
        self._pruned = clock.monotonic()
        self._state.forget_old(self._today())
        self._rests = RestLog(folder, index, self._today)

    def _today(self) -> int:
        return self._clock.date(self._clock.now())

    def let_rest(self, queues: FetchQueues, mine: Callable[[str], bool]) -> None:
        """Lets hosts rest that asked for it, and queues that were asked a moment ago, by whatever
        process; `mine` says whether this one has a queue.
        """
        now = self._clock.now()
        for queue_id, until in read_rests(self._folder, now).items():
            if mine(queue_id):
                queues.remember(queue_id, until, now)
        for host, until in self._state.busy_hosts(now).items():
            queues.rest(host, until, now)

    def busy_until(self, host: str, time: int) -> None:
        """Remembers that a host asked not to be called before then (ms)."""
        self._state.remember_busy(host, self._clock.date(time))
        if self._clock.monotonic() - self._pruned > PRUNE_EVERY:
            self._pruned = self._clock.monotonic()
            self._state.forget_old(self._today())

    def rested(self, rests: list[Rest]) -> None:
        """Remembers until when queues rest."""
        self._rests.add((queue_id, self._clock.date(until)) for queue_id, until in rests)

    def close(self) -> None:
        """Closes the files."""
        self._rests.close()
        self._state.close()
