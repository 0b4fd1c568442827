"""The items of a fetch, their hosts and their queues, as `queues` keeps them, and their names."""

from __future__ import annotations

import heapq
import struct
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final, Protocol

from minutch.cycle.fetch.ledger import Outcome
from minutch.cycle.fetch.results.fetchlog import Frame
from minutch.cycle.fetch.settings import BY_DOMAIN, BY_HOST
from minutch.errors import UrlError
from minutch.hadoop.formats.writables import LongWritable, Text
from minutch.records.crawldatum import CrawlDatum
from minutch.urls.domains import domain_of
from minutch.urls.hostname import canonical_host
from minutch.urls.parts import parse

NO_ENTRY: Final = 0
_FOLLOW: Final = struct.Struct(">II")
VARIABLE_DELAY_KEY: Final = Text("_variableFetchDelay_")
"""Key of a host's own delay (LongWritable, ms), from generate; its queue takes it out."""
RESTS: Final = 5000
"""Milliseconds more than between two requests: who rests so long has failed, or asked for it."""
FOLLOWED_ELSEWHERE: Final = b""
"""The value of a FOLLOW entry that voids others: it is not for this list to follow the URL."""


@dataclass(slots=True)
class FetchItem:
    """One URL on its way. `listed` is its key in the fetch list, None for a followed link or a
    redirect's target.

    `host` is the one that rests when it asks to: the queues know it. `depth` counts followed links,
    `redirects` those that led here.
    """

    url: str
    datum: CrawlDatum
    queue_id: str
    listed: str | None = None
    depth: int = 0
    redirects: int = 0
    host: str = ""
    deferrals: int = 0
    """How often it was put back."""
    frame: Frame | None = None
    """The records of its robots.txt, where its page has to be asked for once more."""
    asked_whole: bool = False
    """It is asked for once more since "not modified" did not speak of the copy that is held."""
    in_progress: bool = False
    """It is being asked for, and counts in its queue."""
    own_delay: int | None = None
    """The delay (ms) of its host that stood in the fetch list."""
    parts: int = 0
    """The number of its part of the list; where it is of no list, the parts that there were when
    the page was asked that led to it (`claims`).
    """

    def __reduce__(self) -> tuple[Any, ...]:
        """To another process an item goes as it does to the log."""
        return unpack_follow, (self.url, pack_follow(self), self.queue_id, self.parts)


def pack_follow(item: FetchItem) -> bytes:
    """Returns the value of a FOLLOW entry: depth, redirects so far and datum of an item that is
    still to be fetched.
    """
    return _FOLLOW.pack(item.depth, item.redirects) + item.datum.to_bytes()


def unpack_follow(url: str, value: bytes, queue_id: str, parts: int = 0) -> FetchItem:
    """Returns the item of a FOLLOW entry."""
    depth, redirects = _FOLLOW.unpack_from(value)
    datum = CrawlDatum.from_bytes(value[_FOLLOW.size :])
    return FetchItem(url, datum, queue_id, None, depth, redirects, parts=parts)


class Items(Protocol):
    """Items of one host, read as they are wanted."""

    @property
    def left(self) -> int:
        """Number of items."""
        ...

    def next(self) -> FetchItem:
        """Returns the next of them. Raises StoreError if the fetch list can't be read."""
        ...


class Supply(Items, Protocol):
    """The URLs that a fetch list has left of one host."""

    host: str
    queue_id: str


class OneItem:
    """An item alone."""

    def __init__(self, item: FetchItem) -> None:
        self._item = item
        self.left = 1

    def next(self) -> FetchItem:
        self.left = 0
        return self._item


class FetchList(Protocol):
    """The hosts of a fetch list that are not begun."""

    hosts: int
    """Number of hosts at first."""
    left: int
    """URLs of all these hosts."""

    @property
    def has_refused(self) -> bool:
        """True if there are URLs that can't be fetched."""
        ...

    def refused(self, most: int) -> Iterable[Dropped]:
        """Hands out up to `most` of them."""
        ...

    def most(self) -> int:
        """Returns the number of URLs of the host that comes next; 0 if there is none yet."""
        ...

    def begin(self) -> Supply:
        """Takes the host that comes next."""
        ...


