"""Looks up hosts in the DNS, many at a time, by the protocol plugin of http://, as for fetching.

`hostdb.num.resolvers.threads` is the number of simultaneous look-ups. http.dns.* (servers, time
limits) apply.

Source: org.apache.nutch.hostdb.ResolverThread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from minutch.conf import Configuration
from minutch.errors import UrlError
from minutch.plugin.protocolfactory import ProtocolFactory
from minutch.urls.hostname import to_ascii_2008

THREADS_PROPERTY = "hostdb.num.resolvers.threads"


class Lookups:
    """A resolver of hosts; a context manager, which closes the protocol plugin."""

    def __init__(self, protocols: ProtocolFactory, at_a_time: int = 25) -> None:
        """Raises ProtocolError if no active plugin fetches http://."""
        self._at_a_time = at_a_time
        self._protocols = protocols
        self._protocol = protocols.get_protocol("http://localhost/")
        self._runner = asyncio.Runner()

    @classmethod
    def from_conf(cls, conf: Configuration) -> Self:
        """Makes a resolver with the active protocol plugins."""
        return cls(ProtocolFactory(conf), max(1, conf.get_int(THREADS_PROPERTY)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._runner:
            self._runner.run(self._protocols.close())

    def resolve(self, hosts: Sequence[str], on_answer: Callable[[int], object] = int) -> list[bool]:
        """Returns True for each host that has an address; so does an address, and the empty host,
        which is this machine.

        Calls `on_answer` with 1 after each.
        """
        return self._runner.run(self._resolve(hosts, on_answer))

    async def _resolve(
        self, hosts: Sequence[str], on_answer: Callable[[int], object]
    ) -> list[bool]:
        found = [False] * len(hosts)
        waiting = iter(enumerate(hosts))

        async def work() -> None:
            for row, host in waiting:
                found[row] = not host or bool(await self._addresses_of(host))
                on_answer(1)

        await asyncio.gather(*(work() for _ in range(min(self._at_a_time, len(hosts)))))
        return found

    async def _addresses_of(self, host: str) -> list[str]:
        """Looks up a host: an IPv6 address without its brackets, a name in its ASCII form."""
        try:
            name = host.strip("[]") if host.isascii() else to_ascii_2008(host)
            return await self._protocol.addresses_of(name)
        except UrlError:
            return []
