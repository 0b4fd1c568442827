"""A magazine's site of 1,000 pages on loopback: sections with pages of teasers, articles, authors,
topics; and what sites have besides: pictures, a feed, a sitemap, a search form that robots.txt
forbids, redirects, dead links.

    with Magazine() as site: site.url("/")          http://127.0.0.1:PORT/; fewer by articles=70
    python -m tests.support.magazine [port]         serves until interrupted; 8000 without a port

Everything follows from the numbers of the articles: each run has the same pages.
"""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final, Self
from urllib.parse import quote, unquote

ARTICLES: Final = 840
ON_A_PAGE: Final = 10
SECTIONS: Final = ("harbour", "kitchen", "garden", "workshop", "travel", "books", "music")
AUTHORS: Final = tuple(
    f"{first} {last}"
    for first in ("Ada", "Ben", "Clara", "Dmitri")
    for last in ("Okafor", "Lindqvist", "Marsh", "Ferreira", "Núñez", "O’Brien")
)
TOPICS: Final = tuple(
    f"{how}-{what}-{which}"
    for how in ("old", "new", "small", "great")
    for what in ("boats", "recipes", "tools", "seeds", "maps", "novels")
    for which in ("by-the-sea", "of-winter")
)
FIXED: Final = {
    "/about": "About us",
    "/contact": "Contact & directions",
    "/privacy": "Privacy",
}
PAGES: Final = 1000
"""HTML pages that answer 200: the first one, FIXED, articles, sections, authors and topics."""
_VOCABULARY: Final = (
    "the a of and in with for from along under before after every morning evening harbour boat net"
    " rope sail tide bread butter salt oven garden bean rose spade bench plane chisel oak train"
    " ferry road bridge novel letter page song fiddle choir winter summer rain wind stone river"
    " market neighbour child teacher baker carpenter keeps brings mends cooks plants writes plays"
    " finds loses remembers café naïve über señor"
)
_WORDS: Final = _VOCABULARY.split()
_PICTURE: Final = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c63606060"
    "60000000050001a5f645400000000049454e44ae426082"
)
_ROBOTS: Final = "User-agent: *\nDisallow: /search\nSitemap: {origin}/sitemap.xml\n"


def article(number: int) -> str:
    """The path of an article."""
    return f"/{2020 + number % 6}/{1 + number % 12:02}/{number}-{_slug(_title(number))}.html"


def secret(number: int) -> str:
    """A word that only this article has."""
    return "zq" + "".join("abcdefghij"[int(digit)] for digit in str(number))


def _slug(text: str) -> str:
    return "-".join(text.lower().replace("’", "").split())


def _title(number: int) -> str:
    chance = random.Random(number)
    return " ".join(chance.choices(_WORDS, k=5)).capitalize()


class Pages:
    """The content of the site, by path; `origin` is where it is served."""

    def __init__(self, origin: str, articles: int = ARTICLES) -> None:
        self._numbers = range(articles)
        self.answers: dict[str, tuple[str, bytes]] = {}
        for path, body in self._html():
            self.answers[path] = ("text/html; charset=utf-8", body.encode())
        self.html = sorted(self.answers)
        locations = "".join(f"<url><loc>{origin}{path}</loc></url>" for path in self.html)
        items = "".join(
            f"<item><title>{_title(n)}</title><link>{origin}{article(n)}</link></item>"
            for n in self._numbers[:20]
        )
        self.answers |= {
            "/robots.txt": ("text/plain", _ROBOTS.format(origin=origin).encode()),
            "/sitemap.xml": (
                "application/xml",
                '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
                f"{locations}</urlset>".encode(),
            ),
            "/feed.xml": (
                "application/rss+xml",
                f'<rss version="2.0"><channel><title>Tidings</title>{items}</channel>'
                "</rss>".encode(),
            ),
            "/style.css": ("text/css", b"body { max-width: 60em }"),
            "/logo.png": ("image/png", _PICTURE),
        }
        self.moved = {f"/go/{n}": quote(article(n)) for n in self._numbers[::40]}

    def _html(self) -> Iterator[tuple[str, str]]:
        numbers = self._numbers
        yield "/", self._page("Tidings from the coast", _teasers(numbers[-12:]))
        for path, title in FIXED.items():
            yield path, self._page(title, f"<p>{_prose(random.Random(path), 120)}</p>")
        for number in numbers:
            yield article(number), self._page(_title(number), _body(number, numbers))
        for index, section in enumerate(SECTIONS):
            yield from self._listing(
                f"/{section}/", section.title(), numbers[index :: len(SECTIONS)]
            )
        for index, author in enumerate(AUTHORS):
            mine = _teasers(numbers[index :: len(AUTHORS)])
            yield f"/authors/{_slug(author)}", self._page(author, mine)
        for index, topic in enumerate(TOPICS):
            mine = _teasers(numbers[index :: len(TOPICS)])
            yield f"/topics/{topic}", self._page(topic.replace("-", " ").title(), mine)

    def _listing(self, path: str, title: str, mine: Sequence[int]) -> Iterator[tuple[str, str]]:
        pages = [mine[start : start + ON_A_PAGE] for start in range(0, len(mine), ON_A_PAGE)]
        for number, shown in enumerate(pages, 1):
            older = f'<a rel="next" href="{path}page/{number + 1}/">Older</a>'
            body = _teasers(shown) + (older if number < len(pages) else "")
            yield (path if number == 1 else f"{path}page/{number}/"), self._page(title, body)

    def _page(self, title: str, body: str) -> str:
        menu = "".join(f'<li><a href="/{name}/">{name.title()}</a></li>' for name in SECTIONS)
        foot = "".join(f'<a href="{path}">{name}</a> ' for path, name in FIXED.items())
        return (
            f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title} – Tidings'
            '</title><link rel="stylesheet" href="/style.css"><link rel="alternate"'
            ' type="application/rss+xml" href="/feed.xml"></head><body><header><img src="/logo.png"'
            f' alt="Tidings"><nav><ul>{menu}</ul></nav><form action="/search"><input name="q">'
            f"</form></header><main><h1>{title}</h1>{body}</main><footer>{foot}<a href="
            '"/search?q=all">Search</a> <a href="mailto:post@example.org">Write to us</a></footer>'
            "</body></html>"
        )


