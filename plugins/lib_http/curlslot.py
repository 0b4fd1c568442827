"""Holds a reusable libcurl handle, and the data that its current transfer has received.

libcurl puts each header line into a list, of which `head` makes the answer's when the transfer is
over, and calls `_on_body` for each piece of content (16 KB at most), which refuses more when the
limit is reached: that ends the transfer (error 23) without losing what came before.
"""

from __future__ import annotations

import asyncio
import math
import os
import resource
import select
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import pycurl

from .exchange import Headers
from .tls import GROUPS, TlsSettings

MAX_HEAD_BYTES: Final = 256 * 1024
"""Bytes of all header lines of one answer, interim (1xx) ones included."""
MAX_HEAD_LINES: Final = 5000
"""Lines of the same; more of either is an error, and the URL is tried again. libcurl itself ends a
transfer somewhat later, but for one with interim answers without end.
"""
_REFUSE: Final = 0
_BLANK: Final = b"\r\n"
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
        self.headers: Headers = ()
        """Those of the last request."""
        self._shared: object = None
        self.lines: list[bytes] = []
        """All header lines, also those of interim answers and trailers."""
        self.reset(0)
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
            (pycurl.HEADERFUNCTION, self.lines.append),
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

    def reset(self, limit: int) -> None:
        """Prepares for the next transfer; at most `limit` bytes of content are kept, all if it is
        negative.
        """
        self.lines.clear()
        self.chunks: list[bytes] = []
        self.size = 0
        self.limit = limit
        self.truncated: str | None = None
        self.forbidden: str | None = None
        self.requests = 0
        self.repeated = False
        self.tls: tuple[str, str] | None = None
        self.started = self.last = time.monotonic()
        self._seen = 0

    def let_go(self) -> None:
        """Forgets what has come."""
        self.lines.clear()
        self.chunks = []

    def heard(self, now: float) -> float:
        """Returns the time of the transfer's last progress, as far as that was looked for: data
        came, or the request was sent (connecting has its own limit).
        """
        seen = len(self.lines) + len(self.chunks)
        if seen > self._seen:
            self._seen, self.last = seen, now
        if seen:
            return self.last
        sent = self.handle.getinfo(pycurl.PRETRANSFER_TIME)
        return self.started + sent if sent > 0 else now

    def _set_up_tls(self, tls: TlsSettings) -> None:
        if tls.oldest is not None and tls.newest is not None:
            self.handle.setopt(pycurl.SSLVERSION, _OLDEST[tls.oldest] | _NEWEST[tls.newest])
        if tls.cipher_list:
            self.handle.setopt(pycurl.SSL_CIPHER_LIST, tls.cipher_list)
        self.handle.setopt(pycurl.SSL_EC_CURVES, GROUPS)
        if tls.ciphers13:
            self.handle.setopt(pycurl.TLS13_CIPHERS, ":".join(tls.ciphers13))

    def set(self, option: int, value: object) -> None:
        """Sets an option that differs between transfers, if it has changed."""
        if self.options.get(option) != value:
            self.handle.setopt(option, value)
            self.options[option] = value

    def share(self, store: object) -> None:
        """Takes TLS sessions from a store, and leaves those of this transfer there."""
        if self._shared is not store:
            if self._shared is not None:
                self.handle.unsetopt(pycurl.SHARE)
            self.handle.setopt(pycurl.SHARE, store)
            self._shared = store

    @property
    def body(self) -> bytes:
        """Content received so far."""
        return self.chunks[0] if len(self.chunks) == 1 else b"".join(self.chunks)

    @property
    def has_large_head(self) -> bool:
        """True if there are more header lines, or longer ones, than an answer may have."""
        lines = self.lines
        return len(lines) > MAX_HEAD_LINES or sum(map(len, lines)) > MAX_HEAD_BYTES

    def head(self) -> tuple[list[bytes], bool]:
        """Returns the header lines of the last answer, status line first, and whether all of them
        came. Trailers are no headers (RFC 9110, 6.5.1).
        """
        lines = self.lines
        if lines and lines[-1] == _BLANK and lines.count(_BLANK) == 1 and b"\n" not in lines:
            return lines[:-1], True
        found: list[bytes] = []
        is_whole = False
        for line in lines:
            if line[:5] == b"HTTP/" and (is_whole or not found):
                found, is_whole = [line], False
            elif line in (_BLANK, b"\n"):
                is_whole = True
            elif not is_whole:
                found.append(line)
        return found, is_whole

    # -- libcurl's callbacks -----------------------------------------------------------------------

    def _on_body(self, data: bytes) -> int | None:
        size = self.size + len(data)
        if size > self.limit >= 0:
            self.chunks.append(data[: self.limit - self.size])
            self.size = self.limit
            self.truncated = "length"
            return _REFUSE
        self.chunks.append(data)
        self.size = size
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


