"""A web server that does everything wrong, one fault per path, and what a crawler has to make of
each.

    with MisbehavingServer() as server:
        server.url("reset-in-headers")        http://127.0.0.1:PORT/reset-in-headers

`FAULTS` names each fault with the status that a fetch of it must end in. Faults that take time
(`stall`, `drip`) wait on the client, never on a clock of their own. TLS faults have ports of their
own, with certificates made on the spot.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import socket
import ssl
import struct
import threading
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter, str], Awaitable[None]]

SUCCESS, RETRY, GONE = "fetch_success", "fetch_retry", "fetch_gone"
REDIR_TEMP, REDIR_PERM = "fetch_redir_temp", "fetch_redir_perm"

PAGE = b"<html><body>page</body></html>"
LIMIT = 65_536
"""Content limit that the tests set; `truncated` faults send more."""
BOMB = b"0" * (20 * LIMIT)


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong. `body`: the content kept (None: any); `truncated` and `damaged`:
    its marks.
    """

    answer: bytes | Answer
    status: str
    body: bytes | None = None
    truncated: str | None = None
    says: str = ""
    """Part of the ProtocolStatus' message."""
    damaged: str | None = None


FAULTS: dict[str, Fault] = {}


def head(*lines: str, status: str = "200 OK") -> bytes:
    """A response head, `Connection: close` included."""
    return "".join(
        f"{line}\r\n" for line in (f"HTTP/1.1 {status}", "Connection: close", *lines, "")
    ).encode("latin-1")


def _plain(
    name: str, answer: bytes, status: str = SUCCESS, body: bytes | None = None, **more: str
) -> None:
    FAULTS[name] = Fault(answer, status, body, **more)


def fault(
    name: str, status: str, body: bytes | None = None, **more: str
) -> Callable[[Answer], Answer]:
    """Decorator: a fault that is more than fixed bytes."""

    def add(answer: Answer) -> Answer:
        FAULTS[name] = Fault(answer, status, body, **more)
        return answer

    return add


def page(body: bytes = PAGE, *lines: str, status: str = "200 OK") -> bytes:
    """A whole answer with its length."""
    return _length(body, *lines, status=status)


def _length(body: bytes = PAGE, *lines: str, status: str = "200 OK") -> bytes:
    return head(f"Content-Length: {len(body)}", *lines, status=status) + body


# -- what is merely odd, and read all the same -----------------------------------------------------

