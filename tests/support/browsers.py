"""Finds a browser on this machine, and serves a small web for it: pages by path, the same on
127.0.0.1 and localhost.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

import pytest

from minutch.errors import ConfigError
from plugins.lib_selenium.chromium import find


def _reason() -> str:
    try:
        find("")
    except ConfigError as exc:
        return str(exc)
    return ""


needs_browser = pytest.mark.skipif(bool(_reason()), reason=_reason() or "there is one")
"""Skips where no browser is installed."""

TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript",
    "css": "text/css",
    "png": "image/png",
}


@dataclass
class Asked:
    """A request that came."""

    host: str
    path: str
    headers: dict[str, str]


@dataclass
class SmallWeb:
    """Serves `pages`: path → content, or (status, headers, content). The type is that of the path's
    ending.
    """

    pages: dict[str, str | tuple[int, dict[str, str], str]] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    address: str = "127.0.0.1"

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer((self.address, 0), _handler(self))
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        ).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def url(self, path: str, host: str = "") -> str:
        """The URL of a path."""
        return f"http://{host or self.address}:{self.port}{path}"

    @property
    def paths(self) -> list[str]:
        """Returns the paths that were requested, robots.txt apart."""
        return [asked.path for asked in self.asked if asked.path != "/robots.txt"]

    def headers(self, path: str) -> dict[str, str]:
        """The headers of the last request for a path; their names in lower case."""
        return next(asked.headers for asked in reversed(self.asked) if asked.path == path)


def _handler(web: SmallWeb) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            web.asked.append(Asked(headers.get("host", ""), self.path, headers))
            path = self.path.partition("?")[0]
            page = web.pages.get(path, (404, {}, "not here"))
            status, more, text = page if isinstance(page, tuple) else (200, {}, page)
            body = text.replace("{port}", str(web.port)).encode()
            self.send_response(status)
            if "Content-Type" not in more:
                self.send_header("Content-Type", TYPES.get(path.rpartition(".")[2], TYPES["html"]))
            for name, value in more.items():
                self.send_header(name, value.replace("{port}", str(web.port)))
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, format: str, *args: object) -> None:
            """Quiet; `asked` has it all."""

    return Handler
