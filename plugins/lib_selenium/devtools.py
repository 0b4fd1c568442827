"""Speaks the Chrome DevTools protocol: commands with their answers, and events, over a channel of
JSON messages.

    {"id": 1, "method": "Page.navigate", "params": {…}, "sessionId": "…"}      a command
    {"id": 1, "result": {…}, "sessionId": "…"}                                its answer; `error` if
    it failed
    {"method": "Page.loadEventFired", "params": {…}, "sessionId": "…"}        an event

A session is a conversation with one target (a page, a frame, a worker); "" is the one with the
browser itself. The channel is a pair of pipes, with messages ended by a NUL
(`--remote-debugging-pipe`), or a WebSocket.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol

import httpx

# Defines the failure of a page in the browser.

log = logging.getLogger(__name__)

LONGEST_MESSAGE: Final = 1 << 26
"""Bytes; a page can't make the browser send more than its answer's bound and some."""

Listener = Callable[[str, dict[str, Any]], None]
"""Takes an event's name and parameters."""


class BrowserFailure(httpx.TransportError):
    """The browser ended, hung, or refused a command; only that page has failed."""


class Channel(Protocol):
    """A channel for messages."""

    async def receive(self) -> bytes | str:
        """Returns the next message; empty at the end."""
        ...

    async def send(self, message: str) -> None:
        """Sends a message."""
        ...

    async def close(self) -> None:
        """Closes the channel; a browser of ours ends then."""
        ...


class PipeChannel:
    """A pair of pipes."""

    def __init__(
        self, reader: asyncio.StreamReader, transport: asyncio.ReadTransport, target: int
    ) -> None:
        self._reader = reader
        self._transport = transport
        self._target = target
        self._turn = asyncio.Lock()

    @classmethod
    async def open(cls, source: int, target: int) -> PipeChannel:
        """Over two open files, which are closed with the channel."""
        reader = asyncio.StreamReader(limit=LONGEST_MESSAGE)
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(source, "rb", 0)
        )
        os.set_blocking(target, False)
        return cls(reader, transport, target)

    async def receive(self) -> bytes:
        try:
            return (await self._reader.readuntil(b"\0"))[:-1]
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            return b""

    async def send(self, message: str) -> None:
        async with self._turn:
            left = memoryview(message.encode() + b"\0")
            while left:
                try:
                    left = left[os.write(self._target, left) :]
                except BlockingIOError:
                    loop = asyncio.get_running_loop()
                    future: asyncio.Future[None] = loop.create_future()
                    loop.add_writer(self._target, _ready, future)
                    try:
                        await future
                    finally:
                        loop.remove_writer(self._target)

    async def close(self) -> None:
        self._transport.close()
        os.close(self._target)


def _ready(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class BrowserConnection:
    """One browser's end of the line."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._listeners: dict[str, Listener] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.lost = asyncio.Event()
        """Set when the browser has hung up."""
        self._reading = asyncio.create_task(self._read())

    async def send(
        self, method: str, session: str = "", timeout: float = 30, **params: Any
    ) -> dict[str, Any]:
        """Sends a command and waits `timeout` seconds for its answer, or BrowserFailure."""
        if self.lost.is_set():
            raise BrowserFailure("the browser has ended")
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            async with asyncio.timeout(timeout):
                await self._channel.send(json.dumps(message))
                return await future
        except TimeoutError as exc:
            raise BrowserFailure(
                f"{method}: no answer from the browser within {timeout:g} s"
            ) from exc
        except OSError as exc:
            raise BrowserFailure("the browser has ended") from exc
        finally:
            self._waiting.pop(number, None)

    def listen(self, session: str, listener: Listener | None) -> None:
        """Passes a session's events to `listener`; None: to nobody any longer."""
        if listener is None:
            self._listeners.pop(session, None)
        else:
            self._listeners[session] = listener

    def begin(self, work: Coroutine[Any, Any, Any]) -> None:
        """Handles an event in the background; a failure fails the page and nothing else."""
        task = asyncio.create_task(_quietly(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Closes the connection."""
        for task in [self._reading, *self._tasks]:
            task.cancel()
        await asyncio.gather(self._reading, *self._tasks, return_exceptions=True)
        self._lose()
        await self._channel.close()

    async def _read(self) -> None:
        try:
            while text := await self._channel.receive():
                self._take(json.loads(text))
        except ValueError as exc:
            log.warning("the browser sent what is no JSON: %s", exc)
        finally:
            self._lose()

    def _take(self, message: dict[str, Any]) -> None:
        if "id" in message:
            future = self._waiting.get(message["id"])
            if future is None or future.done():
                return
            if "error" in message:
                future.set_exception(
                    BrowserFailure(str(message["error"].get("message", message["error"])))
                )
            else:
                future.set_result(message.get("result", {}))
            return
        listener = self._listeners.get(message.get("sessionId", ""))
        if listener is not None:
            listener(message.get("method", ""), message.get("params", {}))

    def _lose(self) -> None:
        self.lost.set()
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(BrowserFailure("the browser has ended"))


async def _quietly(work: Coroutine[Any, Any, Any]) -> None:
    try:
        await work
    except BrowserFailure as exc:
        log.debug("browser: %s", exc)
