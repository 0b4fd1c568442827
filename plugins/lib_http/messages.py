"""Builds the URLs of httpx requests, and reads httpx responses."""

from __future__ import annotations

from functools import lru_cache

import httpx

from minutch.urls.parts import Url

from .curltransport import CurlResponse
from .exchange import Reply
from .failures import UnknownHost

Headers = list[tuple[bytes, bytes]]
"""Names and values in the order in which they are sent."""


def whole_url(url: Url, target: str) -> httpx.URL:
    """Returns httpx's form of a URL, or of its origin if httpx can't represent the rest."""
    try:
        return httpx.URL(_origin_text(url.protocol, url.host, url.port) + target)
    except httpx.InvalidURL:
        return origin(url)


def origin(url: Url) -> httpx.URL:
    """Returns scheme, host and port. Raises httpx.InvalidURL, or UnknownHost for `256.1.1.1`."""
    return _origin_url(url.protocol, url.host, url.port)


@lru_cache(maxsize=4096)
def _origin_url(scheme: str, host: str, port: int) -> httpx.URL:
    """Cached, because parsing a URL costs httpx as much as the rest of a request."""
    try:
        return httpx.URL(_origin_text(scheme, host, port) + "/")
    except httpx.InvalidURL:
        if host.replace(".", "").isdecimal():
            raise UnknownHost(host) from None
        raise


def _origin_text(scheme: str, host: str, port: int) -> str:
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"
    return f"{scheme}://{host}" + ("" if port == -1 else f":{port}")


async def reply_of(response: httpx.Response, limit: int) -> Reply:
    """Returns what a response holds, with at most `limit` bytes of content (negative: all), and
    closes it.
    """
    if isinstance(response, CurlResponse):  # complete, nothing is open
        return response.reply
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
