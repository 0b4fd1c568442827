"""Names the queue of a URL: its host, registered domain or address. Pure but for the look-up given.

Source: org.apache.nutch.fetcher.FetchItem.create: queues are keyed without scheme and port. Names
of one server (`localhost.`, `127.1`, other scripts) have one queue.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

from minutch.cycle.fetch.settings import BY_DOMAIN, BY_HOST, BY_IP
from minutch.errors import UrlError
from minutch.urls.domains import domain_name
from minutch.urls.hostname import canonical_host
from minutch.urls.parts import parse

Resolve = Callable[[str], str | None]
"""Host name to address; None if it has none."""
QueueKey = Callable[[str], str | None]
"""URL to name of its queue; None if there is none, so that the URL can't be fetched."""


def queue_hash(name: str) -> int:
    """Returns 64 bits that stand for a queue or host, in every process alike."""
    digest = blake2b(name.encode("utf-8", "surrogateescape"), digest_size=8).digest()
    return int.from_bytes(digest)


def queue_key(mode: str, resolve: Resolve) -> QueueKey:
    """Returns the function that names the queue of a URL, by `fetcher.queue.mode`."""

    def by_host(url: str) -> str | None:
        try:
            return canonical_host(parse(url).host)
        except UrlError:
            return None

    def by_domain(url: str) -> str | None:
        try:
            return domain_name(url)
        except UrlError:
            return None

    def by_address(url: str) -> str | None:
        host = by_host(url)
        return None if host is None else resolve(host)

    return {BY_HOST: by_host, BY_DOMAIN: by_domain, BY_IP: by_address}[mode]
