"""Lets a chain send a request to a host of another queue than its own, when that host may be asked:
for a robots.txt that redirects there.

    async with visits.of(origin, url) as visit:     waits for the turn of the URL's queue
        …                                           one request
                                                    and its queue rests, unless visit.asked = False

A visitor comes before the items that wait in the queue, and takes a place in it as they do. There
is no turn (NoTurn) where the host is given up, where the fetch ends, and where two chains would
wait for each other. Where several processes share a fetch, each spaces its own visits to a host
that another one fetches.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from minutch.clock import Clock
from minutch.cycle.fetch.hostaddresses import nothing_to_learn
from minutch.cycle.fetch.queueitems import FetchItem
from minutch.cycle.fetch.queuekey import QueueKey, host_name
from minutch.cycle.fetch.queues import FetchQueues
from minutch.plugin.turns import NoTurn, Visit
from minutch.records.crawldatum import CrawlDatum


@dataclass(slots=True, eq=False)
class _Waiting:
    """A chain that waits for its turn."""

    item: FetchItem
    home: str
    """Its own queue, in which it keeps its place."""
    task: asyncio.Task[None] | None
    turn: asyncio.Future[None]


@dataclass(slots=True)
class Visits:
    """The chains that wait for other hosts than their own."""

    queues: FetchQueues
    clock: Clock
    wake: Callable[[], None]
    """Called when a chain begins to wait, and when a place may be free."""
    key: QueueKey = lambda url: None
    learn: Callable[[Iterable[str]], Awaitable[None]] = nothing_to_learn
    """Waits until `key` can name the queues of these URLs."""
    _waiting: list[_Waiting] = field(default_factory=list)
    _refused: str = ""

    @asynccontextmanager
    async def of(self, origin: str, url: str) -> AsyncIterator[Visit]:
        """Waits until the host of `url` may be asked by a chain that fetches `origin`. Raises
        NoTurn.
        """
        await self.learn([url])
        home, queue_id = self.key(origin) or "", self.key(url)
        visit = Visit()
        if queue_id is None or queue_id == home:  # its own place is enough
            yield visit
            return
        item = FetchItem(url, CrawlDatum(), queue_id, host=host_name(url))
        await self._turn(item, home)
        try:
            yield visit
        finally:
            self.queues.finish(item, self.clock.now(), asked=visit.asked)
            self.wake()

    async def _turn(self, item: FetchItem, home: str) -> None:
        if self._refused:
            raise NoTurn(self._refused)
        if self._leads_to(item.queue_id, home):
            raise NoTurn(f"{home} and {item.queue_id} would wait for each other")
        loop = asyncio.get_running_loop()
        waiting = _Waiting(item, home, asyncio.current_task(), loop.create_future())
        self._waiting.append(waiting)
        self.wake()
        try:
            await waiting.turn
        except asyncio.CancelledError:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
            else:  # its turn had just begun
                self.queues.finish(item, self.clock.now(), asked=False)
            raise

    def _leads_to(self, queue_id: str, home: str) -> bool:
        """Returns whether who waits for `queue_id` waits for `home` in the end."""
        reached, new = {queue_id}, {queue_id}
        while new:
            new = {other.item.queue_id for other in self._waiting if other.home in new} - reached
            reached |= new
        return home in reached

    # -- what the loop asks ------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._waiting)

    def waits(self, task: asyncio.Task[None]) -> bool:
        """Returns whether a chain's task waits for its turn."""
        return any(waiting.task is task for waiting in self._waiting)

    def begin(self, now: int) -> None:
        """Lets those go on whose turn it is."""
        for waiting in self._waiting[:]:
            open_at = self.queues.open_at(waiting.item)
            if open_at is None:
                self._waiting.remove(waiting)
                waiting.turn.set_exception(NoTurn(f"{waiting.item.queue_id} is not asked"))
            elif open_at <= now:
                self._waiting.remove(waiting)
                self.queues.enter(waiting.item, now)
                waiting.turn.set_result(None)

    def next_at(self) -> int | None:
        """Returns when the next one's turn is (ms); None if only an end of what is in progress can
        change that.
        """
        times = (self.queues.open_at(waiting.item) or 0 for waiting in self._waiting)
        earliest = min(times, default=math.inf)
        return None if earliest == math.inf else int(earliest)

    def refuse(self, reason: str) -> None:
        """Gives nobody a turn any more."""
        self._refused = reason
        while self._waiting:
            self._waiting.pop().turn.set_exception(NoTurn(reason))
