"""Puts together what a process has to fetch: its fetch list by host, the queues, their names.

Where queues are named by addresses (fetcher.queue.mode=byIP), these are asked for many at a time,
off the loop. A host keeps the address that it was first found at, so that its queue keeps its name
as long as the fetch lasts.
Source: org.apache.nutch.fetcher.FetchItem.create (java.net.InetAddress.getByName).
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from minutch.cycle.fetch.components import FetchComponents, addresses_of
from minutch.cycle.fetch.frontier.listindex import Change, HostSupply, ListIndex
from minutch.cycle.fetch.frontier.queueitems import Dropped, FetchItem, FetchList, QueueNames, Share
from minutch.cycle.fetch.frontier.queues import FetchQueues
from minutch.cycle.fetch.limits import Wakeup
from minutch.cycle.fetch.settings import BY_IP, FetchSettings, FollowSettings
from minutch.cycle.fetch.stats import FetchStats
from minutch.cycle.parse.pageparser import ParsedPage
from minutch.hadoop.formats.javahash import hash_map_order, string_hash
from minutch.kernels.clibrary import trim
from minutch.records.crawldatum import STATUS_LINKED, CrawlDatum
from minutch.urls.hostname import canonical_host
from minutch.urls.parts import host_of

log = logging.getLogger(__name__)

AHEAD: Final = 100
"""Hosts that are asked for before it is their turn."""
REMEMBERED: Final = 50_000
"""Hosts whose addresses are remembered; of more, those that were asked for first are asked for
again.
"""
THIS_MACHINE: Final = "127.0.0.1"
"""Where URLs without a host lead."""

Ask = Callable[[str, str], Awaitable[list[str]]]
"""URL and host to the host's addresses."""


@dataclass(slots=True)
class Frontier:
    """The URLs of a process, which has a share of all queues."""

    queues: FetchQueues
    names: QueueNames
    addresses: HostAddresses | None
    """Those of hosts, where they name the queues (byIP)."""
    _share: Share
    _change: Change
    _indexes: list[ListIndex] = field(default_factory=list)

    def read(
        self,
        files: Sequence[Path],
        scratch: Path,
        settled: Counter[str],
        *,
        number: int = 0,
        mine: bool = False,
    ) -> ListIndex:
        """Indexes the URLs of `files` that are not `settled` and whose queues the process has: all
        of them, if the files are its own (`mine`). Copies of parts go to files whose names begin
        with that of `scratch`. Raises FormatError, StoreError.
        """
        # By address it is known only later whose a host is (`AddressedList`).
        share = Share() if mine or self.addresses is not None else self._share
        named = self.names.of_host if self.addresses is None else str
        index = ListIndex(
            files,
            scratch,
            named,
            mine=share.owns,
            settled=settled,
            change=self._change,
            number=number,
        )
        trim()  # the pass takes more memory for a moment than the index in the end
        return index

    def take(self, index: ListIndex) -> None:
        """Hands the hosts of an index over to the queues."""
        listed: FetchList = index
        if self.addresses is not None:
            listed = AddressedList(index, self.addresses, self._share.owns)
        self.queues.listed.add(listed)
        self._indexes.append(index)

    def leave(self) -> None:
        """Closes the files of the fetch lists, from which nothing waits any more."""
        for index in self._indexes:
            index.close()
        self._indexes.clear()
        self.queues.listed.clear()

    def close(self) -> None:
        """Closes the files, and asks for no more addresses."""
        self.leave()
        if self.addresses is not None:
            self.addresses.close()


def open_frontier(
    share: Share, settings: FetchSettings, components: FetchComponents, wakeup: Wakeup, now: int
) -> Frontier:
    """Returns the empty queues of a process."""
    mode, addresses = settings.queues.mode, None
    names = QueueNames(mode)
    factory = components.protocol_factory  # makes the schemes of plugins known: first
    if mode == BY_IP:
        ask = partial(addresses_of, factory)
        addresses = HostAddresses(ask, wakeup)
        names = QueueNames(mode, addresses.known, addresses.learn)
    queues = FetchQueues(settings.queues, seed=now)
    steps: list[Callable[[str], str | None]] = []
    if settings.normalize_urls:
        steps.append(components.list_normalizers.normalize)
    if settings.filter_urls:
        steps.append(components.filters.filter)
    return Frontier(queues, names, addresses, share, Change(*steps))


# -- addresses -------------------------------------------------------------------------------------


class HostAddresses:
    """One address of each host that was asked for. Used on one event loop.

    begin   ask for the address of a URL's host, and go on; `heard` is called when there is an
            answer
    learn   the same for several URLs, and wait
    known   what was heard
    """

    def __init__(self, ask: Ask, heard: Callable[[], object]) -> None:
        """`heard` is called when there is an answer."""
        self._ask = ask
        self._heard = heard
        self._known: OrderedDict[str, str | None] = OrderedDict([("", THIS_MACHINE)])
        self._asked: dict[str, asyncio.Task[None]] = {}
        self.answers = 0
        """How many were heard."""

    def known(self, host: str) -> str | None:
        """Returns the address of a host that was asked for; None if it has none."""
        return self._known.get(host)

    def begin(self, url: str) -> asyncio.Task[None] | None:
        """Asks for the address of a URL's host; None if nothing has to be waited for."""
        host = host_of(url)
        host = None if host is None else canonical_host(host)
        if host is None or host in self._known:
            return None
        task = self._asked.get(host)
        if task is None:
            task = self._asked[host] = asyncio.get_running_loop().create_task(
                self._look_up(url, host)
            )
        return task

    async def learn(self, urls: Iterable[str]) -> None:
        """Waits until the addresses of all hosts in `urls` are known."""
        tasks = {task for task in map(self.begin, urls) if task is not None}
        if tasks:
            await asyncio.wait(
                tasks
            )  # which leaves them running if nobody waits any longer: others may

    def close(self) -> None:
        """Gives up all questions."""
        for task in self._asked.values():
            task.cancel()

    async def _look_up(self, url: str, host: str) -> None:
        found: list[str] = []
        try:
            found = await self._ask(url, host)
        except Exception as exc:  # noqa: BLE001 - a resolver of any kind
            log.warning("no address of %s: %s: %s", host, type(exc).__name__, exc)
        finally:
            self._asked.pop(host, None)
        # InetAddress.getByName prefers IPv4 (java.net.preferIPv6Addresses is false).
        self._known[host] = next(
            (address for address in found if ":" not in address), found[0] if found else None
        )
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        self.answers += 1
        self._heard()