_plain("ok", _length(), body=PAGE)
_plain("lf-only", b"HTTP/1.1 200 OK\nConnection: close\nContent-Length: 30\n\n" + PAGE, body=PAGE)
_plain("no-reason", b"HTTP/1.1 200\r\nConnection: close\r\n\r\n" + PAGE, body=PAGE)
_plain("colon-after-code", b"HTTP/1.1 404: Not Found\r\nConnection: close\r\n\r\n", GONE)
_plain("http-0.9", PAGE, body=PAGE)
_plain("http-1.0", b"HTTP/1.0 200 OK\r\n\r\n" + PAGE, body=PAGE)
_plain("folded-header", _length(PAGE, "X-Folded: one", " two"), body=PAGE)
_plain("space-before-colon", _length(PAGE, "X-Space : x"), body=PAGE)
_plain("empty-header-value", _length(PAGE, "X-Empty:"), body=PAGE)
_plain("bad-bytes-in-header", _length(PAGE, "X-Bytes: \xff\xfe\x80"), body=PAGE)
_plain("many-headers", _length(PAGE, *(f"X-{n}: {n}" for n in range(300))), body=PAGE)
_plain("long-header", _length(PAGE, "X-Long: " + "x" * 50_000), body=PAGE)
_plain(
    "cookie-flood", _length(PAGE, *(f"Set-Cookie: c{n}={n}; Path=/" for n in range(500))), body=PAGE
)
_plain("no-length", head() + PAGE, body=PAGE)
_plain("two-equal-lengths", head("Content-Length: 30", "Content-Length: 30") + PAGE, body=PAGE)
_plain("bad-length", head("Content-Length: many") + PAGE, body=PAGE)
_plain("empty-length", head("Content-Length:") + PAGE, body=PAGE)
_plain("no-colon", head("no header at all", "Content-Length: 30") + PAGE, body=PAGE)
_plain(
    "no-colon-chunked",
    head("no header", "Transfer-Encoding: chunked") + b"1e\r\n" + PAGE + b"\r\n0\r\n\r\n",
    body=PAGE,
)
_plain(
    "no-colon-gzip", head("no header", "Content-Encoding: gzip") + gzip.compress(PAGE), body=PAGE
)
_plain("no-blank-line", b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n" + PAGE, body=PAGE)
_plain("no-blank-line-lf", b"HTTP/1.1 200 OK\n" + PAGE, body=PAGE)
_plain("no-colon-404", head("no header", status="404 No") + PAGE, GONE)
_plain(
    "no-colon-redirect",
    head("no header", "Location: /ok?x", status="302 Found"),
    REDIR_TEMP,
    says="/ok?x",
)
_plain("length-too-large", head("Content-Length: 1000") + PAGE, body=PAGE)
_plain("length-too-small", head("Content-Length: 5") + PAGE, body=PAGE[:5])
_plain(
    "chunked", head("Transfer-Encoding: chunked") + b"1e\r\n" + PAGE + b"\r\n0\r\n\r\n", body=PAGE
)
_plain(
    "chunked-and-length",
    head("Transfer-Encoding: chunked", "Content-Length: 7") + b"1e\r\n" + PAGE + b"\r\n0\r\n\r\n",
    body=PAGE,
)
_plain(
    "chunk-extension-and-trailer",
    head("Transfer-Encoding: chunked") + b"1E;x=y\r\n" + PAGE + b"\r\n0\r\nX-Trailer: t\r\n\r\n",
    body=PAGE,
)
_plain("early-hints", b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + _length(), body=PAGE)
_plain("one-continue", b"HTTP/1.1 100 Continue\r\n\r\n" + _length(), body=PAGE)
_plain("thousand-continues", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000 + _length(), body=PAGE)
_plain("thousands-of-headers", _length(PAGE, *(f"X-{n}: {n}" for n in range(2500))), body=PAGE)
_plain("nul-in-body", _length(b"a\0b\0" * 5), body=b"a\0b\0" * 5)
_plain(
    "bad-charset",
    _length(b"\xff\xfe\xfd", "Content-Type: text/html; charset=no-such"),
    body=b"\xff\xfe\xfd",
)
_plain("unknown-coding", _length(PAGE, "Content-Encoding: rot13"), body=PAGE)
_plain("not-really-gzip", _length(PAGE, "Content-Encoding: gzip"), body=PAGE)
_plain(
    "gzip-cut-off",
    _length(gzip.compress(PAGE)[:-8], "Content-Encoding: gzip"),
    body=PAGE,
    damaged="true",
)
_plain(
    "gzip-bad-checksum",
    _length(gzip.compress(PAGE)[:-8] + bytes(8), "Content-Encoding: gzip"),
    body=PAGE,
    damaged="true",
)
_plain(
    "gzip-twice",
    _length(gzip.compress(gzip.compress(PAGE)), "Content-Encoding: gzip, gzip"),
    body=PAGE,
)
_plain("deflate-zlib", _length(zlib.compress(PAGE), "Content-Encoding: deflate"), body=PAGE)
_plain("deflate-raw", _length(zlib.compress(PAGE)[2:-4], "Content-Encoding: deflate"), body=PAGE)
_plain("extra-bytes-after-the-end", _length() + b"HTTP/1.1 500 No\r\n\r\ngarbage", body=PAGE)
_plain("empty-page", _length(b""), body=b"")

# -- codes that are no page ------------------------------------------------------------------------

_plain("code-000", _length(status="000 Zero"), RETRY, says="Http code=0")
_plain(
    "three-thousand-continues",
    b"HTTP/1.1 100 Continue\r\n\r\n" * 3000 + _length(),
    RETRY,
    says="headers",
)
_plain("nothing-but-continue", b"HTTP/1.1 100 Continue\r\n\r\n", RETRY)
_plain("code-204", head(status="204 No Content"), RETRY, says="Http code=204")
_plain("code-206", _length(status="206 Partial"), RETRY, says="Http code=206")
_plain("code-400", _length(status="400 Bad"), GONE)
_plain(
    "code-401",
    _length(PAGE, "WWW-Authenticate: Basic realm=x", status="401 No"),
    GONE,
    says="Authentication required",
)
_plain("code-403", _length(status="403 No"), RETRY, says="Http code=403")
_plain("code-410", _length(status="410 Gone"), GONE, says="Http: 410")
_plain("code-451", _length(status="451 Law"), RETRY, says="Http code=451")
_plain(
    "code-500-cut-off",
    head("Content-Length: 100", status="500 Oops") + b"x",
    RETRY,
    says="Http code=500",
)
_plain("code-999", _length(status="999 Odd"), RETRY, says="Http code=999")
_plain(
    "code-429", _length(PAGE, "Retry-After: soon", status="429 Slow"), RETRY, says="Http code=429"
)
_plain("redirect-without-location", head(status="302 Found"), REDIR_TEMP)
_plain(
    "two-locations",
    head("Location: /ok?a", "Location: /ok?b", status="302 Found"),
    REDIR_TEMP,
    says="/ok?b",
)
_plain("redirect-to-itself", head("Location: /redirect-to-itself", status="301 Moved"), REDIR_PERM)
_plain(
    "redirect-to-no-url",
    head("Location: http://[bad", status="301 Moved"),
    RETRY,
    says="MalformedURLException",
)
_plain(
    "redirect-to-odd-scheme",
    head("Location: gopher://x/", status="302 Found"),
    RETRY,
    says="MalformedURLException",
)
_plain(
    "redirect-without-end",
    head("Location: /redirect-without-end?x=1", status="302 Found"),
    REDIR_TEMP,
)
_plain("redirect-inside", head("Location: http://10.1.2.3/", status="302 Found"), REDIR_TEMP)

# -- what breaks off, or never ends ----------------------------------------------------------------


def _closes(data: bytes) -> Answer:
    async def answer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: str
    ) -> None:
        writer.write(data)

    return answer


