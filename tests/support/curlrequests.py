"""Requests for the transport over libcurl, and its replies to them."""

from __future__ import annotations

from collections.abc import Sequence

import httpx

from plugins.lib_http.curltransport import CurlResponse, CurlTransport
from plugins.lib_http.exchange import Reply


def request_to(
    port: int,
    target: bytes = b"/",
    headers: Sequence[tuple[str, str]] = (),
    limit: int = -1,
    *,
    host: str = "127.0.0.1",
    method: str = "GET",
    content: bytes = b"",
) -> httpx.Request:
    """A request to a server of this machine."""
    return httpx.Request(
        method,
        f"http://{host}:{port}/",
        headers=list(headers),
        content=content or None,
        extensions={"target": target, "content_limit": limit},
    )


async def reply_to(transport: CurlTransport, request: httpx.Request) -> Reply:
    """Returns the transport's reply to a request."""
    response = await transport.handle_async_request(request)
    assert isinstance(response, CurlResponse)
    return response.reply