class OpenLists:
    """The lists that are being fetched together: a `FetchList` of them all."""

    def __init__(self, first: FetchList | None = None) -> None:
        self._lists = [] if first is None else [first]

    def add(self, listed: FetchList) -> None:
        """Takes another list."""
        self._lists.append(listed)

    def clear(self) -> None:
        """Lets all lists go, which have nothing left."""
        self._lists.clear()

    @property
    def hosts(self) -> int:
        return sum(one.hosts for one in self._lists)

    @property
    def left(self) -> int:
        return sum(one.left for one in self._lists)

    @property
    def has_refused(self) -> bool:
        return any(one.has_refused for one in self._lists)

    def refused(self, most: int) -> list[Dropped]:
        found: list[Dropped] = []
        for one in self._lists:
            found += one.refused(most - len(found))
        return found

    def most(self) -> int:
        return max((one.most() for one in self._lists), default=0)

    def begin(self) -> Supply:
        return max(self._lists, key=lambda one: one.most()).begin()


@dataclass(frozen=True, slots=True)
class Dropped:
    """An item that will not be asked for, and why."""

    item: FetchItem
    outcome: Outcome
    reason: str


class DroppedItems:
    """Items that will not be asked for, until they are handed back."""

    def __init__(self) -> None:
        self._held: deque[tuple[Items, Outcome, str]] = deque()

    def add(self, items: Items, why: tuple[Outcome, str]) -> None:
        self._held.append((items, *why))

    def __bool__(self) -> bool:
        """True if there are some."""
        # Whole hosts are held, of which the last item may have been handed back.
        while self._held and not self._held[0][0].left:
            self._held.popleft()
        return bool(self._held)

    def take(self, most: int) -> list[Dropped]:
        """Hands back up to `most` of them."""
        found: list[Dropped] = []
        while len(found) < most and self:
            items, outcome, reason = self._held[0]
            found.append(Dropped(items.next(), outcome, reason))
        return found


@dataclass(slots=True, eq=False)
class HostItems:
    """The items of one host in its queue; redirects' targets and followed links come first."""

    host: str
    queue: FetchQueue
    rest: int = 0
    """It asked not to be called before (ms)."""
    listed: list[Supply] = field(default_factory=list)
    """What the fetch lists have of it."""
    added: deque[FetchItem] | None = None
    deferrals: int = 0
    why: str = Outcome.DEFERRED.reason
    """Why it rests."""

    @property
    def left(self) -> int:
        """Number of items."""
        added = len(self.added) if self.added else 0
        return sum((supply.left for supply in self.listed), added)

    def add(self, item: FetchItem, *, first: bool) -> None:
        """Puts an item in front of the others that were added, or behind them."""
        if self.added is None:
            self.added = deque()
        if first:
            self.added.appendleft(item)
        else:
            self.added.append(item)

    def next(self) -> FetchItem:
        """Takes the first item."""
        if self.added:
            return self.added.popleft()
        supply = self.listed[0]
        item = supply.next()
        if not supply.left:
            self.listed.pop(0)
        return item


