"""Looks up the addresses of hosts, several at a time, by the system's resolver."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from time import monotonic
from typing import NamedTuple

from minutch.urls.parts import host_of


class HostLookup(NamedTuple):
    """The result of looking up a host, which is None for an invalid URL."""

    host: str | None
    found: bool
    ms: int


def look_up_hosts(urls: Iterable[str], threads: int) -> Iterator[HostLookup]:
    """Looks up the hosts of URLs; yields the results in their order. Blank lines are ignored."""
    pool = ThreadPoolExecutor(threads)
    waiting: deque[Future[HostLookup]] = deque()
    try:
        for url in urls:
            if url.strip():
                waiting.append(pool.submit(_look_up, host_of(url)))
            if len(waiting) >= 2 * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _look_up(host: str | None) -> HostLookup:
    start = monotonic()
    try:
        found = bool(host) and bool(socket.getaddrinfo(host, None))
    except (OSError, UnicodeError):
        found = False
    return HostLookup(host, found, int((monotonic() - start) * 1000))
