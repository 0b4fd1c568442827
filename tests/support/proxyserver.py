"""A proxy on loopback: HTTP (absolute URLs and CONNECT), SOCKS 4a and SOCKS 5; whatever is asked
for, one server gives.

with ProxyServer(port) as proxy:        requests end at 127.0.0.1:port
    proxy.asked                         ("socks5", "far.example", 80, "user:password"), …
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from base64 import b64decode
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self


@dataclass
class ProxyServer:
    """`own` is the whole answer that the proxy gives by itself, to whatever it is asked."""

    upstream: int
    tls: ssl.SSLContext | None = None
    own: bytes = b""
    asked: list[tuple[str, str, int, str]] = field(default_factory=list)
    """Way of asking, host and port asked for, name and password."""

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), daemon=True)
        self._thread.start()
        assert ready.wait(60)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(
            asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self.tls)
        )
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        self._loop.run_forever()
        server.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            first = await reader.readexactly(1)
            serve = {b"\x04": self._socks4, b"\x05": self._socks5}.get(first)
            sent = await (
                self._http(first, reader, writer) if serve is None else serve(reader, writer)
            )
            if sent is not None:
                await self._join(sent, reader, writer)
        writer.close()

    async def _join(
        self, sent: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        answers, requests = await asyncio.open_connection("127.0.0.1", self.upstream)
        requests.write(sent)
        await asyncio.gather(_pump(reader, requests), _pump(answers, writer))

    async def _socks4(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        _, *port = await reader.readexactly(3)
        await reader.readexactly(4)
        user = (await reader.readuntil(b"\0"))[:-1].decode()
        host = (await reader.readuntil(b"\0"))[:-1].decode()
        self.asked.append(("socks4a", host, int.from_bytes(bytes(port)), user))
        writer.write(b"\0\x5a" + bytes(6))
        return b""

    async def _socks5(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        methods = await reader.readexactly((await reader.readexactly(1))[0])
        login = ""
        if 2 in methods:
            writer.write(b"\x05\x02")
            await reader.readexactly(1)
            pieces = [
                (await reader.readexactly((await reader.readexactly(1))[0])).decode()
                for _ in range(2)
            ]
            login = ":".join(pieces)
            writer.write(b"\x01\0")
        else:
            writer.write(b"\x05\0")
        kind = (await reader.readexactly(4))[3]
        size = (await reader.readexactly(1))[0] if kind == 3 else 4
        host = (await reader.readexactly(size)).decode("latin-1")
        self.asked.append(("socks5", host, int.from_bytes(await reader.readexactly(2)), login))
        writer.write(b"\x05\0\0\x01" + bytes(6))
        return b""

    async def _http(
        self, first: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bytes | None:
        head = first + await reader.readuntil(b"\r\n\r\n")
        method, target, _ = head.split(b"\r\n")[0].decode().split(" ")
        headers = [line.partition(b": ") for line in head.split(b"\r\n")[1:]]
        login = next(
            (
                b64decode(v.split()[1]).decode()
                for n, _, v in headers
                if n == b"Proxy-Authorization"
            ),
            "",
        )
        if method != "CONNECT":
            host, _, port = target.split("/")[2].partition(":")
            self.asked.append(("http", host, int(port or 80), login))
            if self.own:
                writer.write(self.own)
                return None
            return head
        host, _, port = target.partition(":")
        self.asked.append(("connect", host, int(port), login))
        if self.own:
            writer.write(self.own)
            return None
        writer.write(b"HTTP/1.1 200 Connection established\r\nX-Proxy: yes\r\n\r\n")
        return b""


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await source.read(65_536):
            target.write(data)
            await target.drain()
    target.close()
