"""Lets a chain send a request to a host of another queue than its own, when that host may be asked:
for a robots.txt that redirects there.

    async with visits.of(origin, url) as visit:     waits for the turn of the URL's queue
        …                                           one request
                                                    and its queue rests, unless visit.asked = False

A visitor is an item of that queue, and comes before those of the fetch list; when it is taken, the
chain goes on. There is no turn (NoTurn) where the host is given up, where the fetch ends, and where
two chains would wait for each other. Where several processes share a fetch, each spaces its own
visits to a host that another one fetches.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from minutch.clock import Clock
from minutch.cycle.fetch.frontier.queueitems import FetchItem
from minutch.cycle.fetch.frontier.queuekey import QueueNames
from minutch.cycle.fetch.frontier.queues import FetchQueues
from minutch.cycle.fetch.wakeup import Wakeup
from minutch.plugin.turns import NoTurn, Visit
from minutch.records.crawldatum import CrawlDatum


@dataclass(slots=True, eq=False)
class Visitor(FetchItem):
    """A chain of another queue that waits for its turn."""

    home: str = ""
    """Its own queue, in which it keeps its place."""
    task: asyncio.Task[None] | None = field(default_factory=asyncio.current_task)
    turn: asyncio.Future[None] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    def refuse(self, reason: str) -> None:
        """There won't be a turn."""
        if not self.turn.done():
            self.turn.set_exception(NoTurn(reason))


@dataclass(slots=True)
class Visits:
    """The chains that wait for other hosts than their own."""

    queues: FetchQueues
    clock: Clock
    names: QueueNames
    wakeup: Wakeup
    """Called when a chain begins to wait, and when a place may be free."""
    _waiting: dict[asyncio.Task[None] | None, Visitor] = field(default_factory=dict)
    _awaited: Counter[str] = field(default_factory=Counter)
    """How many wait for each queue."""
    _refused: str = ""

    @asynccontextmanager
    async def of(self, origin: str, url: str) -> AsyncIterator[Visit]:
        """Waits until the host of `url` may be asked by a chain that fetches `origin`. Raises
        NoTurn.
        """
        await self.names.learn([url])
        home, queue_id = self.names.of(origin) or "", self.names.of(url)
        visit = Visit()
        if queue_id is None or queue_id == home:  # its own place is enough
            yield visit
            return
        visitor = Visitor(url, CrawlDatum(), queue_id, home=home)
        await self._turn(visitor)
        try:
            yield visit
        finally:
            self.queues.finish(visitor, self.clock.now(), asked=visit.asked)
            self.wakeup()

    async def _turn(self, visitor: Visitor) -> None:
        if self._refused:
            raise NoTurn(self._refused)
        if self._leads_to(visitor.queue_id, visitor.home):
            raise NoTurn(f"{visitor.home} and {visitor.queue_id} would wait for each other")
        self._waiting[visitor.task] = visitor
        self._awaited[visitor.queue_id] += 1
        self.queues.add(visitor, self.clock.now())
        self.wakeup()
        try:
            await visitor.turn
        except asyncio.CancelledError:
            if not visitor.turn.cancelled():  # its turn had just begun
                self.queues.finish(visitor, self.clock.now(), asked=False)
            raise
        finally:
            self._leave(visitor)

    def _leads_to(self, queue_id: str, home: str) -> bool:
        """Returns whether who waits for `queue_id` waits for `home` in the end."""
        if not self._awaited[home]:
            return False
        targets: dict[str, set[str]] = {}
        for visitor in self._waiting.values():
            targets.setdefault(visitor.home, set()).add(visitor.queue_id)
        reached, new = {queue_id}, {queue_id}
        while new:
            new = {target for one in new for target in targets.get(one, ())} - reached
            reached |= new
        return home in reached

    def _leave(self, visitor: Visitor) -> None:
        if self._waiting.pop(visitor.task, None) is not None:
            self._awaited[visitor.queue_id] -= 1
            if not self._awaited[visitor.queue_id]:
                del self._awaited[visitor.queue_id]

    # -- what the loop asks ------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._waiting)

    def waits(self, task: asyncio.Task[None]) -> bool:
        """Returns whether a chain's task waits for its turn."""
        return task in self._waiting

    def begin(self, visitor: Visitor, now: int) -> None:
        """Lets a chain go on, whose turn it is."""
        if visitor.turn.done():  # it has been given up meanwhile
            self.queues.finish(visitor, now, asked=False)
        else:
            self._leave(visitor)
            visitor.turn.set_result(None)

    def refuse(self, reason: str) -> None:
        """Gives nobody a turn any more."""
        self._refused = reason
        for visitor in self._waiting.values():
            visitor.refuse(reason)
