"""Sends requests (`Order`) by libcurl and returns their replies, within limits of size and time.

A reply is complete when it is returned. What prevents an answer is raised as an
httpx.TransportError (failures.py): AskAgain, where a second request is needed, which is left to who
knows when the host may be asked.
"""

from __future__ import annotations

import asyncio
import errno
import time
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import Final

import httpx
import pycurl

from minutch.records.metadata import TOO_SLOW

from . import lenient
from .curlslot import MAX_HEAD_LINES, CurlLoop, CurlSettings, CurlSlot
from .exchange import Headers, Order, Reply
from .failures import (
    AskAgain,
    ForbiddenAddress,
    MalformedHead,
    TlsFailure,
    TooLarge,
    UnknownHost,
    connect_error,
    refusal_of_proxy,
    refusal_of_tunnel,
    refused_answer,
)
from .lenient import Way, Ways, is_interim
from .resolver import ResolverCache
from .tls import TlsSessions

MAX_PORT: Final = 65_535
SWEEP: Final = 0.25
"""Seconds between two looks for transfers that have stalled."""
_FOR_EVER: Final = -1
_WEIRD: Final = 8
_PARTIAL: Final = 18
_EMPTY: Final = 52
_ENDLESS: Final = "headers without end"
_NO_ANSWER: Final = "Connection closed without an answer"
_LINE_END: Final = b"\r\n"
MOST_IDLE: Final = 256
"""Slots that wait for the next transfer to the server that they served last; most of their options
still hold, so that order and handle take 21 µs instead of 36.
"""
MOST_TLS: Final = 10_000
"""Servers whose protocol and cipher are remembered, for connections that are used again."""


