"""Several processes share one fetch (minutch.fetch.processes): each has the queues that hash to it,
and its own log.

    parent ── ("item", FOLLOW entry) ("finish",) ("stop",) ("hold", wanted) ──> child
           <─ ("hand", owner, …) ("idle", received) ("tick", snapshot) ─
           <─ ("done", ledger, stats) ("failed", error) ─

A redirect or followed link to a host of another process goes to that process through the parent, so
no host is ever asked by two. A child that has nothing left says how many items it has received;
when every child is idle and has received all that was sent to it, nothing can come any more, and
the parent lets them finish. Children leave signals to the parent, and end when it dies.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from queue import SimpleQueue
from typing import Any, Final

from minutch.cycle.fetch.frontier.queueitems import FetchItem, pack_follow, unpack_follow
from minutch.cycle.fetch.ledger import Ledger
from minutch.cycle.fetch.neighbours import Neighbours, Share
from minutch.cycle.fetch.session import FetchSession
from minutch.cycle.fetch.snapshot import Snapshot, together
from minutch.cycle.fetch.stats import FetchStats
from minutch.errors import MinutchError, StoreError
from minutch.processes import start_worker

log = logging.getLogger(__name__)

POLL: Final = 0.5
"""Seconds that the parent waits for a message before it looks around."""

MakeSession = Callable[[Callable[[Snapshot], None], Neighbours], FetchSession]


# -- in a child ------------------------------------------------------------------------------------


@dataclass
class _Child:
    """The child's end of the pipe: its `Neighbours`."""

    pipe: Connection
    share: Share
    received: int = 0
    finishing: bool = False
    said: int = -1

    def tick(self, snapshot: Snapshot) -> None:
        self.pipe.send(("tick", snapshot))

    def hand_over(self, item: FetchItem) -> bool:
        owner = self.share.owner(item.queue_id)
        if owner == self.share.index:
            return False
        self.pipe.send(("hand", owner, item.url, pack_follow(item), item.queue_id))
        return True

    def nothing_to_come(self) -> bool:
        if not self.finishing and self.said != self.received:
            self.said = self.received
            self.pipe.send(("idle", self.received))
        return self.finishing

    def obey(self, session: FetchSession) -> None:
        """Takes a message from the parent; without a parent there is nothing to live for."""
        try:
            kind, *values = self.pipe.recv()
        except (EOFError, OSError):
            os._exit(1)
        if kind == "item":
            self.received += 1
            session.receive(unpack_follow(*values))
        elif kind == "stop":
            session.loop.leave()
        elif kind == "hold":
            session.loop.hold(*values)
        else:
            self.finishing = True
        session.loop.wakeup()

    async def run(self, session: FetchSession) -> None:
        asyncio.get_running_loop().add_reader(self.pipe.fileno(), self.obey, session)
        await session.run()


def _child_main(pipe: Connection, share: Share, make: MakeSession) -> None:
    """Life of a child."""
    child = _Child(pipe, share)
    try:
        session = make(child.tick, child)
        asyncio.run(child.run(session))
    except MinutchError as exc:
        pipe.send(("failed", str(exc)))
    except Exception as exc:
        log.exception("fetch process %d", share.index)
        pipe.send(("failed", f"{type(exc).__name__}: {exc}"))
    else:
        pipe.send(("done", session.results.ledger, session.results.stats))
    pipe.close()
    os._exit(0)


# -- in the parent ---------------------------------------------------------------------------------


@dataclass
class _Worker:
    """The parent's view of a child."""

    process: BaseProcess
    pipe: Connection
    sent: int = 0
    idle_at: int = -1
    outbox: SimpleQueue[tuple[Any, ...] | None] = field(default_factory=SimpleQueue)
    """What is to be sent. A thread does that: a parent that waited for its child to read would not
    read itself.
    """
    snapshot: Snapshot | None = None
    done: bool = False

    @property
    def idle(self) -> bool:
        """Has nothing to do, and has seen everything that was sent to it."""
        return self.done or self.idle_at == self.sent

    def post(self) -> None:
        """Sends what comes into the outbox, up to None."""
        with suppress(BrokenPipeError, OSError):  # its end is noticed when it is read from
            while (message := self.outbox.get()) is not None:
                self.pipe.send(message)


