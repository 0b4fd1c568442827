"""Looks hosts up in the DNS, many at a time, the way pages are fetched: by the protocol plugin of
http://.

`hostdb.num.resolvers.threads` is how many questions are open at the same time. http.dns.* (servers,
time limits) hold.

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
from minutch.urls.idn import to_ascii_2008

PROPERTY = "hostdb.num.resolvers.threads"


class Lookups:
    """Asks for hosts; a context manager, which closes what the protocol has opened."""

    def __init__(self, conf: Configuration) -> None:
        """Raises ProtocolError if no active plugin fetches http://."""
        self._at_a_time = max(1, conf.get_int(PROPERTY, 25))
        self._factory = ProtocolFactory(conf)
        self._protocol = self._factory.get_protocol("http://localhost/")
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._runner:
            self._runner.run(self._factory.close())

    def resolve(self, hosts: Sequence[str], on_answer: Callable[[int], object] = int) -> list[bool]:
        """For each host whether it has an address. An address has itself, the empty host is this
        machine.

        `on_answer` is called with 1 after each.
        """
        return self._runner.run(self._resolve(hosts, on_answer))

    async def _resolve(
        self, hosts: Sequence[str], on_answer: Callable[[int], object]
    ) -> list[bool]:
        found = [False] * len(hosts)
        waiting = iter(enumerate(hosts))

        async def work() -> None:
            for place, host in waiting:
                found[place] = not host or bool(await self._addresses_of(host))
                on_answer(1)

        await asyncio.gather(*(work() for _ in range(min(self._at_a_time, len(hosts)))))
        return found

    async def _addresses_of(self, host: str) -> list[str]:
        """Of an IPv6 address its brackets are no part, of a name the ASCII form is asked for."""
        try:
            name = host.strip("[]") if host.isascii() else to_ascii_2008(host)
            return await self._protocol.addresses_of(name)
        except UrlError:
            return []
