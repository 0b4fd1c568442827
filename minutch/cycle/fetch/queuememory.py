"""Remembers the rests and failures of queues that have no items, in a few numbers each."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from minutch.cycle.fetch.ledger import Outcome
from minutch.cycle.fetch.queueitems import FetchQueue

_SWEEP: Final = 10_000


class QueueMemory:
    """The rests and failures of queues and hosts that have no items: numbers by a hash of the name.

    A name has 64 bits here; of two names with the same one both would rest.
    """

    def __init__(self) -> None:
        self.given_up: dict[int, tuple[Outcome, str]] = {}
        self._rests: dict[int, int] = {}
        self._failures: dict[int, tuple[int, int, int]] = {}
        self._sweep_at = _SWEEP

    def refusal(self, queue_id: str, host: str) -> tuple[Outcome, str] | None:
        """Returns why nothing of a queue, or of a host in it, is asked for; None if it may be."""
        if not self.given_up:
            return None
        found = self.given_up.get(_hash(queue_id))
        return found if found or host == queue_id else self.given_up.get(_hash(host))

    def give_up(self, name: str, refusal: tuple[Outcome, str]) -> None:
        """Remembers that a queue or host is given up."""
        self.given_up.setdefault(_hash(name), refusal)

    def rest(self, name: str, until: int, now: int) -> None:
        """Remembers that a queue or host rests until then (ms)."""
        key = _hash(name)
        if until > self._rests.get(key, now):
            self._rests[key] = until
            if len(self._rests) >= self._sweep_at:
                self._rests = {key: time for key, time in self._rests.items() if time > now}
                self._sweep_at = max(_SWEEP, 2 * len(self._rests))

    def rest_of(self, name: str) -> int:
        """Returns until when a queue or host rests (ms); 0 if nothing is known."""
        return self._rests.get(_hash(name), 0) if self._rests else 0

    def keep(self, queue: FetchQueue, now: int, failures_for: int) -> None:
        """Remembers a queue that has no items any more, its failures for so many ms."""
        self.rest(queue.id, queue.next_fetch, now)
        if queue.failures or queue.doublings:
            self._failures[_hash(queue.id)] = (
                queue.failures,
                queue.doublings,
                max(now, queue.next_fetch) + failures_for,
            )

    def recall(self, queue: FetchQueue, now: int) -> None:
        """Gives a queue that has items again what is known of it."""
        queue.next_fetch = max(now, self.rest_of(queue.id))
        if self._failures:
            failures, doublings, until = self._failures.pop(_hash(queue.id), (0, 0, 0))
            if until > now:
                queue.failures, queue.doublings = failures, doublings


def _hash(name: str) -> int:
    digest = blake2b(name.encode("utf-8", "surrogateescape"), digest_size=8).digest()
    return int.from_bytes(digest)
