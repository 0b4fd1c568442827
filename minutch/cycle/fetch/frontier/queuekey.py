"""Names the queue of a URL: its host, registered domain or address. Pure but for the look-up given.

Source: org.apache.nutch.fetcher.FetchItem.create: queues are keyed without scheme and port. Names
of one server (`localhost.`, `127.1`, other scripts) have one queue.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from hashlib import blake2b

from minutch.cycle.fetch.settings import BY_DOMAIN, BY_HOST
from minutch.errors import UrlError
from minutch.urls.domains import domain_of
from minutch.urls.hostname import canonical_host
from minutch.urls.parts import parse

Resolve = Callable[[str], str | None]
"""Host name to address; None if it has none, or is not known yet."""
Learn = Callable[[Iterable[str]], Awaitable[None]]
"""Waits until the addresses of the hosts of these URLs are known."""


def queue_hash(name: str) -> int:
    """Returns 64 bits that stand for a queue or host, in every process alike."""
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


def host_name(url: str) -> str:
    """Returns the host of a URL as queues name it; "" where it has none."""
    try:
        return canonical_host(parse(url).host)
    except UrlError:
        return ""
