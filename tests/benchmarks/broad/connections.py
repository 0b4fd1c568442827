"""Serves one connection: reads a request, waits for its latency, answers, and logs it.

A request begins when its head has come, and ends when the last bytes of its answer go out, or when
the client leaves. The server gives each connection its events and its alarms.
"""

from __future__ import annotations

import re
import select
import socket
import struct
from typing import Final, Protocol

from tests.benchmarks.broad.answers import Answer, Answers, Way
from tests.benchmarks.broad.requestlog import BROKEN, LEFT, OPEN, OTHER, ROBOTS, RequestLog, now
from tests.benchmarks.broad.web import Web, number

READ: Final = select.EPOLLIN
BOTH: Final = select.EPOLLIN | select.EPOLLOUT
_HEAD_END: Final = b"\r\n\r\n"
_REQUEST: Final = re.compile(rb"GET /(?:p/(\d+)|(robots\.txt))?[^ ]* HTTP/1\.1\r\n")
_HOST: Final = re.compile(rb"\r\n[Hh]ost: ?([^:\r]+)")
_SECOND: Final = 1_000_000
_FLOOD: Final = b"endless words " * 5_000
_AT_ONCE: Final = struct.pack("ii", 1, 0)


class Site(Protocol):
    """What connections share."""

    web: Web
    answers: Answers
    latencies: list[int]
    """Of each slot, in µs."""
    first: list[int]
    sizes: list[int]
    log: RequestLog

    def alarm(self, time: int, connection: Connection) -> None:
        """Calls the connection's `ring` at that time (µs)."""

    def watch(self, connection: Connection, events: int) -> None:
        """Tells for what a connection waits."""

    def idle(self, connection: Connection) -> None:
        """Takes note that a connection has nothing to do from now on."""

    def forget(self, connection: Connection) -> None:
        """Takes note that a connection is closed."""


class Connection:
    """One connection, with at most one request in progress."""

    __slots__ = (
        "answer",
        "begin",
        "busy",
        "closed",
        "due",
        "fd",
        "host",
        "page",
        "read",
        "rest",
        "site",
        "sock",
    )

    def __init__(self, site: Site, sock: socket.socket) -> None:
        self.site = site
        self.sock = sock
        self.fd = sock.fileno()
        self.read = b""
        self.busy = self.closed = False
        self.answer: Answer | None = None
        self.rest: bytes | memoryview = b""
        self.begin = self.due = 0
        self.host = self.page = OTHER

    def receive(self) -> None:
        """Takes what has come in."""
        try:
            data = self.sock.recv(65_536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close(LEFT)
            return
        self.read += data
        if not self.busy and _HEAD_END in self.read:
            self._begin()

    def _begin(self) -> None:
        head, _, self.read = self.read.partition(_HEAD_END)
        self.begin = now()
        self.busy = True
        request, named = _REQUEST.match(head + b"\r\n"), _HOST.search(head)
        self.host = number(named[1].lower()) if named is not None else -1
        site = self.site
        if request is None or not 0 <= self.host < len(site.sizes):
            self.host, self.page, self.answer = -1, OTHER, site.answers.missing()
            self.due = self.begin
        else:
            self._find(request, head)
        if self.due <= self.begin:
            self.ring(self.begin)
        else:
            site.alarm(self.due, self)

    def _find(self, request: re.Match[bytes], head: bytes) -> None:
        site = self.site
        slot = site.first[self.host]
        if request[2] is not None:
            self.page, self.answer = ROBOTS, site.answers.robots(self.host)
        elif request[1] is not None and int(request[1]) < site.sizes[self.host]:
            self.page = int(request[1])
            self.answer = site.answers.page(self.host, self.page, head)
            slot += 1 + self.page
        else:
            self.page, self.answer = OTHER, site.answers.missing()
        self.due = self.begin + site.latencies[slot]

    def ring(self, time: int) -> None:
        """Goes on: the latency, or a second between two drops, is over."""
        if self.answer is not None:
            answer, self.answer = self.answer, None
            self.rest = answer.data
            self._send(answer.way, answer.status)
        elif self._put(b"x"):  # a drop
            self.site.alarm(time + _SECOND, self)

    def _send(self, way: Way, status: int) -> None:
        if way in (Way.WHOLE, Way.CLOSE):
            self._whole(way, status)
        elif way is Way.RESET:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
            self.close(BROKEN)
        elif way is Way.DRIP:
            if self._put(self.rest):
                self.site.alarm(now() + _SECOND, self)
        elif way is Way.FLOOD and self._put(self.rest):
            self.rest = _FLOOD
            self.answer = Answer(_FLOOD, status, Way.FLOOD)
            self.site.watch(self, BOTH)

    def _whole(self, way: Way, status: int) -> None:
        end = now()
        try:
            sent = self.sock.send(self.rest)
        except BlockingIOError:
            sent = 0
        except OSError:
            self.close(LEFT)
            return
        if sent < len(self.rest):
            self.rest = memoryview(self.rest)[sent:]
            self.answer = Answer(b"", status, way)
            self.site.watch(self, BOTH)
            return
        self.rest = b""
        self._done(end, status)
        if way is Way.CLOSE:
            self.close(LEFT)
        elif _HEAD_END in self.read:
            self._begin()
        else:
            self.site.idle(self)

    def writable(self) -> None:
        """Sends more: there is room."""
        answer = self.answer
        if answer is None:
            self.site.watch(self, READ)
        elif answer.way is Way.FLOOD:
            self._put(_FLOOD)
        else:
            self.answer = None
            self.site.watch(self, READ)
            self._whole(answer.way, answer.status)

    def _put(self, data: bytes | memoryview) -> bool:
        """Sends what there is room for; False if the client has left."""
        try:
            self.sock.send(data)
        except BlockingIOError:
            return True
        except OSError:
            self.close(LEFT)
            return False
        return True

    def _done(self, end: int, status: int) -> None:
        self.busy = False
        self.site.log.add(self.begin, end, self.host, self.page, status)

    def close(self, status: int) -> None:
        """Ends the connection, and with it a request in progress."""
        if self.closed:
            return
        if self.busy:
            self._done(now(), status)
        self.closed = True
        self.answer = None
        self.site.forget(self)
        self.sock.close()

    def end(self) -> None:
        """The server ends."""
        self.close(OPEN)
