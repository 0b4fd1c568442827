"""Requests for the transport over libcurl."""

from __future__ import annotations

from collections.abc import Sequence

from plugins.lib_http.exchange import Order


def request_to(
    port: int,
    target: bytes = b"/",
    headers: Sequence[tuple[str, str]] = (),
    limit: int = -1,
    *,
    host: str = "127.0.0.1",
    method: str = "GET",
    content: bytes = b"",
) -> Order:
    """A request to a server of this machine."""
    sent = [(name.encode(), value.encode()) for name, value in headers]
    return Order("http", host, port, target, sent, limit, method=method, content=content)
