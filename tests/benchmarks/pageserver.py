"""Serves pages on every loopback address as fast as Python can: /docs/<n>/page.html is page n of a folder.

    python -m tests.benchmarks.pageserver FOLDER PORT

Answers are put together beforehand; connections are kept. Prints a line when it listens.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

HEADERS = (
    b"HTTP/1.1 200 OK\r\nServer: pages\r\nDate: Sat, 21 Nov 2026 12:00:00 GMT\r\nContent-Type: text/html\r\n"
    b'Last-Modified: Wed, 01 Jan 2025 10:20:30 GMT\r\nETag: "%d"\r\nAccept-Ranges: bytes\r\nContent-Length: %d\r\n\r\n'
)
MISSING = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


class Pages(asyncio.Protocol):
    """One connection."""

    def __init__(self, answers: list[bytes]) -> None:
        self.answers = answers

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        for request in data.split(b"\r\n\r\n")[:-1]:
            path = request.split(b" ", 2)[1].split(b"/")
            found = len(path) == 4 and path[2].isdigit()
            answer = self.answers[int(path[2]) % len(self.answers)] if found else MISSING
            self.transport.write(answer)  # type: ignore[attr-defined]


async def serve(folder: Path, port: int) -> None:
    """Serve until the process is ended."""
    pages = [path.read_bytes() for path in sorted(folder.glob("*.html"))]
    answers = [HEADERS % (number, len(page)) + page for number, page in enumerate(pages)]
    server = await asyncio.get_running_loop().create_server(lambda: Pages(answers), "0.0.0.0", port, backlog=4096)
    print("listening", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), int(sys.argv[2])))