def _resets(data: bytes) -> Answer:
    async def answer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: str
    ) -> None:
        writer.write(data)
        await writer.drain()
        raw: socket.socket = writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    return answer


def _stalls(data: bytes) -> Answer:
    async def answer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: str
    ) -> None:
        writer.write(data)
        await writer.drain()
        await reader.read()  # until the client goes

    return answer


def _endless(start: bytes, piece: bytes) -> Answer:
    async def answer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: str
    ) -> None:
        writer.write(start)
        while not writer.transport.is_closing():
            writer.write(piece)
            await writer.drain()

    return answer


def _drips(start: bytes, piece: bytes) -> Answer:
    async def answer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: str
    ) -> None:
        writer.write(start)
        while not writer.transport.is_closing():
            writer.write(piece)
            await asyncio.sleep(0.05)

    return answer


for _name, _data in {
    "reset-at-once": b"",
    "reset-in-status-line": b"HTTP/1.",
    "reset-in-headers": b"HTTP/1.1 200 OK\r\nContent-",
    "reset-in-body": head("Content-Length: 1000") + PAGE,
    "reset-in-chunk": head("Transfer-Encoding: chunked") + b"100\r\n" + PAGE,
}.items():
    FAULTS[_name] = Fault(_resets(_data), RETRY)
for _name, _data in {
    "close-at-once": b"",
    "close-in-headers": b"HTTP/1.1 200 OK\r\nContent-",
    "close-in-chunk": head("Transfer-Encoding: chunked") + b"100\r\n" + PAGE,
    "bad-chunk-size": head("Transfer-Encoding: chunked") + b"zz\r\n" + PAGE,
    "huge-chunk-size": head("Transfer-Encoding: chunked") + b"f" * 40 + b"\r\n" + PAGE,
    "no-last-chunk": head("Transfer-Encoding: chunked") + b"1e\r\n" + PAGE + b"\r\n",
    "nul-in-header": b"HTTP/1.1 200 OK\r\nX-\0Nul: a\0b\r\n\r\n" + PAGE,
    "lengths-that-differ": head("Content-Length: 30", "Content-Length: 31") + PAGE,
    "http-9.9": b"HTTP/9.9 200 OK\r\n\r\n" + PAGE,
}.items():
    FAULTS[_name] = Fault(_closes(_data), RETRY)