class CurlTransport:
    """Transfers on the running event loop; made lazily, so that it may be constructed outside of
    one.
    """

    def __init__(
        self,
        settings: CurlSettings,
        accepts: Callable[[str], bool],
        names: ResolverCache | None = None,
    ) -> None:
        """`accepts` says which addresses may be connected to; without `names` libcurl looks hosts
        up by itself.
        """
        self._settings = settings
        self._accepts = accepts
        self._names = names
        self._curl: CurlLoop | None = None
        self._idle: dict[str, list[CurlSlot]] = {}
        self._idle_count = 0
        self._busy: dict[CurlSlot, asyncio.Future[Exception | None]] = {}
        self._sweeper: asyncio.TimerHandle | None = None
        self._tls: dict[tuple[str, int, str], tuple[str, str]] = {}
        self._ways = Ways()
        self._sessions = TlsSessions()
        self._pinned: Counter[str] = Counter()
        """Slots by the `host:port` whose addresses they have told libcurl."""

    async def ask(self, order: Order) -> Reply:
        """Fetches one answer; redirects are left to the caller."""
        addresses = await self._addresses(order)
        authority = _authority(order.host, order.port)
        way = self._ways.of(authority) if self._ways else Way.USUAL
        if way is Way.LENIENT and lenient.may_ask(order):
            reply = await lenient.ask(order, addresses, self._settings, self._accepts)
        else:
            reply = await self._transfer(order, authority, addresses, way)
        if (refusal := refusal_of_proxy(reply.code, reply.head, bool(order.proxy))) is not None:
            raise refusal
        return reply

    async def _transfer(
        self, order: Order, authority: str, addresses: list[str], way: Way
    ) -> Reply:
        """Asks by libcurl. Raises AskAgain where the server has to be asked in another way."""
        if self._curl is None:
            self._curl = CurlLoop(self._settings.max_connections)
        slot = self._slot(authority)
        try:
            self._pin(slot, order, addresses)
            if order.scheme == "https":
                slot.share(self._sessions.of(authority))
            _prepare(slot, order, authority, way)
            return self._reply(slot, order, await self._perform(self._curl, slot, order))
        except AskAgain:
            if way is not Way.USUAL:  # as a server that refuses streams does each time
                raise httpx.ReadError(_NO_ANSWER) from None
            self._ways.note(authority, Way.FRESH)
            raise
        except MalformedHead as error:
            if not lenient.may_ask(order):
                raise
            self._ways.note(authority, Way.LENIENT)
            raise AskAgain(f"{authority} is asked in another way: {error}") from error
        finally:
            self._rest(slot, authority)

    async def _perform(self, curl: CurlLoop, slot: CurlSlot, order: Order) -> Exception | None:
        """Waits for a transfer to end; returns the error that ended it, if any."""
        future: asyncio.Future[Exception | None] = curl.loop.create_future()
        self._busy[slot] = future
        curl.add(slot.handle, lambda code, message: self._done(slot, order, code, message))
        if self._sweeper is None:
            self._sweeper = curl.loop.call_later(SWEEP, self._sweep)
        try:
            return await future
        finally:
            self._busy.pop(slot, None)
            if not future.done() or future.cancelled():
                curl.remove(slot.handle)

    async def aclose(self) -> None:
        """Closes all connections."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        if self._curl is not None:
            self._curl.close()
            self._curl = None
        for slots in self._idle.values():
            for slot in slots:
                slot.handle.close()
        self._idle.clear()
        self._idle_count = 0

    # -- request -----------------------------------------------------------------------------------

    async def _addresses(self, order: Order) -> list[str]:
        """Returns the addresses to connect to; none if libcurl looks them up or needs none."""
        if self._names is None or order.proxy:
            return []
        known = self._names.known(order.host)
        return await self._names.find(order.host) if known is None else known

    def _pin(self, slot: CurlSlot, order: Order, addresses: list[str]) -> None:
        """Says where a host is, and lets libcurl forget the one before, unless another slot needs
        it: so it never has to look through what it knows for what is too old.
        """
        if not addresses or (order.port or 0) > MAX_PORT:
            slot.set(pycurl.DNS_CACHE_TIMEOUT, self._settings.dns_cache_seconds)
            return
        slot.set(pycurl.DNS_CACHE_TIMEOUT, _FOR_EVER)
        port = order.port or (443 if order.scheme == "https" else 80)
        name, before = f"{order.host}:{port}", slot.pinned
        places = ",".join(f"[{a}]" if ":" in a else a for a in addresses)
        entries = [f"+{name}:{places}"]
        if name != before:
            self._pinned[name] += 1
            slot.pinned = name
            if before and self._pinned[before] == 1:
                del self._pinned[before]
                entries.append(f"-{before}")
            elif before:
                self._pinned[before] -= 1
        slot.handle.setopt(pycurl.RESOLVE, entries)

    def _slot(self, authority: str) -> CurlSlot:
        """Returns a slot that served this server, if there is one; else a new one, or one of the
        server served longest ago.
        """
        known = authority if authority in self._idle else None
        if known is None:
            if self._idle_count < MOST_IDLE:
                return CurlSlot(self._settings, self._accepts)
            known = next(iter(self._idle))
        slots = self._idle[known]
        slot = slots.pop()
        if not slots:
            del self._idle[known]
        self._idle_count -= 1
        return slot

    def _rest(self, slot: CurlSlot, authority: str) -> None:
        """Keeps a slot for the next transfer, regardless of how the last one ended.

        A handle and its callbacks hold each other: one that was let go would keep its memory until
        Python looks for cycles among all objects, which it does the more seldom the more there are.
        """
        slot.let_go()
        self._idle.setdefault(authority, []).append(slot)
        self._idle_count += 1

    # -- progress ----------------------------------------------------------------------------------

    def _done(self, slot: CurlSlot, order: Order, code: int, message: str) -> None:
        future = self._busy.get(slot)
        if future is not None and not future.done():
            future.set_result(None if code == 0 else _error(slot, order, code, message))

    def _sweep(self) -> None:
        """Ends transfers that have been idle for too long or take too long altogether."""
        now = time.monotonic()
        settings = self._settings
        for slot, future in list(self._busy.items()):
            if future.done():
                continue
            if (now - slot.started) * 1000 > settings.total_timeout >= 0:
                slot.truncated = TOO_SLOW
                self._give_up(slot, future, httpx.ReadTimeout("Time limit reached"))
            elif len(slot.lines) > MAX_HEAD_LINES:
                self._give_up(slot, future, TooLarge(_ENDLESS))
            elif (now - slot.heard(now)) * 1000 > settings.read_timeout:
                self._give_up(slot, future, httpx.ReadTimeout("Read timed out"))
        self._sweeper = (
            asyncio.get_running_loop().call_later(SWEEP, self._sweep) if self._busy else None
        )

    def _give_up(
        self, slot: CurlSlot, future: asyncio.Future[Exception | None], error: Exception
    ) -> None:
        assert self._curl is not None
        self._curl.remove(slot.handle)
        future.set_result(error)

    # -- response ----------------------------------------------------------------------------------

    def _reply(self, slot: CurlSlot, order: Order, error: Exception | None) -> Reply:
        if slot.has_large_head:
            raise TooLarge(_ENDLESS)
        head, is_whole = slot.head()
        has_head = is_whole and not is_interim(head[0]) if head else slot.size > 0
        if not has_head and (error is not None or head):
            raise error or MalformedHead("Connection closed in the headers")
        handle = slot.handle
        return Reply(
            handle.getinfo(pycurl.RESPONSE_CODE) if head else 200,
            head,
            slot.body,
            head[0].split(b" ", 1)[0] if head else b"HTTP/0.9",
            error if slot.truncated is None else None,
            slot.truncated,
            (handle.getinfo(pycurl.PRIMARY_IP), handle.getinfo(pycurl.PRIMARY_PORT)),
            self._tls_facts(slot, order)
            if self._settings.record_tls and order.scheme == "https"
            else None,
        )

    def _tls_facts(self, slot: CurlSlot, order: Order) -> tuple[str, str, bool]:
        handle = slot.handle
        key = (handle.getinfo(pycurl.PRIMARY_IP), handle.getinfo(pycurl.PRIMARY_PORT), order.host)
        if slot.tls is not None:
            self._tls[key] = slot.tls
            if len(self._tls) > MOST_TLS:
                del self._tls[next(iter(self._tls))]
        protocol, cipher = self._tls.get(key, ("", ""))
        return protocol, cipher, self._settings.verify


@lru_cache(maxsize=4096)
def _authority(host: str, port: int | None) -> str:
    """Host and port as they stand in a URL."""
    return (f"[{host}]" if ":" in host else host) + ("" if port is None else f":{port}")


def _prepare(slot: CurlSlot, order: Order, authority: str, way: Way) -> None:
    slot.reset(order.limit)
    slot.set(pycurl.URL, f"{order.scheme}://{authority}/")
    slot.direct = not order.proxy
    slot.set(pycurl.PROXY, order.proxy)
    target = order.target
    if order.proxy.startswith("http") and order.scheme == "http":
        target = f"http://{authority}".encode() + target
    slot.handle.setopt(pycurl.REQUEST_TARGET, target)
    if order.headers != slot.headers:
        slot.headers = list(order.headers)
        slot.handle.setopt(pycurl.HTTPHEADER, _header_lines(order.headers))
    is_fresh = way is not Way.USUAL
    if is_fresh or pycurl.FRESH_CONNECT in slot.options:
        slot.set(pycurl.FRESH_CONNECT, int(is_fresh))
        slot.set(pycurl.FORBID_REUSE, int(is_fresh))
    if order.method == "GET":
        if slot.options.pop(pycurl.POSTFIELDS, None) is not None:
            slot.handle.setopt(pycurl.HTTPGET, 1)
            slot.handle.unsetopt(pycurl.CUSTOMREQUEST)  # which outlasts the method
        return
    slot.options[pycurl.POSTFIELDS] = True
    if order.method == "HEAD":
        slot.handle.setopt(pycurl.NOBODY, 1)  # until HTTPGET, or a POST's fields
        slot.handle.setopt(pycurl.CUSTOMREQUEST, order.method)
        return
    slot.handle.setopt(pycurl.NOBODY, 0)  # which outlasts the method
    slot.handle.setopt(pycurl.POSTFIELDS, order.content)
    slot.handle.setopt(pycurl.CUSTOMREQUEST, order.method)


def _header_lines(raw: Headers) -> list[bytes]:
    """Returns a request's header lines; headers that only libcurl would add are switched off.

    Not cached: validators are a page's own, and 4,096 of them took 8 MB.
    """
    lines = [name + b": " + value for name, value in raw]
    names = {name.lower() for name, _ in raw}
    return lines + [name + b":" for name in (b"Accept", b"Expect") if name.lower() not in names]


_COULDNT_RESOLVE: Final = (5, 6)
_COULDNT_CONNECT: Final = 7
_TOO_LARGE: Final = 100
_TIMED_OUT: Final = 28
_TLS_CODES: Final = frozenset({35, 51, 53, 54, 58, 59, 60, 64, 66, 77, 80, 82, 83, 90, 91})
_RESET_CODES: Final = {55: httpx.WriteError, 56: httpx.ReadError}


def _error(slot: CurlSlot, order: Order, code: int, message: str) -> Exception:
    """Returns the httpx exception for libcurl's error code."""
    if slot.forbidden is not None:
        return ForbiddenAddress(slot.forbidden)
    if code == _TOO_LARGE:
        return TooLarge(_ENDLESS)
    if slot.repeated:
        return AskAgain("no answer on a connection that was kept")
    if code in _COULDNT_RESOLVE:
        return UnknownHost(order.host)
    if code in _TLS_CODES:
        return TlsFailure(message)
    return (
        refusal_of_tunnel(slot.handle.getinfo(pycurl.HTTP_CONNECTCODE))
        or _connection_error(slot, code, message)
        or _content_error(code, message)
    )


def _connection_error(slot: CurlSlot, code: int, message: str) -> Exception | None:
    """Returns the exception for a connection that failed or broke; None for any other code."""
    if code == _COULDNT_CONNECT:
        return connect_error(slot.handle.getinfo(pycurl.OS_ERRNO), message)
    if code == _TIMED_OUT:
        if slot.lines:
            return httpx.ReadTimeout("Read timed out")
        return httpx.ConnectTimeout("Connect timed out")
    if code in _RESET_CODES:
        if "eset" in message or slot.handle.getinfo(pycurl.OS_ERRNO) == errno.ECONNRESET:
            return _RESET_CODES[code]("Connection reset")
        return refused_answer(message)
    return None


def _content_error(code: int, message: str) -> Exception:
    if code == _EMPTY:
        return httpx.ReadError(_NO_ANSWER)
    if code == _PARTIAL:
        return httpx.RemoteProtocolError("Connection closed before the end of the content")
    return refused_answer(message or f"libcurl error {code}", is_head=code == _WEIRD)
