"""Measures the CPU of a request: by the plugins' transport, and by a bare loop over pycurl.

    python -m tests.benchmarks.transport [--requests 3000] [--hosts 200] [--rounds 7]

nginx serves pages of 15 and 280 KB on loopback addresses, whose CPU does not count: on connections
that are kept, in plain text and by TLS; and by TLS with a connection for each request, from hosts
that were asked before, and certificates checked. The bare loop sets the URL and collects lines and
content; it does not look at addresses, limits, time or answers. Both in turn in each round; the
medians count. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pycurl
import trustme

from plugins.lib_http.curlslot import CurlSettings
from plugins.lib_http.curltransport import CurlTransport
from plugins.lib_http.exchange import Order
from plugins.lib_http.resolver import ResolverCache
from tests.benchmarks.pageserver import free_port

SIZES: Final = {"small": 15_000, "large": 280_000}
AT_ONCE: Final = 100
_NGINX: Final = """
daemon off;
master_process off;
pid nginx.pid;
events {{ worker_connections 8192; }}
http {{
    access_log off;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000;
    ssl_certificate chain.pem;
    ssl_certificate_key chain.pem;
    ssl_protocols TLSv1.3;
    ssl_session_cache shared:all:50m;
    server {{ listen 0.0.0.0:{ports[0]} backlog=4096; root {folder}; }}
    server {{ listen 0.0.0.0:{ports[1]} ssl backlog=4096; root {folder}; }}
    server {{ listen 0.0.0.0:{ports[2]} ssl backlog=4096; root {folder}; keepalive_timeout 0; }}
}}
"""


@dataclass(frozen=True)
class Case:
    """What is asked for: pages of a size, by a scheme, from one of the server's ports."""

    title: str
    size: str
    scheme: str
    port: int

    def host(self, number: int) -> str:
        """A name for TLS, else an address."""
        return f"h{number}.bench.example" if self.scheme == "https" else _address(number)


def _address(number: int) -> str:
    return f"127.0.{1 + number // 200}.{1 + number % 200}"


