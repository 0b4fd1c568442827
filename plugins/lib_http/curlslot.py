"""Holds a reusable libcurl handle, and the data that its current transfer has received.

libcurl calls `_on_header` for each header line and `_on_body` for each piece of content; both
refuse more when a bound is reached, which ends the transfer (error 23) without losing what came
before.
"""

from __future__ import annotations

import os
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import pycurl

from .tls import TlsSettings

MAX_HEAD_BYTES: Final = 256 * 1024
"""Bytes of all header lines of one answer, interim (1xx) ones included."""
MAX_HEAD_LINES: Final = 5000
"""Lines of the same; more of either is an error, and the URL is tried again."""
_REFUSE: Final = 0
_SUPPRESS_CONNECT_HEADERS: Final = 265
"""libcurl's number; pycurl has no name for it. What a proxy says to CONNECT is no answer of the
server's.
"""
_BUFFER: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class CurlSettings:
    """The settings of all transfers; times in ms."""

    connect_timeout: int = 10_000
    read_timeout: int = 10_000
    total_timeout: int = 300_000
    verify: bool = True
    ca_file: str = ""
    http_version: str = "1.1"
    dns_cache_seconds: int = 2
    """How long libcurl keeps an address that it has looked up itself. It looks through all of them
    at the end of each transfer, which costs more than the transfer at 20,000 hosts.
    """
    record_tls: bool = False
    tls: TlsSettings = field(default_factory=TlsSettings)
    max_connections: int = 1000
    max_idle_seconds: int = 118


_VERSIONS: Final = {
    "1.0": pycurl.CURL_HTTP_VERSION_1_0,
    "1.1": pycurl.CURL_HTTP_VERSION_1_1,
    "2": pycurl.CURL_HTTP_VERSION_2TLS,
}


_OLDEST: Final = {
    ssl.TLSVersion.TLSv1: pycurl.SSLVERSION_TLSv1_0,
    ssl.TLSVersion.TLSv1_1: pycurl.SSLVERSION_TLSv1_1,
    ssl.TLSVersion.TLSv1_2: pycurl.SSLVERSION_TLSv1_2,
    ssl.TLSVersion.TLSv1_3: pycurl.SSLVERSION_TLSv1_3,
}
_NEWEST: Final = {
    ssl.TLSVersion.TLSv1: pycurl.SSLVERSION_MAX_TLSv1_0,
    ssl.TLSVersion.TLSv1_1: pycurl.SSLVERSION_MAX_TLSv1_1,
    ssl.TLSVersion.TLSv1_2: pycurl.SSLVERSION_MAX_TLSv1_2,
    ssl.TLSVersion.TLSv1_3: pycurl.SSLVERSION_MAX_TLSv1_3,
}


class _NewSocket:
    """A socket of which libcurl takes a copy. Python's own would complain that nobody closes it,
    and describe itself for that warning: 2 % of a fetch of 100,000 hosts.
    """

    __slots__ = ("_descriptor",)

    def __init__(self, family: int, kind: int, protocol: int) -> None:
        self._descriptor = socket.socket(family, kind, protocol).detach()

    def fileno(self) -> int:
        return self._descriptor

    def __del__(self) -> None:
        os.close(self._descriptor)