@dataclass(slots=True, eq=False)
class FetchQueue:
    """The items of one host, domain or address; times in ms."""

    id: str
    max_threads: int
    crawl_delay: int
    min_delay: int
    next_fetch: int
    awake: list[HostItems] = field(default_factory=list)
    """Hosts with items that may be asked, in turn."""
    asleep: list[tuple[int, int, HostItems]] = field(default_factory=list)
    """Hosts with items that asked for a rest; a heap."""
    delays: dict[str, int] | None = None
    """The Crawl-Delay of each host that has one."""
    waiting: int = 0
    in_progress: int = 0
    failures: int = 0
    """Failures in a row, or all of them (`failures_in_row`)."""
    doublings: int = 0
    """How often the back-off has doubled."""
    own_delay: bool = False
    entry: int = NO_ENTRY
    """Number of its entry in a heap."""

    def delay_by_robots(self, host: str, delay: int | None, usual: int) -> bool:
        """Takes over a host's Crawl-Delay (ms), or that it has none; `usual` is the delay without
        one. False if that was known.
        """
        known = self.delays or {}
        if known.get(host) == delay:
            return False
        others = {other: of_other for other, of_other in known.items() if other != host}
        self.delays = others if delay is None else others | {host: delay}
        least = self.min_delay if self.own_delay else usual
        # Where hosts share a queue, the most patient pace holds for all.
        self.crawl_delay = max(self.delays.values(), default=least)
        return True

    @property
    def delay(self) -> int:
        """Rest between two items: of its hosts' Crawl-Delays the longest."""
        # FetchItemQueue.setEndTime.
        return self.min_delay if self.max_threads > 1 else self.crawl_delay

    @property
    def can_yield(self) -> bool:
        """Has an item and a free place, whatever the time."""
        return self.waiting > 0 and self.in_progress < self.max_threads

    @property
    def yields_at(self) -> int:
        """When it may yield its next item."""
        return self.next_fetch if self.awake else max(self.next_fetch, self.asleep[0][0])

    def take_own_delay(self, item: FetchItem) -> None:
        """Takes over the delay that stood in the fetch list; that of the first item counts."""
        delay = item.datum.metadata.pop(VARIABLE_DELAY_KEY, None)
        if isinstance(delay, LongWritable):
            item.own_delay = delay.value
            if not self.own_delay:
                self.own_delay = True
                self.crawl_delay = self.min_delay = delay.value

    def bad_hosts(self, now: int) -> list[HostItems]:
        """Returns the hosts with items that rest or fail."""
        if self.is_resting(now):
            return self.hosts
        return [items for until, _, items in self.asleep if until - now > RESTS]

    def is_resting(self, now: int) -> bool:
        """Something waits, and for RESTS; or for a host whose last answer was a failure."""
        rests = self.failures > 0 or self.yields_at - now > self.delay + RESTS
        return self.waiting > 0 and rests

    @property
    def rests_on_request(self) -> bool:
        """All hosts that have items asked not to be called."""
        return bool(self.asleep) and not self.awake

    @property
    def hosts(self) -> list[HostItems]:
        """All hosts with items."""
        return [*self.awake, *(items for _, _, items in self.asleep)]

    def remove(self, items: HostItems) -> None:
        """Takes a host out of those with items."""
        if items in self.awake:
            self.awake.remove(items)
        else:
            self.asleep = [entry for entry in self.asleep if entry[2] is not items]
            heapq.heapify(self.asleep)


# -- names -----------------------------------------------------------------------------------------
#
# A queue is named by its host, registered domain or address. Pure but for the look-up given.
# Source: org.apache.nutch.fetcher.FetchItem.create: queues are keyed without scheme and port. Names
# of one server (`localhost.`, `127.1`, other scripts) have one queue.

Resolve = Callable[[str], str | None]
"""Host name to address; None if it has none, or is not known yet."""
Learn = Callable[[Iterable[str]], Awaitable[None]]
"""Waits until the addresses of the hosts of these URLs are known."""


def queue_hash(name: str) -> int:
    """Returns 64 bits that stand for a queue or host, in every process alike."""
    # hash() differs from process to process.
    digest = blake2b(name.encode("utf-8", "surrogateescape"), digest_size=8).digest()
    return int.from_bytes(digest)


class QueueNames:
    """Names queues, by `fetcher.queue.mode`."""

    def __init__(
        self, mode: str, address_of: Resolve | None = None, learn: Learn | None = None
    ) -> None:
        """`address_of` and `learn` are for queues that are named by addresses."""
        self._mode = mode
        self._address_of = address_of
        self._learn = learn

    def of_host(self, host: str) -> str | None:
        """Returns the name of a host's queue; None if it has none."""
        name = canonical_host(host)
        if self._mode == BY_HOST:
            return name
        if self._mode == BY_DOMAIN:
            return domain_of(name)
        return None if self._address_of is None else self._address_of(name)

    def of(self, url: str) -> str | None:
        """Returns the name of a URL's queue; None if it has none, so that it can't be fetched."""
        try:
            return self.of_host(parse(url).host)
        except UrlError:
            return None

    async def learn(self, urls: Iterable[str]) -> None:
        """Waits until the queues of these URLs can be named."""
        if self._learn is not None:
            await self._learn(urls)


@dataclass(frozen=True, slots=True)
class Share:
    """The share of the queues that a worker has: number `index` of `count`."""

    index: int = 0
    count: int = 1

    def owns(self, queue_id: str) -> bool:
        return self.owner(queue_id) == self.index

    def owner(self, queue_id: str) -> int:
        """Returns the number of the worker that has a queue."""
        return 0 if self.count == 1 else queue_hash(queue_id) % self.count


class Neighbours(Protocol):
    """The other workers of a fetch, seen from one of them."""

    share: Share

    def hand_over(self, item: FetchItem) -> bool:
        """Gives an item to the worker that has its queue; False if that is this one."""
        ...

    def nothing_to_come(self) -> bool:
        """Asked when this worker has nothing left: True if no other one will hand it anything."""
        ...
