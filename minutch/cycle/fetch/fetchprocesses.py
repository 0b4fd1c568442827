"""Several processes share one fetch (minutch.fetch.processes): each has the queues that hash to it,
and its own log.

    parent ── ("item", FOLLOW entry) ("finish",) ("stop",) ("hold", wanted) ──> child
           ── ("turn", files, ahead) ("meet",) ("take", files) ("leave resting",) ──>
           <─ ("hand", owner, …) ("idle", received, list, ledger) ("tick", snapshot) ─
           <─ ("turned" | "met" | "taken", list, URLs) ("settled", list, ledger) ─
           <─ ("done", ledger, stats) ("failed", error) ─

A redirect or followed link to a host of another process goes to that process through the parent, so
no host is ever asked by two. A child that has nothing left says how many items it has received;
when every child is idle and has received all that was sent to it, nothing can come any more, and
the parent lets them finish, or go on with another list (`turn`, `take`; lists are numbered from 0).
Children leave signals to the parent, and end when it dies.

Where nobody says how many there are to be (`number_of`), it is one on most machines: at full
speed a process keeps a core busy, and its parse workers another.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

from minutch.cycle.fetch.frontier.queueitems import FetchItem, pack_follow, unpack_follow
from minutch.cycle.fetch.ledger import Ledger
from minutch.cycle.fetch.neighbours import Neighbours, Share
from minutch.cycle.fetch.results.fetchresults import FetchResults
from minutch.cycle.fetch.session import FetchSession, SessionFiles
from minutch.cycle.fetch.settings import BY_IP, FetchSettings
from minutch.cycle.fetch.stats import FetchStats, Snapshot, together
from minutch.errors import MinutchError, StoreError, in_a_line
from minutch.processes import start_worker

log = logging.getLogger(__name__)

POLL: Final = 0.5
"""Seconds that the parent waits for a message before it looks around."""

LIST_BYTES: Final = 1 << 20
"""Bytes of a fetch list, some 10,000 URLs, that are worth a process's start."""
PLACES: Final = 10
"""Requests in flight that are worth a process."""

MakeSession = Callable[[Callable[[Snapshot], None], Neighbours], FetchSession]


