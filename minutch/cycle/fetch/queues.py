"""Decides which URL may be fetched now, by one queue for each host, domain or address.

The only home of the rules of politeness. Pure: no I/O, every time is an argument (`now`, ms since
the epoch).

    add ──> queue (waiting) ──take──> in progress ──finish──> gone; the queue rests for its delay
                │                        │
                │                        ├── exception: the queue backs off; after too many it
                │                        │   is purged and blocked
                │                        └── defer: back to the front of the queue, which rests
                └── drop: time limit, throughput threshold, purge

A queue yields an item when it rests no longer and has fewer than `max_threads` items in progress.
With one thread a queue rests `crawl_delay` after each item, with more `min_delay` (FetchItemQueue:
robots.txt's Crawl-Delay then has no effect). Queues that can yield sooner stand nearer the top of a
heap, so that `take` costs O(log queues).

Source: org.apache.nutch.fetcher.FetchItemQueues and FetchItemQueue, except: items that are dropped
are handed back, so that the caller can give each its status; a deferred item gives its place in the
queue back (in Nutch the place stays taken until the whole fetch times out); back-off has jitter
(fetcher.exceptions.per.queue.jitter, 0 restores Nutch's).
"""

from __future__ import annotations

import heapq
import random
from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count
from typing import Final

from minutch.cycle.fetch.settings import NEVER, QueueSettings
from minutch.hadoop.formats.writables import LongWritable, Text
from minutch.records.crawldatum import CrawlDatum

VARIABLE_DELAY_KEY: Final = Text("_variableFetchDelay_")
"""Key under which generate passes a host's own delay (LongWritable, ms); taken out of the datum
here.
"""

_MAX_DOUBLINGS: Final = 32


class QueuingStatus(StrEnum):
    """The fate of an item that the feeder brought; the names are Nutch's, which the log shows."""

    SUCCESSFULLY_QUEUED = "SUCCESSFULLY_QUEUED"
    ERROR_CREATE_FETCH_ITEM = "ERROR_CREATE_FETCH_ITEM"
    ABOVE_EXCEPTION_THRESHOLD = "ABOVE_EXCEPTION_THRESHOLD"
    HIT_BY_TIMELIMIT = "HIT_BY_TIMELIMIT"
    HIT_BY_TIMEOUT = "HIT_BY_TIMEOUT"
    HOST_BUSY = "HOST_BUSY"
    """minutch's own: the host asked (Retry-After) to be left alone for longer than the fetch
    waits.
    """


@dataclass(slots=True)
class FetchItem:
    """One URL on its way. `listed` is its key in the fetch list, None for a followed link or a
    redirect's target.

    `depth` counts followed links, `redirects` those that led here.
    """

    url: str
    datum: CrawlDatum
    queue_id: str
    listed: str | None = None
    depth: int = 0
    redirects: int = 0


@dataclass(slots=True)
class FetchQueue:
    """The items of one host, domain or address; times in ms."""

    id: str
    max_threads: int
    crawl_delay: int
    min_delay: int
    next_fetch: int
    items: deque[FetchItem] = field(default_factory=deque)
    in_progress: int = 0
    exceptions: int = 0
    deferrals: int = 0
    own_delay: bool = False
    resting_on_purpose: bool = False
    seen: set[int] | None = None

    @property
    def delay(self) -> int:
        """Rest between two items."""
        return self.min_delay if self.max_threads > 1 else self.crawl_delay

    @property
    def can_yield(self) -> bool:
        """Has an item and a free place, whatever the time."""
        return bool(self.items) and self.in_progress < self.max_threads

    @property
    def idle(self) -> bool:
        """Nothing waiting, nothing in progress."""
        return not self.items and not self.in_progress


