"""What the checker commands share: a line in, a line out, from stdin or from connections (AbstractChecker)."""

from __future__ import annotations

import logging
import socketserver
from collections.abc import Callable

from minutch.arguments import Arguments, Flag
from minutch.job import JobContext

log = logging.getLogger(__name__)

LINE_FLAGS = (Flag("-stdin"), Flag("-listen", value="port", convert=int), Flag("-keepClientCnxOpen"))


def answer_lines(given: Arguments, answer: Callable[[str], str], context: JobContext) -> int:
    """Answer each line of stdin, or of connections if `given` (values of LINE_FLAGS) says so; returns the exit code."""
    if given["-listen"] is not None:
        with LineServer(given["-listen"], answer, keep_open=given["-keepClientCnxOpen"]) as server:
            server.serve_forever()
    for line in context.stdin:
        context.print(answer(line.rstrip("\r\n")))
    return 0


class LineServer(socketserver.ThreadingTCPServer):
    """Answers each connection's first line, or all of its lines if `keep_open`. Listens on loopback only."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, port: int, answer: Callable[[str], str], *, keep_open: bool = False) -> None:
        super().__init__(("127.0.0.1", port), _Connection)
        self.answer = answer
        self.keep_open = keep_open
        log.info("listening on port %d", self.server_address[1])


class _Connection(socketserver.StreamRequestHandler):
    server: LineServer

    def handle(self) -> None:
        for raw in self.rfile:
            line = raw.decode("utf-8", "replace").rstrip("\r\n")
            if len(line.strip()) > 1:
                self.wfile.write(f"{self.server.answer(line)}\n".encode("utf-8", "replace"))
            if not self.server.keep_open:
                return