FAULTS["stall-before-answer"] = Fault(_stalls(b""), RETRY, says="SocketTimeoutException")
FAULTS["stall-in-headers"] = Fault(
    _stalls(b"HTTP/1.1 200 OK\r\nX-"), RETRY, says="SocketTimeoutException"
)
FAULTS["stall-in-body"] = Fault(
    _stalls(head("Content-Length: 99") + PAGE), RETRY, says="SocketTimeoutException"
)
FAULTS["stall-on-error-page"] = Fault(
    _stalls(head("Content-Length: 99", status="404 No") + PAGE), GONE
)
FAULTS["endless-headers"] = Fault(
    _endless(b"HTTP/1.1 200 OK\r\n", b"X-Y: z\r\n" * 500), RETRY, says="headers"
)
FAULTS["endless-header-line"] = Fault(_endless(b"HTTP/1.1 200 OK\r\nX: ", b"x" * 50_000), RETRY)
FAULTS["continue-storm"] = Fault(
    _endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 200), RETRY, says="headers"
)
FAULTS["endless-body"] = Fault(_endless(head(), b"x" * 9999), SUCCESS, b"x" * LIMIT, "length")
FAULTS["endless-0.9"] = Fault(_endless(b"", b"x" * 9999), SUCCESS, b"x" * LIMIT, "length")
FAULTS["endless-chunks"] = Fault(
    _endless(head("Transfer-Encoding: chunked"), b"5\r\nxxxxx\r\n" * 999),
    SUCCESS,
    b"x" * LIMIT,
    "length",
)
FAULTS["drip-body"] = Fault(_drips(head("Content-Length: 99999"), b"x"), SUCCESS, None, "time")
FAULTS["drip-headers"] = Fault(
    _drips(b"HTTP/1.1 200 OK\r\nX: ", b"x"), RETRY, says="SocketTimeoutException"
)


def _bomb(coding: str, data: bytes) -> None:
    FAULTS[f"{coding}-bomb"] = Fault(
        _length(data, f"Content-Encoding: {coding}"), SUCCESS, BOMB[:LIMIT], "length"
    )


_bomb("gzip", gzip.compress(BOMB))
_bomb("deflate", zlib.compress(BOMB))


def _add_other_bombs() -> None:
    import brotli  # type: ignore[import-untyped]

    from minutch.hadoop.formats import zstd

    _bomb("br", brotli.compress(BOMB))
    _bomb("zstd", zstd.compress(BOMB))


_add_other_bombs()


# -- the server ------------------------------------------------------------------------------------


@dataclass
class MisbehavingServer:
    """Runs in a thread of its own until the `with` block ends; `requests` counts what was asked
    for.
    """

    tls: ssl.SSLContext | None = None
    answer_all: Answer | None = None
    """Answers every connection instead of `FAULTS`, before a request is read."""
    pages: dict[str, bytes] = field(default_factory=dict)
    """Whole answers by target; they come before `FAULTS`."""
    hold: set[str] = field(default_factory=set)
    """Targets whose first request is not answered until the client goes away or `release` is
    called.
    """
    held: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    """Released once for each request that is being held."""
    requests: dict[str, int] = field(default_factory=dict)
    connections: int = 0
    port: int = 0
    address: str = "127.0.0.1"
    """Where to listen; 0.0.0.0 for all of 127.0.0.0/8."""

    def url(self, name: str, host: str = "127.0.0.1") -> str:
        scheme = "http" if self.tls is None else "https"
        return f"{scheme}://{host}:{self.port}/{name}"

    def release(self) -> None:
        """Answer what is held."""
        self._loop.call_soon_threadsafe(self._released.set)

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._released = asyncio.Event()
        started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), daemon=True)
        self._thread.start()
        started.wait(10)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _run(self, started: threading.Event) -> None:
        loop = self._loop
        asyncio.set_event_loop(loop)
        loop.set_exception_handler(lambda loop, context: None)
        server = loop.run_until_complete(
            asyncio.start_server(
                self._serve, self.address, 0, ssl=self.tls, limit=1 << 20, backlog=500
            )
        )
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.suppress(
            ConnectionError, asyncio.IncompleteReadError, ssl.SSLError, OSError
        ):
            if self.answer_all is not None:
                await self.answer_all(reader, writer, "")
            else:
                request = await reader.readuntil(b"\r\n\r\n")
                target = request.split(b" ", 2)[1].decode("latin-1")
                self.requests[target] = self.requests.get(target, 0) + 1
                await self._answer(target, reader, writer)
            writer.close()
            await writer.wait_closed()

    async def _answer(
        self, target: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if target in self.hold and self.requests[target] == 1:
            self.held.release()
            gone = asyncio.ensure_future(reader.read())
            freed = asyncio.ensure_future(self._released.wait())
            await asyncio.wait({gone, freed}, return_when=asyncio.FIRST_COMPLETED)
            gone.cancel()
            freed.cancel()
        found = FAULTS.get(target.partition("?")[0].lstrip("/"))
        answer = _length(b"no", status="404 Not Found") if found is None else found.answer
        answer = self.pages.get(target, answer)
        if isinstance(answer, bytes):
            writer.write(answer)
        else:
            await answer(reader, writer, target)
