"""A search server of the tests' own: it answers as it is told, and keeps what it was asked."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


@dataclass
class Asked:
    """A request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Answer:
    """An answer; given after `seconds`, or (`cut`) replaced by a closed connection."""

    status: int = 200
    body: Any = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    cut: bool = False


class SearchServerStub:
    """Answers by `answer(request)`; `asked` are the requests."""

    def __init__(
        self, answer: Callable[[Asked], Answer], *, tls: ssl.SSLContext | None = None
    ) -> None:
        self.answer = answer
        self.asked: list[Asked] = []
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        if tls is not None:
            self._http.socket = tls.wrap_socket(self._http.socket, server_side=True)
        self.port = int(self._http.server_address[1])
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.shutdown()
        self._http.server_close()

    def bodies(self, path: str) -> list[bytes]:
        """Returns the bodies that were sent to paths that hold `path`."""
        return [asked.body for asked in self.asked if path in asked.path and asked.body]


def _handler(server: SearchServerStub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            asked = Asked(
                self.command,
                self.path,
                {name.lower(): value for name, value in self.headers.items()},
                body,
            )
            server.asked.append(asked)
            answer = server.answer(asked)
            time.sleep(answer.seconds)
            if answer.cut:
                self.close_connection = True
                return
            data = (
                answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
            )
            self.send_response(answer.status)
            self.send_header("Content-Length", str(len(data)))
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
