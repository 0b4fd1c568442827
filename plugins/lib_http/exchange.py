"""One request and its answer, as plain as they can be: what passes between the plugin and its transport."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Order:
    """What to ask for. `host` is ASCII, IPv6 without brackets; `headers` are whole lines in the order to send."""

    scheme: str
    host: str
    port: int | None
    target: bytes
    headers: list[bytes]
    limit: int = -1
    """Most bytes of content to take; negative for all."""
    proxy: str = ""
    auth: tuple[str, int] | None = None
    """`user:password` and libcurl's HTTPAUTH_* bits."""
    method: str = "GET"
    content: bytes = b""


@dataclass(slots=True)
class Reply:
    """What came back: `head` are the header lines of the last answer as they came, status line first."""

    code: int
    head: list[bytes]
    body: bytes
    trailers: list[bytes] = field(default_factory=list)
    version: bytes = b"HTTP/1.1"
    error: Exception | None = None
    """The httpx exception that ended the content early."""
    truncated: str | None = None
    """Why the content is not whole: `length`, `time`."""
    address: tuple[str, int] | None = None
    """Address and port that answered, where known."""
    tls: tuple[str, str, bool] | None = None
    """Protocol, cipher and whether the certificate was checked, where that is recorded."""
