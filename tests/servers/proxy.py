"""A way to a server on which an accident happens: in the middle of a request, once."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self


class Proxy:
    """Hands bytes on to a port. Of the `at`-th request with `mark` half gets through; then
    `accident` happens.
    """

    def __init__(self, port: int, mark: bytes, at: int, accident: Callable[[], None]) -> None:
        self._target, self._mark, self._left, self._accident = port, mark, at, accident
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.happened = False
        threading.Thread(target=self._serve, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listener.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        with (
            client,
            suppress(OSError),
            socket.create_connection(("127.0.0.1", self._target)) as server,
        ):
            threading.Thread(target=_pump, args=(server, client), daemon=True).start()
            while data := client.recv(1 << 16):
                if self._is_the_one(data):
                    server.sendall(data[: len(data) // 2])
                    self._accident()
                    return
                server.sendall(data)

    def _is_the_one(self, data: bytes) -> bool:
        with self._lock:
            if self._mark not in data or self.happened:
                return False
            self._left -= 1
            self.happened = self._left == 0
            return self.happened


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
