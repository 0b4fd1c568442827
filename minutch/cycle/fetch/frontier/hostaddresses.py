"""Addresses of hosts, where queues are named by them (fetcher.queue.mode=byIP): asked for many at a
time, off the loop.

    begin   ask for the address of a URL's host, and go on; `heard` is called when there is an
            answer
    learn   the same for several URLs, and wait
    known   what was heard

A host keeps the address that it was first found at, so that its queue keeps its name as long as the
fetch lasts. Source: org.apache.nutch.fetcher.FetchItem.create (java.net.InetAddress.getByName).
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Final

from minutch.cycle.fetch.frontier.listindex import HostSupply, ListIndex
from minutch.cycle.fetch.frontier.queueitems import Dropped
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


class HostAddresses:
    """One address of each host that was asked for. Used on one event loop."""

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
        """Waits until the addresses of all hosts of `urls` are known."""
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
