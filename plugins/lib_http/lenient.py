"""Asks servers whose heads libcurl refuses, and reads them as browsers and Nutch do: header lines
without a colon, lengths that are no number, a page that begins without the blank line before it.

    answer  = status line, *header line, blank line, content
    content begins at the blank line, or at a line that begins with `<html` or `<!doctype`, and ends
            where its length or its last chunk says so, or the connection

libcurl has no switch for it, so such a server is asked by `Connection: close` on a connection of
its own, once it is known. What is malformed beyond that (NUL bytes, lengths that differ, no end of
the head) is an error. Source: HttpResponse.parseHeaders of protocol-http.
"""

from __future__ import annotations

import asyncio
import re
import socket
import time
from collections import OrderedDict
from collections.abc import Callable
from enum import Enum, auto
from typing import Final

import httpx

from minutch.records.metadata import TOO_SLOW

from .curlslot import MAX_HEAD_BYTES, MAX_HEAD_LINES, CurlSettings
from .exchange import Order, Reply, field_values
from .failures import MALFORMED_CHUNKS, ForbiddenAddress, MalformedHead, TooLarge, UnknownHost

_PIECE: Final = 1 << 16
_STATUS: Final = re.compile(rb"(HTTP/[0-2](?:\.[0-9])?)[ \t]+([0-9]{3})(?![0-9])")
_USUAL: Final = b"HTTP/1.1 200 "
_VERSION: Final = b"HTTP/"
_DOCUMENT: Final = re.compile(rb"[ \t]{0,64}<(?:html|!doctype)\b", re.IGNORECASE)
_CHUNK: Final = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,16})(?![0-9A-Fa-f])[^\n]*\n")
_LONGEST_CHUNK_HEAD: Final = 16384
"""Bytes; libcurl and browsers take about as much."""
_LENGTH: Final = re.compile(r"[0-9]{1,18}")
_WITHOUT_CONTENT: Final = (b"204", b"304")
_LINE_END: Final = b"\r\n"
_UNKNOWN: Final = -1
_NO_LIMIT: Final = 1 << 40
_CUT_OFF: Final = "Connection closed before the end of the content"


def may_ask(order: Order) -> bool:
    """Returns whether a request can be sent from here."""
    return not order.proxy and order.method == "GET"


async def ask(
    order: Order, addresses: list[str], settings: CurlSettings, accepts: Callable[[str], bool]
) -> Reply:
    """Returns the answer to `order`. Raises MalformedHead if it can't be read from here either, or
    an error of the connection.
    """
    reader, writer, address = await _connect(order, addresses, settings, accepts)
    incoming = Incoming(order.limit)
    try:
        headers = [name + b": " + value for name, value in order.headers]
        writer.write(
            b"\r\n".join(
                [b"GET %s HTTP/1.1" % order.target, *headers, b"Connection: close", b"", b""]
            )
        )
        await _receive(reader, incoming, settings)
    finally:
        writer.close()
    return incoming.reply(address)


async def _receive(
    reader: asyncio.StreamReader, incoming: Incoming, settings: CurlSettings
) -> None:
    """Reads up to the end of an answer, or to a limit."""
    end = time.monotonic() + (
        settings.total_timeout / 1000 if settings.total_timeout >= 0 else _NO_LIMIT
    )
    try:
        while not incoming.is_whole:
            wait = min(settings.read_timeout / 1000, end - time.monotonic())
            piece = await asyncio.wait_for(reader.read(_PIECE), max(wait, 0))
            if not piece:
                return
            incoming.add(piece)
    except TimeoutError:
        incoming.is_slow = time.monotonic() >= end
        incoming.error = httpx.ReadTimeout("Read timed out")
    except OSError as exc:
        incoming.error = httpx.ReadError(str(exc))


