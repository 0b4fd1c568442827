"""Remembers the rests, delays and failures of queues that have no items, in a few numbers each, and
which rests are news to the state of the crawl.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from minutch.cycle.fetch.frontier.queueitems import FetchQueue, queue_hash
from minutch.cycle.fetch.ledger import Outcome

_SWEEP: Final = 10_000


class QueueMemory:
    """What is known of queues and hosts that have no items: numbers by a hash of the name.

    A name has 64 bits here; of two names with the same one both would rest.
    """

    def __init__(self) -> None:
        self.given_up: dict[int, tuple[Outcome, str]] = {}
        self.queues = Rests()
        """The rests of queues, between two requests."""
        self.hosts = Rests()
        """Those that hosts asked for."""
        self._news: dict[str, int] = {}
        self._special: dict[int, _Special] = {}
        self._sweep_at = _SWEEP

    def refusal(self, queue_id: str, host: str) -> tuple[Outcome, str] | None:
        """Returns why nothing of a queue, or of a host in it, is asked for; None if it may be."""
        # Nearly always: no hash for each item.
        if not self.given_up:
            return None
        found = self.given_up.get(queue_hash(queue_id))
        return found if found or host == queue_id else self.given_up.get(queue_hash(host))

    def give_up(self, name: str, refusal: tuple[Outcome, str]) -> None:
        """Remembers that a queue or host is given up."""
        # The first reason stays.
        self.given_up.setdefault(queue_hash(name), refusal)

    def forgive(self, unless_after: int) -> None:
        """Forgets who was given up, but for hosts that asked for a rest until after that (ms)."""
        self.given_up = {
            key: refusal
            for key, refusal in self.given_up.items()
            if refusal[0] is Outcome.DEFERRED and self.hosts.until(key) > unless_after
        }

    def forget_old(self, now: int) -> None:
        """Forgets rests and failures that are over."""
        self.queues.forget_old(now)
        self.hosts.forget_old(now)
        self._special = {key: known for key, known in self._special.items() if known.until > now}
        # Twice what is left: sweeps cost as much as the entries that came in between.
        self._sweep_at = max(_SWEEP, 2 * len(self._special))

    def asked(self, queue_id: str, until: int) -> None:
        """Notes for `news` that a queue was asked and rests until then (ms)."""
        self._news[queue_id] = until

    def news(self, now: int) -> list[tuple[str, int]]:
        """Returns the queues that were asked since the last call and rest beyond `now`, with the
        end of their rest (ms).
        """
        news, self._news = self._news, {}
        return [(queue_id, until) for queue_id, until in news.items() if until > now]

    def keep(self, queue: FetchQueue, now: int, lasting: int) -> None:
        """Remembers a queue that has no items any more; its failures and delays for so many ms."""
        self.queues.add(queue.id, queue.next_fetch, now)
        if queue.failures or queue.doublings or queue.delays:
            until = max(now, queue.next_fetch) + lasting
            known = _Special(until, queue.failures, queue.doublings, queue.delays)
            # Few queues have any: a number each is enough for all others.
            self._special[queue_hash(queue.id)] = known
            if len(self._special) >= self._sweep_at:
                self.forget_old(now)

    def recall(self, queue: FetchQueue, now: int) -> None:
        """Gives a queue that has items again what is known of it."""
        queue.next_fetch = max(now, self.queues.of(queue.id))
        known = self._special.pop(queue_hash(queue.id), None) if self._special else None
        if known is not None:
            if known.until > now:
                queue.failures, queue.doublings = known.failures, known.doublings
            if known.delays:
                queue.delays, queue.crawl_delay = known.delays, max(known.delays.values())


class _Special(NamedTuple):
    """What few queues have."""

    until: int
    """When failures do not count any more (ms)."""
    failures: int
    doublings: int
    delays: dict[str, int] | None
    """The Crawl-Delay of its hosts (ms)."""


class Rests:
    """Times by name; where there are many, those that are over are forgotten."""

    def __init__(self) -> None:
        self._until: dict[int, int] = {}
        self._sweep_at = _SWEEP

    def add(self, name: str, until: int, now: int) -> None:
        """Keeps the later one of two times."""
        key = queue_hash(name)
        if until > self._until.get(key, now):
            self._until[key] = until
            if len(self._until) >= self._sweep_at:
                self.forget_old(now)

    def forget_old(self, now: int) -> None:
        """Forgets the times that are over."""
        self._until = {key: time for key, time in self._until.items() if time > now}
        self._sweep_at = max(_SWEEP, 2 * len(self._until))

    def of(self, name: str) -> int:
        """Returns a name's time; 0 if there is none."""
        return self.until(queue_hash(name)) if self._until else 0

    def until(self, key: int) -> int:
        """Returns the time of the name with that hash; 0 if there is none."""
        return self._until.get(key, 0)
