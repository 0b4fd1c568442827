"""ResolveUrls by class name: which hosts of a list of URLs have an address, and how long it takes
to find out.

The names go to the system's resolver, several at a time. It ends when all are through; Nutch's
never did. Source: org.apache.nutch.tools.ResolveUrls.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from time import monotonic
from typing import Final, NamedTuple

from minutch.commands.arguments import Flag, parse
from minutch.job import JobContext
from minutch.urls.parts import host_of

USAGE: Final = """ResolveUrls -urls <urls> [-numThreads <threads>]
 -urls <urls>            a file with a URL in each line
 -numThreads <threads>   names asked for at a time; 100 if not given"""
FLAGS: Final = (Flag("-urls", value="urls"), Flag("-numThreads", value="numThreads", convert=int))


class Lookup(NamedTuple):
    """What became of a host; it is None for what is no URL."""

    host: str | None
    found: bool
    ms: int


def run(args: list[str], context: JobContext) -> int:
    """The command: 0, also for the usage, which a command line without -urls asks for."""
    given = parse(args, FLAGS, usage=USAGE, most=0)
    if given["-urls"] is None:
        context.print(f"usage: {USAGE}")
        return 0
    total = found = time = 0
    with Path(given["-urls"]).open(encoding="utf-8", errors="replace") as file:
        for lookup in resolve(
            (line.rstrip("\r\n") for line in file), max(1, given.get("-numThreads", 100))
        ):
            total += 1
            found += lookup.found
            time += lookup.ms
            context.print(
                f"{'Resolved' if lookup.found else 'Error Resolving'}: {lookup.host or 'null'},"
                f" {lookup.ms} millis"
            )
    average = time // total if total else 0
    context.print(
        f"Total: {total}, Resolved: {found}, Errored: {total - found}, Average Time: {average}"
    )
    return 0


def resolve(urls: Iterable[str], threads: int) -> Iterator[Lookup]:
    """Look up the hosts of URLs, in their order, so many at a time; blank lines are left out."""
    pool = ThreadPoolExecutor(threads)
    waiting: deque[Future[Lookup]] = deque()
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


def _look_up(host: str | None) -> Lookup:
    start = monotonic()
    try:
        found = bool(host) and bool(socket.getaddrinfo(host, None))
    except (OSError, UnicodeError):
        found = False
    return Lookup(host, found, int((monotonic() - start) * 1000))