def _teasers(numbers: Sequence[int]) -> str:
    return "".join(
        f'<article><h2><a href="{article(n)}">{_title(n)}</a></h2><p>'
        f"{_prose(random.Random(n), 20)}…</p></article>"
        for n in numbers
    )


def _body(number: int, numbers: Sequence[int]) -> str:
    chance = random.Random(number)
    author = AUTHORS[number % len(AUTHORS)]
    topic = TOPICS[number % len(TOPICS)]
    paragraphs = "".join(f"<p>{_prose(chance, 80)}</p>" for _ in range(5))
    related = "".join(
        f'<li><a href="{article(other)}">{_title(other)}</a></li>'
        for other in chance.sample(numbers, 3)
    )
    older = f'<a href="/go/{number}">Permalink</a>' if number % 40 == 0 else ""
    dead = f'<a href="/gone/{number}.html">Source</a>' if number % 60 == 0 else ""
    return (
        f'<p>By <a rel="author" href="/authors/{_slug(author)}">{author}</a></p>{paragraphs}'
        f'<p>Reference: {secret(number)}. {older} {dead}</p><p>Topic: <a href="/topics/{topic}">'
        f"{topic}</a></p><aside><ul>{related}</ul></aside>"
    )


def _prose(chance: random.Random, words: int) -> str:
    return " ".join(chance.choices(_WORDS, k=words)).capitalize() + "."


class Magazine:
    """Serves the pages from threads; `requests` are the paths that were asked for."""

    def __init__(self, port: int = 0, articles: int = ARTICLES) -> None:
        self._http = ThreadingHTTPServer(("127.0.0.1", port), _handler(self))
        self._http.daemon_threads = True
        self.pages = Pages(self.url(""), articles)
        self.requests: list[str] = []

    def url(self, path: str) -> str:
        """The address of a page."""
        return f"http://127.0.0.1:{self._http.server_address[1]}{path}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    def serve_forever(self) -> None:
        """Serves in this thread until interrupted."""
        self._http.serve_forever()


def _handler(site: Magazine) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # a body waits 40 ms for the ACK of its head else

        def do_GET(self) -> None:
            path = unquote(self.path)
            site.requests.append(path)
            pages = site.pages
            kind, body = pages.answers.get(path, ("text/html", b"<h1>Not here</h1>"))
            moved = pages.moved.get(path)
            self.send_response(301 if moved else 200 if path in pages.answers else 404)
            if moved:
                self.send_header("Location", moved)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with suppress(OSError):  # the client may have gone
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """The server is quiet; `requests` has it all."""

    return Handler


def main() -> None:
    """Serves until interrupted, after printing where."""
    site = Magazine(int(sys.argv[1]) if len(sys.argv) > 1 else 8000)
    print(f"{PAGES} pages at {site.url('/')}", flush=True)
    with suppress(KeyboardInterrupt):
        site.serve_forever()


if __name__ == "__main__":
    main()
