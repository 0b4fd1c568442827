"""Serves the corpus: a proxy on loopback, which answers for every host."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.corpus.cases import Answer


@contextmanager
def serving(answers: Mapping[str, Answer]) -> Iterator[int]:
    """Serves answers by URL, 404 for other robots.txt files and an empty page for all else; yields
    the port.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            missing = Answer(404 if self.path.endswith("/robots.txt") else 200)
            answer = answers.get(self.path, missing)
            self.send_response_only(answer.status)
            for name, value in answer.headers:
                self.send_header(name.decode("latin-1"), value.decode("latin-1"))
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, format: str, *args: object) -> None:
            """The server is quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
