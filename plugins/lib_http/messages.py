"""The edge to httpx: its reading of hosts and ports, and requests by a transport of its kind."""

from __future__ import annotations

from functools import lru_cache

import httpx

from minutch.urls.parts import Url

from .exchange import Order, Reply
from .failures import UnknownHost

_PHASES = ("connect", "read", "write", "pool")
"""What httpx's transports have a timeout for."""


def origin(url: Url) -> tuple[str, str, int | None]:
    """Returns scheme, host (in ASCII, IPv6 without brackets) and port. Raises httpx.InvalidURL, or
    UnknownHost for `256.1.1.1`.
    """
    return _origin(url.protocol, url.host, url.port)


@lru_cache(maxsize=4096)
def _origin(scheme: str, host: str, port: int) -> tuple[str, str, int | None]:
    """Cached, because parsing a URL costs httpx as much as the rest of a request."""
    try:
        url = httpx.URL(_origin_text(scheme, host, None if port == -1 else port))
    except httpx.InvalidURL:
        if host.replace(".", "").isdecimal():
            raise UnknownHost(host) from None
        raise
    return url.scheme, url.raw_host.decode("ascii"), url.port


def _origin_text(scheme: str, host: str, port: int | None) -> str:
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"
    return f"{scheme}://{host}" + ("" if port is None else f":{port}")


def request_of(order: Order, timeout: float | None = None) -> httpx.Request:
    """Returns httpx's form of an order: of its origin alone if httpx can't represent the rest.

    The target as it is, the limit of the content and the proxy are in its `extensions`.
    """
    base = _origin_text(order.scheme, order.host, order.port)
    try:
        url = httpx.URL(base + order.target.decode("ascii"))
    except httpx.InvalidURL:
        url = httpx.URL(base + "/")
    extensions = {
        "target": order.target,
        "content_limit": order.limit,
        "proxy": order.proxy,
        "timeout": dict.fromkeys(_PHASES, timeout),
    }
    return httpx.Request(
        order.method,
        url,
        headers=list(order.headers),
        content=order.content or None,
        extensions=extensions,
    )


class HttpxTransport:
    """Sends orders by a transport of httpx: in tests, and where nothing may be requested."""

    def __init__(self, transport: httpx.AsyncBaseTransport, timeout: float) -> None:
        """`timeout` in seconds is for each phase of a request."""
        self._transport = transport
        self._timeout = timeout

    async def ask(self, order: Order) -> Reply:
        """Returns one answer; redirects are left to the caller. Raises httpx.TransportError."""
        request = request_of(order, self._timeout)
        return await _reply_of(await self._transport.handle_async_request(request), order.limit)

    async def aclose(self) -> None:
        """Closes all connections."""
        await self._transport.aclose()


async def _reply_of(response: httpx.Response, limit: int) -> Reply:
    """Returns what a response holds, with at most `limit` bytes of content (negative: all), and
    closes it.
    """
    try:
        body, error, truncated = await _drain(response, limit)
    finally:
        await response.aclose()
    version = response.extensions.get("http_version", b"HTTP/1.1")
    return Reply(
        response.status_code,
        response.extensions.get("head") or _head_of(response, version),
        body,
        version,
        error,
        truncated,
        response.extensions.get("address"),
        response.extensions.get("tls"),
    )


def _head_of(response: httpx.Response, version: bytes) -> list[bytes]:
    """Returns the header lines of a response whose transport does not keep them."""
    reason = response.extensions.get(
        "reason_phrase", response.reason_phrase.encode("ascii", "replace")
    )
    first = b"%s %d %s" % (version, response.status_code, reason)
    return [first, *(name + b": " + value for name, value in response.headers.raw)]


async def _drain(
    response: httpx.Response, limit: int
) -> tuple[bytes, Exception | None, str | None]:
    """Reads a stream: content, the error that ended it, why it is not whole."""
    pieces: list[bytes] = []
    size = 0
    stream = response.stream
    assert isinstance(stream, httpx.AsyncByteStream)
    try:
        async for piece in stream:
            pieces.append(piece)
            size += len(piece)
            if 0 <= limit < size:
                return b"".join(pieces)[:limit], None, "length"
    except httpx.TransportError as exc:
        return b"".join(pieces), exc, None
    return b"".join(pieces), None, None
