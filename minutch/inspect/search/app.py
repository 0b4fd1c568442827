"""The search page's paths. Nothing here changes anything: it answers GET and HEAD alone.

    /?q=…&host=…&page=…             search
    /cached /anchors /history ?url= what the crawl's files hold of a page
    /raw?url=                       the bytes of a stored page, for the frame of /cached
    /changes /changes.atom          what visits found that the visits before did not
    /report                         the report of the crawl, as it is now

What a crawled page holds can't run, nor leave its frame: it is text wherever we show it, and as a
page of its own it comes with a policy (CSP) that makes it a sandbox without scripts, forms, links
out and anything from the network, even for somebody who opens it without the frame. Who is answered
is decided in `minutch/web/access.py`; what reads many files is made once (`Costly`).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Final

import polars as pl
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from minutch.errors import MinutchError
from minutch.inspect.query.changes import UNCHANGED, Changes
from minutch.inspect.report import reportfile
from minutch.inspect.search import changepages, pages
from minutch.inspect.search.crawlfiles import PICTURES, CrawlFiles
from minutch.inspect.search.results import SearchOptions
from minutch.inspect.search.searcher import Searcher, suggestions
from minutch.web.access import PRIVATE, Access, RequestChecks

log = logging.getLogger(__name__)

REPORT_POLICY: Final = f"{reportfile.POLICY}; frame-ancestors 'none'"
STORED_POLICY: Final = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:;"
    " form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)
LONGEST_QUERY: Final = 1000
LONGEST_URL: Final = 1 << 16
MOST_WAITING: Final = 16
"""Requests that wait for costly pages: of the threads that answer, others are left for searches."""
MOST_KEPT: Final = 16
"""Costly pages that are remembered."""


@dataclass
class Costly:
    """Makes the pages that read many files: one at a time, and each once until the crawl changes,
    whose `state` is different then. Whoever asks meanwhile waits for the same.
    """

    state: Callable[[], object]
    _made: dict[str, tuple[object, Future[str]]] = field(default_factory=dict)
    _waiting: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def page(self, name: str, make: Callable[[], str]) -> str:
        """Returns a page. Raises HTTPException (503) if too many wait, and what `make` raises."""
        state = self.state()
        with self._lock:
            known = self._made.get(name)
            if known is not None and known[1].done() and known[0] == state:
                return known[1].result()
            if self._waiting >= MOST_WAITING:
                raise HTTPException(
                    503, "Too many requests for this at once.", {"Retry-After": "10"}
                )
            self._waiting += 1
            is_mine = known is None or known[1].done()
            if known is None or is_mine:
                known = self._made[name] = state, Future()
        page = known[1]
        try:
            if is_mine:
                self._make(name, page, make)
            return page.result()
        finally:
            with self._lock:
                self._waiting -= 1

    def _make(self, name: str, page: Future[str], make: Callable[[], str]) -> None:
        try:
            with self._turn:
                page.set_result(make())
        except BaseException as exc:
            page.set_exception(exc)
            with self._lock:
                del self._made[name]
            raise
        with self._lock:
            ended = [one for one, (_, other) in self._made.items() if other.done()]
            for one in ended[: max(0, len(self._made) - MOST_KEPT)]:
                del self._made[one]


class Site:
    """The search site's views. `report` makes the crawl's report."""

    def __init__(
        self, searcher: Searcher, crawl: CrawlFiles, report: Callable[[], str] | None = None
    ) -> None:
        self._searcher, self._crawl, self._report = searcher, crawl, report
        self._lock, self._costly = threading.Lock(), Costly(crawl.state)

    def search(self, request: Request) -> Response:
        """Shows the search page."""
        with self._lock:
            searcher = self._searcher = self._searcher.newest()
        query = request.query_params.get("q", "").strip()[:LONGEST_QUERY]
        if not query:
            return HTMLResponse(pages.home(self._home(searcher)))
        host = request.query_params.get("host", "").strip()[:LONGEST_QUERY]
        number = _number(request.query_params.get("page", "1"))
        started = time.perf_counter()
        offset = (number - 1) * pages.PER_PAGE
        options = SearchOptions(pages.PER_PAGE, offset, host, count_hosts=True)
        results = searcher.search(query, options)
        took = 1000 * (time.perf_counter() - started)
        if results.hits:
            return HTMLResponse(pages.found(query, host, number, results, took))
        others = suggestions(searcher, query)
        return HTMLResponse(pages.nothing(query, host, results, others))

    def _home(self, searcher: Searcher) -> pages.Home:
        return pages.Home(
            self._crawl.folder.resolve().name,
            searcher.count,
            len(self._crawl.segments()),
            searcher.host_count(),
            searcher.hosts(),
            searcher.newest_hits(pages.PER_PAGE),
            self._report is not None,
        )

    def report(self, request: Request) -> Response:
        """Shows the report, which reads the whole crawl."""
        if self._report is None:
            raise HTTPException(404, "This server makes no reports.")
        made = self._costly.page("report", self._report)
        return HTMLResponse(made, headers={"Content-Security-Policy": REPORT_POLICY})

    def changes(self, request: Request) -> Response:
        """Shows what has changed, which reads the texts of the whole crawl."""
        made = self._costly.page("changes", lambda: self._made_of_changes(changepages.changes))
        return HTMLResponse(made)

    def feed(self, request: Request) -> Response:
        """Sends the same as an Atom feed."""
        made = self._costly.page("changes.atom", lambda: self._made_of_changes(changepages.feed))
        return Response(made, media_type="application/atom+xml")

    def _made_of_changes(self, make: Callable[[str, pl.DataFrame, int], str]) -> str:
        changes = Changes(self._crawl.folder, self._crawl.segments())
        events = changes.events()
        quiet = int((events["kind"] == UNCHANGED).sum())
        return make(self._crawl.folder.resolve().name, changes.told(events), quiet)

    def cached(self, request: Request) -> Response:
        """Shows a stored page in its frame."""
        about = self._about(request)
        stored = self._crawl.stored(about.url)
        return HTMLResponse(pages.cached(about, stored), 404 if stored is None else 200)

    def _about(self, request: Request) -> pages.About:
        url, query = _asked(request)
        return pages.About(url, self._crawl.title(url), query)

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
        about = self._about(request)
        # without a linkdb, these are looked for in all parses
        made = self._costly.page(
            f"anchors {about}", lambda: pages.anchors(about, self._crawl.inlinks(about.url))
        )
        return HTMLResponse(made)

    def history(self, request: Request) -> Response:
        """Tells what has become of a page."""
        about = self._about(request)
        made = self._costly.page(
            f"history {about}", lambda: pages.history(about, self._crawl.history(about.url))
        )
        return HTMLResponse(made)


def make(
    searcher: Searcher, crawl: CrawlFiles, access: Access, report: Callable[[], str] | None = None
) -> Starlette:
    """Builds the application; `report` makes the crawl's report."""
    site = Site(searcher, crawl, report)
    views: dict[str, Callable[[Request], Response]] = {
        "/": site.search,
        "/cached": site.cached,
        "/raw": site.raw,
        "/anchors": site.anchors,
        "/history": site.history,
        "/changes": site.changes,
        "/changes.atom": site.feed,
        "/report": site.report,
        "/robots.txt": lambda _: PlainTextResponse("User-agent: *\nDisallow: /\n"),
    }
    headers = {**PRIVATE, "Content-Security-Policy": pages.POLICY}
    return Starlette(
        routes=[Route(path, view, methods=["GET"]) for path, view in views.items()],
        middleware=[Middleware(RequestChecks, access.judge, headers)],
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
