"""Reads answers whose head libcurl refuses, as browsers and Nutch do: header lines without a colon,
lengths that are no number, a page that begins without the blank line before it.

    answer  = status line, *header line, blank line, content
    content begins at the blank line, or at a line that begins with `<html` or `<!doctype`

libcurl has no switch for it, so the page is asked for once more, by `Connection: close` on a
connection of its own. What is malformed beyond that (NUL bytes, lengths that differ, no end of the
head) stays an error. Source: HttpResponse.parseHeaders of protocol-http.
"""

from __future__ import annotations

import asyncio
import re
import socket
import time
from collections.abc import Callable
from typing import Final

import httpx

from .curlslot import MAX_HEAD_BYTES, MAX_HEAD_LINES, CurlSettings
from .exchange import Order, Reply
from .failures import ForbiddenAddress, MalformedHead, UnknownHost
from .headers import field_values

_PIECE: Final = 1 << 16
_STATUS: Final = re.compile(rb"(HTTP/[0-9.]+)[ \t]+([0-9]{3})(?![0-9])")
_DOCUMENT: Final = re.compile(rb"[ \t]*<(?:html|!doctype)\b", re.IGNORECASE)
_CHUNK: Final = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,8})[^\n]*\n")
_LENGTH: Final = re.compile(r"[0-9]{1,18}")
_NO_LIMIT: Final = 1 << 40


async def ask_again(
    order: Order,
    addresses: list[str],
    settings: CurlSettings,
    accepts: Callable[[str], bool],
    refused: MalformedHead,
) -> Reply:
    """Returns the answer to `order`. Raises `refused` if it can't be read either, or an error of
    the connection.
    """
    if order.proxy or order.auth is not None or order.method != "GET":
        raise refused
    data, address, error = await _receive(order, addresses, settings, accepts)
    return read_answer(data, order.limit, address, error, refused)


async def _receive(
    order: Order, addresses: list[str], settings: CurlSettings, accepts: Callable[[str], bool]
) -> tuple[bytes, tuple[str, int], Exception | None]:
    """Returns all that the server sends, up to the limits; its address; what ended it other than
    its end.
    """
    reader, writer, address = await _connect(order, addresses, settings, accepts)
    pieces: list[bytes] = []
    most = MAX_HEAD_BYTES + (_NO_LIMIT if order.limit < 0 else 2 * order.limit)
    end = time.monotonic() + (
        settings.total_timeout / 1000 if settings.total_timeout >= 0 else _NO_LIMIT
    )
    try:
        headers = [
            line for line in order.headers if not line.endswith(b":")
        ]  # libcurl's sign to leave one out
        writer.write(
            b"\r\n".join(
                [b"GET %s HTTP/1.1" % order.target, *headers, b"Connection: close", b"", b""]
            )
        )
        while most > 0:
            wait = min(settings.read_timeout / 1000, end - time.monotonic())
            piece = await asyncio.wait_for(reader.read(_PIECE), max(wait, 0))
            if not piece:
                break
            pieces.append(piece)
            most -= len(piece)
    except TimeoutError:
        return b"".join(pieces), address, httpx.ReadTimeout("Read timed out")
    except OSError as exc:
        return b"".join(pieces), address, httpx.ReadError(str(exc))
    finally:
        writer.close()
    return b"".join(pieces), address, None


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
        opening = asyncio.open_connection(
            address, port, ssl=tls, server_hostname=order.host if tls else None, limit=_PIECE
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


def read_answer(
    data: bytes,
    limit: int,
    address: tuple[str, int],
    error: Exception | None,
    refused: MalformedHead,
) -> Reply:
    """Returns the answer in `data`, which `error` may have cut off. Raises `refused` where there is
    none.
    """
    lines, body = _split(data, refused)
    status = _STATUS.match(lines[0])
    lengths = {text for text in field_values(lines, "content-length") if _LENGTH.fullmatch(text)}
    if status is None or len(lengths) > 1 or any(b"\0" in line for line in lines):
        raise refused
    if "chunked" in ",".join(field_values(lines, "transfer-encoding")).lower():
        body, error = _unchunked(body, error)
    elif lengths:
        length = int(lengths.pop())
        if len(body) >= length:
            body, error = body[:length], None
        else:
            error = error or httpx.RemoteProtocolError(
                "Connection closed before the end of the content"
            )
    truncated = None
    if 0 <= limit < len(body):
        body, error, truncated = body[:limit], None, "length"
    return Reply(int(status[2]), lines, body, [], status[1], error, truncated, address)


def _split(data: bytes, refused: MalformedHead) -> tuple[list[bytes], bytes]:
    """Header lines of the last answer (interim ones, 1xx, come before it) and what follows them."""
    lines: list[bytes] = []
    at = 0
    for _ in range(MAX_HEAD_LINES):
        end = data.find(b"\n", at)
        if lines and _DOCUMENT.match(data, at):
            return lines, data[at:]
        if end < 0:
            break
        line = data[at:end].removesuffix(b"\r")
        at = end + 1
        if line:
            lines.append(line)
        elif lines and not is_interim(lines[0]):
            return lines, data[at:]
        else:
            lines = []
    raise refused


def is_interim(status_line: bytes) -> bool:
    """Returns True if an answer only announces another one (100 to 199)."""
    status = _STATUS.match(status_line)
    return status is not None and status[2].startswith(b"1")


def _unchunked(data: bytes, error: Exception | None) -> tuple[bytes, Exception | None]:
    """Returns the content of chunks, and what keeps it from being whole."""
    pieces: list[bytes] = []
    at = 0
    while (head := _CHUNK.match(data, at)) is not None:
        size = int(head[1], 16)
        if not size:
            return b"".join(pieces), None
        piece = data[head.end() : head.end() + size]
        pieces.append(piece)
        if len(piece) < size:
            break
        at = head.end() + size
        at += 2 if data.startswith(b"\r\n", at) else data.startswith(b"\n", at)
    return b"".join(pieces), error or httpx.RemoteProtocolError(
        "Connection closed before the end of the content"
    )
