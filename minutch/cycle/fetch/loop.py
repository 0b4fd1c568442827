"""The fetch loop: runs as many redirect chains at a time as there are places, on one event loop.

`_pump` starts chains as long as the queues yield items. It runs when a chain has ended and when the
next queue is ready, so nothing polls. Once a second `tick` checks the limits: time, throughput,
bandwidth, requests that hang.

    queues        which URL may be asked for now         `frontier`
    runner        what a chain does                      `redirectchain`
    state         open lists, what is in flight of them  `turnover`
    limits        places, pauses, guards                 `limits`
    reporter      where the fetch is, once a second

Source: org.apache.nutch.fetcher.Fetcher.FetcherRun.run.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

from minutch.clock import Clock
from minutch.cycle.fetch.frontier.queueitems import FetchItem
from minutch.cycle.fetch.frontier.queues import FetchQueues
from minutch.cycle.fetch.ledger import Outcome
from minutch.cycle.fetch.limits import FetchLimits, Visitor, Wakeup
from minutch.cycle.fetch.redirectchain import FAILED, ChainRunner, RedirectChain, timed_out
from minutch.cycle.fetch.stats import LongestWaits, Snapshot, details_of
from minutch.cycle.fetch.turnover import FetchState, Stage, Turnover, go_on, left
from minutch.errors import ConfigError, StoreError

log = logging.getLogger(__name__)

TICK: Final = 1.0
"""Seconds between two looks at the limits."""
DETAILS_EVERY: Final = 4
"""Ticks between two looks at single hosts, where somebody watches and there are many."""
FEW: Final = 1000
"""Queues and hosts up to which every tick looks at them: older ones disagreed with the counts."""
STARTS: Final = 50
"""Chains that are begun in one turn of the event loop: answers that have come are dealt with in
between, so that no more is begun than the machine is able to take.
"""
SLICE: Final = 500
"""URLs that are given up in one turn of the event loop: signals and answers have theirs between."""


@dataclass(slots=True)
class Reporter:
    """Says where the fetch is, once a second."""

    clock: Clock
    queues: FetchQueues
    state: FetchState
    limits: FetchLimits
    show: Callable[[Snapshot], None]
    wants_details: bool = False
    """Whether it is to tell of single hosts."""
    _longest: LongestWaits = field(init=False, default_factory=LongestWaits)

    async def run(self, tick: Callable[[Snapshot], None]) -> None:
        """Shows the state and hands it to `tick`; measures how late the event loop is."""
        pages, size = 0, 0
        for number in count():
            due = time.monotonic() + TICK
            await asyncio.sleep(TICK)
            # How much later than asked for this woke up is how late the event loop is.
            self.limits.load.adjust(time.monotonic() - due, self.state.active)
            stats = self.state.results.stats
            is_small = len(self.queues.queues) + len(stats.hosts) <= FEW
            details = self.wants_details and (is_small or number % DETAILS_EVERY == 0)
            snapshot = self.snapshot(stats.pages - pages, stats.bytes - size, details=details)
            pages, size = stats.pages, stats.bytes
            self.show(snapshot)
            tick(snapshot)

    def snapshot(self, pages: int = 0, size: int = 0, *, details: bool = False) -> Snapshot:
        """Returns the state of the fetch; `pages` and `size` are those of the last second."""
        queues, state, limits = self.queues, self.state, self.limits
        stats, ledger = state.results.stats, state.results.ledger
        now = self.clock.now()
        longest_rest, longest_queue, resting = self._longest.of(queues, stats, now)
        return Snapshot(
            active=state.active,
            threads=limits.places,
            waiting=queues.waiting,
            queues=len(queues.queues),
            blocked=queues.given_up,
            pages=stats.pages,
            errors=stats.errors,
            bytes=stats.bytes,
            pages_last_second=pages,
            bytes_last_second=size,
            seconds=limits.seconds(now, self.clock.monotonic()),
            longest_rest=longest_rest / 1000,
            done=ledger.settled,
            total=state.total,
            events=stats.events,
            outcomes=Counter({int(end): count for end, count in ledger.outcomes.items()}),
            longest_queue=longest_queue / 1000,
            oldest_wait=(now - state.in_flight.oldest(now)) / 1000,
            requests=stats.requests,
            request_ms=stats.request_ms,
            hosts=queues.listed.hosts,
            resting=resting,
            paused=limits.pause.is_on,
            details=details_of(stats, queues, now) if details else None,
        )


@dataclass(slots=True)
class FetchLoop:
    """Runs one fetch, or one process's share of it, to its end."""

    clock: Clock
    queues: FetchQueues
    runner: ChainRunner
    state: FetchState
    limits: FetchLimits
    reporter: Reporter
    wakeup: Wakeup
    _end: asyncio.Future[None] | None = field(init=False, default=None)

    async def run(self, take_up: Callable[[], Awaitable[None]] | None = None) -> None:
        """Fetches everything; `take_up` is awaited before the first page. Raises StoreError if the
        log can't be written; what is logged stays.
        """
        self._end = asyncio.get_running_loop().create_future()
        # Before anything may start: places open and limits run from here on.
        self.limits.begin(self.clock.now(), self.clock.monotonic())
        self.wakeup.hear(self._pump)
        besides = (self.reporter.run(self.tick), self.state.keep_synced())
        tasks: list[asyncio.Future[Any]] = [asyncio.create_task(each) for each in besides]
        for task in tasks:
            task.add_done_callback(self._heed)
        try:
            if take_up is not None:
                # What earlier runs were to follow goes first: names are looked up, meanwhile
                # signals count.
                await take_up()
            if self.state.stage is Stage.OPENING:  # and nobody has stopped it meanwhile
                self.state.stage = Stage.RUNNING
            self._pump()
            await self._end
        finally:
            self.state.stage = Stage.OVER
            self.wakeup.close()
            # Cancelled and waited for: a task left alone would write to logs that are closed.
            tasks += [task for task, _ in self.state.in_flight]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            # The next fetch reads from there when each host may be asked again.
            self.runner.tell_rests(self.clock.now())

    # -- what is said to it ------------------------------------------------------------------------

    def add(self, item: FetchItem) -> None:
        """Queues an item that comes from elsewhere (a followed link, another process); both have it
        in their logs.
        """
        if not self.state.is_leaving:
            self.state.claims.follow(item)
            self.queues.add(item, self.clock.now(), first=item.redirects > 0)
            self.wakeup()

    def begin_list(self) -> None:
        """Begins the list, now that it has all its URLs, and the limits that may end it."""
        self.limits.begin_list(self.clock.now())
        self.wakeup()

    def turn(self, turnover: Turnover) -> None:
        """Goes on with the results of another list, which takes over what is not settled."""
        self.state.turnover = turnover
        self.limits.end_list()
        self.queues.turn(self.clock.now())
        self.wakeup()

    def stop(self, outcome: Outcome) -> None:
        """Begins nothing new; what is in flight is finished, the rest ends with `outcome`."""
        # A list ends once: the first reason stands in the records.
        if not (self.queues.ended or self.state.is_leaving):
            waiting = self.queues.waiting
            if outcome is Outcome.SKIPPED_TAIL:
                log.info("%d URLs are %s (fetcher.tail.share)", waiting, outcome.reason)
            elif waiting:
                log.warning("%s: dropping %d queued URLs", outcome.reason, waiting)
            self.queues.end(outcome, self.clock.now())
            self.wakeup()

    def leave(self) -> None:
        """Begins nothing new: what is in flight is finished, the rest is left to the next run, as
        after a kill.
        """
        self.state.stage = Stage.LEAVING
        self.state.in_flight.visits.refuse("the fetch is stopped")
        self.hold(False)
        self.wakeup()

    def hold(self, wanted: bool) -> None:
        """Begins no request until called with False; time limits are extended by as long as that
        takes.
        """
        now = self.clock.now()
        if not wanted:
            if lasted := self.limits.resume(now):
                log.info("the fetch goes on, after %.1f s", lasted / 1000)
                self.state.in_flight.put_off(lasted)
                self._pump()
        elif not self.state.is_leaving:
            log.info("the fetch is held: nothing new is asked for")
            self.limits.pause.begin(now)

    def beside(self, work: Coroutine[Any, Any, object]) -> None:
        """Does something that has to be done before the fetch may end, and ends it if it fails."""
        task = asyncio.get_running_loop().create_task(work)
        self.state.pending.add(task)
        task.add_done_callback(self._heed)

    def abort(self, error: BaseException) -> None:
        """Ends the fetch with an error."""
        if self._end is not None and not self._end.done():
            self._end.set_exception(error)

    def tick(self, snapshot: Snapshot) -> None:
        """Checks all limits; called once a second."""
        # In a pause no page comes, so each guard would say that the fetch is too slow.
        if self.limits.pause.is_on:
            return
        now, state, stats = self.clock.now(), self.state, self.state.results.stats
        pages, seconds_left = snapshot.pages_last_second, snapshot.longest_queue
        outcome = self.limits.ending(pages, seconds_left, now, is_idle=not state.in_flight)
        if outcome is not None:
            self.stop(outcome)
        self.limits.adjust(stats.bytes, state.active)
        # Fetcher.FetcherRun.run aborts with all hung threads; here the one request ends.
        for chain, lasted in state.in_flight.give_up(now, self.limits.settings.hung_after):
            stats.events["hung_threads_total"] += 1
            log.warning("fetch of %s hangs for %d ms: given up", chain.item.url, lasted)
        self._pump()

    # -- chains ------------------------------------------------------------------------------------

    def _pump(self) -> None:
        """Starts what may begin, and sees whether that was all."""
        state, queues = self.state, self.queues
        if not state.is_open or self._end is None or self._end.done():
            return
        try:
            now, monotonic, leaving = self.clock.now(), self.clock.monotonic(), state.is_leaving
            # Asked at each step: the time limit holds to the second, also between two ticks.
            if queues.is_late(now):
                self.stop(Outcome.SKIPPED_TIMELIMIT)
            self._let_go(now)
            starts = 0
            while (
                starts < STARTS
                and not leaving
                and self.limits.free_at(now, monotonic, state.active) == now
                and (item := queues.take(now)) is not None
            ):
                self._start(item, now)
                starts += 1
            # After the starts and before any request is sent: the tasks run when this turn is over.
            self.runner.tell_rests(now)
            has_more = not queues.is_empty
            if (leaving or not has_more) and state.active <= 0:
                # all that is to come depends on pages that are being parsed
                state.results.recorder.hurry()
            if state.is_done(has_more=has_more):
                self._end.set_result(None)
            # A slice was full: go on when the event loop has had its turn.
            elif starts == STARTS or (queues.has_dropped and not leaving):
                self.wakeup()
            elif not leaving and (ready := queues.next_ready(now)) is not None:
                free = self.limits.free_at(now, monotonic, state.active)
                if free is not None:
                    # Nothing can begin earlier, unless a chain ends, which wakes it too.
                    self.wakeup.at(max(ready, free), now)
        except Exception as exc:  # noqa: BLE001 - whatever it is, the fetch ends with it
            self.abort(exc)

    def _let_go(self, now: int) -> None:
        """Records what will not be asked for, a slice at a time. Turns to the next list when that
        was all of this one, and closes those before in which nothing is in flight.
        """
        state = self.state
        for dropped in self.queues.dropped(SLICE):
            # Fetched by way of a redirect or link: only its place in the list is counted.
            if (fetched := state.claims.fetched(dropped.item)) is not None:
                state.results.skip(fetched, now)
            elif state.turnover is not None and dropped.outcome is Outcome.SKIPPED_TAIL:
                # Not given up: it goes into the next list.
                state.turnover.leave(dropped.item, now)
            elif isinstance(dropped.item, Visitor):
                dropped.item.refuse(dropped.reason)
            else:
                state.results.skip(dropped, now)
        if state.turnover is not None and self.queues.is_empty:
            state.turn(state.turnover, self.queues, now)
        for closing in state.closing():
            self.beside(closing)

    def _start(self, item: FetchItem, now: int) -> None:
        state = self.state
        if isinstance(item, Visitor):
            state.in_flight.visits.begin(item, now)
            return
        if (fetched := state.claims.fetched(item)) is not None:
            # The host was not asked, so it need not rest.
            self.queues.finish(item, now, asked=False)
            state.results.skip(fetched, now)
            return
        chain = RedirectChain.of(item, state.results)
        # What the page leads to is compared with what was listed when it was asked.
        chain.parts = state.claims.parts
        self.limits.started(now)
        task = asyncio.create_task(self._run(chain))
        state.in_flight.add(task, chain, now)
        task.add_done_callback(self._heed)

    def _heed(self, task: asyncio.Future[Any]) -> None:
        """A chain, or what runs beside them, has ended: what failed ends the fetch."""
        self.state.in_flight.remove(task)
        self.state.pending.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.abort(error)
        self.wakeup()

    async def _run(self, chain: RedirectChain) -> None:
        try:
            await self.runner.run(chain)
        except asyncio.CancelledError:
            if not self.state.in_flight.is_given_up(asyncio.current_task()):  # type: ignore[arg-type]
                raise
            self.runner.fail(chain, timed_out(self.limits.settings.hung_after), hung=True)
        # A full disk or a setting fails for every page alike: the fetch ends.
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
        state = self.state
        # It waits again; its frame is written when it has ended.
        if chain.put_back:
            return
        # First: were a target queued and the process killed, the log would not know of it.
        chain.results.write(chain.frame)
        if state.is_leaving:
            return
        for item in chain.targets:
            if state.claims.is_listed(item):
                chain.results.skip(left(item), self.clock.now())
                continue
            if chain.results is not state.results:  # its list was turned over meanwhile
                go_on(item, chain.results, state.results, self.clock.now())
            if not state.neighbours.hand_over(item):
                self.add(item)