class AddressedList:
    """The hosts of an index by address: a `FetchList` that looks up a few hosts ahead."""

    def __init__(
        self, index: ListIndex, addresses: HostAddresses, mine: Callable[[str], bool]
    ) -> None:
        """`mine` says whether this process has a queue; `index` has the hosts of all."""
        self._index = index
        self._addresses = addresses
        self._mine = mine
        self._asked: list[HostSupply] = []
        self._ready: deque[HostSupply] = deque()
        self._answers = -1
        self.hosts, self.left = index.hosts, index.left

    def most(self) -> int:
        """Returns the number of URLs of the host that comes next; 0 as long as its address is being
        looked up.
        """
        self._look_up()
        return self._ready[0].left if self._ready else 0

    def begin(self) -> HostSupply:
        """Takes the host that comes next."""
        supply = self._ready.popleft()
        self.left -= supply.left
        return supply

    @property
    def has_refused(self) -> bool:
        """True if there are URLs that can't be fetched."""
        self._look_up()
        return self._index.has_refused

    def refused(self, most: int) -> Iterator[Dropped]:
        """Yields up to `most` of them."""
        return (found for found in self._index.refused(most) if self._mine(found.item.url))

    def _look_up(self) -> None:
        """Takes hosts whose addresses were heard, and asks for those of the next ones."""
        # Asked at every pump: without an answer nothing has changed.
        if self._answers == self._addresses.answers:
            return
        self._answers = self._addresses.answers
        asked, self._asked = self._asked, []
        for supply in asked:
            self._ask(supply)
        while len(self._asked) < AHEAD and self._index.most():
            self._ask(self._index.begin())

    def _ask(self, supply: HostSupply) -> None:
        if self._addresses.begin(supply.first_url()) is not None:
            self._asked.append(supply)
            return
        queue_id = self._addresses.known(supply.host)
        if queue_id is not None and self._mine(queue_id):
            supply.queue_id = queue_id
            self._ready.append(supply)
            return
        self.left -= supply.left
        if queue_id is None:
            self._index.refuse(supply)


# -- links ---------------------------------------------------------------------------------------


class LinkFollower:
    """Chooses the links of a page that are fetched in the same run (fetcher.follow.outlinks.*).

    The first few of a page (in the order of Java's HashSet), each URL once. Source:
    org.apache.nutch.fetcher.FetcherThread.output, where each is followed once a host.
    """

    def __init__(
        self,
        settings: FollowSettings,
        names: QueueNames,
        stats: FetchStats,
        listed: Iterable[str] = (),
    ) -> None:
        """`listed` are the URLs of the fetch list, which nobody has to follow a link to."""
        self._settings = settings
        self._names = names
        self._stats = stats
        # 8 bytes a URL; two with the same hash cost a link at most.
        self._seen = {hash(url) for url in listed}

    def forget(self, but: Iterable[str]) -> None:
        """Starts over for another list: links are followed again, except to the URLs in `but`,
        which go on.
        """
        self._seen = {hash(url) for url in but}

    def is_new(self, url: str) -> bool:
        """Returns True if a link to a URL may be followed: once, and not if the URL is listed."""
        size = len(self._seen)
        self._seen.add(hash(url))
        return len(self._seen) > size

    def follow(self, page: ParsedPage, depth: int) -> list[FetchItem]:
        """Returns items for the links to fetch; none if the page is already at the greatest
        depth.
        """
        if depth >= self._settings.depth:
            return []
        return [item for url, links in page.outlinks for item in self._of(url, links, depth + 1)]

    def _of(self, url: str, links: Sequence[str], depth: int) -> list[FetchItem]:
        # A page's link to itself is not followed.
        self.is_new(url)
        distinct = list(dict.fromkeys(links))
        self._stats.events["outlinks_detected_total"] += len(distinct)
        host = host_of(url)
        items: list[FetchItem] = []
        for link in _java_order(distinct, len(links)):
            if len(items) >= self._settings.per_page:
                break
            if self._settings.ignore_external and host_of(link) != host:
                continue
            target = self._names.of(link)
            if target is not None and self.is_new(link):
                items.append(
                    FetchItem(
                        link,
                        CrawlDatum(STATUS_LINKED, self._settings.interval),
                        target,
                        None,
                        depth,
                    )
                )
        self._stats.events["outlinks_following_total"] += len(items)
        return items


def _java_order(urls: list[str], capacity: int) -> list[str]:
    """Returns the order in which a java.util.HashSet made for `capacity` entries gives them."""
    size = 1
    while size < max(capacity, 1):
        # HashMap.tableSizeFor.
        size *= 2
    return [urls[i] for i in hash_map_order([string_hash(url) for url in urls], size)]
