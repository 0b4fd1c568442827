"""A server of sitemaps on loopback, which keeps what it was asked for and when."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self


@dataclass
class Page:
    """An answer."""

    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    status: int = 200


class SitemapSite:
    """Serves `pages`, by path or by `host path`; anything else is 404."""

    def __init__(self) -> None:
        self.pages: dict[str, Page] = {}
        self.asked: list[tuple[float, str]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.port = self._server.server_port

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    def add(
        self, path: str, body: str | bytes, content_type: str = "application/xml", **headers: str
    ) -> str:
        """Serve a page, `{site}` standing for the server; returns its URL."""
        data = body.replace("{site}", self.url("")).encode() if isinstance(body, str) else body
        self.pages[path] = Page(data, {"Content-Type": content_type, **headers})
        return self.url(path)

    @property
    def paths(self) -> list[str]:
        """The requested paths, but for robots.txt."""
        return [path for _, path in self.asked if path != "/robots.txt"]

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                site.asked.append((time.monotonic(), self.path))
                host = self.headers.get("Host", "").partition(":")[0]
                page = (
                    site.pages.get(f"{host} {self.path}")
                    or site.pages.get(self.path)
                    or Page(status=404)
                )
                self.send_response(page.status)
                for name, value in page.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(page.body)))
                self.end_headers()
                self.wfile.write(page.body)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        return Handler
