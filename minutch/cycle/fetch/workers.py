"""Shares a fetch among workers (minutch.fetch.processes): processes, or, where there is one and
nothing else to do, this one.

A redirect or followed link to a host of another worker goes to that worker through the parent, so
no host is ever asked by two. A worker that has nothing left says how many items it has received;
when every one is idle and has received all that was sent to it, nothing can come any more, and the
parent lets them finish, or go on with another list (`turn`, `take`; lists are numbered from 0).

Where nobody says how many there are to be (`number_of`), it is one on most machines: at full
speed a process keeps a core busy, and its parse workers another.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from minutch.cycle.fetch.frontier.queueitems import Share
from minutch.cycle.fetch.ledger import STOPPED, Interrupted, Ledger
from minutch.cycle.fetch.settings import BY_IP, FetchSettings
from minutch.cycle.fetch.stats import FetchStats, Snapshot, together
from minutch.cycle.fetch.worker import (
    Done,
    Failed,
    FetchWorker,
    Hand,
    HoldFetch,
    Idle,
    Line,
    MakeWorker,
    Replied,
    Settled,
    Take,
    Turn,
    WorkerFiles,
    WorkerOrder,
    worker_main,
)
from minutch.errors import StoreError
from minutch.processes import start_worker

log = logging.getLogger(__name__)

POLL: Final = 0.5
"""Seconds that the parent waits for a message before it looks around."""

LIST_BYTES: Final = 1 << 20
"""Bytes of a fetch list, some 10,000 URLs, that are worth a process's start."""
PLACES: Final = 10
"""Requests in flight that are worth a process."""


def processes_for(files: Iterable[Path], places: int, cores: int) -> int:
    """Returns how many processes a fetch list is worth if `places` requests may be in flight."""
    size = sum(path.stat().st_size for path in files)
    # Half the cores: each fetching process keeps a parse worker busy.
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


@dataclass
class _Worker:
    """The parent's view of a worker."""

    process: BaseProcess | None = None
    pipe: Connection | None = None
    """Both None where it is this process."""
    sent: int = 0
    idle_at: int = -1
    outbox: SimpleQueue[object] | Line = field(default_factory=SimpleQueue)
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


