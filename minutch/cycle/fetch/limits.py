"""Bounds, holds and wakes a fetch: decides once a second if it is too slow to go on, or has only
few hosts left, and how many requests it may have in flight; lets chains wait for their turn.

Source: the loop of org.apache.nutch.fetcher.Fetcher.FetcherRun.run; tail and load are our own.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from minutch.clock import Clock
from minutch.cycle.fetch.frontier.queueitems import FetchItem, QueueNames
from minutch.cycle.fetch.frontier.queues import FetchQueues
from minutch.cycle.fetch.ledger import Outcome
from minutch.cycle.fetch.settings import NEVER, FetchSettings, PressureSettings
from minutch.plugin.extension import NoTurn, OtherHost
from minutch.records.crawldatum import CrawlDatum

log = logging.getLogger(__name__)

LONGEST_TAIL: Final = 20
"""Seconds that the last hosts of a fetch may take in any case: about what a round costs
beside its fetch.
"""
FIRST_LOAD: Final = 1000
LEAST_LOAD: Final = 50
"""Requests in flight that a machine is trusted with at first, and in any case. With 10,000 of them
on a full core, 34,296 of 100,000 pages failed: they timed out while the loop was busy with others.
"""
LATE: Final = 0.2
"""Seconds by which the event loop of a machine that has enough to do may be late."""
SHORTEST_WAIT: Final = 0.001
"""Seconds; a timer is never set shorter."""


class ThroughputGuard:
    """fetcher.throughput.threshold.*: give up after so many seconds with fewer pages than the
    threshold.
    """

    def __init__(self, settings: PressureSettings) -> None:
        self._settings = settings
        self._below = 0
        self._done = settings.min_pages == NEVER

    def too_slow(self, pages_last_second: int, now: int) -> bool:
        """Returns True, once, when the threshold was missed `retries` times; the queues are then
        emptied.
        """
        settings = self._settings
        if self._done or now <= settings.check_after or pages_last_second >= settings.min_pages:
            return False
        self._below += 1
        log.warning(
            "%d: %d pages in the last second, fewer than fetcher.throughput.threshold.pages=%d",
            self._below, pages_last_second, settings.min_pages,
        )  # fmt: skip
        # Counted from the beginning, as FetcherRun does, not in a row.
        self._done = self._below == settings.retries
        return self._done


class TailGuard:
    """fetcher.tail.share: leaves the rest of a list to a later fetch when few hosts have URLs left.

    Of the hosts that had some at the same time, fewer than the share are left, and what they have
    takes longer than LONGEST_TAIL.
    """

    def __init__(self, settings: PressureSettings) -> None:
        self._share = settings.tail_share
        self._most = 0

    def is_over(self, hosts: int, time_left: float) -> bool:
        """Tells whether to end; called now and then. `hosts` have URLs left, for `time_left`
        seconds at their pace.
        """
        # A share of the most at one time: hosts come and go while a list is read.
        self._most = max(self._most, hosts)
        return 0 < hosts < self._share * self._most and time_left > LONGEST_TAIL


class BandwidthGovernor:
    """fetcher.bandwidth.target: adds threads while bandwidth is left, takes them away when there is
    too little.
    """

    def __init__(self, settings: PressureSettings) -> None:
        self._settings = settings
        self._seconds = 0
        self._bytes = 0

    def adjust(self, total_bytes: int, active: int, threads: int, places: int) -> int:
        """Returns how many threads to add (positive) or take away (negative); called once a second.

        `active` threads of `threads` are at work, `places` is queues times threads per queue.
        """
        settings = self._settings
        if settings.bits_per_second <= 0:
            return 0
        # As FetcherRun.run: so many ticks are passed over, then one counts.
        if self._seconds < settings.check_every:
            self._seconds += 1
            return 0
        self._seconds = 0
        rate = (total_bytes - self._bytes) * 8 // settings.check_every
        self._bytes = total_bytes
        per_thread = rate // active if active > 0 else 0
        if per_thread <= 0:
            return 0
        if rate < settings.bits_per_second:
            if places <= active:
                return 0
            return max(
                0,
                min((settings.bits_per_second - rate) // per_thread, settings.max_threads - active),
            )
        excess = (rate - settings.bits_per_second) // per_thread
        # Never all of them (FetcherRun.run).
        return -excess if excess < threads else 0


class LoadGuard:
    """Bounds what is in flight by what this machine can take: where its own event loop is late,
    requests time out at hosts that are not slow.
    """

    def __init__(self) -> None:
        self.bearable = FIRST_LOAD
        """Requests that may be in flight."""

    def adjust(self, late: float, active: int) -> None:
        """Adjusts to a loop that was `late` (seconds) with `active` requests in flight; called once
        a second.
        """
        if late > LATE:
            # Of what was in flight: a bound far above it would have to fall for many seconds.
            self.bearable = max(LEAST_LOAD, min(self.bearable, active) * 3 // 4)
        # Only where it is used: else it would grow without having been tried.
        elif active >= self.bearable * 3 // 4:
            self.bearable += self.bearable // 2


class FetchLimits:
    """What bounds a fetch: its places, its pauses, and the guards that end a list.

    A place is what Nutch has a thread for: a request in flight. Times in ms, but for `monotonic`.
    """

    def __init__(self, settings: FetchSettings, queues: FetchQueues, pause: Pause) -> None:
        self.settings = settings
        """The settings of the list that is being fetched."""
        self.pause = pause
        self.places = settings.places
        """Requests that may be in flight."""
        self.load = LoadGuard()
        self._queues = queues
        self._started = 0.0
        """When the fetch began, by the monotonic clock; pauses put it off."""
        self._last_start = 0
        """When the last request began."""
        self._bandwidth = BandwidthGovernor(settings.pressure)
        self._guards: tuple[ThroughputGuard, TailGuard] | None = None
        """None between two lists: a tail that goes on is too slow by nature."""

    # -- a fetch, its lists and its pauses ---------------------------------------------------------

    def begin(self, now: int, monotonic: float) -> None:
        """The fetch begins, with its first list."""
        self._started = monotonic
        self._guard(now)

    def begin_list(self, now: int) -> None:
        """A list has all its URLs: times that it may take count from now on."""
        self.settings = self.settings.beginning(now)
        self._queues.settings = self.settings.queues
        self._guard(now)

    def end_list(self) -> None:
        """The list is turned over."""
        self._guards = None

    def _guard(self, now: int) -> None:
        pressure = self.settings.pressure
        self._guards = ThroughputGuard(pressure), TailGuard(pressure)
        self._last_start = now

    def started(self, now: int) -> None:
        """A request begins."""
        self._last_start = now

    def resume(self, now: int) -> int:
        """Ends a pause, by which time limits are extended; returns how long it took, 0 if there was
        none.
        """
        lasted = self.pause.end(now)
        if lasted:
            limit = self._queues.settings.time_limit
            if limit != NEVER:
                self._queues.settings = replace(self._queues.settings, time_limit=limit + lasted)
            self._started += lasted / 1000
            self._last_start = now
        return lasted

    def seconds(self, now: int, monotonic: float) -> float:
        """Returns how long the fetch has lasted, without its pauses."""
        return monotonic - self._started - self.pause.lasting(now) / 1000

    # -- places ------------------------------------------------------------------------------------

    def free_at(self, now: int, monotonic: float, active: int) -> int | None:
        """Returns the time from which one more request may begin: `now`, later while places are
        being opened, None if all are taken, or in a pause.
        """
        if self.pause.is_on or active >= min(self.places, self.load.bearable):
            return None
        delay, elapsed = self.settings.start_delay, (monotonic - self._started) * 1000
        # one place more is open after each fetcher.threads.start.delay ms
        is_open = delay <= 0 or active < min(self.places, 1 + int(elapsed / delay))
        return now if is_open else now + delay

    def adjust(self, total_bytes: int, active: int) -> None:
        """Opens or closes places for fetcher.bandwidth.target; called once a second."""
        most = len(self._queues.queues) * self._queues.settings.max_threads
        change = self._bandwidth.adjust(total_bytes, active, self.places, most)
        if change:
            self.places = max(1, self.places + change)
            log.info("fetcher.bandwidth.target: %+d threads, now %d", change, self.places)

    def leave_resting(self, now: int) -> None:
        """Leaves hosts that rest or fail at this moment to a later fetch."""
        # Between two lists what rests is on its way into the next one.
        may_end = self._guards is not None and not self.pause.is_on
        if may_end and (left := self._queues.leave_resting(now)):
            log.info("%d URLs of hosts that rest or fail are left to a later fetch", left)

    # -- the end of a list -------------------------------------------------------------------------

    def ending(
        self, pages_last_second: int, seconds_left: float, now: int, *, is_idle: bool
    ) -> Outcome | None:
        """Returns how what is left of the list ends, where a guard says so, or nothing moves any
        more; called once a second. `seconds_left` are what the longest queue takes.

        Hosts whose robots.txt defers visits are left to a later fetch, where this one has nothing
        else to do (`is_idle`: nothing is in flight).
        """
        if self._guards is None:
            return None
        throughput, tail = self._guards
        queues, limit = self._queues, self.settings.hung_after
        if throughput.too_slow(pages_last_second, now):
            return Outcome.SKIPPED_THROUGHPUT
        # While hosts of the list are not begun yet, their number says nothing.
        if not queues.listed.left and tail.is_over(len(queues.queues), seconds_left):
            return Outcome.SKIPPED_TAIL
        if not (is_idle and queues.waiting):
            return None
        # A host that asked for a rest is waited for; else FetcherRun's timeout holds.
        if now - self._last_start > limit and not queues.rests_on_request():
            log.warning("no new request for %d ms", now - self._last_start)
            return Outcome.SKIPPED_TIMEOUT
        wait = self.settings.robots.defer_wait
        if wait >= 0 and queues.defers_all(wait, now):
            log.info("%d URLs of deferred hosts are left to a later fetch", queues.waiting)
            queues.leave_deferred(now)
        return None


class Pause:
    """Holds a fetch: no request begins until it resumes, and what waits loses nothing. Off at
    first; times in ms.

    A request that is under way is finished. Before every other one, be it for robots.txt or for a
    redirect's target, a chain asks `is_on`, and waits for `over`.
    """

    def __init__(self) -> None:
        self._since: int | None = None
        self._over = asyncio.Event()

    @property
    def is_on(self) -> bool:
        return self._since is not None

    def begin(self, now: int) -> None:
        """Holds back what has not begun."""
        if self._since is None:
            self._since = now
            self._over.clear()

    def end(self, now: int) -> int:
        """Lets everything go on; returns how long that took, 0 if nothing was held."""
        if self._since is None:
            return 0
        lasted = self.lasting(now)
        self._since = None
        self._over.set()
        return lasted

    def lasting(self, now: int) -> int:
        """Milliseconds since the pause began; 0 if there is none."""
        return 0 if self._since is None else max(0, now - self._since)

    async def over(self) -> None:
        """Waits for the end of the pause."""
        # It may have been switched on again before this woke up.
        while self.is_on:
            await self._over.wait()


class Wakeup:
    """Wakes the fetch loop: its parts say that there may be something to do, and it looks once for
    all that was said in one turn of the event loop; or at a time. Nobody hears it at first.
    """

    def __init__(self) -> None:
        self._heard: Callable[[], None] | None = None
        self._called = False
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0

    def hear(self, call: Callable[[], None]) -> None:
        """Sets what is called from now on."""
        self._heard = call

    def close(self) -> None:
        """Nobody hears it any more."""
        self._heard = None
        if self._timer is not None:
            self._timer.cancel()

    def __call__(self) -> None:
        """There may be something to do."""
        # Many ends of chains in one turn make one look.
        if self._heard is not None and not self._called:
            self._called = True
            asyncio.get_running_loop().call_soon(self._answer)

    def at(self, due: int, now: int) -> None:
        """There may be something to do at a time (ms); of several times the first one counts."""
        if self._timer is not None:
            # An earlier one is set; one that should have rung by now is set anew.
            if now < self._due <= due:
                return
            self._timer.cancel()
        self._due = due
        wait = max((due - now) / 1000, SHORTEST_WAIT)
        self._timer = asyncio.get_running_loop().call_later(wait, self._ring)

    def _ring(self) -> None:
        self._timer = None
        if self._heard is not None:
            self._heard()

    def _answer(self) -> None:
        self._called = False
        if self._heard is not None:
            self._heard()


# -- visits ----------------------------------------------------------------------------------------
#
# A chain may send a request to a host of another queue than its own, when that host may be asked:
# for a robots.txt that redirects there.
#
#   async with visits.of(origin, url) as visit:     waits for the turn of the URL's queue
#       …                                           one request
#                                                   and its queue rests, unless visit.asked = False
#
# A visitor is an item of that queue, and comes before those of the fetch list; when it is taken,
# the chain goes on. There is no turn (NoTurn) where the host is given up, where the fetch ends, and
# where two chains would wait for each other. Where several processes share a fetch, each spaces its
# own visits to a host that another one fetches.


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
        """Tells the chain that there will be no turn."""
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
    async def of(self, origin: str, url: str) -> AsyncIterator[OtherHost]:
        """Waits until a chain that fetches `origin` may ask the host of `url`. Raises NoTurn."""
        await self.names.learn([url])
        home, queue_id = self.names.of(origin) or "", self.names.of(url)
        visit = OtherHost()
        if queue_id is None or queue_id == home:  # its own place is enough
            yield visit
            return
        visitor = Visitor(url, CrawlDatum(), queue_id, home=home)
        if self._refused:
            raise NoTurn(self._refused)
        # Two chains would hold their places for ever.
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
        try:
            yield visit
        finally:
            self.queues.finish(visitor, self.clock.now(), asked=visit.asked)
            self.wakeup()

    def _leads_to(self, queue_id: str, home: str) -> bool:
        """Returns whether who waits for `queue_id` waits for `home` in the end."""
        # Nearly always: no search then.
        if not self._awaited[home]:
            return False
        # All queues that can be reached from the one wanted, breadth first.
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

    def waits(self, task: asyncio.Future[None]) -> bool:
        """Returns whether a chain's task waits for its turn."""
        return task in self._waiting

    def begin(self, visitor: Visitor, now: int) -> None:
        """Lets the chain go on whose turn it is."""
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
