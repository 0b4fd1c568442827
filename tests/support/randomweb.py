"""A seeded random web on loopback that misbehaves: hosts that hang, lie, redirect in circles,
change their robots.txt.

    with RandomWeb(Plan(seed=1, pages=300, hosts=12)) as web:
        web.url(0)                     http://127.1.0.1:PORT/0

    python -m tests.support.randomweb PAGES HOSTS SEED    serves until stdin ends; prints the port

Page n is on host n % hosts; what a host and a page do follows from the seed alone, but for
robots.txt, which differs from one request to the next where a host is of that kind.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import threading
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

STEADY, HANGS, LIES, CIRCLES, ROBOTS, DIES = "steady", "hangs", "lies", "circles", "robots", "dies"
KINDS = (STEADY, STEADY, STEADY, HANGS, LIES, CIRCLES, ROBOTS, DIES)
LINKS = 8
HANG = 30.0
"""Seconds that a hanging host holds a connection at most."""


@dataclass(frozen=True)
class Plan:
    """The plan of a random web."""

    seed: int
    pages: int
    hosts: int

    def kind(self, page: int) -> str:
        """Returns the kind of a page's host; the first host is steady, and as many hosts as there
        are KINDS include each kind.
        """
        host = page % self.hosts
        return STEADY if host == 0 else KINDS[(host + self.seed) % len(KINDS)]

    def chance(self, page: int) -> random.Random:
        """A page's own random numbers, the same at every request."""
        return random.Random(f"{self.seed} page {page}")

    def url(self, page: int, port: int) -> str:
        """A page's URL."""
        return (
            f"http://127.1.{page % self.hosts // 250}.{page % self.hosts % 250 + 1}:{port}/{page}"
        )

    def html(self, page: int, port: int) -> bytes:
        """A page: links to others, now and then one that isn't there or no URL at all."""
        chance = self.chance(page)
        targets = [
            self.url(chance.randrange(self.pages), port) for _ in range(chance.randrange(LINKS + 1))
        ]
        targets += chance.choice(
            ([], [], [f"/{self.pages + page}"], ["http://[bad/", "mailto:a@b.c", "#here"])
        )
        links = "".join(
            f'<a href="{target}">link {number}</a>\n' for number, target in enumerate(targets)
        )
        body = f"text {page % 97} {links}"
        return f"<html><title>page {page % 97}</title><body>{body}</body></html>".encode()


class RandomWeb:
    """Serves a plan from a thread."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.port = 0
        self._robots = 0
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def url(self, page: int) -> str:
        """A page's URL."""
        return self.plan.url(page, self.port)

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(
            asyncio.start_server(self._serve, "0.0.0.0", 0, backlog=1000)
        )
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(
            OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.CancelledError
        ):
            while True:
                request = await reader.readuntil(b"\r\n\r\n")
                path = request.split(b" ", 2)[1].decode("latin-1").lstrip("/")
                if not await self._answer(path, request, writer):
                    break
        writer.close()

    async def _answer(self, path: str, request: bytes, writer: asyncio.StreamWriter) -> bool:  # noqa: PLR0911 - one return a case
        """Answer a request; False if the connection is to be closed."""
        plan = self.plan
        if path == "robots.txt":
            return await _send(writer, *self._robots_txt(request))
        if not path.isdigit() or int(path) >= plan.pages:
            return await _send(writer, "404 Not Found", b"no such page")
        page = int(path)
        kind, dice = plan.kind(page), plan.chance(page).random()
        body = plan.html(page, self.port)
        if kind == HANGS and dice < 0.3:
            await asyncio.sleep(HANG)
            return False
        if kind == DIES and dice < 0.5:
            writer.transport.abort()
            return False
        if kind == CIRCLES and dice < 0.7:
            target = page if dice < 0.1 else (page + plan.hosts) % plan.pages
            return await _send(writer, "302 Found", b"", f"Location: {plan.url(target, self.port)}")
        if kind == LIES:
            return await self._lie(writer, body, dice)
        if dice > 0.95:
            return await _send(writer, "500 Oh", b"broken")
        return await _send(writer, "200 OK", body, "Content-Type: text/html")

    async def _lie(self, writer: asyncio.StreamWriter, body: bytes, dice: float) -> bool:
        """An answer whose head does not fit its body."""
        lies = (
            b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + body,
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n" + body,
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + body,
            b"HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\n\r\n" + zlib.compress(body)[:-9],
            b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n" + body,
            b"\0\xff no HTTP",
            b"",
        )
        writer.write(lies[int(dice * len(lies))])
        await writer.drain()
        return False

    def _robots_txt(self, request: bytes) -> tuple[str, bytes]:
        """robots.txt of the host that is asked: most have none, some another one each time."""
        host = request.lower().partition(b"host: 127.1.")[2].partition(b":")[0].split(b".")
        number = int(host[0]) * 250 + int(host[1]) - 1 if len(host) == 2 else 0
        if self.plan.kind(number) != ROBOTS:
            return "404 Not Found", b""
        self._robots += 1
        answers = (
            b"User-agent: *\nAllow: /\n",
            b"User-agent: *\nDisallow: /\n",
            b"User-agent: *\nDisallow: /1\n",
        )
        return "200 OK", answers[self._robots % 3]


async def _send(writer: asyncio.StreamWriter, status: str, body: bytes, *lines: str) -> bool:
    head = "".join(
        f"{line}\r\n" for line in (f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *lines, "")
    )
    writer.write(head.encode() + body)
    await writer.drain()
    return True


def main() -> None:
    """Serve a web until stdin ends."""
    pages, hosts, seed = map(int, sys.argv[1:4])
    with RandomWeb(Plan(seed, pages, hosts)) as web:
        print(web.port, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()


def crawl_by_command(
    prog: str, crawl: Callable[[Path, RandomWeb, int], object], usual: Plan, rounds: int
) -> None:
    """Print what `crawl(folder, web, rounds)` gives of a random web as the command line wants
    it.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {prog}")
    defaults = {
        "--urls": usual.pages,
        "--hosts": usual.hosts,
        "--rounds": rounds,
        "--seed": usual.seed,
    }
    for name, default in defaults.items():
        parser.add_argument(name, type=int, default=default)
    options = parser.parse_args()
    plan = Plan(options.seed, options.urls, options.hosts)
    with tempfile.TemporaryDirectory() as folder, RandomWeb(plan) as web:
        print(crawl(Path(folder), web, options.rounds))
