"""Serves an ASGI app by uvicorn: a fair share of connections for each client.

A client that sends nothing, sends slowly, or does not take its answer costs a place, and there are
MOST of them. uvicorn's own limit counts open connections: 100 that said nothing ended a server for
everybody, for good. Here they have PATIENCE seconds, and where places are short, the one that has
waited longest for its client makes way for the next. Those who come over the network may have
MOST_OF_ONE places from one address, and never the last KEPT, which are for this machine; callers
without the token are refused at once and so wait, too.
"""

from __future__ import annotations

import asyncio
from ipaddress import ip_address
from typing import Final, cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

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
        # fe80::1%eth0 has a zone; a socket of a file system has no address.
        self.is_local = not self.address or ip_address(self.address.partition("%")[0]).is_loopback
        if self._gets_a_place():
            self._note()
        else:
            # It takes none of the places while its refusal is sent.
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
            # No request yet, the answer is out, its body is to come, or it does not take the
            # answer.
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
        # Who has many makes way for himself before others do.
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
        # Not those that we work for: a report may take a minute.
        oldest = min(waiting, key=lambda one: one.waits_since or 0.0)
        # Now: the loop tells connection_lost only later.
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
            ws="none",  # no library for websockets is looked for
            http=ClientConnection,
            limit_concurrency=2
            * MOST,  # answers to clients that have gone, besides the connections
            timeout_keep_alive=int(PATIENCE),
            timeout_graceful_shutdown=patience,
            h11_max_incomplete_event_size=longest_head,
        )
    )