@contextmanager
def serving(folder: Path) -> Iterator[list[Case]]:
    """Runs nginx for a while."""
    words = [f"word{number}" for number in range(5000)]
    for name, size in SIZES.items():
        text = " ".join(random.Random(1).choices(words, k=size // 5))[:size]
        (folder / name).write_text(text, encoding="ascii")
    ca = trustme.CA()
    ca.cert_pem.write_to_path(folder / "ca.pem")
    ca.issue_cert("*.bench.example").private_key_and_cert_chain_pem.write_to_path(
        folder / "chain.pem"
    )
    ports = [free_port() for _ in range(3)]
    (folder / "nginx.conf").write_text(_NGINX.format(ports=ports, folder=folder))
    nginx = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
    if nginx is None:
        sys.exit("nginx is not installed")
    log = folder / "error.log"
    with subprocess.Popen([nginx, "-p", folder, "-e", log, "-c", folder / "nginx.conf"]) as process:
        try:
            while not (folder / "nginx.pid").exists() and process.poll() is None:
                time.sleep(0.01)
            yield [
                Case(f"{scheme}, {SIZES[size] // 1000} KB", size, scheme, port)
                for scheme, port in zip(("http", "https"), ports, strict=False)
                for size in SIZES
            ] + [Case("https, 15 KB, new connections", "small", "https", ports[2])]
        finally:
            process.kill()


# -- ours ------------------------------------------------------------------------------------------


async def ours(case: Case, requests: int, hosts: int, ca: Path) -> float:
    """Seconds of CPU, after one request to each host."""

    async def look_up(host: str) -> tuple[list[str], float]:
        return [_address(int(host[1:].partition(".")[0]))], 3600.0

    settings = CurlSettings(ca_file=str(ca))
    transport = CurlTransport(settings, lambda address: True, ResolverCache(look_up))
    headers = [(b"Host", b"a"), (b"Accept-Encoding", b"identity"), (b"Accept", b"text/html")]

    async def ask(numbers: Iterator[int]) -> None:
        for number in numbers:
            host = case.host(number % hosts)
            target = f"/{case.size}?{number}".encode()
            reply = await transport.ask(Order(case.scheme, host, case.port, target, headers))
            assert len(reply.body) == SIZES[case.size]

    async def all_of(count: int) -> None:
        numbers = iter(range(count))
        await asyncio.gather(*(ask(numbers) for _ in range(AT_ONCE)))

    await all_of(hosts)
    start = time.process_time()
    await all_of(requests)
    taken = time.process_time() - start
    await transport.aclose()
    return taken


# -- a bare loop -----------------------------------------------------------------------------------


class BareLoop:
    """The same by pycurl alone."""

    def __init__(self, case: Case, hosts: int, ca: Path) -> None:
        self.case, self.hosts = case, hosts
        self.epoll, self.due = select.epoll(), 0
        self.multi = pycurl.CurlMulti()
        self.multi.setopt(pycurl.M_MAXCONNECTS, 2 * hosts)
        self.multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self.multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)
        self.parts: dict[Any, list[bytes]] = {}
        for _ in range(AT_ONCE):
            self._add(ca)
        self.idle = list(self.parts)
        known = [f"{case.host(n)}:{case.port}:{_address(n)}" for n in range(hosts)]
        self.idle[-1].setopt(pycurl.RESOLVE, known)  # this one begins

    def _add(self, ca: Path) -> None:
        handle = pycurl.Curl()
        parts = self.parts[handle] = []
        for option, value in (
            (pycurl.NOSIGNAL, 1),
            (pycurl.CAINFO, str(ca)),
            (pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1),
            (pycurl.DNS_CACHE_TIMEOUT, -1),
            (pycurl.BUFFERSIZE, 64 * 1024),
            (pycurl.HTTPHEADER, ["Accept-Encoding: identity"]),
            (pycurl.HEADERFUNCTION, [].append),
            (pycurl.WRITEFUNCTION, parts.append),
        ):
            handle.setopt(option, value)

    def _on_socket(self, what: int, descriptor: int, multi: Any, data: Any) -> None:
        with suppress(OSError):  # not there, or closed
            self.epoll.unregister(descriptor)
        if what != pycurl.POLL_REMOVE:
            mask = (select.EPOLLIN if what & 1 else 0) | (select.EPOLLOUT if what & 2 else 0)
            self.epoll.register(descriptor, mask)

    def _on_timer(self, milliseconds: int) -> None:
        self.due = milliseconds

    def ask(self, count: int) -> None:
        """Sends requests, and waits for the answers."""
        begun = done = 0
        while done < count:
            while self.idle and begun < count:
                self._begin(begun)
                begun += 1
            self._wait()
            done += self._collect()

    def _begin(self, number: int) -> None:
        case, handle = self.case, self.idle.pop()
        host = case.host(number % self.hosts)
        handle.setopt(pycurl.URL, f"{case.scheme}://{host}:{case.port}/{case.size}?{number}")
        self.parts[handle].clear()
        self.multi.add_handle(handle)

    def _wait(self) -> None:
        events = self.epoll.poll(max(self.due, 0) / 1000 if self.due >= 0 else 0.01, 256)
        if not events or self.due == 0:
            self.due = -1
            self.multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        for descriptor, event in events:
            self.multi.socket_action(descriptor, 2 if event & select.EPOLLOUT else 1)

    def _collect(self) -> int:
        _, ended, failed = self.multi.info_read(AT_ONCE)
        assert not failed, failed
        for handle in ended:
            self.multi.remove_handle(handle)
            assert len(b"".join(self.parts[handle])) == SIZES[self.case.size]
            self.idle.append(handle)
        return len(ended)

    def close(self) -> None:
        """Closes all connections."""
        for handle in self.parts:
            handle.close()
        self.multi.close()
        self.epoll.close()


def bare(case: Case, requests: int, hosts: int, ca: Path) -> float:
    """Seconds of CPU, after one request to each host."""
    loop = BareLoop(case, hosts, ca)
    loop.ask(hosts)
    start = time.process_time()
    loop.ask(requests)
    taken = time.process_time() - start
    loop.close()
    return taken


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.transport", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--requests", type=int, default=3000)
    parser.add_argument("--hosts", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    print("| | bare pycurl, µs | transport, µs | × |\n|---|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as name, serving(Path(name)) as cases:
        for case in cases:
            costs = []
            for _ in range(given.rounds):
                work = case, given.requests, given.hosts, Path(name) / "ca.pem"
                costs.append((bare(*work), asyncio.run(ours(*work))))
            micros = [
                statistics.median(times) * 1e6 / given.requests
                for times in zip(*costs, strict=True)
            ]
            ratio = statistics.median(mine / other for other, mine in costs)
            print(f"| {case.title} | {micros[0]:.0f} | {micros[1]:.0f} | {ratio:.2f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
