"""Names the queue of a URL: its host, registered domain or address. Pure but for the look-up given.

Source: org.apache.nutch.fetcher.FetchItem.create: queues are keyed without scheme and port. Names
of one server (`localhost.`, `127.1`, other scripts) have one queue.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

from minutch.cycle.fetch.settings import BY_DOMAIN, BY_HOST, BY_IP
from minutch.errors import UrlError
from minutch.urls.domains import domain_of
from minutch.urls.hostname import canonical_host
from minutch.urls.parts import parse

Resolve = Callable[[str], str | None]
"""Host name to address; None if it has none."""
HostKey = Callable[[str], str | None]
"""Host to the name of its queue; None if it has none."""
QueueKey = Callable[[str], str | None]
"""URL to the name of its queue; None if it has none, so that the URL can't be fetched."""


def queue_hash(name: str) -> int:
    """Returns 64 bits that stand for a queue or host, in every process alike."""
    digest = blake2b(name.encode("utf-8", "surrogateescape"), digest_size=8).digest()
    return int.from_bytes(digest)


def host_key(mode: str, resolve: Resolve) -> HostKey:
    """Returns the function that names the queue of a host, by `fetcher.queue.mode`."""
    return {
        BY_HOST: canonical_host,
        BY_DOMAIN: lambda host: domain_of(canonical_host(host)),
        BY_IP: lambda host: resolve(canonical_host(host)),
    }[mode]


def queue_key(mode: str, resolve: Resolve) -> QueueKey:
    """Returns the function that names the queue of a URL, by `fetcher.queue.mode`."""
    name = host_key(mode, resolve)

    def key(url: str) -> str | None:
        try:
            return name(parse(url).host)
        except UrlError:
            return None

    return key


def host_name(url: str) -> str:
    """Returns the host of a URL as queues name it; "" where it has none."""
    try:
        return canonical_host(parse(url).host)
    except UrlError:
        return ""
