"""The demo site on loopback: two hosts (127.0.0.1 is the library, localhost the museum) on one
port.

    python -m tests.support.siteserver [port]      serves until interrupted; without a port takes a
                                                   free one

Pages are the files under `site/one` and `site/two`; `site/routes.json` names what is not just a
file:

    status, location            an answer without a file
    hex, type                   bytes
    file, type, charset         a file (stored as UTF-8) sent in another encoding
    gzip, modified              compressed; with Last-Modified, which conditional requests are
                                answered by

`{{one}}` and `{{two}}` in pages and locations stand for the hosts' addresses.
"""

from __future__ import annotations

import gzip
import json
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

SITE = Path(__file__).parent / "site"
HOSTS = {"one": "127.0.0.1", "two": "localhost"}
_TYPES = {".html": "text/html", ".txt": "text/plain", ".png": "image/png"}


@dataclass
class Answer:
    """One response."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass
class Site:
    """The site's content; knows nothing of sockets. `port` is where it is served."""

    folder: Path
    port: int
    routes: dict[str, dict[str, dict[str, Any]]]

    def url(self, host: str, path: str = "/") -> str:
        """A page's URL; `host` is one or two."""
        return f"http://{HOSTS[host]}:{self.port}{path}"

    def fill(self, text: str) -> str:
        """Put in the hosts' addresses."""
        for host in HOSTS:
            text = text.replace("{{" + host + "}}", self.url(host, ""))
        return text

    def answer(self, host_header: str, path: str, modified_since: str | None) -> Answer:
        """The response to a request for `path`."""
        name = host_header.partition(":")[0]
        host = next((key for key, value in HOSTS.items() if value == name), "one")
        route = self.routes[host].get(path, {})
        if "status" in route:
            location = {"Location": self.fill(route["location"])} if "location" in route else {}
            return Answer(route["status"], location)
        if "hex" in route:
            return Answer(
                HTTPStatus.OK, {"Content-Type": route["type"]}, bytes.fromhex(route["hex"])
            )
        file = self.folder / route.get(
            "file", f"{host}{path}{'index.html' if path.endswith('/') else ''}"
        )
        if not file.is_file():
            return Answer(HTTPStatus.NOT_FOUND, {"Content-Type": "text/html"}, b"<h1>Not here</h1>")
        if (
            modified_since is not None
            and "modified" in route
            and not _is_before(modified_since, route["modified"])
        ):
            return Answer(HTTPStatus.NOT_MODIFIED)
        return self._file(file, route)

    def _file(self, file: Path, route: dict[str, Any]) -> Answer:
        body = self.fill(file.read_text(encoding="utf-8")).encode(route.get("charset", "utf-8"))
        headers = {"Content-Type": route.get("type", _TYPES[file.suffix])}
        if "modified" in route:
            headers["Last-Modified"] = route["modified"]
        if route.get("gzip"):
            headers["Content-Encoding"] = "gzip"
            body = gzip.compress(body, mtime=0)
        return Answer(HTTPStatus.OK, headers, body)


def _is_before(one: str, other: str) -> bool:
    return parsedate_to_datetime(one) < parsedate_to_datetime(other)


class SiteServer:
    """Serves a Site from threads: `with SiteServer() as server: server.site.url("one")`. `requests`
    are what came.

    `before` is called with the path of each request, in its thread, before it is answered; a test
    may hold it there.
    """

    def __init__(self, folder: Path = SITE, port: int = 0) -> None:
        self.requests: list[tuple[str, str]] = []
        self.before: Callable[[str], None] = lambda path: None
        self._http = ThreadingHTTPServer(("127.0.0.1", port), _handler(self))
        self._http.daemon_threads = True
        routes = json.loads((folder / "routes.json").read_text(encoding="utf-8"))
        self.site = Site(folder, self._http.server_address[1], routes)
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
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
        self._thread.join()

    def serve_forever(self) -> None:
        """Serve in this thread until interrupted."""
        self._http.serve_forever()


def _handler(server: SiteServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # a body waits 40 ms for the ACK of its head else

        def do_GET(self) -> None:
            host = self.headers.get("Host", "")
            server.requests.append((host, self.path))
            server.before(self.path)
            answer = server.site.answer(host, self.path, self.headers.get("If-Modified-Since"))
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            with suppress(OSError):  # the client may have gone
                self.wfile.write(answer.body)

        def log_message(self, format: str, *args: object) -> None:
            """The server is quiet; `requests` has it all."""

    return Handler


def main() -> None:
    """Serve until interrupted, after printing where."""
    server = SiteServer(port=int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    print(f"{server.site.url('one')} and {server.site.url('two')}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print()


if __name__ == "__main__":
    main()
