"""Connects a fetch with its tasks on other machines: they report progress and receive orders.

    task ── snapshot ──────────────────────> fetch        once a second
         <─ WorkerOrder.STOP, .LEAVE_RESTING, HoldFetch ──

Each end first proves to the other that it has the key of this fetch (multiprocessing's challenge);
so nobody else is listened to. A task without a channel, since its machine can't reach this one,
fetches all the same.
"""

from __future__ import annotations

import logging
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from queue import SimpleQueue
from typing import Any, Final, NamedTuple

from minutch.cycle.fetch.stats import FetchStats, Snapshot, together
from minutch.cycle.fetch.watch import Pausable
from minutch.cycle.fetch.worker import HoldFetch, WorkerOrder

log = logging.getLogger(__name__)

SECONDS: Final = 5.0
"""How long a task tries to reach the fetch, and how long the fetch waits for who has called to
prove who that is.
"""
TICK: Final = 1.0
"""Seconds between two looks at all tasks."""
_GONE: Final = (OSError, EOFError)
_KEY: Final = 32
_OF_NOW: Final = (
    *("active", "threads", "waiting", "queues", "blocked", "pages_last_second"),
    *("bytes_last_second", "longest_rest", "oldest_wait", "longest_queue"),
)
"""What a task that has ended does no more."""
_PATIENCE: Final = 0.2
"""Seconds after which the server looks whether it is still needed."""


class ChannelAddress(NamedTuple):
    """The address of a fetch."""

    host: str
    port: int
    key: bytes


# -- at the fetch ----------------------------------------------------------------------------------


@dataclass
class ChannelServer:
    """All lines of a fetch of `lists` lists. `show` gets the state of all once a second, in a
    thread.
    """

    host: str
    lists: int
    show: Callable[[Snapshot], None]
    _snapshots: dict[int, Snapshot] = field(default_factory=dict)
    _orders: SimpleQueue[Connection | WorkerOrder | HoldFetch | None] = field(
        default_factory=SimpleQueue
    )
    _closed: threading.Event = field(default_factory=threading.Event)
    _began: float = field(default_factory=time.monotonic)

    @contextmanager
    def open(self) -> Iterator[ChannelAddress]:
        """While this lasts, tasks may call."""
        key = os.urandom(_KEY)
        with _server(self.host) as server:
            threads = [
                threading.Thread(target=work, args=args, daemon=True)
                for work, args in (
                    (self._answer, (server, key)),
                    (self._post, ()),
                    (self._look, ()),
                )
            ]
            for thread in threads:
                thread.start()
            try:
                yield ChannelAddress(self.host, server.getsockname()[1], key)
            finally:
                self._closed.set()
                self._orders.put(None)
                for thread in threads:
                    thread.join()

    def tell(self, order: WorkerOrder | HoldFetch) -> None:
        """Tells all tasks something. A signal's handler may do so."""
        self._orders.put(order)

    def _answer(self, server: socket.socket, key: bytes) -> None:
        while not self._closed.is_set():
            with suppress(OSError):  # nobody for a while, or somebody who is gone already
                threading.Thread(
                    target=self._hear, args=(server.accept()[0], key), daemon=True
                ).start()

    def _hear(self, call: socket.socket, key: bytes) -> None:
        """One task, to its end."""
        number = -1
        # Its own descriptor: the socket's is closed when the block ends.
        caller = Connection(os.dup(call.fileno()))
        try:
            with call:
                call.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _seconds(SECONDS))
                # Before anything is unpickled: a pickle from a stranger could run any code.
                deliver_challenge(caller, key)
                answer_challenge(caller, key)
                number = caller.recv()
                call.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _seconds(0))
            self._orders.put(caller)
            while True:
                self._snapshots[number] = caller.recv()
        except Exception as exc:  # noqa: BLE001 - whoever calls, the fetch goes on
            if number < 0:
                log.debug("somebody called who is no task of this fetch: %s", exc)
        finally:
            caller.close()
            if number in self._snapshots:
                self._snapshots[number] = _at_rest(self._snapshots[number])

    def _post(self) -> None:
        """Passes orders on, to those who call later as well."""
        callers: list[Connection] = []
        # A task that starts late hears of a stop that was ordered before.
        given: dict[object, WorkerOrder | HoldFetch] = {}
        while (message := self._orders.get()) is not None:
            if isinstance(message, Connection):
                callers.append(message)
                _send([message], given.values())
            else:
                given[message if isinstance(message, WorkerOrder) else HoldFetch] = (
                    message  # the last one
                )
                _send(callers, [message])

    def _look(self) -> None:
        while not self._closed.wait(TICK):
            known = list(self._snapshots.values())
            if known:
                totals = [snapshot.total for snapshot in known if snapshot.total is not None]
                # While one list is unknown, a sum would be too small.
                total = sum(totals) if len(totals) == self.lists else None
                self.show(replace(together(known, total), seconds=time.monotonic() - self._began))


