"""A web server on loopback that speaks HTTP/2 over TLS, and nothing else."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import h2.config
import h2.connection
import h2.errors
import h2.events


@dataclass
class H2Server:
    """Answers each path with a page of `body` bytes that names it."""

    tls: ssl.SSLContext
    body: bytes = b"page"
    requests: Counter[str] = field(default_factory=Counter)
    times: list[float] = field(default_factory=list)
    """When each request came (s)."""
    connections: int = 0
    refuse: bool = False
    """Refuses every stream before it is looked at (RFC 9113, 8.7)."""
    ends: dict[str, Callable[[h2.connection.H2Connection, int], None]] = field(default_factory=dict)
    """Path → what comes in place of the second half of its page."""

    def __enter__(self) -> Self:
        self.tls.set_alpn_protocols(["h2"])
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def url(self, path: str) -> str:
        return f"https://localhost:{self.port}/{path}"

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._socket.accept()
                self.connections += 1
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with (
            contextlib.suppress(OSError),
            self.tls.wrap_socket(client, server_side=True) as connection,
        ):
            state = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
            state.initiate_connection()
            connection.sendall(state.data_to_send())
            while data := connection.recv(65_536):
                for event in state.receive_data(data):
                    if isinstance(event, h2.events.RequestReceived):
                        self._answer(state, event)
                connection.sendall(state.data_to_send())
                if state.state_machine.state is h2.connection.ConnectionState.CLOSED:
                    connection.shutdown(socket.SHUT_WR)  # what was sent arrives

    def _answer(self, state: h2.connection.H2Connection, event: h2.events.RequestReceived) -> None:
        headers = {
            bytes(name).decode(): bytes(value).decode() for name, value in event.headers or ()
        }
        path = headers[":path"]
        self.times.append(time.monotonic())
        self.requests[path] += 1
        if self.refuse:
            state.reset_stream(event.stream_id, h2.errors.ErrorCodes.REFUSED_STREAM)
            return
        lines = [
            (":status", "200"),
            ("content-type", "text/html"),
            ("last-modified", "Wed, 01 Jan 2025 10:20:30 GMT"),
        ]
        state.send_headers(event.stream_id, lines)
        end = self.ends.get(path)
        half = self.body[: len(self.body) // 2] if end is not None else self.body
        state.send_data(event.stream_id, half, end_stream=end is None)
        if end is not None:
            end(state, event.stream_id)
