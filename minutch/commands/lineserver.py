"""Answers line by line, from stdin or from connections: the checkers, readdb and readlinkdb
(AbstractChecker).

    line     :=  UTF-8 text LF      of one character, or of blanks alone: no answer
    answer   :=  what the command makes of the line, LF

Without -keepClientCnxOpen a connection ends after its first line. Unlike Nutch's, the server
listens on loopback only.
"""

from __future__ import annotations

import logging
import socketserver
from collections.abc import Callable

from minutch.commands.arguments import Arguments
from minutch.errors import MinutchError
from minutch.job import JobContext

log = logging.getLogger(__name__)

MAX_LINE = 1 << 16
"""Bytes of a line; more is another line."""


def answer_lines(arguments: Arguments, answer: Callable[[str], str], context: JobContext) -> int:
    """Answers each line of stdin, or of connections if `arguments` (values of LINE_FLAGS) says so;
    returns the exit code.
    """
    if arguments["-listen"] is not None:
        with LineServer(
            arguments["-listen"], answer, keep_open=arguments["-keepClientCnxOpen"]
        ) as server:
            server.serve_forever()
        return 0
    for line in context.stdin:
        context.print(answer(line.rstrip("\r\n")))
    return 0


class LineServer(socketserver.ThreadingTCPServer):
    """Answers each connection's first line, or all if `keep_open`. Listens on loopback only."""

    # A port is free again at once, not after the minute of TIME_WAIT.
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
        while raw := self.rfile.readline(MAX_LINE):
            line = raw.decode("utf-8", "replace").rstrip("\r\n")
            # AbstractChecker takes shorter lines for none.
            if len(line.strip()) > 1:
                try:
                    answer = self.server.answer(line)
                except MinutchError as error:
                    log.error("no answer to %s: %s", line, error)
                    return
                self.wfile.write(f"{answer}\n".encode("utf-8", "replace"))
            if not self.server.keep_open:
                return
