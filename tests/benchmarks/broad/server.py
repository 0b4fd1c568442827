"""Serves a web in one process: HTTP on one port of all loopback addresses, DNS on another.

    python -m tests.benchmarks.broad.server LOG PORT PLAN          (PLAN is JSON)

Prints both ports once it serves, and ends at the end of its input. One loop over epoll: half of
what asyncio needs for a request, and the fetch that is measured has the other core.
"""

from __future__ import annotations

import gc
import heapq
import json
import os
import resource
import select
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from tests.benchmarks.broad.answers import Answers, bomb
from tests.benchmarks.broad.connections import READ, Connection
from tests.benchmarks.broad.names import respond
from tests.benchmarks.broad.requestlog import QUESTION, RequestLog, now
from tests.benchmarks.broad.web import Plan, Web
from tests.benchmarks.measure import Failed

PROJECT: Final = Path(__file__).parents[3]
KEPT_SECONDS: Final = 15
"""For how long a connection without a request is kept."""
_EVERY: Final = 200_000
"""µs between two writes of the log."""
_BACKLOG: Final = 4096
_SO_RCVBUFFORCE: Final = 33


class Server:
    """The loop, and what connections share."""

    def __init__(
        self, web: Web, log: Path, port: int, make: Callable[[Web, int], Answers] = Answers
    ) -> None:
        self.web = web
        self.latencies = [1000 * latency for latency in web.latencies.tolist()]
        self.first: list[int] = web.first.tolist()
        self.sizes: list[int] = web.sizes.tolist()
        self.log = RequestLog(log)
        self._epoll = select.epoll()
        self._connections: dict[int, Connection] = {}
        self._idle: dict[Connection, int] = {}
        """Since when (µs), oldest first."""
        self._alarms: list[tuple[int, int, Connection]] = []
        self._alarm_number = 0
        self._http = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._http.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._http.bind(("0.0.0.0", port))
        self._http.listen(_BACKLOG)
        self.answers = make(web, self._http.getsockname()[1])
        self._dns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with suppress(PermissionError):  # a burst of questions is not to be lost
            self._dns.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 8 << 20)
        self._dns.bind(("127.0.0.1", 0))
        for sock in (self._http, self._dns):
            sock.setblocking(False)
            self._epoll.register(sock.fileno(), READ)

    @property
    def ports(self) -> tuple[int, int]:
        """Those of HTTP and DNS."""
        return self._http.getsockname()[1], self._dns.getsockname()[1]

    # -- for connections ---------------------------------------------------------------------------

    def alarm(self, time: int, connection: Connection) -> None:
        self._alarm_number += 1
        heapq.heappush(self._alarms, (time, self._alarm_number, connection))

    def watch(self, connection: Connection, events: int) -> None:
        self._epoll.modify(connection.fd, events)

    def idle(self, connection: Connection) -> None:
        self._idle.pop(connection, None)
        self._idle[connection] = now()

    def forget(self, connection: Connection) -> None:
        self._connections.pop(connection.fd, None)
        self._idle.pop(connection, None)

    # -- the loop ----------------------------------------------------------------------------------

    def serve(self, until: int) -> None:
        """Serves until there is an end of file at `until`, a descriptor."""
        self._epoll.register(until, READ)
        http, dns, connections = self._http.fileno(), self._dns.fileno(), self._connections
        written = now()
        while True:
            for fd, events in self._epoll.poll(self._wait()):
                connection = connections.get(fd)
                if connection is not None:
                    if events & ~select.EPOLLOUT:
                        connection.receive()
                    if events & select.EPOLLOUT and not connection.closed:
                        connection.writable()
                elif fd == http:
                    self._accept()
                elif fd == dns:
                    self._answer()
                elif fd == until:
                    self._end()
                    return
            time = self._ring()
            if time - written >= _EVERY:
                written = time
                self.log.flush()
                self._close_idle(time - KEPT_SECONDS * 1_000_000)

    def _wait(self) -> float:
        due = self._alarms[0][0] - now() if self._alarms else _EVERY
        return max(0, min(due, _EVERY)) / 1_000_000

    def _ring(self) -> int:
        time = now()
        while self._alarms and self._alarms[0][0] <= time:
            due, _, connection = heapq.heappop(self._alarms)
            if not connection.closed:
                connection.ring(due)
        return time

    def _accept(self) -> None:
        with suppress(BlockingIOError, ConnectionAbortedError):
            for _ in range(100):
                sock, _ = self._http.accept()
                sock.setblocking(False)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connection = self._connections[sock.fileno()] = Connection(self, sock)
                self._epoll.register(sock.fileno(), READ)
                self.idle(connection)

    def _answer(self) -> None:
        with suppress(BlockingIOError):
            for _ in range(100):
                packet, sender = self._dns.recvfrom(4096)
                time = now()
                with suppress(IndexError):
                    host, answer = respond(packet, self.web.kinds)
                    self._dns.sendto(answer, sender)
                    self.log.add(time, time, host, QUESTION, 0)

    def _close_idle(self, before: int) -> None:
        for connection, since in list(self._idle.items()):
            if since > before:
                break
            if connection.busy:
                del self._idle[connection]
            else:
                connection.end()

    def _end(self) -> None:
        for connection in list(self._connections.values()):
            connection.end()
        self.log.flush()
        for sock in (self._http, self._dns):
            sock.close()


class Serving(NamedTuple):
    """A server that runs."""

    pid: int
    port: int
    dns: str
    """`address:port`"""
    log: Path


@contextmanager
def serving(
    plan: Any, folder: Path, module: str = __name__, environment: Mapping[str, str] | None = None
) -> Iterator[Serving]:
    """Serve a web for a while, from another process, which runs `module` with a plan (a dataclass)
    and more `environment`; its log is complete afterwards.
    """
    log = folder / "requests"
    command = [sys.executable, "-m", module, str(log), "0", json.dumps(asdict(plan))]
    with subprocess.Popen(
        command,
        cwd=PROJECT,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        ports = process.stdout.readline().split()
        if len(ports) != 2:
            raise Failed(f"the server of the web ended with exit code {process.wait()}")
        try:
            yield Serving(process.pid, int(ports[0]), f"127.0.0.1:{ports[1]}", log)
        finally:
            process.stdin.close()
            process.wait(60)


def main(log: str, port: str, plan: str) -> None:
    """Serve a web of hosts that are as they are."""
    given = json.loads(plan)
    web = Web(Plan(**given | {"only": tuple(given["only"])}))
    if "bomb" in web.kinds:
        bomb()
    run(Server(web, Path(log), int(port)))


def run(server: Server) -> NoReturn:
    """Serve until the end of input, and end the process."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    gc.collect()
    gc.disable()  # nothing here has circles, and a collection would be a latency
    print(*server.ports, flush=True)
    server.serve(sys.stdin.fileno())
    os._exit(0)  # without taking millions of objects apart


if __name__ == "__main__":
    main(*sys.argv[1:])