class CurlSlot:
    """A handle with its callbacks and the state of its current transfer."""

    def __init__(self, settings: CurlSettings, accepts: Callable[[str], bool]) -> None:
        self.handle: Any = pycurl.Curl()
        self.accepts = accepts
        self.options: dict[int, object] = {}
        self.direct = True
        self.pinned = ""
        """The `host:port` whose addresses it has told libcurl."""
        self.reset(0)
        self._set_up(settings)

    def reset(self, limit: int) -> None:
        """Prepares for the next transfer; at most `limit` bytes of content are kept, all if it is
        negative.
        """
        self.lines: list[bytes] = []
        self.chunks: list[bytes] = []
        self.size = 0
        self.limit = limit
        self.head_bytes = 0
        self.head_lines = 0
        self.head_done = False
        self.truncated: str | None = None
        self.head_too_large = False
        self.forbidden: str | None = None
        self.requests = 0
        self.repeated = False
        self.tls: tuple[str, str] | None = None
        self.started = self.last = time.monotonic()

    def _set_up(self, settings: CurlSettings) -> None:
        handle = self.handle
        for option, value in (
            (pycurl.NOSIGNAL, 1),
            (pycurl.HTTP09_ALLOWED, 1),
            (pycurl.PATH_AS_IS, 1),
            (pycurl.HTTP_CONTENT_DECODING, 0),
            (pycurl.BUFFERSIZE, _BUFFER),
            (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
            (pycurl.PROXY, ""),
            (pycurl.CONNECTTIMEOUT_MS, settings.connect_timeout),
            (pycurl.MAXAGE_CONN, settings.max_idle_seconds),
            (pycurl.HTTP_VERSION, _VERSIONS[settings.http_version]),
            (pycurl.SSL_VERIFYPEER, int(settings.verify)),
            (pycurl.SSL_VERIFYHOST, 2 if settings.verify else 0),
            (pycurl.PROXY_SSL_VERIFYPEER, int(settings.verify)),
            (pycurl.PROXY_SSL_VERIFYHOST, 2 if settings.verify else 0),
            (_SUPPRESS_CONNECT_HEADERS, 1),
            (pycurl.HEADERFUNCTION, self._on_header),
            (pycurl.WRITEFUNCTION, self._on_body),
            (pycurl.OPENSOCKETFUNCTION, self._open_socket),
            (pycurl.PREREQFUNCTION, self._before_request),
        ):
            handle.setopt(option, value)
        if settings.ca_file:
            handle.setopt(pycurl.CAINFO, settings.ca_file)
            handle.setopt(pycurl.PROXY_CAINFO, settings.ca_file)
        self._set_up_tls(settings.tls)
        if settings.record_tls:
            handle.setopt(pycurl.VERBOSE, 1)
            handle.setopt(pycurl.DEBUGFUNCTION, self._on_debug)

    def _set_up_tls(self, tls: TlsSettings) -> None:
        if tls.oldest is not None and tls.newest is not None:
            self.handle.setopt(pycurl.SSLVERSION, _OLDEST[tls.oldest] | _NEWEST[tls.newest])
        if tls.cipher_list:
            self.handle.setopt(pycurl.SSL_CIPHER_LIST, tls.cipher_list)
        if tls.ciphers13:
            self.handle.setopt(pycurl.TLS13_CIPHERS, ":".join(tls.ciphers13))

    def set(self, option: int, value: object) -> None:
        """Sets an option that differs between transfers, if it has changed."""
        if self.options.get(option) != value:
            self.handle.setopt(option, value)
            self.options[option] = value

    @property
    def body(self) -> bytes:
        """Content received so far."""
        return self.chunks[0] if len(self.chunks) == 1 else b"".join(self.chunks)

    # -- libcurl's callbacks -----------------------------------------------------------------------

    def _on_header(self, line: bytes) -> int | None:
        self.last = time.monotonic()
        self.head_bytes += len(line)
        self.head_lines += 1
        if self.head_bytes > MAX_HEAD_BYTES or self.head_lines > MAX_HEAD_LINES:
            self.head_too_large = True
            return _REFUSE
        if line[:5] == b"HTTP/" and (self.head_done or not self.lines):
            self.lines = [line]
            self.head_done = False
        elif self.head_done:
            return None  # a trailer is no header (RFC 9110, 6.5.1)
        elif line in (b"\r\n", b"\n"):
            self.head_done = True
        else:
            self.lines.append(line)
        return None

    def _on_body(self, data: bytes) -> int | None:
        self.last = time.monotonic()
        room = self.limit - self.size
        if self.limit >= 0 and len(data) > room:
            self.chunks.append(data[:room])
            self.size = self.limit
            self.truncated = "length"
            return _REFUSE
        self.chunks.append(data)
        self.size += len(data)
        return None

    def _open_socket(self, purpose: int, address: tuple[int, int, int, tuple[Any, ...]]) -> Any:
        family, kind, protocol, where = address
        ip = where[0].decode() if isinstance(where[0], bytes) else str(where[0])
        if self.direct and not self.accepts(ip):
            self.forbidden = ip
            return pycurl.SOCKET_BAD
        return _NewSocket(family, kind, protocol)

    def _before_request(self, *addresses: object) -> int:
        """libcurl sends a request once more by itself if the connection that it kept turns out to
        be closed, and up to five times if a server refuses the stream (RFC 9113, 8.7); the host may
        not want to be asked then. One with a delay of 0.4 s saw both requests in a millisecond.
        """
        self.requests += 1
        if self.requests == 1:
            return pycurl.PREREQFUNC_OK  # type: ignore[no-any-return]
        self.repeated = True
        return pycurl.PREREQFUNC_ABORT  # type: ignore[no-any-return]

    def _on_debug(self, kind: int, data: bytes) -> None:
        if kind == pycurl.INFOTYPE_TEXT and data.startswith(b"SSL connection using "):
            fields = data.decode("latin-1").removeprefix("SSL connection using ").split(" / ")
            if len(fields) > 1:
                self.tls = fields[0].strip(), fields[1].strip()
