"""Remembers from fetch to fetch when hosts may be asked again: `hoststate` what they asked for,
`restlog` what politeness asks for.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from minutch.clock import Clock
from minutch.cycle.fetch.frontier.hoststate import FetchState
from minutch.cycle.fetch.frontier.queues import FetchQueues
from minutch.cycle.fetch.frontier.restlog import Rest, RestLog, read_rests


class HostMemory:
    """The memory of one process of a fetch, which is number `index`."""

    def __init__(self, folder: Path, index: int, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        self._state = FetchState(folder)
        self._state.forget_old(clock.now())
        self._rests = RestLog(folder, index, clock)

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
        self._state.remember_busy(host, time)

    def rested(self, rests: list[Rest]) -> None:
        """Remembers until when queues rest."""
        self._rests.add(rests)

    def close(self) -> None:
        """Closes the files."""
        self._rests.close()
        self._state.close()
