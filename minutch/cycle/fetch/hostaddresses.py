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
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from minutch.urls.parts import host_of

log = logging.getLogger(__name__)

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

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._known: OrderedDict[str, str | None] = OrderedDict([("", THIS_MACHINE)])
        self._asked: dict[str, asyncio.Task[None]] = {}
        self.heard: Callable[[], object] = lambda: None

    def known(self, host: str) -> str | None:
        """Returns the address of a host that was asked for; None if it has none."""
        return self._known.get(host)

    def begin(self, url: str) -> asyncio.Task[None] | None:
        """Asks for the address of a URL's host; None if nothing has to be waited for."""
        host = host_of(url)
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
        self.heard()


async def nothing_to_learn(urls: Iterable[str]) -> None:
    """Stands in for `learn` where queues have no addresses for names."""
