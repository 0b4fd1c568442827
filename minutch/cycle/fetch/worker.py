"""One worker of a fetch: it has the queues that hash to it, and its own log; and what it and the
parent say to each other.

    parent ── FetchItem, Turn, Take, HoldFetch, WorkerOrder ────────────────> worker
           <─ Hand, Idle, Replied, Settled, Snapshot, Done, Failed ────────── worker

A worker is a process at the other end of a pipe, or this process (`Line`), and hears and says the
same. It leaves signals to the parent, and ends when that dies.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue

from minutch.cycle.fetch.frontier.queueitems import FetchItem, Neighbours, Share
from minutch.cycle.fetch.ledger import Ledger
from minutch.cycle.fetch.results.fetchresults import FetchResults
from minutch.cycle.fetch.session import FetchSession, SessionFiles
from minutch.cycle.fetch.stats import FetchStats, Snapshot
from minutch.errors import MinutchError, in_a_line

log = logging.getLogger(__name__)

MakeSession = Callable[[Callable[[Snapshot], None], Neighbours], FetchSession]


# -- messages to a worker --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Turn:
    """Go on with another list."""

    files: SessionFiles


@dataclass(frozen=True, slots=True)
class Take:
    """Take more parts of the list."""

    files: SessionFiles


@dataclass(frozen=True, slots=True)
class HoldFetch:
    """Begin no request, or go on."""

    wanted: bool


class WorkerOrder(Enum):
    """Orders that are words alone."""

    MEET = auto()
    """Reply when all has come that others handed over until now."""
    STOP = auto()
    """Finish what is in flight and leave the rest."""
    LEAVE_RESTING = auto()
    """Do not wait for hosts that rest or fail; said every second."""
    FINISH = auto()
    """End: nothing can come any more."""


# -- messages of a worker, beside a Snapshot once a second -----------------------------------------


@dataclass(frozen=True, slots=True)
class Hand:
    """A redirect's target or a link is worker `owner`'s to fetch."""

    owner: int
    item: FetchItem


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing is left of list `number`, after so many messages that counted."""

    received: int
    number: int
    ledger: Ledger


@dataclass(frozen=True, slots=True)
class Replied:
    """A Turn, a Take or a WorkerOrder.MEET is done: the list by now, and the number of its URLs."""

    to: type[Turn | Take] | WorkerOrder
    number: int
    urls: int = 0


@dataclass(frozen=True, slots=True)
class Settled:
    """All URLs of a list before the current one have ended."""

    number: int
    ledger: Ledger


@dataclass(frozen=True, slots=True)
class Done:
    """The worker has ended; the ledger is that of its current list."""

    ledger: Ledger
    stats: FetchStats


@dataclass(frozen=True, slots=True)
class Failed:
    """The worker has ended with an error."""

    reason: str


# -- a worker --------------------------------------------------------------------------------------


@dataclass
class Child:
    """A worker: to its loop, it is its `Neighbours`."""

    send: Callable[[object], None]
    """Tells the parent."""
    share: Share
    session: FetchSession = field(init=False)
    received: int = 0
    finishing: bool = False
    said: int = -1
    number: int = 0
    """The list that is being fetched."""
    lists: dict[int, FetchResults] = field(default_factory=dict)
    """The results of lists that have not ended, by number."""

    def begin(self, make: MakeSession) -> None:
        """Makes its share of the fetch."""
        self.session = make(self.send, self)
        self.lists[0] = self.session.results
        self.session.loop.state.ended = self._settled

    def hand_over(self, item: FetchItem) -> bool:
        owner = self.share.owner(item.queue_id)
        if owner == self.share.index:
            return False
        self.send(Hand(owner, item))
        return True

    def nothing_to_come(self) -> bool:
        if not self.finishing and self.said != self.received:
            self.said = self.received
            self.send(Idle(self.received, self.number, self.session.results.ledger))
        return self.finishing

    def obey(self, message: object) -> None:
        """Takes a message from the parent."""
        session = self.session
        match message:
            case FetchItem():
                self.received += 1
                session.receive(message)
            case Turn() | Take():
                self.received += 1
                work = self._turn(message) if isinstance(message, Turn) else self._take(message)
                session.loop.beside(work)
            case HoldFetch():
                session.loop.hold(message.wanted)
            case WorkerOrder.STOP:
                session.loop.leave()
            case WorkerOrder.MEET:
                self.send(Replied(WorkerOrder.MEET, self.number))
            case WorkerOrder.LEAVE_RESTING:
                session.loop.limits.leave_resting(session.clock.now())
            case WorkerOrder.FINISH:
                self.finishing = True
        session.loop.wakeup()

    def done(self) -> Done:
        """Returns its last words."""
        return Done(self.session.results.ledger, self.session.results.stats)

    async def _turn(self, message: Turn) -> None:
        count = await self.session.turn(message.files)
        self.number += 1
        self.lists[self.number] = self.session.results
        self.send(Replied(Turn, self.number, count))

    async def _take(self, message: Take) -> None:
        self.send(Replied(Take, self.number, await self.session.take(message.files)))

    async def _settled(self, results: FetchResults) -> None:
        """All URLs of a list have ended that is not the current one."""
        await asyncio.to_thread(results.close)
        number = next(number for number, one in self.lists.items() if one is results)
        del self.lists[number]
        self.send(Settled(number, results.ledger))


class Line:
    """Leads to the worker that is this process; what it is told, it hears on its event loop."""

    def __init__(self, obey: Callable[[object], None]) -> None:
        self._obey = obey
        self._messages: SimpleQueue[object] = SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None

    def put(self, message: object) -> None:
        """Tells it something. Any thread may, and the handler of a signal."""
        self._messages.put(message)
        if self._loop is not None:
            with suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(self._hear)

    def open(self) -> None:
        """Its event loop runs: it hears what it was told before."""
        self._loop = asyncio.get_running_loop()
        self._hear()

    def _hear(self) -> None:
        with suppress(Empty):
            while True:
                self._obey(self._messages.get_nowait())


def child_main(pipe: Connection, share: Share, make: MakeSession) -> None:
    """Life of a worker that is a process of its own."""
    child = Child(pipe.send, share)

    def read() -> None:
        try:
            message = pipe.recv()
        except (EOFError, OSError):
            os._exit(1)  # without a parent there is nothing to live for
        child.obey(message)

    async def run() -> None:
        asyncio.get_running_loop().add_reader(pipe.fileno(), read)
        await child.session.run()

    last: Done | Failed
    try:
        child.begin(make)
        asyncio.run(run())
        last = child.done()
    except MinutchError as exc:
        last = Failed(str(exc))
    except OSError as exc:
        log.debug("fetch process %d", share.index, exc_info=True)
        last = Failed(in_a_line(exc))
    except Exception as exc:
        log.exception("fetch process %d", share.index)
        last = Failed(f"{type(exc).__name__}: {exc}")
    with suppress(OSError):  # nobody listens any more
        pipe.send(last)
    os._exit(0)  # any other end waits for the parse workers