# Drives libcurl's multi interface on an asyncio event loop.
#
# libcurl says which sockets it waits for and for how long (M_SOCKETFUNCTION, M_TIMERFUNCTION);
# they go into an epoll set of our own, whose descriptor is the one thing that asyncio watches (one
# registration, not one per connection). When a transfer is done its `done` is called with 0 or
# libcurl's error code.

Done = Callable[[int, str], None]
"""Called with libcurl's error code (0: success) and its message."""

_MAX_EVENTS: Final = 256
_MAX_WAIT: Final = 3600.0


class CurlLoop:
    """One multi handle on the running event loop; connections are kept and reused across
    transfers.
    """

    def __init__(self, max_connections: int) -> None:
        """`max_connections` idle ones are kept; fewer where this process may open few files."""
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if files != resource.RLIM_INFINITY:
            max_connections = min(max_connections, files // 2)
        self.loop = asyncio.get_running_loop()
        self._epoll = select.epoll()
        self._masks: dict[int, int] = {}
        self._soon: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due = math.inf
        self._transfers: dict[Any, Done] = {}
        self.multi: Any = pycurl.CurlMulti()
        self.multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self.multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)
        self.multi.setopt(pycurl.M_MAXCONNECTS, max_connections)
        self.multi.setopt(pycurl.M_PIPELINING, pycurl.PIPE_MULTIPLEX)
        self.loop.add_reader(self._epoll.fileno(), self._on_ready)

    @property
    def active(self) -> int:
        """Transfers under way."""
        return len(self._transfers)

    def add(self, handle: Any, done: Done) -> None:
        """Starts the transfer that `handle` (a pycurl.Curl) describes."""
        self._transfers[handle] = done
        self.multi.add_handle(handle)

    def remove(self, handle: Any) -> None:
        """Cancels a transfer; its connection is closed."""
        if self._transfers.pop(handle, None) is not None:
            self.multi.remove_handle(handle)

    def close(self) -> None:
        """Cancels all transfers and closes all connections."""
        for handle in list(self._transfers):
            self.remove(handle)
        for handle in (self._soon, self._timer):
            if handle is not None:
                handle.cancel()
        self.loop.remove_reader(self._epoll.fileno())
        self.multi.close()
        self._epoll.close()

    # -- libcurl's callbacks -----------------------------------------------------------------------

    def _on_socket(self, what: int, descriptor: int, multi: Any, data: Any) -> None:
        known = descriptor in self._masks
        if what == pycurl.POLL_REMOVE:
            if known:
                del self._masks[descriptor]
                self._unregister(descriptor)
            return
        mask = (select.EPOLLIN if what & pycurl.POLL_IN else 0) | (
            select.EPOLLOUT if what & pycurl.POLL_OUT else 0
        )
        if not known:
            self._epoll.register(descriptor, mask)
        elif self._masks[descriptor] != mask:
            self._epoll.modify(descriptor, mask)
        self._masks[descriptor] = mask

    def _unregister(self, descriptor: int) -> None:
        try:
            self._epoll.unregister(descriptor)
        except OSError:
            return  # libcurl has closed it already, which takes it out of the set too

    def _on_timer(self, milliseconds: int) -> None:
        """libcurl wants to be called after so long, in place of when it said before; -1: not at
        all.

        It says so twice a page. So a timer that is set stays, and looks again if it is too early;
        and one call is enough for all transfers that begin in the same turn of the loop.
        """
        if milliseconds == 0:
            if self._soon is None:
                self._soon = self.loop.call_soon(self._on_turn)
            return
        self._due = (
            math.inf if milliseconds < 0 else self.loop.time() + min(milliseconds / 1000, _MAX_WAIT)
        )
        if self._timer is None or self._due < self._timer.when():
            self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if self._due == math.inf else self.loop.call_at(self._due, self._on_time)

    # -- asyncio's callbacks -----------------------------------------------------------------------

    def _on_turn(self) -> None:
        self._soon = None
        self._time_out()

    def _on_time(self) -> None:
        self._timer = None
        if self.loop.time() < self._due:
            self._set_timer()
        else:
            self._due = math.inf
            self._time_out()

    def _time_out(self) -> None:
        self.multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        self._collect()

    def _on_ready(self) -> None:
        for descriptor, events in self._epoll.poll(0, _MAX_EVENTS):
            bits = (pycurl.CSELECT_IN if events & (select.EPOLLIN | select.EPOLLHUP) else 0) | (
                pycurl.CSELECT_OUT if events & select.EPOLLOUT else 0
            )
            if events & select.EPOLLERR:
                bits |= pycurl.CSELECT_ERR
            self.multi.socket_action(descriptor, bits)
        self._collect()

    def _collect(self) -> None:
        """Returns finished transfers to their callers."""
        more = 1
        while more:
            more, succeeded, failed = self.multi.info_read()
            for handle in succeeded:
                self._finish(handle, 0, "")
            for handle, code, message in failed:
                self._finish(handle, code, message)

    def _finish(self, handle: Any, code: int, message: str) -> None:
        self.multi.remove_handle(handle)
        done = self._transfers.pop(handle, None)
        if done is not None:
            done(code, message)
