"""The search page's paths. Nothing here changes anything: it answers GET and HEAD alone.

    /?q=…&host=…&page=…             search
    /cached /anchors /history ?url= what the crawl's files hold of a page
    /raw?url=                       the bytes of a stored page, for the frame of /cached
    /style.css

What a crawled page holds can't run, nor leave its frame: it is text wherever we show it, and as a
page of its own it comes with a policy (CSP) that makes it a sandbox without scripts, forms, links
out and anything from the network, even for somebody who opens it without the frame. Requests whose
Host is not this server's are refused: else a page of the web could read the index through its
reader's browser (DNS rebinding).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from importlib.resources import files
from ipaddress import ip_address
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from minutch.errors import MinutchError
from minutch.inspect.search import pages
from minutch.inspect.search.crawlfiles import PICTURES, CrawlFiles
from minutch.inspect.search.results import Searcher, SearchOptions
from minutch.web.access import Denied, host_of
from minutch.web.requestchecks import PRIVATE, RequestChecks

log = logging.getLogger(__name__)

OWN_POLICY: Final = (
    "default-src 'none'; style-src 'self'; img-src data:; frame-src 'self'; form-action 'self';"
    " base-uri 'none'; frame-ancestors 'none'"
)
STORED_POLICY: Final = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:;"
    " form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)
LONGEST_QUERY: Final = 1000
LONGEST_URL: Final = 1 << 16


class Site:
    """The search site's views."""

    def __init__(self, searcher: Searcher, crawl: CrawlFiles) -> None:
        self._searcher, self._crawl = searcher, crawl
        self._lock = threading.Lock()

    def _current(self) -> Searcher:
        with self._lock:
            self._searcher = self._searcher.newest()
            return self._searcher

    def search(self, request: Request) -> Response:
        """Shows the search page."""
        searcher = self._current()
        query = request.query_params.get("q", "").strip()[:LONGEST_QUERY]
        if not query:
            return HTMLResponse(pages.start(searcher.count))
        host = request.query_params.get("host", "").strip()[:LONGEST_QUERY]
        number = _number(request.query_params.get("page", "1"))
        started = time.perf_counter()
        offset = (number - 1) * pages.PER_PAGE
        options = SearchOptions(pages.PER_PAGE, offset, host, count_hosts=True)
        results = searcher.search(query, options)
        took = 1000 * (time.perf_counter() - started)
        return HTMLResponse(pages.found(query, host, number, results, took))

    def cached(self, request: Request) -> Response:
        """Shows a stored page in its frame."""
        url, query = _asked(request)
        stored = self._crawl.stored(url)
        return HTMLResponse(pages.cached(url, query, stored), 404 if stored is None else 200)

    def raw(self, request: Request) -> Response:
        """Sends a stored page itself."""
        stored = self._crawl.stored(_asked(request)[0])
        if stored is None:
            raise HTTPException(404, "No segment of this crawl holds the content of this page.")
        kind = (
            stored.media_type
            if stored.media_type in PICTURES
            else f"{stored.media_type}; charset=utf-8"
        )
        return Response(
            stored.body, headers={"Content-Type": kind, "Content-Security-Policy": STORED_POLICY}
        )

    def anchors(self, request: Request) -> Response:
        """Shows the links to a page."""
        url, query = _asked(request)
        return HTMLResponse(pages.anchors(url, query, self._crawl.inlinks(url)))

    def history(self, request: Request) -> Response:
        """Shows the records of a page."""
        url, query = _asked(request)
        return HTMLResponse(pages.history(url, query, self._crawl.history(url)))


def make(searcher: Searcher, crawl: CrawlFiles, hosts: frozenset[str]) -> Starlette:
    """Builds the application; `hosts` are the names that it answers for, in lower case."""
    site = Site(searcher, crawl)
    css = files("minutch.inspect.search").joinpath("style.css").read_text(encoding="utf-8")
    views: dict[str, Callable[[Request], Response]] = {
        "/": site.search,
        "/cached": site.cached,
        "/raw": site.raw,
        "/anchors": site.anchors,
        "/history": site.history,
        "/style.css": lambda _: Response(css, media_type="text/css"),
        "/robots.txt": lambda _: PlainTextResponse("User-agent: *\nDisallow: /\n"),
    }
    headers = {**PRIVATE, "Content-Security-Policy": OWN_POLICY}
    return Starlette(
        routes=[Route(path, view, methods=["GET"]) for path, view in views.items()],
        middleware=[
            Middleware(RequestChecks, lambda path, headers: _judged(headers, hosts), headers)
        ],
        exception_handlers={HTTPException: _refused, MinutchError: _failed},
    )


def _number(text: str) -> int:
    """Returns the number of a page of results."""
    return (
        min(max(int(text), 1), pages.MOST_PAGES)
        if text.isascii() and text.isdigit() and len(text) < 9
        else 1
    )


def _asked(request: Request) -> tuple[str, str]:
    """Returns the URL that a request is about, and the query that led to it."""
    url = request.query_params.get("url", "")
    if not url or len(url) > LONGEST_URL:
        raise HTTPException(400, "A URL is missing: ?url=…")
    return url, request.query_params.get("q", "").strip()[:LONGEST_QUERY]


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    title = {404: "Not found", 405: "Not allowed"}.get(error.status_code, "This can't be shown")
    return HTMLResponse(
        pages.problem(title, error.detail), error.status_code, dict(error.headers or {})
    )


def _failed(request: Request, error: Exception) -> Response:
    log.warning("%s: %s", request.url.path, error)
    return HTMLResponse(pages.problem("This can't be read", str(error)), 500)


def _judged(headers: Mapping[str, str], hosts: frozenset[str]) -> Denied | None:
    if is_ours(headers.get("host", ""), hosts):
        return None
    return Denied(421, "the Host header names no host that this server answers for")


def is_ours(header: str, hosts: frozenset[str]) -> bool:
    """Returns True if a Host header names this server: by one of its names, or by an address, which
    no web site can fake.
    """
    name = host_of(header)
    if name in hosts:
        return True
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