def processes_for(files: Iterable[Path], places: int, cores: int) -> int:
    """Returns how many processes a fetch list is worth if `places` requests may be in flight."""
    size = sum(path.stat().st_size for path in files)
    return max(1, min(cores // 2, size // LIST_BYTES, places // PLACES))


def number_of(settings: FetchSettings, files: Iterable[Path], cores: int) -> int:
    """Returns the number of processes that fetch a list.

    One where queues are named by addresses: of a host that has several, each process might hear of
    another one first, and two would ask it.
    """
    if settings.queues.mode == BY_IP:
        if settings.processes > 1:
            log.warning("Fetcher: fetcher.queue.mode=byIP: one process, not %d", settings.processes)
        return 1
    return settings.processes or processes_for(files, settings.places, cores)


# -- in a child ------------------------------------------------------------------------------------


@dataclass
class _Child:
    """The child's end of the pipe: its `Neighbours`."""

    pipe: Connection
    share: Share
    session: FetchSession = field(init=False)
    received: int = 0
    finishing: bool = False
    said: int = -1
    number: int = 0
    """The list that is being fetched."""
    lists: dict[int, FetchResults] = field(default_factory=dict)
    """The results of lists that have not ended, by number."""
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def tick(self, snapshot: Snapshot) -> None:
        self.pipe.send(("tick", snapshot))

    def hand_over(self, item: FetchItem) -> bool:
        owner = self.share.owner(item.queue_id)
        if owner == self.share.index:
            return False
        value = pack_follow(item)
        self.pipe.send(("hand", owner, item.url, value, item.queue_id, item.parts))
        return True

    def nothing_to_come(self) -> bool:
        if not self.finishing and self.said != self.received:
            self.said = self.received
            ledger = self.session.results.ledger
            self.pipe.send(("idle", self.received, self.number, ledger))
        return self.finishing

    def obey(self) -> None:
        """Obeys a message from the parent; ends if the parent is gone."""
        session = self.session
        try:
            kind, *values = self.pipe.recv()
        except (EOFError, OSError):
            os._exit(1)
        if kind == "item":
            self.received += 1
            *values, parts = values
            item = unpack_follow(*values)
            item.parts = parts
            session.receive(item)
        elif kind == "turn":
            self.received += 1
            self._begin(self._turn(*values))
        elif kind == "take":
            self.received += 1
            self._begin(self._take(*values))
        elif kind == "stop":
            session.loop.leave()
        elif kind == "hold":
            session.loop.hold(*values)
        elif kind == "meet":
            self.pipe.send(("met", self.number, 0))
        elif kind == "leave resting":
            session.loop.leaves_resting = True
        else:
            self.finishing = True
        session.loop.wakeup()

    def _begin(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self.session.loop.expected += 1
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self.session.loop.expected -= 1
        self.session.loop.wakeup()
        if not task.cancelled() and (error := task.exception()) is not None:
            self.session.loop.abort(error)

    async def _turn(self, files: SessionFiles, ahead: int) -> None:
        count = await self.session.turn(files, ahead)
        self.number += 1
        self.lists[self.number] = self.session.results
        self.pipe.send(("turned", self.number, count))

    async def _take(self, files: SessionFiles) -> None:
        count = await self.session.take(files)
        self.pipe.send(("taken", self.number, count))

    async def _settled(self, results: FetchResults) -> None:
        """All URLs of a list have ended that is not the current one."""
        await asyncio.to_thread(results.close)
        number = next(number for number, one in self.lists.items() if one is results)
        del self.lists[number]
        self.pipe.send(("settled", number, results.ledger))

    async def run(self, session: FetchSession) -> None:
        self.session = session
        self.lists[0] = session.results
        session.loop.ended = self._settled
        asyncio.get_running_loop().add_reader(self.pipe.fileno(), self.obey)
        await session.run()


def _child_main(pipe: Connection, share: Share, make: MakeSession) -> None:
    """Life of a child."""
    child = _Child(pipe, share)
    last: tuple[Any, ...]
    try:
        session = make(child.tick, child)
        asyncio.run(child.run(session))
        last = "done", session.results.ledger, session.results.stats
    except MinutchError as exc:
        last = "failed", str(exc)
    except OSError as exc:
        log.debug("fetch process %d", share.index, exc_info=True)
        last = "failed", in_a_line(exc)
    except Exception as exc:
        log.exception("fetch process %d", share.index)
        last = "failed", f"{type(exc).__name__}: {exc}"
    with suppress(OSError):  # nobody listens any more
        pipe.send(last)
    os._exit(0)  # any other end waits for the parse workers


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
    ended: Ledger = field(default_factory=Ledger)
    """That of its current list, as it had nothing left."""
    done: bool = False

    @property
    def idle(self) -> bool:
        """True if the child has nothing to do and has seen everything that was sent to it."""
        return self.done or self.idle_at == self.sent

    def post(self) -> None:
        """Sends what is put into the outbox, until that is None."""
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
    goes_on: bool = False
    """Whether the children wait for another list when they have nothing left."""
    news: threading.Condition = field(default_factory=threading.Condition)
    """Notified of every change of what follows."""
    ledgers: dict[int, dict[int, Ledger]] = field(default_factory=dict)
    """By list that is settled and child: its share."""
    replies: dict[tuple[str, int], dict[int, int]] = field(default_factory=dict)
    """By reply (turned, met, taken) and list, and by child: the number of URLs."""
    is_over: bool = False
    """All children have ended."""
    _workers: list[_Worker] = field(default_factory=list)
    _failure: str | None = None
    _finishing: bool = False
    _stopping: bool = False

    def start(self) -> None:
        """Starts the children: all of them or, if anything goes wrong, none."""
        try:
            for index in range(self.count):
                args = (Share(index, self.count), self.make)
                self._workers.append(
                    _Worker(*start_worker(_child_main, args, name="fetch", daemon=False))
                )
        except BaseException:
            self.kill()
            raise
        if self._stopping:
            self.stop()

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
            with self.news:
                self.is_over = True
                self.news.notify_all()
        self.check()

    def turn(self, files: Callable[[int], SessionFiles], ahead: int) -> None:
        """Has the children go on with another list, child n with `files(n)`. The list's dates are
        `ahead` ms of the shared clock.
        """
        self._post_all(lambda index: ("turn", files(index), ahead))

    def meet(self) -> None:
        """Has the children reply once they have everything that was handed over so far."""
        for worker in self._workers:
            worker.outbox.put(("meet",))

    def take(self, number: int, files: Callable[[int], SessionFiles]) -> None:
        """Has the children take more parts of list `number`, their current one."""
        self._post_all(lambda index: ("take", files(index)), number)

    def _post_all(
        self, message: Callable[[int], tuple[Any, ...]], number: int | None = None
    ) -> None:
        with self.news:
            if number is not None:
                self.ledgers.pop(number, None)  # that what was there until now is settled
            for index, worker in enumerate(self._workers):
                worker.sent += 1
                worker.outbox.put(message(index))

    def is_settled(self, number: int) -> bool:
        """Returns True if all URLs of a list have ended."""
        return len(self.ledgers.get(number, ())) == self.count

    def has_replied(self, reply: str, number: int) -> bool:
        """Returns True if all children have replied."""
        return len(self.replies.get((reply, number), ())) == self.count

    def check(self) -> None:
        """Raises StoreError if a child failed or died."""
        if self._failure is not None:
            raise StoreError(self._failure)

    def finish(self) -> None:
        """Has the children end once they have nothing left."""
        with self.news:
            self.goes_on = False
            self._finish_if_idle()

    def stop(self) -> None:
        """Has the children, started or not, finish what is in flight and leave the rest."""
        self._stopping = True
        for worker in self._workers:
            worker.outbox.put(("stop",))

    def leave_resting(self) -> None:
        """Has the children stop waiting for hosts that rest or fail."""
        for worker in self._workers:
            worker.outbox.put(("leave resting",))

    def hold(self, wanted: bool) -> None:
        """Has the children begin no more requests, or go on."""
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
        while waiting := [worker for worker in self._workers if not worker.done]:
            ready = set(wait([worker.pipe for worker in waiting], POLL))
            with self.news:
                for worker in waiting:
                    if worker.pipe in ready:
                        self._receive(worker)
                self._finish_if_idle()
                self.news.notify_all()

    def _finish_if_idle(self) -> None:
        """Lets the children end, if no more is to come."""
        if self._finishing or self.goes_on or not all(worker.idle for worker in self._workers):
            return
        self._finishing = True
        for worker in self._workers:
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

    def _on_hand(self, worker: _Worker, owner: int, *item: Any) -> None:
        target = self._workers[owner]
        target.sent += 1
        target.outbox.put(("item", *item))

    def _on_idle(self, worker: _Worker, received: int, number: int, ledger: Ledger) -> None:
        worker.idle_at = received
        worker.ended = ledger
        if all(worker.idle for worker in self._workers):
            self.ledgers[number] = {
                index: worker.ended for index, worker in enumerate(self._workers)
            }

    def _on_settled(self, worker: _Worker, number: int, ledger: Ledger) -> None:
        self.ledgers.setdefault(number, {})[self._workers.index(worker)] = ledger

    def _on_turned(self, worker: _Worker, number: int, count: int) -> None:
        self.replies.setdefault(("turned", number), {})[self._workers.index(worker)] = count

    def _on_taken(self, worker: _Worker, number: int, count: int) -> None:
        self.replies.setdefault(("taken", number), {})[self._workers.index(worker)] = count

    def _on_met(self, worker: _Worker, number: int, count: int) -> None:
        self.replies.setdefault(("met", number), {})[self._workers.index(worker)] = count

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
