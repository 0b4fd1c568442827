"""Queries DNS servers by c-ares (pycares), which returns the lifetime of an answer; /etc/hosts
comes first.

c-ares says which sockets it waits on; they are watched by the running event loop. A timer gives it
the time of day as long as questions are open.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Sequence
from typing import Any, Final

import pycares

from .failures import NoNameServer, UnknownHost

log = logging.getLogger(__name__)

PAUSES: Final = (0.2, 0.6)
"""Times the timeout: before a question that had no answer in time is asked a second and a third
time, which is the last (RFC 9520, 3.1). c-ares waits the shorter the faster a server has been, down
to 250 ms; the pauses leave a slow name its time, whose answer the server has by then. A server that
failed (SERVFAIL, REFUSED) is not asked again at once: it would say the same.
"""
PATIENCE: Final = 3
"""Times the timeout: when a question without an answer is given up."""
_SAYS_NOTHING: Final = {
    pycares.errno.ARES_ESERVFAIL, pycares.errno.ARES_ENOTIMP, pycares.errno.ARES_EREFUSED,
    pycares.errno.ARES_EBADRESP, pycares.errno.ARES_ECONNREFUSED, pycares.errno.ARES_ETIMEOUT,
    pycares.errno.ARES_EOF, pycares.errno.ARES_EFILE, pycares.errno.ARES_ENOMEM,
    pycares.errno.ARES_EDESTRUCTION, pycares.errno.ARES_ECANCELLED,
}  # fmt: skip
"""Errors of servers and of this machine. Others say that a name has no address, or is none."""
AT_ONCE: Final = 1000
"""Questions that are waited for at the same time; others have their turn, and their time, later. A
fetch that began with 100,000 hosts had all of c-ares's numbers taken, and stood for ever.
"""
MOST_OPEN: Final = 20_000
"""Questions that c-ares may have open, those among them that nobody waits for any more. A question
takes two of its 65,536 numbers, and it looks for a free one for ever.
"""
_LONGEST_NAP: Final = 1.0
_NO_SOCKET: Final = pycares.ARES_SOCKET_BAD
_Answer = tuple[list[str], float]


class _NoAnswerError(NoNameServer):
    """No server answered in time."""


class DnsQuery:
    """A c-ares channel on the event loop that is running when the first question is asked."""

    def __init__(self, servers: Sequence[str] = (), timeout: float = 5) -> None:
        """`servers` as `address[:port]`, those of the system if there are none; `timeout` (s) of
        the first try.
        """
        self._servers = servers
        self._timeout = timeout
        self._channel: pycares.Channel | None = None
        self._loop: asyncio.AbstractEventLoop
        self._watched: set[int] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._open = 0
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def ask(self, host: str) -> _Answer:
        """Returns the addresses of a host, and their lifetime in seconds. Raises UnknownHost if it
        has none, NoNameServer if no server could say.
        """
        async with self._turns:
            try:
                async with asyncio.timeout(self._timeout * PATIENCE):
                    return await self._ask(host)
            except TimeoutError:
                raise NoNameServer(host) from None

    async def _ask(self, host: str) -> _Answer:
        for pause in PAUSES:
            try:
                return await self._ask_once(host)
            except _NoAnswerError:
                await asyncio.sleep(pause * self._timeout)
        return await self._ask_once(host)

    async def _ask_once(self, host: str) -> _Answer:
        if self._open >= MOST_OPEN:
            raise NoNameServer(host)
        channel = self._channel or self._begin()
        future: asyncio.Future[_Answer] = self._loop.create_future()

        def on_answer(result: Any, error: int | None) -> None:
            self._open -= 1
            if not future.done():
                _settle(future, host, result, error)

        self._open += 1
        channel.getaddrinfo(
            host.removesuffix("."),
            None,
            family=socket.AF_UNSPEC,
            type=socket.SOCK_STREAM,
            callback=on_answer,
        )
        self._set_timer()
        return await future

    def close(self) -> None:
        """Cancels all queries."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.cancel()
            for descriptor in self._watched:
                self._unwatch(descriptor)
            self._watched.clear()
            channel.close()  # closes the sockets a little later, in a thread of its own

    def _begin(self) -> pycares.Channel:
        self._loop = asyncio.get_running_loop()
        self._channel = pycares.Channel(
            sock_state_cb=self._on_state,
            timeout=self._timeout,
            tries=1,
            servers=self._servers or None,
        )
        return self._channel

    def _on_state(self, descriptor: int, readable: bool, writable: bool) -> None:
        """c-ares wants (or no longer wants) to hear of a socket."""
        if self._channel is None:
            return
        if descriptor in self._watched:
            self._unwatch(descriptor)
        if not (readable or writable):
            self._watched.discard(descriptor)
            return
        self._watched.add(descriptor)
        if readable:
            self._loop.add_reader(descriptor, self._process, descriptor, _NO_SOCKET)
        if writable:
            self._loop.add_writer(descriptor, self._process, _NO_SOCKET, descriptor)

    def _unwatch(self, descriptor: int) -> None:
        self._loop.remove_reader(descriptor)
        self._loop.remove_writer(descriptor)

    def _process(self, readable: int, writable: int) -> None:
        if self._channel is not None:
            self._channel.process_fd(readable, writable)

    def _set_timer(self) -> None:
        if self._timer is None and self._open and self._channel is not None:
            due: float | None = self._channel.timeout()  # type: ignore[no-untyped-call]
            nap = _LONGEST_NAP if due is None else min(due, _LONGEST_NAP)
            self._timer = self._loop.call_later(nap, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._process(_NO_SOCKET, _NO_SOCKET)
        self._set_timer()


def _settle(future: asyncio.Future[_Answer], host: str, result: Any, error: int | None) -> None:
    if error is not None or not result.nodes:
        reason = "no address" if error is None else pycares.errno.strerror(error)
        log.debug("%s: %s", host, reason)
        if error == pycares.errno.ARES_ETIMEOUT:
            future.set_exception(_NoAnswerError(host))
        else:
            unknown = error not in _SAYS_NOTHING
            future.set_exception(UnknownHost(host) if unknown else NoNameServer(host))
        return
    addresses = dict.fromkeys(node.addr[0].decode("ascii") for node in result.nodes)
    future.set_result((list(addresses), min(node.ttl for node in result.nodes)))
