"""The fetch loop: runs as many redirect chains at a time as there are places, on one event loop.

`_pump` starts chains as long as the queues yield items. It runs when a chain has ended and when the
next queue is ready, so nothing polls. Once a second `tick` checks the limits: time, throughput,
bandwidth, requests that hang. A place is what Nutch has a thread for: one chain.

Source: org.apache.nutch.fetcher.Fetcher.FetcherRun.run.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Final

from minutch.clock import Clock
from minutch.cycle.fetch.frontier.queueitems import FetchItem, Neighbours
from minutch.cycle.fetch.frontier.queues import FetchQueues
from minutch.cycle.fetch.ledger import Outcome
from minutch.cycle.fetch.limits import (
    FetchPlaces,
    Guards,
    Pause,
    Visitor,
    Visits,
    Wakeup,
)
from minutch.cycle.fetch.redirectchain import FAILED, ChainRunner, RedirectChain, timed_out
from minutch.cycle.fetch.results.fetchresults import FetchResults
from minutch.cycle.fetch.settings import NEVER, FetchSettings
from minutch.cycle.fetch.stats import FetchListener, LongestWaits, Snapshot, details_of
from minutch.cycle.fetch.turnover import Claims, FetchState, InFlight, Stage, Turnover, go_on, left
from minutch.errors import ConfigError, StoreError

log = logging.getLogger(__name__)

TICK: Final = 1.0
"""Seconds between two looks at the limits."""
SYNC_EVERY: Final = 0.25
"""Seconds between two syncs of the log to the medium."""
DETAILS_EVERY: Final = 4
"""Ticks between two looks at single hosts, where somebody watches and there are many."""
FEW: Final = 1000
"""Queues and hosts up to which every tick looks at them: older ones disagreed with the counts."""
SHORTEST_WAIT: Final = 0.001
"""Seconds; a timer is never set shorter."""
STARTS: Final = 50
"""Chains that are begun in one turn of the event loop: answers that have come are dealt with in
between, so that no more is begun than the machine is able to take.
"""
SLICE: Final = 500
"""URLs that are given up in one turn of the event loop: signals and answers have theirs between."""


@dataclass(slots=True)
class FetchLoop:
    """Runs one fetch, or one process's share of it, to its end."""

    settings: FetchSettings
    clock: Clock
    queues: FetchQueues
    runner: ChainRunner
    visits: Visits
    state: FetchState
    listener: FetchListener
    neighbours: Neighbours
    pause: Pause
    wakeup: Wakeup
    leaves_resting: bool = field(init=False, default=False)
    """Whether hosts that rest or fail are not waited for."""
    claims: Claims = field(init=False, default_factory=Claims)
    places: FetchPlaces = field(init=False)
    _end: asyncio.Future[None] | None = field(init=False, default=None)
    _timer: asyncio.TimerHandle | None = field(init=False, default=None)
    _timer_due: int = field(init=False, default=0)
    _last_start: int = field(init=False, default=0)
    _longest: LongestWaits = field(init=False, default_factory=LongestWaits)

    def __post_init__(self) -> None:
        self.places = FetchPlaces(self.settings)

    @property
    def results(self) -> FetchResults:
        """Those of the current list."""
        return self.state.results

    # -- running -----------------------------------------------------------------------------------

    async def run(self, begin: Callable[[], Awaitable[None]] | None = None) -> None:
        """Fetches everything; `begin` is awaited before the first page. Raises StoreError if the
        log can't be written; what is logged stays.
        """
        loop = asyncio.get_running_loop()
        end, running = loop.create_future(), self.state.running
        self._end = end
        self.places.started = self.clock.monotonic()
        self._last_start = self.clock.now()
        self.state.guards = Guards.of(self.settings.pressure)
        self.wakeup.hear(self._pump)
        helpers = [loop.create_task(self._watch()), loop.create_task(self._sync())]
        for helper in helpers:
            helper.add_done_callback(self._heed)
        try:
            if begin is not None:
                await begin()
            self.state.opened()
            self._pump()
            await end
        finally:
            self.state.stage = Stage.OVER
            self.wakeup.hear(None)
            if self._timer is not None:
                self._timer.cancel()
            for task in [*helpers, *running]:
                task.cancel()
            await asyncio.gather(*helpers, *running, return_exceptions=True)
            self.runner.tell_rests(self.clock.now())

    def stop(self, outcome: Outcome) -> None:
        """Begins nothing new; what is in flight is finished, the rest ends with `outcome`."""
        if not (self.queues.ended or self.state.stage is Stage.LEAVING):
            waiting = self.queues.waiting
            if outcome is Outcome.SKIPPED_TAIL:
                log.info("%d URLs are %s (fetcher.tail.share)", waiting, outcome.reason)
            elif waiting:
                log.warning("%s: dropping %d queued URLs", outcome.reason, waiting)
            self.queues.end(outcome, self.clock.now())
            self.wakeup()

    def turn(self, turnover: Turnover) -> None:
        """Goes on with the results of another list, which takes over what is not settled."""
        self.state.turnover = turnover
        self.queues.turn(self.clock.now())
        self.wakeup()

    def begin(self) -> None:
        """Begins the list, now that it has all its URLs, and the limits that may end it."""
        now = self.clock.now()
        settings = self.settings.beginning(now)
        self.state.guards = Guards.of(settings.pressure)
        self.queues.settings = settings.queues
        self._last_start = now
        self.wakeup()

    def _turn(self, turnover: Turnover, now: int) -> None:
        """Nothing waits any more: takes what is in flight along, and opens the next list."""
        self.state.turn(turnover, now)
        self.queues.go_on(now)
        for item in turnover.unlisted:
            self.queues.add(item, now)
        turnover.finish()
        self.results.recorder.hurry()  # a list before ends when its pages are parsed
        self._look_for_ended()

    def _look_for_ended(self) -> None:
        """Tells of lists in which nothing is in flight any more."""
        for task in self.state.end_those_before():
            task.add_done_callback(self._heed)

    def _heed(self, task: asyncio.Future[None]) -> None:
        """A chain, or what runs beside them, has ended: what failed ends the fetch."""
        self.state.closing.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.abort(error)
        self.wakeup()

    def leave(self) -> None:
        """Begins nothing new: what is in flight is finished, the rest is left to the next run, as
        after a kill.
        """
        self.state.stage = Stage.LEAVING
        self.visits.refuse("the fetch is stopped")
        self.hold(False)
        self.wakeup()

    def hold(self, wanted: bool) -> None:
        """Begins no request until called with False; time limits are extended by as long as that
        takes.
        """
        now = self.clock.now()
        if wanted:
            if self.state.stage is not Stage.LEAVING:
                log.info("the fetch is held: nothing new is asked for")
                self.pause.begin(now)
            return
        lasted = self.pause.end(now)
        if lasted:
            log.info("the fetch goes on, after %.1f s", lasted / 1000)
            if (limit := self.queues.settings.time_limit) != NEVER:
                self.queues.settings = replace(self.queues.settings, time_limit=limit + lasted)
            for running in self.state.running.values():
                running.since += lasted
            self.places.started += lasted / 1000
            self._last_start = now
            self._pump()

    def _pump(self) -> None:
        state = self.state
        if not state.is_open or self._end is None or self._end.done():
            return
        try:
            now, is_leaving = self.clock.now(), state.stage is Stage.LEAVING
            if self.queues.is_late(now):
                self.stop(Outcome.SKIPPED_TIMELIMIT)
            self._give_up_dropped()
            if state.turnover is not None and self.queues.is_empty:
                self._turn(state.turnover, now)
            starts = 0
            while (
                starts < STARTS
                and self._free_at(now) == now
                and (item := self.queues.take(now)) is not None
            ):
                self._start(item, now)
                starts += 1
            self.runner.tell_rests(now)
            if (self.queues.is_empty or is_leaving) and self._in_flight() <= 0:
                # all that is to come depends on pages that are being parsed
                self.results.recorder.hurry()
            if self._is_done():
                self._end.set_result(None)
            elif starts == STARTS or (self.queues.has_dropped and not is_leaving):
                self.wakeup()
            else:
                self._set_timer(now)
        except Exception as exc:  # noqa: BLE001 - whatever it is, the fetch ends with it
            self.abort(exc)

    def add(self, item: FetchItem) -> None:
        """Queues an item that comes from elsewhere (a followed link, another process); both have it
        in their logs.
        """
        if self.state.stage is not Stage.LEAVING:
            self.claims.follow(item)
            self.queues.add(item, self.clock.now(), first=item.redirects > 0)
            self.wakeup()

    def abort(self, error: BaseException) -> None:
        """Ends the fetch with an error."""
        if self._end is not None and not self._end.done():
            self._end.set_exception(error)

    def _is_done(self) -> bool:
        state = self.state
        if state.running or state.stage is Stage.LEAVING:
            return not state.running
        return state.is_at_end and self.queues.is_empty and self.neighbours.nothing_to_come()

    def _free_at(self, now: int) -> int | None:
        """Returns the time from which one more chain may start; None if none may."""
        if self.pause.is_on or self.state.stage is Stage.LEAVING:
            return None
        return self.places.free_at(now, self.clock.monotonic(), self._in_flight())

    def _in_flight(self) -> int:
        """Chains that take a place."""
        return len(self.state.running) - self.results.recorder.parsing - len(self.visits)

    def _give_up_dropped(self) -> None:
        """Records what will not be asked for, a slice at a time."""
        turnover = self.state.turnover
        for dropped in self.queues.dropped(SLICE):
            if (fetched := self.claims.fetched(dropped.item)) is not None:
                self.results.skip(fetched, self.clock.now())
            elif turnover is not None and dropped.outcome is Outcome.SKIPPED_TAIL:
                turnover.leave(dropped.item, self.clock.now())
            elif isinstance(dropped.item, Visitor):
                dropped.item.refuse(dropped.reason)
            else:
                self.results.skip(dropped, self.clock.now())

    def _start(self, item: FetchItem, now: int) -> None:
        if isinstance(item, Visitor):
            self.visits.begin(item, now)
            return
        if (fetched := self.claims.fetched(item)) is not None:
            self.queues.finish(item, now, asked=False)
            self.results.skip(fetched, now)
            return
        chain = RedirectChain.of(item, self.results)
        chain.parts = self.claims.parts
        self._last_start = now
        task = asyncio.create_task(self._run(chain))
        self.state.running[task] = InFlight(chain, now)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.state.running.pop(task, None)
        self._heed(task)
        if self.state.before:
            self._look_for_ended()

    async def _run(self, chain: RedirectChain) -> None:
        try:
            await self.runner.run(chain)
        except asyncio.CancelledError:
            running = self.state.running.get(asyncio.current_task())  # type: ignore[arg-type]
            if running is None or not running.hung:
                raise
            self.runner.fail(chain, timed_out(self.settings.hung_after), hung=True)
        except (StoreError, ConfigError):
            raise
        except Exception as exc:
            log.exception("fetch of %s failed with: %s", chain.item.url, exc)
            self.runner.fail(chain, FAILED)
        self._settle(chain)

    def _settle(self, chain: RedirectChain) -> None:
        """Writes what a chain has found, then queues what it leads to: here, in the process that
        has its host, or in the next run.
        """
        if chain.put_back:
            return
        chain.results.write(chain.frame)
        if self.state.stage is Stage.LEAVING:
            return
        for item in chain.targets:
            if self.claims.is_listed(item):
                chain.results.skip(left(item), self.clock.now())
                continue
            if chain.results is not self.results:  # its list was turned over meanwhile
                go_on(item, chain.results, self.results, self.clock.now())
            if not self.neighbours.hand_over(item):
                self.add(item)

    # -- time --------------------------------------------------------------------------------------

    def _set_timer(self, now: int) -> None:
        """Wakes up when a queue yields again and a thread is free for it."""
        ready, free = self.queues.next_ready(now), self._free_at(now)
        if ready is None or free is None:
            return
        due = max(ready, free)
        if self._timer is not None:
            if now < self._timer_due <= due:
                return
            self._timer.cancel()
        wait = max((due - now) / 1000, SHORTEST_WAIT)
        self._timer_due = due
        self._timer = asyncio.get_running_loop().call_later(wait, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._pump()

    async def _sync(self) -> None:
        while True:
            await asyncio.sleep(SYNC_EVERY)
            for results in self.state.open_results:
                await asyncio.to_thread(results.sync)

    async def _watch(self) -> None:
        pages, size = 0, 0
        for number in count():
            due = time.monotonic() + TICK
            await asyncio.sleep(TICK)
            self.places.load.adjust(time.monotonic() - due, self._in_flight())
            stats = self.results.stats
            is_small = len(self.queues.queues) + len(stats.hosts) <= FEW
            details = self.listener.wants_details and (is_small or number % DETAILS_EVERY == 0)
            snapshot = self.snapshot(stats.pages - pages, stats.bytes - size, details=details)
            pages, size = stats.pages, stats.bytes
            self.tick(snapshot)

    def tick(self, snapshot: Snapshot) -> None:
        """Checks all limits; called once a second."""
        now = self.clock.now()
        self.listener.tick(snapshot)
        if self.pause.is_on:
            return
        if self.state.guards is not None:
            self._look_for_end(self.state.guards, snapshot, now)
        most = len(self.queues.queues) * self.settings.queues.max_threads
        self.places.adjust(self.results.stats.bytes, self._in_flight(), most)
        self._look_for_hung(now)
        self._pump()

    def _look_for_end(self, guards: Guards, snapshot: Snapshot, now: int) -> None:
        """Ends the list where a guard says so, and where nothing moves any more; leaves hosts whose
        robots.txt defers visits to a later fetch, where this one waits for nothing else.
        """
        if guards.throughput.too_slow(snapshot.pages_last_second, now):
            self.stop(Outcome.SKIPPED_THROUGHPUT)
        hosts, longest = len(self.queues.queues), snapshot.longest_queue
        if not self.queues.listed.left and guards.tail.is_over(hosts, longest):
            self.stop(Outcome.SKIPPED_TAIL)
        if self.leaves_resting and (left := self.queues.leave_resting(now)):
            log.info("%d URLs of hosts that rest or fail are left to a later fetch", left)
        idle, limit = now - self._last_start, self.settings.hung_after
        if self.state.running or not self.queues.waiting:
            return
        if idle > limit and not self.queues.rests_on_request():
            log.warning("no new request for %d ms", idle)
            self.stop(Outcome.SKIPPED_TIMEOUT)
        wait = self.settings.robots.defer_wait
        if wait >= 0 and self.queues.waiting and self.queues.defers_all(wait, now):
            log.info("%d URLs of deferred hosts are left to a later fetch", self.queues.waiting)
            self.queues.leave_deferred(now)

    def _look_for_hung(self, now: int) -> None:
        for task, running in list(self.state.running.items()):
            if self.visits.waits(task):
                running.since = now
            lasted, is_done = now - running.since, running.hung or running.chain.parsing
            if lasted > self.settings.hung_after and not is_done:
                running.hung = True
                self.results.stats.events["hung_threads_total"] += 1
                url = running.chain.item.url
                log.warning("fetch of %s hangs for %d ms: given up", url, lasted)
                task.cancel()

    def snapshot(self, pages: int = 0, size: int = 0, *, details: bool = False) -> Snapshot:
        """Returns the state of the fetch; `pages` and `size` are those of the last second."""
        queues, stats, ledger = self.queues, self.results.stats, self.results.ledger
        now = self.clock.now()
        longest_rest, longest_queue, resting = self._longest.of(queues, stats, now)
        oldest = min((running.since for running in self.state.running.values()), default=now)
        return Snapshot(
            active=self._in_flight(),
            threads=self.places.open,
            waiting=queues.waiting,
            queues=len(queues.queues),
            blocked=queues.given_up,
            pages=stats.pages,
            errors=stats.errors,
            bytes=stats.bytes,
            pages_last_second=pages,
            bytes_last_second=size,
            seconds=self.clock.monotonic() - self.places.started - self.pause.lasting(now) / 1000,
            longest_rest=longest_rest / 1000,
            done=ledger.settled,
            total=self.state.total,
            events=stats.events,
            outcomes=Counter({int(end): count for end, count in ledger.outcomes.items()}),
            longest_queue=longest_queue / 1000,
            oldest_wait=(now - oldest) / 1000,
            requests=stats.requests,
            request_ms=stats.request_ms,
            hosts=queues.listed.hosts,
            resting=resting,
            paused=self.pause.is_on,
            details=details_of(stats, queues, now) if details else None,
        )