async def _connect(
    order: Order, addresses: list[str], settings: CurlSettings, accepts: Callable[[str], bool]
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, tuple[str, int]]:
    """Returns a connection to the first address that is allowed and answers."""
    port = order.port or (443 if order.scheme == "https" else 80)
    tls = (
        settings.tls.context(verify=settings.verify, ca_file=settings.ca_file)
        if order.scheme == "https"
        else None
    )
    failure: Exception = UnknownHost(order.host)
    for address in addresses or await _look_up(order.host, port):
        if not accepts(address):
            failure = ForbiddenAddress(address)
            continue
        name = order.host.removesuffix(".") if tls else None  # RFC 6066, 3
        opening = asyncio.open_connection(
            address, port, ssl=tls, server_hostname=name, limit=_PIECE
        )
        try:
            reader, writer = await asyncio.wait_for(opening, settings.connect_timeout / 1000)
        except (OSError, TimeoutError) as exc:
            failure = httpx.ConnectError(str(exc))
            continue
        return reader, writer, (address, port)
    raise failure


async def _look_up(host: str, port: int) -> list[str]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as exc:
        raise UnknownHost(host) from exc
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class Incoming:
    """An answer as it comes, piece by piece."""

    def __init__(self, limit: int) -> None:
        """At most `limit` bytes of content are kept; all, if it is negative."""
        self._limit = limit
        self._data = bytearray()
        self._at = 0
        """Where the next line of the head begins, or the next chunk."""
        self._seen = 0
        """Up to where its end was sought: a line that comes byte by byte is read once, not anew
        with each byte (5 seconds of processor time for one connection).
        """
        self._count = 0
        """Lines so far, those of interim answers included."""
        self._lines: list[bytes] = []
        self._body_at = _UNKNOWN
        self._length = _UNKNOWN
        self._chunks: list[bytes] | None = None
        self._has_end = False
        self.error: Exception | None = None
        """What ended the answer before it was whole."""
        self.is_slow = False
        """The error is that it took too long altogether."""

    @property
    def is_whole(self) -> bool:
        """Nothing more has to be read."""
        if self.error is not None:
            return True
        if self._body_at < 0:
            return len(self._data) > MAX_HEAD_BYTES or self._count >= MAX_HEAD_LINES
        size = len(self._data) - self._body_at
        most = self._limit if self._chunks is None else MAX_HEAD_BYTES + 2 * self._limit
        return self._has_end or 0 <= self._length <= size or 0 <= self._limit <= most < size

    def add(self, piece: bytes) -> None:
        """Takes what has come."""
        self._data += piece
        if self._body_at < 0:
            self._read_head()
        if self._chunks is not None:
            self._read_chunks(self._chunks)

    def _read_head(self) -> None:
        """Reads header lines of the last answer; interim ones (1xx) come before it."""
        data = self._data
        if not self._count and not data.startswith(_VERSION[: len(data)]):
            self._body_at = 0  # HTTP/0.9 has no head
        while self._body_at < 0 and self._count < MAX_HEAD_LINES:
            if self._lines and _DOCUMENT.match(data, self._at):
                self._begin_content()
                return
            end = self._line_end()
            if end < 0:
                return
            line = bytes(data[self._at : end]).removesuffix(b"\r")
            self._at = end + 1
            self._count += 1
            if line:
                self._lines.append(line)
            elif self._lines and not is_interim(self._lines[0]):
                self._begin_content()
            else:
                self._lines = []

    def _line_end(self) -> int:
        """Returns where the line at `_at` ends; -1 if that has not come."""
        end = self._data.find(b"\n", max(self._at, self._seen))
        self._seen = len(self._data) if end < 0 else 0
        return end

    def _begin_content(self) -> None:
        """Finds out how the content ends."""
        self._body_at = self._at
        status = _STATUS.match(self._lines[0])
        if status is not None and status[2] in _WITHOUT_CONTENT:
            self._has_end = True
        elif "chunked" in ",".join(field_values(self._lines, "transfer-encoding")).lower():
            self._chunks = []
        else:
            self._length = min(map(int, self._lengths()), default=_UNKNOWN)

    def _lengths(self) -> set[str]:
        values = field_values(self._lines, "content-length")
        return {text for text in values if _LENGTH.fullmatch(text)}

    def _read_chunks(self, chunks: list[bytes]) -> None:
        """Takes the chunks that are there with what follows each."""
        data = self._data
        while not self._has_end and self.error is None:
            end = self._line_end()
            head = None if end < 0 else _CHUNK.match(data, self._at)
            if head is None:
                if end >= 0 or len(data) - self._at > _LONGEST_CHUNK_HEAD:
                    self.error = httpx.RemoteProtocolError(MALFORMED_CHUNKS)
                return
            size = int(head[1], 16)
            end = head.end() + size
            self._has_end = not size
            if self._has_end or len(data) < end + len(_LINE_END):
                return
            chunks.append(bytes(data[head.end() : end]))
            ends = data[end : end + len(_LINE_END)]
            self._at = end + (len(ends) if ends == _LINE_END else ends.startswith(b"\n"))

    def reply(self, address: tuple[str, int]) -> Reply:
        """Returns the answer. Raises MalformedHead if it is none, or the error that cut it off."""
        if self._body_at < 0 or not self._data:
            raise self._no_answer()
        lines = self._lines
        status = _STATUS.match(lines[0]) if lines else None
        is_odd = lines and status is None
        if is_odd or len(self._lengths()) > 1 or any(b"\0" in line for line in lines):
            raise MalformedHead("Malformed head")
        code, version = (200, b"HTTP/0.9") if status is None else (int(status[2]), status[1])
        body, error = self._content()
        truncated = None
        if 0 <= self._limit < len(body):
            body, error, truncated = body[: self._limit], None, "length"
        elif error is not None and self.is_slow:
            error, truncated = None, TOO_SLOW
        return Reply(code, lines, body, version, error, truncated, address)

    def _no_answer(self) -> Exception:
        if self.error is not None:
            return self.error
        if self.is_whole:
            return TooLarge("headers without end")
        if self._data:
            return MalformedHead("Connection closed in the headers")
        return httpx.ReadError("Connection closed without an answer")

    def _content(self) -> tuple[bytes, Exception | None]:
        """Returns the content, and what keeps it from being whole."""
        cut_off = self.error or httpx.RemoteProtocolError(_CUT_OFF)
        if self._chunks is not None:
            body = b"".join(self._chunks)
            head = None if self._has_end else _CHUNK.match(self._data, self._at)
            if head is not None:
                body += self._data[head.end() : head.end() + int(head[1], 16)]
            return body, None if self._has_end else cut_off
        body = b"" if self._has_end else bytes(self._data[self._body_at :])
        if self._length < 0:
            return body, self.error
        return body[: self._length], cut_off if len(body) < self._length else None


def is_interim(status_line: bytes) -> bool:
    """Returns True if an answer only announces another one (100 to 199)."""
    if status_line.startswith(_USUAL):
        return False
    status = _STATUS.match(status_line)
    return status is not None and status[2].startswith(b"1")


# Remembers servers that have to be asked in another way than most.

MOST_KEPT: Final = 10_000
"""Servers; of more, those that were asked longest ago are asked in the usual way again."""


class Way(Enum):
    """How a server is asked."""

    USUAL = auto()
    """By libcurl, on a connection that is kept."""
    FRESH = auto()
    """By libcurl, each time on a new connection: kept ones turned out to be closed."""
    LENIENT = auto()
    """Not by libcurl, which refuses the head of its answers."""


class Ways:
    """Ways other than the usual one, by host and port."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Way] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def of(self, server: str) -> Way:
        """Returns the way to ask a server."""
        way = self._known.get(server)
        if way is None:
            return Way.USUAL
        self._known.move_to_end(server)
        return way

    def note(self, server: str, way: Way) -> None:
        """Remembers how a server has to be asked."""
        self._known[server] = way
        self._known.move_to_end(server)
        if len(self._known) > MOST_KEPT:
            self._known.popitem(last=False)