class RedirectMemory:
    """Targets of redirects met lately (fetcher.redirect.dedupcache.*): the second one within the
    time is skipped.
    """

    def __init__(self, seconds: int, size: int) -> None:
        self._life = seconds * 1000
        self._size = size if seconds > 0 else 0
        self._seen: OrderedDict[str, int] = OrderedDict()

    def met_lately(self, url: str, now: int) -> bool:
        """True if `url` was asked for within the time kept; remembers it otherwise. False always if
        switched off.
        """
        if self._size <= 0:
            return False
        written = self._seen.get(url)
        if written is not None and now - written < self._life:
            self._seen.move_to_end(url)
            return True
        self._seen[url] = now
        self._seen.move_to_end(url)
        if len(self._seen) > self._size:
            self._seen.popitem(last=False)
        return False


class FetchQueues:
    """All queues of one fetch (or of one of its processes)."""

    def __init__(self, settings: QueueSettings, *, follow: bool = False, seed: int = 0) -> None:
        self.settings = settings
        self.queues: dict[str, FetchQueue] = {}
        self.blocked: set[str] = set()
        """Queues purged after too many exceptions: nothing is added to them again."""
        self.busy: set[str] = set()
        """Queues of hosts that asked to be left alone for too long: nothing is added to them
        either.
        """
        self.size = 0
        """Items waiting in all queues."""
        self.in_progress = 0
        self.feeding = True
        """More items may come; while so, empty queues are kept as long as their rest or their
        exceptions matter.
        """
        self._follow = follow
        self._redirects = RedirectMemory(settings.dedup_seconds, settings.dedup_size)
        self._random = random.Random(seed)
        self._order = count()
        self._ready: list[tuple[int, int, str]] = []
        self._scheduled: dict[str, int] = {}
        self._idle: list[tuple[int, int, str]] = []

    # -- in and out --------------------------------------------------------------------------------

    def add(self, item: FetchItem, now: int) -> QueuingStatus:
        """Puts `item` at the end of its queue, unless that is blocked."""
        if item.queue_id in self.blocked:
            return QueuingStatus.ABOVE_EXCEPTION_THRESHOLD
        if item.queue_id in self.busy:
            return QueuingStatus.HOST_BUSY
        queue = self.queue(item.queue_id, now)
        self._take_own_delay(queue, item, now)
        queue.items.append(item)
        self.size += 1
        self._schedule(queue)
        return QueuingStatus.SUCCESSFULLY_QUEUED

    def take(self, now: int) -> FetchItem | None:
        """Returns an item that may be fetched now, or None; it counts as in progress until
        `finish`.
        """
        self._forget_idle(now)
        while self._ready and self._ready[0][0] <= now:
            time, order, queue_id = heapq.heappop(self._ready)
            if self._scheduled.get(queue_id) != order:
                continue
            del self._scheduled[queue_id]
            queue = self.queues[queue_id]
            if not queue.can_yield:
                continue
            if queue.next_fetch > now:
                self._schedule(queue)
                continue
            return self._yield(queue, time)
        return None

    def _yield(self, queue: FetchQueue, since: int) -> FetchItem:
        item = queue.items.popleft()
        queue.in_progress += 1
        queue.resting_on_purpose = False
        self.size -= 1
        self.in_progress += 1
        self._schedule(queue, since)
        return item

    def finish(self, queue_id: str, now: int, *, at_once: bool = False) -> None:
        """One item of the queue is done; it rests for its delay, or not at all (`at_once`: nothing
        was requested).
        """
        queue = self.queues[queue_id]
        queue.in_progress -= 1
        self.in_progress -= 1
        queue.next_fetch = max(queue.next_fetch, now if at_once else now + queue.delay)
        self._schedule(queue)

    def enter(self, queue_id: str, now: int) -> None:
        """A redirect is followed: its target counts as in progress in its queue, which is not asked
        to wait.
        """
        self.queue(queue_id, now).in_progress += 1
        self.in_progress += 1

    def queue(self, queue_id: str, now: int) -> FetchQueue:
        """Returns the queue of that name; a new one if there is none."""
        queue = self.queues.get(queue_id)
        if queue is None:
            settings = self.settings
            queue = FetchQueue(
                queue_id, settings.max_threads, settings.crawl_delay, settings.min_delay, now
            )
            if self._follow:
                queue.seen = set()
            self.queues[queue_id] = queue
        return queue

    # -- delays ------------------------------------------------------------------------------------

    def set_crawl_delay(self, queue_id: str, delay: int, now: int) -> None:
        """robots.txt asks for `delay` ms between two requests."""
        self.queue(queue_id, now).crawl_delay = delay

    def rest_until(self, queue_id: str, time: int, now: int) -> None:
        """No request to this queue before `time` (Retry-After); never shortens a rest."""
        queue = self.queue(queue_id, now)
        if time > queue.next_fetch:
            queue.next_fetch = time
            queue.resting_on_purpose = True
            self._schedule(queue)

    def defer(self, item: FetchItem, delay: int, retries: int, now: int) -> list[FetchItem]:
        """robots.txt asks to come back later: put `item` back and let its queue rest `delay` ms.

        After `retries` deferrals the queue is given up: what waited in it, `item` included, is
        returned.
        """
        queue = self.queues[item.queue_id]
        queue.in_progress -= 1
        self.in_progress -= 1
        queue.items.appendleft(item)
        self.size += 1
        if queue.resting_on_purpose and queue.next_fetch > now:
            self._schedule(queue)
            return []
        queue.deferrals += 1
        if queue.deferrals > retries:
            return self._block(queue)
        queue.next_fetch = max(now, queue.next_fetch) + delay
        queue.resting_on_purpose = True
        if self.settings.time_limit != NEVER and queue.next_fetch > self.settings.time_limit:
            return self._block(queue)
        self._schedule(queue)
        return []

    def exception(self, queue_id: str, now: int) -> list[FetchItem]:
        """Backs off after a failed fetch of this queue, twice as long each time; gives the queue up
        after too many.

        Returns the items that were purged (FetchItemQueues.checkExceptionThreshold).
        """
        queue = self.queues.get(queue_id)
        if queue is None:
            return []
        queue.exceptions += 1
        settings = self.settings
        if settings.max_exceptions != NEVER and queue.exceptions >= settings.max_exceptions:
            return self._block(queue)
        if settings.exceptions_delay > 0:
            queue.next_fetch += self.back_off(queue.exceptions)
            if settings.time_limit > 0 and queue.next_fetch > settings.time_limit:
                return self._block(queue)
            self._schedule(queue)
        return []

    def back_off(self, exceptions: int) -> int:
        """ms added to the rest after that many exceptions: the delay doubled each time, plus up to
        `jitter` of it.
        """
        delay = self.settings.exceptions_delay << min(exceptions - 1, _MAX_DOUBLINGS)
        return delay + int(delay * self.settings.exceptions_jitter * self._random.random())

    # -- dropping ----------------------------------------------------------------------------------

    def time_limit_exceeded(self, now: int) -> bool:
        """fetcher.timelimit.mins minutes have passed since the job started."""
        return self.settings.time_limit != NEVER and now >= self.settings.time_limit

    def drop_all(self) -> list[FetchItem]:
        """Empty all queues (time limit, throughput threshold, interruption); returns what
        waited.
        """
        dropped: list[FetchItem] = []
        for queue in self.queues.values():
            dropped += self._empty(queue)
        return dropped

    def drop(self, queue_id: str) -> list[FetchItem]:
        """The queue's host is too busy: empty it and let nothing in again; returns what waited."""
        self.busy.add(queue_id)
        queue = self.queues.get(queue_id)
        return [] if queue is None else self._empty(queue)

    def drop_deferred(self, wait: int, now: int) -> list[FetchItem]:
        """Empty all queues if each is deferred for more than `wait` ms from now; returns what
        waited.
        """
        waiting = [queue for queue in self.queues.values() if queue.items]
        for queue in waiting:
            if not (queue.deferrals and queue.resting_on_purpose and queue.next_fetch - now > wait):
                return []
        return self.drop_all()

    def met_lately(self, url: str, now: int) -> bool:
        """The redirect's target was queued lately (fetcher.redirect.dedupcache.*)."""
        return self._redirects.met_lately(url, now)

    def _empty(self, queue: FetchQueue) -> list[FetchItem]:
        dropped = list(queue.items)
        queue.items.clear()
        self.size -= len(dropped)
        return dropped

    def _block(self, queue: FetchQueue) -> list[FetchItem]:
        if self.feeding:
            self.blocked.add(queue.id)
        return self._empty(queue)

    # -- what is next ------------------------------------------------------------------------------

    def next_ready(self) -> int | None:
        """Returns the time (ms) at which the next item can be taken; None if only the end of a
        running fetch can change that.
        """
        while self._ready:
            time, order, queue_id = self._ready[0]
            if self._scheduled.get(queue_id) == order and self.queues[queue_id].can_yield:
                queue = self.queues[queue_id]
                if queue.next_fetch <= time:
                    return time
                heapq.heappop(self._ready)
                del self._scheduled[queue_id]
                self._schedule(queue)
                continue
            heapq.heappop(self._ready)
            if self._scheduled.get(queue_id) == order:
                del self._scheduled[queue_id]
        return None

    def resting_on_purpose(self) -> bool:
        """Some queue with items rests because its host asked for it (robots.txt deferral,
        Retry-After).
        """
        return any(queue.items and queue.resting_on_purpose for queue in self.queues.values())

    def oldest_rest(self, now: int) -> int:
        """ms until the queue that rests longest wakes up; 0 if none rests."""
        return max(
            (queue.next_fetch - now for queue in self.queues.values() if queue.items), default=0
        )

    def longest_queue(self) -> int:
        """ms that the queue which needs the most takes for its rests alone."""
        return max((len(queue.items) * queue.delay for queue in self.queues.values()), default=0)

    def waiting(self) -> Iterator[FetchItem]:
        """Yields all items that wait."""
        for queue in self.queues.values():
            yield from queue.items

    def _schedule(self, queue: FetchQueue, since: int | None = None) -> None:
        if queue.can_yield:
            if queue.id not in self._scheduled:
                order = next(self._order)
                self._scheduled[queue.id] = order
                time = queue.next_fetch if since is None else max(since, queue.next_fetch)
                heapq.heappush(self._ready, (time, order, queue.id))
        elif queue.idle:
            heapq.heappush(self._idle, (self._forget_at(queue), next(self._order), queue.id))

    def _forget_at(self, queue: FetchQueue) -> int:
        """Returns the time from which an idle queue holds nothing that politeness needs."""
        keeps_exceptions = (
            self.settings.max_exceptions > NEVER or self.settings.exceptions_delay > 0
        )
        matters = keeps_exceptions and queue.exceptions and self.feeding
        return queue.next_fetch + (self.settings.clear_after if matters else 0)

    def _forget_idle(self, now: int) -> None:
        while self._idle and self._idle[0][0] < now:
            queue = self.queues.get(heapq.heappop(self._idle)[2])
            if queue is None or not queue.idle or queue.seen is not None:
                continue
            forget_at = self._forget_at(queue)
            if forget_at < now:
                del self.queues[queue.id]
            else:
                heapq.heappush(self._idle, (forget_at, next(self._order), queue.id))

    def _take_own_delay(self, queue: FetchQueue, item: FetchItem, now: int) -> None:
        delay = item.datum.metadata.pop(VARIABLE_DELAY_KEY, None)
        if isinstance(delay, LongWritable) and not queue.own_delay:
            queue.own_delay = True
            queue.crawl_delay = queue.min_delay = delay.value
            queue.next_fetch = min(queue.next_fetch, now)
            self._scheduled.pop(queue.id, None)