@dataclass
class FetchProcesses:
    """Runs the workers of one fetch to their end."""

    count: int
    make: MakeWorker
    tick: Callable[[Snapshot], None]
    is_here: bool = False
    """Whether the only worker is this process: `run` is its event loop."""
    ledger: Ledger = field(default_factory=Ledger)
    stats: FetchStats = field(default_factory=FetchStats)
    goes_on: bool = False
    """Whether the workers wait for another list when they have nothing left."""
    news: threading.Condition = field(default_factory=threading.Condition)
    """Notified of every change of what follows."""
    ledgers: dict[int, dict[int, Ledger]] = field(default_factory=dict)
    """By list that is settled and worker: its share."""
    replies: dict[tuple[type[Turn | Take] | WorkerOrder, int], dict[int, int]] = field(
        default_factory=dict
    )
    """By what is replied to and list, and by worker: the number of URLs."""
    is_over: bool = False
    """All workers have ended."""
    _workers: list[_Worker] = field(default_factory=list)
    _child: FetchWorker | None = None
    """The worker that is this process."""
    _main: asyncio.Task[None] | None = None
    """What it is at."""
    _failure: str | None = None
    _finishing: bool = False
    _stopping: bool = False

    def start(self) -> None:
        """Starts the workers: all, or, whatever comes between, none."""
        try:
            if self.is_here:
                child = self._child = self.make(self._heard_here, Share())
                self._workers.append(_Worker(outbox=Line(child.obey)))
            else:
                for index in range(self.count):
                    args = (Share(index, self.count), self.make)
                    # A daemon may not have children, and it starts parse workers.
                    started = start_worker(worker_main, args, name="fetch", daemon=False)
                    self._workers.append(_Worker(*started))
        except BaseException:
            # Those that had started by then.
            self.kill()
            raise
        # A signal that came while they started.
        if self._stopping:
            self.stop()

    def run(self) -> None:
        """Passes messages, collects results. Raises StoreError if a worker failed or died; of one
        in this process what it raises, and Interrupted if it was killed.
        """
        try:
            if self._child is None:
                self._run_apart()
            else:
                self._run_here(self._child)
        finally:
            with self.news:
                self.is_over = True
                self.news.notify_all()
        self.check()

    def _run_apart(self) -> None:
        args = [(worker.pipe, worker.outbox) for worker in self._workers]
        postmen = [threading.Thread(target=_post, args=each, daemon=True) for each in args]
        for postman in postmen:
            postman.start()
        try:
            self._pass_messages()
        finally:
            for worker in self._workers:
                # Ends the thread that writes to it, which waits for more.
                worker.outbox.put(None)
            self.kill(postmen)

    def _run_here(self, child: FetchWorker) -> None:
        line = self._workers[0].outbox

        async def run() -> None:
            assert isinstance(line, Line)
            self._main = asyncio.current_task()
            line.open()
            await child.run()

        try:
            asyncio.run(run())
        except asyncio.CancelledError:
            # Cancelled by `kill`, after a second signal.
            raise Interrupted(STOPPED) from None
        finally:
            self._main = None
        self.heard(self._workers[0], child.done())

    def turn(self, files: Callable[[int], WorkerFiles]) -> None:
        """Lets the workers go on with another list: number n with those files."""
        self._post_all(lambda index: Turn(files(index)))

    def take(self, number: int, files: Callable[[int], WorkerFiles]) -> None:
        """Lets the workers take more parts of list `number`, which is their current one."""
        self._post_all(lambda index: Take(files(index)), number)

    def _post_all(self, message: Callable[[int], Turn | Take], number: int | None = None) -> None:
        with self.news:
            if number is not None:
                self.ledgers.pop(number, None)  # that what was there until now is settled
            for index, worker in enumerate(self._workers):
                # Counted before it is sent: idle is who has received as much.
                worker.sent += 1
                worker.outbox.put(message(index))

    @property
    def is_running_here(self) -> bool:
        """True if the event loop of this process is at work for it."""
        return self._main is not None

    def tell(self, order: WorkerOrder | HoldFetch) -> None:
        """Tells all workers something. Any thread may, and the handler of a signal."""
        for worker in self._workers:
            worker.outbox.put(order)

    def is_settled(self, number: int) -> bool:
        """Returns True if all URLs of a list have ended."""
        return len(self.ledgers.get(number, ())) == self.count

    def has_replied(self, to: type[Turn | Take] | WorkerOrder, number: int) -> bool:
        """Returns True if all workers have."""
        return len(self.replies.get((to, number), ())) == self.count

    def check(self) -> None:
        """Raises StoreError if a worker failed or died."""
        if self._failure is not None:
            raise StoreError(self._failure)

    def finish(self) -> None:
        """Lets the workers end when they have nothing left."""
        with self.news:
            self.goes_on = False
            self._finish_if_idle()

    def stop(self) -> None:
        """Lets the workers finish what is in flight and leave the rest, those too that are still to
        start.
        """
        self._stopping = True
        self.tell(WorkerOrder.STOP)

    def kill(self, postmen: Sequence[threading.Thread] = ()) -> None:
        """Ends the workers that still run, and after them the threads that write to them. The one
        that is this process is at its end when `run` is.
        """
        if self._main is not None:
            with suppress(RuntimeError):  # its event loop has ended
                self._main.get_loop().call_soon_threadsafe(self._main.cancel)
        for worker in self._workers:
            if worker.process is not None:
                # One that is done closes its logs by itself.
                if not worker.done:
                    worker.process.kill()
                worker.process.join()
        for postman in postmen:
            # After the processes: a thread that writes to a full pipe ends when nobody reads any
            # more.
            postman.join()
        for worker in self._workers:
            if worker.pipe is not None:
                worker.pipe.close()

    def _pass_messages(self) -> None:
        while waiting := [(one, one.pipe) for one in self._workers if one.pipe and not one.done]:
            ready = set(wait([pipe for _, pipe in waiting], POLL))
            with self.news:
                for worker, pipe in waiting:
                    if pipe in ready:
                        try:
                            self.heard(worker, pipe.recv())
                        except (EOFError, OSError):
                            worker.done = True
                            self._fail(
                                "a process of the fetch died;"
                                " run fetch on the same segment again to go on"
                            )
                self._finish_if_idle()
                self.news.notify_all()

    def _heard_here(self, message: object) -> None:
        with self.news:
            self.heard(self._workers[0], message)
            self._finish_if_idle()
            self.news.notify_all()

    def _finish_if_idle(self) -> None:
        """Lets the workers end, if no more is to come."""
        # All idle, and all that was sent received: nothing can be on its way between two.
        if self._finishing or self.goes_on or not all(worker.idle for worker in self._workers):
            return
        self._finishing = True
        self.tell(WorkerOrder.FINISH)

    def _fail(self, reason: str) -> None:
        """Ends all workers where they are: what waits in their queues is left for the next run, not
        given up.
        """
        if self._failure is None:
            self._failure = reason
            for worker in self._workers:
                if worker.process is not None:
                    worker.process.kill()
                worker.done = True

    def heard(self, worker: _Worker, message: object) -> None:
        """Takes a message of a worker."""
        index = self._workers.index(worker)
        match message:
            case Snapshot():
                self._on_tick(worker, message)
            case Hand():
                target = self._workers[message.owner]
                # Before the target may say that it is idle.
                target.sent += 1
                target.outbox.put(message.item)
            case Idle():
                worker.idle_at, worker.ended = message.received, message.ledger
                if all(one.idle for one in self._workers):
                    ledgers = {number: one.ended for number, one in enumerate(self._workers)}
                    self.ledgers[message.number] = ledgers
            case Settled():
                self.ledgers.setdefault(message.number, {})[index] = message.ledger
            case Replied():
                self.replies.setdefault((message.to, message.number), {})[index] = message.urls
            case Done():
                worker.done = True
                self.ledger.generated = message.ledger.generated
                self.ledger.merge(message.ledger.outcomes)
                self.stats.merge(message.stats)
            case Failed():
                worker.done = True
                self._fail(message.reason)

    def _on_tick(self, worker: _Worker, snapshot: Snapshot) -> None:
        if snapshot.details is None and worker.snapshot is not None:
            snapshot.details = worker.snapshot.details  # they come less often
        worker.snapshot = snapshot
        known = [one.snapshot for one in self._workers if one.snapshot is not None]
        # Once a second, not once for each worker.
        if worker is self._workers[0] or self._workers[0].done:
            self.tick(together(known, snapshot.total))  # that of the list, which all know


def _post(pipe: Connection, outbox: SimpleQueue[object]) -> None:
    """Sends what comes into an outbox, up to None."""
    with suppress(BrokenPipeError, OSError):  # its end is noticed when it is read from
        while (message := outbox.get()) is not None:
            pipe.send(message)
