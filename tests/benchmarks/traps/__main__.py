"""Crawls a web of traps and honest sites on loopback: which share of the requests is well spent,
and which of the honest pages are found.

    python -m tests.benchmarks.traps [--size 300] [--rounds 12] [--cap 4000]

Each crawl is a newcomer's, by command line, in a folder of its own, with the home pages as seeds
and the same cap of requests: without and with a budget of patterns, and with the rules, too, that
`learn` finds after every other round. A request is well spent that is the first for some honest
content (`web`). The server is the crawler's proxy, so that each site has its name.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Final
from urllib.parse import urlsplit

from tests.benchmarks.traps.web import Site, answer, contents_of, sites

WAYS: Final = {
    "without a budget": ("-1", False),
    "with a budget": ("20", False),
    "with rules learned, too": ("20", True),
}
"""Name of a crawl -> generate.pattern.budget, and whether it learns."""
_LIMIT: Final = 300
"""Seconds that a crawl may take."""


class Web(ThreadingHTTPServer):
    """The sites, for a client whose proxy it is."""

    daemon_threads = True
    request_queue_size = 1024  # of five, some connections of a crawl's were never taken

    def __init__(self, web: dict[str, Site]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.web, self.lock = web, Lock()
        self.asked, self.good, self.contents = Counter[str](), Counter[str](), set[str]()

    def note(self, name: str, content: str | None) -> None:
        """Counts a request."""
        with self.lock:
            self.asked[name] += 1
            if content is not None and content not in self.contents:
                self.contents.add(content)
                self.good[name] += 1


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Web

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        name = (url.hostname or "").removesuffix(".example")
        if url.path in ("/robots.txt", "/sitemap.xml", "/.well-known/tdmrep.json"):
            self._send(404, b"")
            return
        page = answer(self.server.web[name], f"{url.path}?{url.query}" if url.query else url.path)
        self.server.note(name, page.content)
        links = "\n".join(f'<li><a href="{escape(link)}">more</a>' for link in page.links)
        head = f"<!doctype html><title>{escape(page.text[:40])}</title>"
        body = f"{head}<p>{escape(page.text)}</p><ul>{links}</ul>" if not page.location else ""
        self._send(page.status, body.encode(), page.location)

    def _send(self, status: int, body: bytes, location: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        if location:
            self.send_header("Location", location)
        self.end_headers()
        with suppress(ConnectionError):  # whose crawl has had its pages
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@contextmanager
def served(web: dict[str, Site]) -> Iterator[Web]:
    """Serves the web."""
    with Web(web) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def crawl(
    server: Web, folder: Path, *, budget: str, rounds: int, cap: int, learns: bool = False
) -> None:
    """Crawls the web from its home pages, with at most `cap` requests."""
    seeds = [f"http://{name}.example/" for name in server.web]
    settings = {
        "generate.pattern.budget": budget,
        "http.proxy.host": "127.0.0.1",
        "http.proxy.port": str(server.server_address[1]),
        "http.redirect.max": "0",
        "crawl.sitemaps": "false",
        "fetcher.tdmrep": "false",
        "fetcher.tail.share": "0",
        "fetcher.threads.per.queue": "4",
        "fetcher.server.min.delay": "0",
    }
    given = [part for name, value in settings.items() for part in ("-D", f"{name}={value}")]
    words = ["crawl", *given]
    each = 2 if learns else rounds
    for done in range(0, rounds, each):
        left = cap - server.asked.total()
        if left > 0:
            first = [] if done else ["--agent", "judge", "--delay", "0"]
            begin = ["--max-pages", str(left), *([] if done else seeds), str(folder / "crawl")]
            _run(folder, *words, *first, *begin, str(each))
        if learns:
            _run(folder, "learn", str(folder / "crawl"), "--apply")


def _run(folder: Path, *words: str) -> None:
    with (folder / "log").open("ab") as log:
        subprocess.run(
            [sys.executable, "-m", "minutch", *words],
            stdout=log, stderr=log, timeout=_LIMIT, check=False,
        )  # fmt: skip


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--cap", type=int, default=4000)
    asked = parser.parse_args()
    honest = {name: contents_of(site) for name, site in sites(asked.size).items()}
    total = len(set().union(*honest.values()))
    print(f"{len(honest)} sites, {total:,} honest pages, at most {asked.cap:,} requests")
    for way, (budget, learns) in WAYS.items():
        with served(sites(asked.size)) as server, tempfile.TemporaryDirectory() as folder:
            crawl(
                server, Path(folder), budget=budget, rounds=asked.rounds, cap=asked.cap,
                learns=learns,
            )  # fmt: skip
            requests, good = server.asked.total(), server.good.total()
            print(
                f"{way}: {requests:,} requests, {good / max(requests, 1):.1%} well spent;"
                f" {good / total:.1%} of the honest pages"
            )
            for name, contents in honest.items():
                wasted = server.asked[name] - server.good[name]
                print(f"  {name:16}{server.good[name]:6} of {len(contents):5}, {wasted:6} wasted")


if __name__ == "__main__":
    main()