@dataclass
class FetchProcesses:
    """Runs the children of one fetch to their end."""

    count: int
    make: MakeSession
    tick: Callable[[Snapshot], None]
    ledger: Ledger = field(default_factory=Ledger)
    stats: FetchStats = field(default_factory=FetchStats)
    _workers: list[_Worker] = field(default_factory=list)
    _failure: str | None = None

    def start(self) -> None:
        """Starts the children."""
        for index in range(self.count):
            args = (Share(index, self.count), self.make)
            self._workers.append(
                _Worker(*start_worker(_child_main, args, name="fetch", daemon=False))
            )

    def run(self) -> None:
        """Passes messages, collects results. Raises StoreError if a child failed or died."""
        postmen = [threading.Thread(target=worker.post, daemon=True) for worker in self._workers]
        for postman in postmen:
            postman.start()
        try:
            self._pass_messages()
        finally:
            for worker in self._workers:
                worker.outbox.put(None)
            self.kill(postmen)
        if self._failure is not None:
            raise StoreError(self._failure)

    def stop(self) -> None:
        """Lets the children finish what is in flight and leave the rest."""
        for worker in self._workers:
            worker.outbox.put(("stop",))

    def hold(self, wanted: bool) -> None:
        """Lets the children begin no request, or go on."""
        for worker in self._workers:
            worker.outbox.put(("hold", wanted))

    def kill(self, postmen: Sequence[threading.Thread] = ()) -> None:
        """Ends the children that still run, and after them the threads that write to them."""
        for worker in self._workers:
            if not worker.done:
                worker.process.kill()
            worker.process.join()
        for postman in postmen:
            postman.join()
        for worker in self._workers:
            worker.pipe.close()

    def _pass_messages(self) -> None:
        finishing = False
        while waiting := [worker for worker in self._workers if not worker.done]:
            ready = set(wait([worker.pipe for worker in waiting], POLL))
            for worker in waiting:
                if worker.pipe in ready:
                    self._receive(worker)
            if not finishing and all(worker.idle for worker in self._workers):
                finishing = True
                for worker in waiting:
                    worker.outbox.put(("finish",))

    def _receive(self, worker: _Worker) -> None:
        try:
            message = worker.pipe.recv()
        except (EOFError, OSError):
            worker.done = True
            self._fail("a process of the fetch died; run fetch on the same segment again to go on")
            return
        getattr(self, f"_on_{message[0]}")(worker, *message[1:])

    def _fail(self, reason: str) -> None:
        """Ends all children where they are: what waits in their queues is left for the next run,
        not given up.
        """
        if self._failure is None:
            self._failure = reason
            for worker in self._workers:
                worker.process.kill()
                worker.done = True

    def _on_hand(self, worker: _Worker, owner: int, url: str, value: bytes, queue_id: str) -> None:
        target = self._workers[owner]
        target.sent += 1
        target.outbox.put(("item", url, value, queue_id))

    def _on_idle(self, worker: _Worker, received: int) -> None:
        worker.idle_at = received

    def _on_tick(self, worker: _Worker, snapshot: Snapshot) -> None:
        if snapshot.details is None and worker.snapshot is not None:
            snapshot.details = worker.snapshot.details  # they come less often
        worker.snapshot = snapshot
        known = [w.snapshot for w in self._workers if w.snapshot is not None]
        if worker is self._workers[0] or self._workers[0].done:
            self.tick(together(known, snapshot.total))  # that of the list, which all know

    def _on_done(self, worker: _Worker, ledger: Ledger, stats: FetchStats) -> None:
        worker.done = True
        self.ledger.generated = ledger.generated
        self.ledger.merge(ledger.outcomes)
        self.stats.merge(stats)

    def _on_failed(self, worker: _Worker, reason: str) -> None:
        worker.done = True
        self._fail(reason)
