"""Drives libcurl's multi interface on an asyncio event loop.

libcurl says which sockets it waits for and for how long (M_SOCKETFUNCTION, M_TIMERFUNCTION); they
go into an epoll set of our own, whose descriptor is the one thing that asyncio watches (one
registration, not one per connection). When a transfer is done its `done` is called with 0 or
libcurl's error code.
"""

from __future__ import annotations

import asyncio
import math
import resource
import select
from collections.abc import Callable
from typing import Any, Final

import pycurl

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
