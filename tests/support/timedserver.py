"""A web server on all addresses of loopback that notes when it was asked for what, and answers as a
test says.

    def answer(host, path): return b"HTTP/1.1 …"            the whole answer; b"" closes at once
    with TimedServer(answer) as server: server.url("127.0.0.2", "/page")
    server.gaps()                                           seconds between requests, by host

Connections are kept, or closed when the second request comes on them (`closes_second`).
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from types import TracebackType
from typing import NamedTuple, Self

Answer = Callable[[str, str], bytes]


class Asked(NamedTuple):
    """A request: when it came (s), its host without the port, and its path."""

    time: float
    host: str
    path: str


def page(body: bytes = b"<html>page</html>", *lines: str, status: str = "200 OK") -> bytes:
    """An answer that leaves the connection open."""
    head = (f"HTTP/1.1 {status}", "Content-Type: text/html", *lines, f"Content-Length: {len(body)}")
    return "".join(f"{line}\r\n" for line in (*head, "")).encode() + body


NOT_FOUND = page(b"no", status="404 Not Found")


def moved(url: str) -> bytes:
    """A redirect."""
    return page(b"", f"Location: {url}", status="302 Found")


class TimedServer:
    """Runs in a thread of its own until the `with` block ends."""

    def __init__(self, answer: Answer, *, closes_second: bool = False, slow: float = 0) -> None:
        """Each answer takes `slow` seconds."""
        self._answer = answer
        self._closes_second = closes_second
        self._slow = slow
        self.asked: list[Asked] = []
        self.holds: Callable[[Asked], bool] = lambda asked: False
        """Whether an answer is held for now."""
        self.port = 0
        self.has_ipv6 = False
        """It listens on [::1], too."""

    def url(self, host: str, path: str = "/") -> str:
        return f"http://{host}:{self.port}{path}"

    def of(self, host: str) -> list[str]:
        """What a host was asked for, in order."""
        return [asked.path for asked in self.asked if asked.host == host]

    def gaps(self) -> dict[str, list[float]]:
        """The seconds between the requests to each host; none from its robots.txt to the page for
        which it was asked.
        """
        gaps: dict[str, list[float]] = {}
        for host in {asked.host for asked in self.asked}:
            of_host = [asked for asked in self.asked if asked.host == host]
            gaps[host] = [
                after.time - before.time
                for before, after in pairwise(of_host)
                if before.path != "/robots.txt"
            ]
        return gaps

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), daemon=True)
        self._thread.start()
        started.wait(10)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _run(self, started: threading.Event) -> None:
        loop = self._loop
        asyncio.set_event_loop(loop)
        server = loop.run_until_complete(asyncio.start_server(self._serve, "0.0.0.0", 0))
        self.port = server.sockets[0].getsockname()[1]
        servers = [server]
        with suppress(OSError):
            servers.append(
                loop.run_until_complete(asyncio.start_server(self._serve, "::1", self.port))
            )
        self.has_ipv6 = len(servers) > 1
        started.set()
        loop.run_forever()
        for server in servers:
            server.close()
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served = 0
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                host = next(line[6:] for line in lines if line.lower().startswith("host: "))
                asked = Asked(time.monotonic(), host.partition(":")[0], lines[0].split()[1])
                self.asked.append(asked)
                answer = self._answer(asked.host, asked.path)
                if not answer or (served and self._closes_second):
                    break
                await asyncio.sleep(self._slow)
                while self.holds(asked):
                    await asyncio.sleep(0.01)
                writer.write(answer)
                await writer.drain()
                served += 1
        writer.close()
