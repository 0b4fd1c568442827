"""Decides which URL may be fetched now, by one queue for each host, domain or address.

The only home of the rules of politeness. Pure: no I/O, every time is an argument (`now`, ms since
the epoch).

    fetch list ─ begin ─┐
    add ────────────────┴> waiting ──take──> in progress ──finish──> gone; the queue rests
                              │                   │
                              │                   └─ put_back, ask_again: to the front again
                              └─ dropped: time limit, too many failures, a host that is too busy

A queue may yield an item when it has rested and fewer than `max_threads` of its items are in
progress. With one thread it rests `crawl_delay` after each item, with more `min_delay`
(FetchItemQueue: robots.txt's Crawl-Delay then has no effect). A queue that may yield is in one of
two heaps: `_resting`, by the time at which its rest ends, or `_ready`, by the number of URLs that
it has left: where places are short, the host with the most left is asked first. Each queue knows
its own entry in a heap, and an entry that is not its queue's is of no effect.

A queue lives while it has items; what politeness still needs of one that has none (its rest, its
failures, that it was given up) is kept in a few dozen bytes by a hash of its name.

Source: org.apache.nutch.fetcher.FetchItemQueues and FetchItemQueue, except: failures in a row
count, and those that speak of the host (`fetcher.exceptions.per.queue.in.row`); what is dropped is
handed back, so that each URL gets its record; an item that is put back gives its place back; the
back-off has jitter (`fetcher.exceptions.per.queue.jitter`) and shrinks with successes.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Final

from minutch.cycle.fetch.frontier.queueitems import (
    NO_ENTRY,
    Dropped,
    DroppedItems,
    FetchItem,
    FetchList,
    FetchQueue,
    HostItems,
    OneItem,
    OpenLists,
)
from minutch.cycle.fetch.frontier.queuememory import QueueMemory
from minutch.cycle.fetch.ledger import Outcome
from minutch.cycle.fetch.settings import BY_HOST, NEVER, QueueSettings
from minutch.urls.hostname import canonical_host_of

ROBOTS_DEFER: Final = "robots.txt defers visits"
FAILING: Final = Outcome.DEFERRED, "its host failed"
ON_ITS_WAY: Final = 1000
"""Milliseconds that a request may take to reach its host: what counts after a kill is so much
longer.
"""
_MAX_DOUBLINGS: Final = 32


class FetchQueues:
    """All queues of one fetch, or of one of its processes."""

    def __init__(
        self, settings: QueueSettings, listed: FetchList | None = None, *, seed: int = 0
    ) -> None:
        self.settings = settings
        self.queues: dict[str, FetchQueue] = {}
        """Those that have items, waiting or in progress."""
        self._hosts: dict[str, HostItems] = {}
        """Those that have items waiting."""
        self.listed = OpenLists(listed)
        self.in_progress = 0
        self._waiting = 0
        self._ready: list[tuple[int, int, FetchQueue]] = []
        self._resting: list[tuple[int, int, FetchQueue]] = []
        self._entries = count(NO_ENTRY + 1)
        self._memory = QueueMemory()
        self._dropped = DroppedItems()
        self._ended: tuple[Outcome, str] | None = None
        self._is_turning = False
        self._random = random.Random(seed)

    @property
    def waiting(self) -> int:
        """Items that may still be taken."""
        return self._waiting + (0 if self._ended else self.listed.left)

    @property
    def ended(self) -> bool:
        """True if the fetch is ending: what waits is dropped."""
        return self._ended is not None

    @property
    def given_up(self) -> int:
        """Queues and hosts whose items are dropped."""
        return len(self._memory.given_up)

    # -- in and out --------------------------------------------------------------------------------

    def add(self, item: FetchItem, now: int, *, first: bool = False) -> None:
        """Lets `item` wait in its queue, in front of the others (`first`) or behind what was added
        before. It is dropped if its queue or its host is given up, or the fetch is ending.
        """
        if not item.host:
            is_host = self.settings.mode == BY_HOST
            item.host = item.queue_id if is_host else canonical_host_of(item.url)
        refusal = self._ended or self._memory.refusal(item.queue_id, item.host)
        if refusal is not None:
            self._dropped.add(OneItem(item), refusal)
            return
        items = self._items(item.queue_id, item.host, now)
        queue = items.queue
        item.queue_id = queue.id
        queue.take_own_delay(item)
        items.add(item, first=first)
        queue.waiting += 1
        self._waiting += 1
        self._schedule(queue, now)

    def take(self, now: int) -> FetchItem | None:
        """Returns an item that may be fetched now, or None; it is in progress until `finish` or
        `put_back`.
        """
        while True:
            self._wake(now)
            queue = self._top(now)
            most = self._most_listed()  # a host not begun comes before queues with less left
            if most and (queue is None or most > queue.waiting):
                self._begin(now)
            elif queue is None:
                return None
            else:
                return self._yield(queue, now)

    def finish(
        self,
        item: FetchItem,
        now: int,
        *,
        asked: bool = True,
        failed: bool | None = None,
        busy_until: int | None = None,
    ) -> None:
        """Ends an item; its queue rests if its host was `asked`.

        `failed` says whether the host failed (None: nothing is known of that), `busy_until` when
        it wants to be called again (Retry-After, ms): a host that is away for longer than the fetch
        waits is given up.
        """
        queue = self._leave(item)
        if asked:
            queue.next_fetch = max(queue.next_fetch, now + queue.delay)
        if failed is not None:
            self._count(queue, failed, now)
        self._memory.asked(queue.id, queue.next_fetch)
        if busy_until is not None:
            self.rest(item.host, busy_until, now)
        self._settle(queue, now)

    def ask_again(self, item: FetchItem, now: int) -> None:
        """Lets an item wait again that has to be asked for once more."""
        self.add(item, now, first=True)
        self.finish(item, now)

    def put_back(
        self, item: FetchItem, delay: int, retries: int, now: int, *, reason: str = ROBOTS_DEFER
    ) -> None:
        """Lets an item wait again whose robots.txt or address can't be had now; its host rests for
        `delay` ms, its queue as after any request. After `retries` rests, or beyond the time limit,
        the host is given up for `reason`.
        """
        queue = self._leave(item)
        until = max(now, queue.next_fetch) + delay
        queue.next_fetch = max(queue.next_fetch, now + queue.delay)
        self._memory.asked(queue.id, queue.next_fetch)
        self.add(item, now, first=True)
        items = self._hosts.get(item.host)
        if items is not None and items.rest <= now:
            items.why = reason
            items.deferrals = item.deferrals = max(items.deferrals, item.deferrals) + 1
            if items.deferrals > retries or self._is_late(until):
                self._give_up_host(items, (Outcome.DEFERRED, reason))
            else:
                self._put_to_sleep(items, until, now)
        self._settle(queue, now)

    # -- rests -------------------------------------------------------------------------------------

    def set_crawl_delay(self, item: FetchItem, delay: int | None) -> bool:
        """Takes over the Crawl-Delay (ms) that robots.txt of an item's host asks for; False if it
        was known.
        """
        queue = self.queues[item.queue_id]
        return queue.delay_by_robots(item.host, delay, self.settings.crawl_delay)

    def ask(self, queue: FetchQueue, now: int) -> None:
        """Notes for `news` that a queue is being asked."""
        self._memory.asked(queue.id, now + queue.delay + ON_ITS_WAY)

    def rest(self, host: str, until: int, now: int) -> None:
        """Lets `host` rest until then (ms); never shortens a rest. The host is given up if that is
        later than the fetch waits.
        """
        if until <= now:
            return
        self._memory.hosts.add(host, until, now)
        items = self._hosts.get(host)
        if until - now > self.settings.patience:
            refusal = Outcome.DEFERRED, Outcome.DEFERRED.reason
            self._memory.give_up(host, refusal)
            if items is not None:
                self._give_up_host(items, refusal)
                self._settle(items.queue, now)
        elif items is not None:
            self._put_to_sleep(items, until, now)

    def remember(self, queue_id: str, until: int, now: int) -> None:
        """Lets a queue rest until then (ms), since an earlier fetch asked it."""
        self._memory.queues.add(queue_id, until, now)
        queue = self.queues.get(queue_id)
        if queue is not None:
            queue.next_fetch = max(queue.next_fetch, until)

    def news(self, now: int) -> list[tuple[str, int]]:
        """Returns the queues that were asked since the last call and rest beyond `now`, with the
        end of their rest (ms).
        """
        return self._memory.news(now)

    def _put_to_sleep(self, items: HostItems, until: int, now: int) -> None:
        if until <= items.rest:  # never shortens a rest
            return
        items.rest = until
        self._memory.hosts.add(items.host, until, now)
        queue = items.queue
        queue.remove(items)
        heapq.heappush(queue.asleep, (until, next(self._entries), items))
        self._schedule(queue, now)

    def _count(self, queue: FetchQueue, failed: bool, now: int) -> None:
        """Counts a failure or a success (FetchItemQueues.checkExceptionThreshold)."""
        settings = self.settings
        if not failed:
            if settings.failures_in_row:
                queue.failures = 0
                queue.doublings = max(0, queue.doublings - 1)
            return
        queue.failures += 1
        queue.doublings += 1
        if settings.exceptions_delay > 0:
            queue.next_fetch += self.back_off(queue.doublings)  # on top of the usual rest
        too_many = settings.max_exceptions != NEVER and queue.failures >= settings.max_exceptions
        if too_many or (settings.exceptions_delay > 0 and self._is_late(queue.next_fetch)):
            self._give_up(queue, (Outcome.SKIPPED_EXCEPTIONS, Outcome.SKIPPED_EXCEPTIONS.reason))

    def back_off(self, doublings: int) -> int:
        """Returns the ms added to the rest after that many failures: twice as long each time, and
        up to `jitter` of it more.
        """
        delay = self.settings.exceptions_delay << min(doublings - 1, _MAX_DOUBLINGS)
        return delay + int(delay * self.settings.exceptions_jitter * self._random.random())

    # -- dropping ----------------------------------------------------------------------------------

    def is_late(self, now: int) -> bool:
        """Returns True once fetcher.timelimit.mins minutes have passed since the job started."""
        return self.settings.time_limit != NEVER and now >= self.settings.time_limit

    def is_over(self, now: int) -> bool:
        """Returns True if nothing new is asked for any more."""
        return (self._ended is not None and not self._is_turning) or self.is_late(now)

    def end(self, outcome: Outcome, now: int) -> None:
        """Ends the fetch: drops what waits, and what is added from now on."""
        self._ended = self._ended or (outcome, outcome.reason)
        self._drop_all(self._ended, now)

    def turn(self, now: int) -> None:
        """Drops what waits, and what is added until the next list begins (`go_on`)."""
        if self._ended is None:
            self._is_turning = True
            self.end(Outcome.SKIPPED_TAIL, now)

    def go_on(self, now: int) -> None:
        """Opens another list, without a time limit; `forgive` says who has another try."""
        self.settings = replace(self.settings, time_limit=NEVER)
        self._ended, self._is_turning = None, False
        self._memory.forget_old(now)
        self._memory.forgive(now + self.settings.patience)

    def leave_deferred(self, now: int) -> None:
        """Drops what waits, each host's for the reason for which it rests; later fetches ask."""
        self._drop_all(None, now)

    def leave_resting(self, now: int) -> int:
        """Drops what waits for hosts that rest or fail; returns the number of these URLs."""
        before = self._waiting
        for queue in list(self.with_items()):
            for items in queue.bad_hosts(now):
                queue.remove(items)
                self._hand_back(items, FAILING if queue.failures else (Outcome.DEFERRED, items.why))
            self._settle(queue, now)
        return before - self._waiting

    def _drop_all(self, refusal: tuple[Outcome, str] | None, now: int) -> None:
        for queue in list(self.queues.values()):
            self._drop(queue, refusal)
            self._settle(queue, now)

    def dropped(self, most: int) -> list[Dropped]:
        """Hands back up to `most` items that were dropped or can't be fetched."""
        found = self._dropped.take(most)
        found += self.listed.refused(most - len(found))
        while len(found) < most and self._ended is not None and self.listed.most():
            self._dropped.add(self.listed.begin(), self._ended)
            found += self._dropped.take(most - len(found))
        return found

    @property
    def has_dropped(self) -> bool:
        """True if there is something to hand back."""
        may_end = self._ended is not None and self.listed.most() > 0
        return bool(self._dropped) or may_end or self.listed.has_refused

    @property
    def is_empty(self) -> bool:
        """True if nothing waits, in the fetch list neither, and nothing is to be handed back."""
        return not (self._waiting or self.listed.left or self.has_dropped)

    def defers_all(self, wait: int, now: int) -> bool:
        """Tells whether all that waits is of hosts that asked for more than `wait` ms of rest."""
        return not self.listed.left and all(
            queue.rests_on_request and queue.yields_at - now > wait for queue in self.with_items()
        )

    def rests_on_request(self) -> bool:
        """Returns True if something waits for a host that asked not to be called."""
        return any(queue.rests_on_request for queue in self.with_items())

    def with_items(self) -> Iterator[FetchQueue]:
        """Yields the queues in which something waits."""
        return (queue for queue in self.queues.values() if queue.waiting)

    def _give_up(self, queue: FetchQueue, refusal: tuple[Outcome, str]) -> None:
        self._memory.give_up(queue.id, refusal)
        self._drop(queue, refusal)

    def _give_up_host(self, items: HostItems, refusal: tuple[Outcome, str]) -> None:
        self._memory.give_up(items.host, refusal)
        items.queue.remove(items)
        self._hand_back(items, refusal)

    def _drop(self, queue: FetchQueue, refusal: tuple[Outcome, str] | None) -> None:
        for items in queue.hosts:
            self._hand_back(items, refusal or (Outcome.DEFERRED, items.why))
        queue.awake.clear()
        queue.asleep.clear()

    def _hand_back(self, items: HostItems, refusal: tuple[Outcome, str]) -> None:
        del self._hosts[items.host]
        items.queue.waiting -= items.left
        self._waiting -= items.left
        self._dropped.add(items, refusal)

    # -- what is next ------------------------------------------------------------------------------

    def next_ready(self, now: int) -> int | None:
        """Returns when the next item can be taken, in ms; None if only the end of a running fetch,
        or an address that is being looked up, can change that.
        """
        self._wake(now)
        if self._top(now) is not None or self._most_listed():
            return now
        while self._resting:
            time, entry, queue = self._resting[0]
            if queue.entry == entry:
                if queue.can_yield and queue.yields_at <= time:
                    return time
                queue.entry = NO_ENTRY
                self._schedule(queue, now)
            if self._resting[0][1] == entry:
                heapq.heappop(self._resting)
        return None

    def _most_listed(self) -> int:
        """Returns the number of URLs of the listed host that may begin now; 0 if none may."""
        depth = self.settings.depth
        is_full = depth != NEVER and self._waiting >= depth
        return 0 if self._ended or is_full else self.listed.most()

    def _wake(self, now: int) -> None:
        """Moves queues that have rested to those that are ready."""
        while self._resting and self._resting[0][0] <= now:
            _, entry, queue = heapq.heappop(self._resting)
            if queue.entry == entry:
                queue.entry = NO_ENTRY
                self._schedule(queue, now)

    def _top(self, now: int) -> FetchQueue | None:
        """Returns the queue that is ready and has the most left; it stays where it is."""
        while self._ready:
            _, entry, queue = self._ready[0]
            if queue.entry == entry:
                if queue.can_yield and queue.yields_at <= now:
                    return queue
                queue.entry = NO_ENTRY
                self._schedule(queue, now)
                if self._ready[0][1] != entry:
                    continue
            heapq.heappop(self._ready)
        return None

    def _schedule(self, queue: FetchQueue, now: int) -> None:
        """Puts a queue that can yield into its heap, unless it is in one."""
        if queue.entry or not queue.can_yield:
            return
        queue.entry = next(self._entries)
        time = queue.yields_at
        if time <= now:
            heapq.heappush(self._ready, (-queue.waiting, queue.entry, queue))  # most left first
        else:
            heapq.heappush(self._resting, (time, queue.entry, queue))  # earliest first

    def _yield(self, queue: FetchQueue, now: int) -> FetchItem:
        queue.entry = NO_ENTRY  # its entry in the heap is void
        while queue.asleep and queue.asleep[0][0] <= now:
            queue.awake.append(heapq.heappop(queue.asleep)[2])
        items = queue.awake[0]
        item = items.next()
        if items.left:
            if len(queue.awake) > 1:
                queue.awake.append(queue.awake.pop(0))  # hosts of a queue take turns
        else:
            queue.awake.pop(0)
            del self._hosts[items.host]
        queue.waiting -= 1
        item.in_progress = True
        queue.in_progress += 1
        self._waiting -= 1
        self.in_progress += 1
        queue.take_own_delay(item)
        self.ask(queue, now)  # before the request is sent
        self._schedule(queue, now)
        return item

    def _leave(self, item: FetchItem) -> FetchQueue:
        """Takes an item out of those in progress; returns its queue."""
        queue = self.queues[item.queue_id]
        item.in_progress = False
        queue.in_progress -= 1
        self.in_progress -= 1
        return queue

    def _settle(self, queue: FetchQueue, now: int) -> None:
        """Schedules a queue, or remembers what politeness needs of it."""
        if queue.waiting or queue.in_progress:
            self._schedule(queue, now)
        elif self.queues.pop(queue.id, None) is not None:
            self._memory.keep(queue, now, self.settings.clear_after)

    # -- queues and hosts --------------------------------------------------------------------------

    def _begin(self, now: int) -> None:
        """Takes the next host of the fetch list into its queue."""
        supply = self.listed.begin()
        refusal = self._memory.refusal(supply.queue_id, supply.host)
        if refusal is not None:
            self._dropped.add(supply, refusal)
            return
        items = self._items(supply.queue_id, supply.host, now)
        items.listed.append(supply)
        items.queue.waiting += supply.left
        self._waiting += supply.left
        self._schedule(items.queue, now)

    def _items(self, queue_id: str, host: str, now: int) -> HostItems:
        """Returns the items of a host; while it has some, they are in the queue that it had
        first.
        """
        items = self._hosts.get(host)
        if items is None:
            queue = self.queues.get(queue_id)
            if queue is None:
                limits = self.settings.max_threads, self.settings.crawl_delay
                queue = FetchQueue(queue_id, *limits, self.settings.min_delay, now)
                self.queues[queue_id] = queue
                self._memory.recall(queue, now)
            items = self._hosts[host] = HostItems(host, queue, self._memory.hosts.of(host))
            if items.rest > now:
                heapq.heappush(queue.asleep, (items.rest, next(self._entries), items))
            else:
                queue.awake.append(items)
        return items

    def _is_late(self, time: int) -> bool:
        return self.settings.time_limit != NEVER and time > self.settings.time_limit
