"""A site on loopback with traps beside what is honest, as real ones have them: a frame on all
pages, links that carry sessions and campaigns, a calendar without end, paths that grow, soft 404s.

    python -m tests.inspect.learn.trapsite        serves until interrupted, and prints its address
"""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from tests.inspect.learn.webs import words

ARTICLES, PRODUCTS, THREADS = 25, 30, 12
_MENU = ("/", "/news/", "/shop?page=1", "/forum", "/calendar?month=24300", "/guide/start.html")


class TrapSite:
    """Answers paths; sessions are numbered by request."""

    def __init__(self) -> None:
        self._sessions = itertools.count(10_000)
        self.asked: list[str] = []
        self._pages: dict[str, Callable[[re.Match[str], dict[str, str]], tuple[str, str]]] = {
            r"/": self._home,
            r"/news/(?:index\.html)?": self._news,
            r"/news/article(\d+)(/print)?": self._article,
            r"/shop": self._shop,
            r"/product": self._product,
            r"/forum": self._forum,
            r"/calendar": self._calendar,
            r"(?:/guide)+/(start|next|last)\.html": self._guide,
        }

    def answer(self, target: str) -> str:
        """Returns the page of a path with its query."""
        self.asked.append(target)
        parts = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        title, body = (
            "Not found",
            f"<p>Sorry, the page {parts.path} could not be found: it is not found here.</p>",
        )
        for pattern, page in self._pages.items():
            if (match := re.fullmatch(pattern, parts.path)) is not None:
                title, body = page(match, query)
        menu = "".join(f"<li><a href='{link}'>Menu {link}</a></li>" for link in _MENU)
        return (
            f"<html><head><title>{title}</title></head><body><nav><ul>{menu}</ul></nav>"
            f"<main><h1>{title}</h1>{body}</main><footer>All rights reserved</footer></body></html>"
        )

    def _home(self, match: re.Match[str], query: dict[str, str]) -> tuple[str, str]:
        links = [f"/news/article{i}?campaign=front{i}" for i in range(1, ARTICLES)]
        links += [
            "/news/index.html",
            *(f"/old-page-{i}.html" for i in range(6)),
            "/cgi/lost?x=1",
            "/wp/none/",
        ]
        return "Welcome", f"<p>{words('home')}</p>" + _links(links)

    def _news(self, match: re.Match[str], query: dict[str, str]) -> tuple[str, str]:
        return "News", f"<p>{words('news')}</p>" + _links(
            f"/news/article{i}" for i in range(1, ARTICLES)
        )

    def _article(self, match: re.Match[str], query: dict[str, str]) -> tuple[str, str]:
        number = int(match[1])
        said = f"<p>{words('article', number, count=60)}</p>"
        return f"Article {words('title', number, count=2)}", said + _links(
            [f"/news/article{number}/print"]
        )

    def _shop(self, match: re.Match[str], query: dict[str, str]) -> tuple[str, str]:
        page = int(query.get("page", 1))
        products = [number for number in range(PRODUCTS) if number // 6 == page - 1]
        items = sorted(f"<p>{words('product', i, count=8)}</p>" for i in products)
        if "sort" in query:
            items.sort(key=lambda item: words(query["sort"], item))
        links = [f"/product?id={i}&visit={next(self._sessions)}" for i in products]
        links += [f"/shop?page={page}&sort={by}" for by in ("price", "name", "age")]
        links += [f"/shop?page={page + 1}"] if page * 6 < PRODUCTS else []
        return "Shop", "".join(items) + _links(links)

    def _product(self, match: re.Match[str], query: dict[str, str]) -> tuple[str, str]:
        number = int(query.get("id", 0))
        others = [(number + step) % PRODUCTS for step in (1, 7)]
        said = f"<p>{words('product', number, count=50)}</p>"
        return f"Product {words('name', number, count=2)}", said + _links(
            f"/product?id={other}&visit={next(self._sessions)}" for other in others
        )

    def _forum(self, match: re.Match[str], query: dict[str, str]) -> tuple[str, str]:
        if "t" not in query:
            return "Forum", f"<p>{words('forum')}</p>" + _links(
                f"/forum?t={t}" for t in range(THREADS)
            )
        thread, start = int(query["t"]), int(query.get("start", 0))
        more = [f"/forum?t={thread}&start={s}" for s in (0, 20, 40) if s < 20 * (1 + thread % 3)]
        return f"Thread {words('thread', thread, count=2)}", (
            f"<p>{words('thread', thread, start, count=60)}</p>" + _links(more)
        )

    def _calendar(self, match: re.Match[str], query: dict[str, str]) -> tuple[str, str]:
        month = int(query.get("month", 24300))
        links = [f"/calendar?month={month + step}" for step in (1, 2, 3, -1, -2, -3)]
        return "Calendar", "<p>There are no events in this month, come again.</p>" + _links(links)

    def _guide(self, match: re.Match[str], query: dict[str, str]) -> tuple[str, str]:
        name = match[1]
        links = [f"guide/{other}.html" for other in ("start", "next", "last")]
        return f"Guide: {name}", f"<p>{words('guide', name, count=50)}</p>" + _links(links)


def _links(urls: Iterator[str] | list[str]) -> str:
    return "".join(f"<a href='{url.replace('&', '&amp;')}'>more</a> " for url in urls)


@contextmanager
def served() -> Iterator[tuple[str, TrapSite]]:
    """Serves the site; yields its address, without a slash, and the site."""
    site = TrapSite()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_robots = self.path == "/robots.txt" or self.path.startswith("/.well-known")
            body = b"" if is_robots else site.answer(self.path).encode()
            self.send_response(404 if is_robots else 200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", site
    finally:
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    with served() as (address, _):
        print(address, flush=True)
        threading.Event().wait()
