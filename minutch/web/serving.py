"""Serves an ASGI app by uvicorn: a fair share of connections for each client, and checks before the
app is called.

A client that sends nothing, sends slowly, or does not take its answer costs a place, and there are
MOST of them. uvicorn's own limit counts open connections: 100 that said nothing ended a server for
everybody, for good. Here they have PATIENCE seconds, and where places are short, the one that has
waited longest for its client makes way for the next. Those who come over the network may have
MOST_OF_ONE places from one address, and never the last KEPT, which are for this machine; callers
without the token are refused at once and so wait, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from typing import Final, cast

import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from minutch.web.access import Denied

MOST: Final = 100
"""Connections that are open."""
KEPT: Final = 10
"""Places of these for clients on this machine."""
MOST_OF_ONE: Final = 30
"""Connections from one address of the network: a browser opens 6."""
PATIENCE: Final = 20.0
"""Seconds that a client has for the next request, or to take the next piece of an answer."""
_FULL: Final = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class ClientConnection(H11Protocol):
    """A connection of uvicorn's that knows since when it waits for its client."""

    waits_since: float | None = None
    """Time of the event loop; None while we work on an answer."""
    address = ""
    is_local = False
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        self.is_local = not self.address or ip_address(self.address.partition("%")[0]).is_loopback
        if self._gets_a_place():
            self._note()
        else:
            self.connections.discard(self)
            transport.write(_FULL)
            transport.close()
            self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._note()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._note()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._note()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._note()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._work()

    # -- whose turn it is --------------------------------------------------------------------------

    def _note(self) -> None:
        cycle = self.cycle
        waits = (
            cycle is None or cycle.response_complete or cycle.more_body or self.flow.write_paused
        )
        if waits and self.waits_since is None:
            self._wait()
        elif not waits:
            self._work()

    def _wait(self) -> None:
        self.waits_since = self.loop.time()
        # abort(): close() would wait for a client that does not take what was written
        self._timer = self.loop.call_later(PATIENCE, self.transport.abort)

    def _work(self) -> None:
        self.waits_since = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # -- places ------------------------------------------------------------------------------------

    def _gets_a_place(self) -> bool:
        """Ends the connection that has to make way for this one; False if none can."""
        others = [one for one in cast(set[ClientConnection], self.connections) if one is not self]
        strangers = [one for one in others if not one.is_local]
        same = [one for one in strangers if one.address == self.address]
        if len(same) >= MOST_OF_ONE:
            crowd = same
        elif not self.is_local and len(strangers) >= MOST - KEPT:
            crowd = strangers
        elif len(others) >= MOST:
            crowd = others if self.is_local else strangers
        else:
            return True
        waiting = [one for one in crowd if one.waits_since is not None]
        if not waiting:
            return False
        oldest = min(waiting, key=lambda one: one.waits_since or 0.0)
        self.connections.discard(oldest)
        oldest.transport.abort()
        return True


def server(app: ASGIApp, *, patience: int = 2, longest_head: int = 1 << 16) -> uvicorn.Server:
    """Returns a server of `app`: it logs through us, says nothing of itself, and waits `patience` s
    for answers at its end.
    """
    return uvicorn.Server(
        uvicorn.Config(
            app,
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            lifespan="off",
            ws="none",
            http=ClientConnection,
            limit_concurrency=2
            * MOST,  # answers to clients that have gone, besides the connections
            timeout_keep_alive=int(PATIENCE),
            timeout_graceful_shutdown=patience,
            h11_max_incomplete_event_size=longest_head,
        )
    )


PRIVATE: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-DNS-Prefetch-Control": "off",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "private, no-cache",
    "X-Robots-Tag": "noindex, nofollow",
}
"""Headers of pages that are for one person on this machine."""

Judge = Callable[[str, Mapping[str, str]], Denied | None]
"""Judges a request by its path and headers (names in lower case); None lets it in."""


class RequestChecks:
    """ASGI middleware: refuses what `judge` denies, and adds `headers` that an answer lacks."""

    def __init__(
        self, app: ASGIApp, judge: Judge, headers: Mapping[str, str] | None = None
    ) -> None:
        self._app = app
        self._judge = judge
        self._headers = [
            (name.lower().encode(), value.encode()) for name, value in (headers or {}).items()
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                there = {name.lower() for name, _ in message["headers"]}
                more = [(name, value) for name, value in self._headers if name not in there]
                message["headers"] = [*message["headers"], *more]
            await send(message)

        headers = headers_of(scope)
        denied = (
            Denied(400, "expected one Host header")
            if headers is None
            else self._judge(scope["path"], headers)
        )
        if denied is None:
            await self._app(scope, receive, dressed)
            return
        more = {"WWW-Authenticate": 'Basic realm="minutch"'} if denied.status == 401 else None
        await PlainTextResponse(denied.text + "\n", denied.status, headers=more)(
            scope, receive, dressed
        )


def headers_of(scope: Scope) -> dict[str, str] | None:
    """Returns the headers of a request, names in lower case; None with more than one Host."""
    pairs = [
        (name.decode("latin-1").lower(), value.decode("latin-1"))
        for name, value in scope["headers"]
    ]
    return None if sum(name == "host" for name, _ in pairs) > 1 else dict(pairs)