def _server(host: str) -> socket.socket:
    """At a free port of the name by which tasks know this machine, or of all its names if that is
    another's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        server = socket.create_server((host, 0), family=family)
    except OSError:
        server = socket.create_server(("", 0), family=family)
    server.settimeout(_PATIENCE)
    return server


def _seconds(seconds: float) -> bytes:
    """A `struct timeval`; 0 is for ever."""
    return struct.pack("ll", int(seconds), 0)


def _send(callers: list[Connection], orders: Any) -> None:
    for caller in callers:
        for order in orders:
            with suppress(*_GONE):
                caller.send(order)


def _at_rest(snapshot: Snapshot) -> Snapshot:
    """Returns the state after the last one of a task: what it has done, and nothing that it
    does.
    """
    nothing: dict[str, Any] = dict.fromkeys(_OF_NOW, 0)
    return replace(snapshot, **nothing)


# -- at a task -------------------------------------------------------------------------------------


class TaskChannel(Pausable):
    """A task's end, for list `number`. It is the `Watcher` of the task's fetch, and what stops
    it.
    """

    def __init__(self, fetch: ChannelAddress, number: int) -> None:
        super().__init__()
        self.stopped = False
        self.leaves_resting = False
        """Hosts that rest or fail are not to be waited for."""
        self._stop: Callable[[], None] | None = None
        self._last: Snapshot | None = None
        self._sending: Future[None] | None = None
        # A slow line must not hold the event loop of the fetch.
        self._sender = ThreadPoolExecutor(1)
        self._connection = _call(fetch, number)
        if self._connection is not None:
            threading.Thread(target=self._listen, args=(self._connection,), daemon=True).start()

    def close(self) -> None:
        """Hangs up."""
        self._sender.shutdown()
        if self._connection is not None:
            with suppress(OSError):  # which ends the thread that listens
                socket.socket(fileno=os.dup(self._connection.fileno())).shutdown(socket.SHUT_RDWR)

    def show(self, snapshot: Snapshot) -> None:
        """Sends the state, unless the last one is still on its way."""
        self._last = snapshot
        if self._connection is not None and (self._sending is None or self._sending.done()):
            self._sending = self._sender.submit(self._connection.send, snapshot)

    def fetched(self, stats: FetchStats, urls: int) -> None:
        """Sends what has come since the last state."""
        if self._connection is not None and self._last is not None:
            last = replace(
                self._last, done=urls, pages=stats.pages, errors=stats.errors, bytes=stats.bytes
            )
            self._sender.submit(self._connection.send, last)

    @contextmanager
    def stopping(self, stop: Callable[[], None]) -> Iterator[None]:
        """While this lasts, `stop` is called when the fetch is to end: at once, if it was
        before.
        """
        with self._lock:
            self._stop = stop
            if self.stopped:
                stop()
        try:
            yield
        finally:
            with self._lock:
                self._stop = None

    def _listen(self, connection: Connection) -> None:
        with suppress(*_GONE):
            while True:
                order = connection.recv()
                if isinstance(order, HoldFetch):
                    self.pause(order.wanted)
                    continue
                with self._lock:
                    if order is WorkerOrder.LEAVE_RESTING:
                        self.leaves_resting = True
                    elif not self.stopped:
                        self.stopped = True
                        if self._stop is not None:
                            self._stop()
        connection.close()


def _call(fetch: ChannelAddress, number: int) -> Connection | None:
    """Returns the connection to a fetch; None, with a warning, if it can't be reached."""
    try:
        with socket.create_connection(fetch[:2], SECONDS) as call:
            call.settimeout(None)
            connection = Connection(call.detach())
        # The other way round than the server, or both would wait.
        answer_challenge(connection, fetch.key)
        deliver_challenge(connection, fetch.key)
        connection.send(number)
    except Exception as exc:  # noqa: BLE001 - whoever calls, the fetch goes on
        log.warning(
            "Fetcher: no connection to %s:%d (%s): the progress of this list is not shown",
            *fetch[:2],
            exc,
        )
        return None
    return connection
