"""One worker of a fetch: it has the queues that hash to it, and its own log; and what it and the
parent say to each other.

    parent ── FetchItem, Turn, Take, HoldFetch, WorkerOrder ────────────────> worker
           <─ Hand, Idle, Replied, Settled, Snapshot, Done, Failed ────────── worker

A worker is a process at the other end of a pipe, or this process (`Line`), and hears and says the
same. It leaves signals to the parent, and ends when that dies. `open_worker` puts its parts
together: settings and plugins in, a `FetchLoop` out.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from itertools import chain
from multiprocessing.connection import Connection
from pathlib import Path
from queue import Empty, SimpleQueue

from minutch.clock import SteadyClock
from minutch.cycle.fetch.components import FetchComponents, ProtocolLookup
from minutch.cycle.fetch.decisions import RedirectRules
from minutch.cycle.fetch.frontier.frontier import Frontier, LinkFollower, open_frontier
from minutch.cycle.fetch.frontier.hostmemory import HostMemory
from minutch.cycle.fetch.frontier.listindex import listed_urls
from minutch.cycle.fetch.frontier.queueitems import FetchItem, Share
from minutch.cycle.fetch.ledger import Ledger
from minutch.cycle.fetch.limits import FetchLimits, Pause, Visits, Wakeup
from minutch.cycle.fetch.loop import FetchLoop, Reporter
from minutch.cycle.fetch.redirectchain import ChainRunner
from minutch.cycle.fetch.results.closing import stored_codec
from minutch.cycle.fetch.results.fetchlog import FetchLog
from minutch.cycle.fetch.results.fetchresults import FetchResults, Resumed
from minutch.cycle.fetch.results.pagearchive import FOLDER, PageArchive, number_of
from minutch.cycle.fetch.results.recorder import LivePageParser
from minutch.cycle.fetch.settings import FetchSettings
from minutch.cycle.fetch.stats import FetchStats
from minutch.cycle.fetch.turnover import FetchState, InFlight, Turnover, left
from minutch.cycle.segment.store import Segment
from minutch.errors import MinutchError, in_a_line

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WorkerFiles:
    """The files of a worker: its fetch lists, and the log that it writes."""

    segment: Segment
    lists: Sequence[Path]
    log: Path
    ahead: int = 0
    """ms that the dates of what is fetched from then on are ahead of the clock."""

    @property
    def scratch(self) -> Path:
        """What the names of copies of lists begin with."""
        return self.log.with_name(f"list-{self.log.name}")


# -- messages to a worker --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Turn:
    """Go on with another list."""

    files: WorkerFiles


@dataclass(frozen=True, slots=True)
class Take:
    """Take more parts of the list."""

    files: WorkerFiles


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


@dataclass(slots=True)
class FetchWorker:
    """A worker, and everything that it needs. To its loop, it is its `Neighbours`."""

    send: Callable[[object], None]
    """Tells the parent."""
    share: Share
    clock: SteadyClock
    frontier: Frontier
    protocols: ProtocolLookup
    resumed: Resumed
    follower: LinkFollower | None
    parser: LivePageParser | None
    results_of: Callable[[WorkerFiles], FetchResults]
    """Makes the results of another segment."""
    loop: FetchLoop = field(init=False)
    received: int = 0
    finishing: bool = False
    said: int = -1
    number: int = 0
    """The list that is being fetched."""
    lists: dict[int, FetchResults] = field(default_factory=dict)
    """The results of lists that have not ended, by number."""

    @property
    def results(self) -> FetchResults:
        """Those of the list that is being fetched."""
        return self.loop.state.results

    async def run(self) -> None:
        """Fetches; closes connections and files whatever happens."""
        try:
            with _cycles_seldom_sought():
                await self.loop.run(self._take_up)
        finally:
            self.frontier.close()
            if self.parser is not None:
                self.parser.close()
            # Its connections need the event loop, which ends after this.
            await self.protocols.close()
            for results in self.loop.state.open_results:
                await asyncio.to_thread(results.close)
            self.loop.runner.memory.close()
            if (publishers := self.loop.runner.publishers) is not None:
                await asyncio.to_thread(publishers.close)

    async def _take_up(self) -> None:
        """Takes up what an earlier run was to follow."""
        names = self.frontier.names
        await names.learn(self.resumed.follow)
        for item in self.resumed.followed(names, self.share):
            self.loop.add(item)
        # Of a list of millions it holds each URL.
        self.resumed.let_go()

    # -- what its loop asks ------------------------------------------------------------------------

    def hand_over(self, item: FetchItem) -> bool:
        owner = self.share.owner(item.queue_id)
        if owner == self.share.index:
            return False
        # Through the parent, which counts what was sent: so it knows when all is idle.
        self.send(Hand(owner, item))
        return True

    def nothing_to_come(self) -> bool:
        # Said once for each number of messages; at each pump it would flood the parent.
        if not self.finishing and self.said != self.received:
            self.said = self.received
            self.send(Idle(self.received, self.number, self.results.ledger))
        return self.finishing

    async def settled(self, results: FetchResults) -> None:
        """All URLs of a list have ended that is not the current one."""
        await asyncio.to_thread(results.close)
        number = next(number for number, one in self.lists.items() if one is results)
        del self.lists[number]
        self.send(Settled(number, results.ledger))

    # -- what the parent says ----------------------------------------------------------------------

    def obey(self, message: object) -> None:
        """Takes a message from the parent."""
        match message:
            case FetchItem():
                self.received += 1
                self._receive(message)
            case Turn():
                self.received += 1
                # Beside, not awaited: the pipe's reader is a callback of the event loop.
                self.loop.beside(self.turn(message.files))
            case Take():
                self.received += 1
                self.loop.beside(self.take(message.files))
            case HoldFetch():
                if not message.wanted:
                    # Sitemaps may have been read meanwhile, of the same hosts.
                    self.loop.runner.memory.let_rest(self.frontier.queues, self.share.owns)
                self.loop.hold(message.wanted)
            case WorkerOrder.STOP:
                self.loop.leave()
            case WorkerOrder.MEET:
                self.send(Replied(WorkerOrder.MEET, self.number))
            case WorkerOrder.LEAVE_RESTING:
                self.loop.limits.leave_resting(self.clock.now())
            case WorkerOrder.FINISH:
                self.finishing = True
        self.loop.wakeup()

    def _receive(self, item: FetchItem) -> None:
        """Takes an item that another worker hands over, maybe from a list before; a link only if it
        was not followed yet.
        """
        if self.loop.state.claims.is_listed(item):
            self.results.skip(left(item), self.clock.now())
        elif item.redirects or self.follower is None or self.follower.is_new(item.url):
            # In this process's log before it is queued: the sender's has it only as handed over.
            self.results.follow(item)
            self.loop.add(item)

    async def turn(self, files: WorkerFiles) -> None:
        """Goes on with a next segment. All that is not settled goes there: what is of the list into
        a new part of that one's, `files.lists[0]`; without a part all is settled. Replies with the
        number of URLs in it. Raises StoreError.
        """
        self.clock.ahead = files.ahead

        def begin(turnover: Turnover) -> None:
            number = self.loop.state.claims.turn(files.lists, turnover.followed)
            self.frontier.leave()
            if files.lists:
                own = self.frontier.read(
                    files.lists, files.scratch, turnover.in_flight, number=number, mine=True
                )
                self.frontier.take(own)
            if self.follower is not None:
                followed = (item.url for item in turnover.followed)
                self.follower.forget(chain(listed_urls(files.lists), followed))

        turnover = Turnover(
            self.results,
            self.results_of(files),
            files.lists[0] if files.lists else None,
            begin,
            asyncio.get_running_loop().create_future(),
        )
        self.loop.turn(turnover)
        count = await turnover.done
        self.number += 1
        self.lists[self.number] = self.results
        self.send(Replied(Turn, self.number, count))

    async def take(self, files: WorkerFiles) -> None:
        """Takes more parts of the segment's list, which begins with them; replies with the number
        of their URLs, those of other workers included. Raises FormatError, StoreError.
        """
        self.clock.ahead = files.ahead
        number = self.loop.state.claims.take(files.lists)
        read = partial(self.frontier.read, files.lists, files.scratch, Counter(), number=number)
        # Reading 5 million URLs takes seconds of CPU: pages in flight go on.
        index = await asyncio.to_thread(read)
        self.frontier.take(index)
        if self.follower is not None:
            for url in listed_urls(files.lists):
                # Noted, so that a link to a listed page is not followed as well.
                self.follower.is_new(url)
        self.results.ledger.generated += index.records
        self.loop.begin_list()
        self.send(Replied(Take, self.number, index.records))

    def done(self) -> Done:
        """Returns its last words."""
        return Done(self.results.ledger, self.results.stats)


MakeWorker = Callable[[Callable[[object], None], Share], FetchWorker]


def open_worker(
    files: WorkerFiles,
    components: FetchComponents,
    settings: FetchSettings,
    clock: SteadyClock,
    memory: HostMemory,
    resumed: Resumed,
    send: Callable[[object], None],
    share: Share,
) -> FetchWorker:
    """Puts the parts together, each made of those before it. Raises FormatError, StoreError."""
    wakeup, pause, stats = Wakeup(), Pause(), FetchStats()
    frontier = open_frontier(share, settings, components, wakeup, clock.now())
    # Without what an earlier run has settled.
    index = frontier.read(files.lists, files.scratch, resumed.settled)
    frontier.take(index)
    queues, names = frontier.queues, frontier.names
    visits = Visits(queues, clock, names, wakeup)
    protocols = ProtocolLookup(components.protocol_factory, visits.of)
    parser = components.parser(settings)

    def results_of(files: WorkerFiles) -> FetchResults:
        archive, folder = None, files.log.parent / FOLDER
        if settings.warc is not None:
            number = number_of(files.log)
            archive = PageArchive(files.segment, folder, number, settings.warc, components.clock)
        return FetchResults(
            components.recorder(files.segment.name, settings, parser, clock.date),
            FetchLog(files.log, stored_codec(settings.form.compression)),
            Ledger(),
            stats,
            archive,
        )

    results = results_of(files)
    results.ledger.generated = index.records
    follower = None
    if settings.parse and not settings.for_step and settings.follow.depth > 0:
        follower = LinkFollower(settings.follow, names, stats, listed_urls(files.lists))
    normalize, keep = components.normalizers.normalize, components.filters.filter
    runner = ChainRunner(
        settings,
        clock,
        queues,
        names,
        protocols.protocol_of,
        RedirectRules(settings.redirects, normalize, keep),
        stats,
        memory,
        components.publishers() if settings.publish else None,
        pause,
        wakeup,
        follower,
    )
    worker = FetchWorker(
        send, share, clock, frontier, protocols, resumed, follower, parser, results_of
    )
    left_of_list = index.records - resumed.ledger.settled
    state = FetchState(results, worker, InFlight(visits), left_of_list, worker.settled)
    limits = FetchLimits(settings, queues, pause)
    reporter = Reporter(clock, queues, state, limits, send)
    worker.loop = FetchLoop(clock, queues, runner, state, limits, reporter, wakeup)
    worker.lists[0] = results
    return worker


@contextmanager
def _cycles_seldom_sought() -> Iterator[None]:
    """Python looks for cycles every 20,000 objects, not every 700, and no more at what is there
    already.

    A fetch makes hardly any: by default the looking takes a tenth of its time.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(20_000, 50, before[2])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


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


def worker_main(pipe: Connection, share: Share, make: MakeWorker) -> None:
    """Life of a worker that is a process of its own."""

    async def run(worker: FetchWorker) -> None:
        def read() -> None:
            try:
                message = pipe.recv()
            except (EOFError, OSError):
                os._exit(1)  # without a parent there is nothing to live for
            worker.obey(message)

        asyncio.get_running_loop().add_reader(pipe.fileno(), read)
        await worker.run()

    last: Done | Failed
    try:
        worker = make(pipe.send, share)
        asyncio.run(run(worker))
        last = worker.done()
    except MinutchError as exc:
        last = Failed(str(exc))
    except OSError as exc:
        log.debug("fetch process %d", share.index, exc_info=True)
        # A full disk is no bug: a line without a traceback.
        last = Failed(in_a_line(exc))
    except Exception as exc:
        log.exception("fetch process %d", share.index)
        last = Failed(f"{type(exc).__name__}: {exc}")
    with suppress(OSError):  # nobody listens any more
        pipe.send(last)
    os._exit(0)  # any other end waits for the parse workers
