"""Routes the live page's requests, and writes the figures for Prometheus.

    GET  /                        the page; `/?token=…`, as it is printed, lets a browser in and
         leads to `/`; `/?minutes=60` shows the speed of the last hour
    POST /pause /resume           hold the job, let it go on
    POST /stop /go-on             end after this round, or not after all
    GET  /metrics                 figures for Prometheus: no names of hosts or pages, and no token
         needed

What may be asked at all is decided in `minutch/web/access.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from minutch.cycle.fetch.stats import Snapshot
from minutch.cycle.fetch.watch import Totals, Watch
from minutch.inspect.live.livepage import POLICY, USUAL, WINDOWS, page
from minutch.web.access import PRIVATE, Access, RequestChecks

# Writes the figures of a job in Prometheus' text format, version 0.0.4. Pure: a `Watch` in, text
# out.
#
# Names by Prometheus' conventions: minutch_<what>_<unit>, base units, `_total` for what only
# grows. Counts go on from one fetch of a crawl to the next. Nothing here names a host or a page:
# their number has no bound.

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_IDLE: Final = Snapshot(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0, None)
_GAUGES: Final[dict[str, tuple[str, Callable[[Snapshot], float]]]] = {
    "active_threads": ("Pages that are being fetched.", lambda s: s.active),
    "threads": ("Pages that may be fetched at the same time.", lambda s: s.threads),
    "queued_urls": ("URLs that wait in queues.", lambda s: s.waiting),
    "list_urls": ("URLs of the fetch list, as far as it is known.", lambda s: s.total or 0),
    "queues": ("Queues, one for each host, domain or address.", lambda s: s.queues),
    "blocked_queues": ("Queues given up after too many exceptions.", lambda s: s.blocked),
    "longest_rest_seconds": (
        "Time until the queue that rests longest wakes up.",
        lambda s: max(0.0, s.longest_rest),
    ),
    "oldest_wait_seconds": (
        "Time that the oldest request in flight has taken.",
        lambda s: s.oldest_wait,
    ),
    "running_seconds": ("Time since the fetch began, without pauses.", lambda s: s.seconds),
}
_COUNTERS: Final[dict[str, tuple[str, Callable[[Totals], float]]]] = {
    "pages_total": ("Pages fetched.", lambda t: t.pages),
    "bytes_total": ("Bytes of content.", lambda t: t.bytes),
    "errors_total": ("Requests that failed.", lambda t: t.errors),
    "urls_done_total": ("URLs of fetch lists that have an outcome.", lambda t: t.urls),
}
_View = Callable[[Request], Awaitable[Response]]
_WINDOWS: Final = {str(minutes): minutes for minutes in WINDOWS}
_LONGEST_QUERY: Final = 1000


@dataclass(frozen=True)
class Metric:
    """A family of samples, by what follows the name (a suffix, labels, both, nothing)."""

    name: str
    kind: str
    text: str
    samples: Mapping[str, float]

    def lines(self) -> Iterator[str]:
        """Yields the lines of the exposition."""
        yield f"# HELP {self.name} {self.text}"
        yield f"# TYPE {self.name} {self.kind}"
        for rest, value in self.samples.items():
            yield f"{self.name}{rest} {value:.17g}"


def metrics_text(watch: Watch) -> str:
    """Returns all figures of a job."""
    return "".join(f"{line}\n" for metric in _metrics(watch) for line in metric.lines())


def _metrics(watch: Watch) -> Iterator[Metric]:
    now, totals = watch.fetch or _IDLE, watch.totals
    yield Metric(
        "minutch_start_time_seconds",
        "gauge",
        "When the job began, since 1970.",
        {"": watch.started / 1000},
    )
    yield Metric("minutch_paused", "gauge", "Whether the job is held.", {"": watch.paused})
    for name, (text, state) in _GAUGES.items():
        yield Metric(f"minutch_fetch_{name}", "gauge", text, {"": state(now)})
    for name, (text, total) in _COUNTERS.items():
        yield Metric(f"minutch_fetch_{name}", "counter", text, {"": total(totals)})
    duration = {"_sum": totals.request_ms / 1000, "_count": totals.requests}
    yield Metric(
        "minutch_fetch_request_duration_seconds",
        "summary",
        "Time that requests of pages took.",
        duration,
    )
    events = _labelled("event", totals.events)
    yield Metric("minutch_fetch_events_total", "counter", "Events by Nutch's names.", events)
    if watch.can_stop:
        yield from _crawl(watch)


def _crawl(watch: Watch) -> Iterator[Metric]:
    yield Metric(
        "minutch_crawl_stopping",
        "gauge",
        "Whether this round is the last one.",
        {"": watch.stopping},
    )
    yield Metric(
        "minutch_crawl_rounds_total", "counter", "Rounds that have ended.", {"": watch.round_count}
    )
    seconds = _labelled("step", dict(watch.step_seconds))
    yield Metric(
        "minutch_crawl_step_seconds_total",
        "counter",
        "Time that steps took, those that have ended.",
        seconds,
    )
    running = _labelled("step", {watch.step: 1} if watch.step else {})
    yield Metric("minutch_crawl_step_running", "gauge", "The step that runs.", running)
    statuses = _labelled("status", dict(watch.statuses))
    yield Metric(
        "minutch_crawl_urls", "gauge", "Entries of the CrawlDb after the last updatedb.", statuses
    )


def _labelled(label: str, values: Mapping[str, float]) -> dict[str, float]:
    return {f'{{{label}="{_escaped(name)}"}}': value for name, value in sorted(values.items())}


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def make(watch: Watch, access: Access) -> ASGIApp:
    """Builds the application."""

    async def shown(request: Request) -> Response:
        if "token" not in request.query_params:
            asked = request.query_params.get("minutes", "")
            return HTMLResponse(page(watch, _WINDOWS.get(asked, USUAL)))
        answer = RedirectResponse("/", 303)
        answer.set_cookie(access.cookie, access.token or "", httponly=True, samesite="strict")
        return answer

    async def figures(request: Request) -> Response:
        return Response(metrics_text(watch), headers={"Content-Type": CONTENT_TYPE})

    def does(action: Callable[[bool], None], wanted: bool) -> _View:
        async def done(request: Request) -> Response:
            action(wanted)
            return RedirectResponse("/", 303)

        return done

    actions = {
        "/pause": does(watch.pause, True),
        "/resume": does(watch.pause, False),
        "/stop": does(watch.stop, True),
        "/go-on": does(watch.stop, False),
    }
    routes = [Route("/", shown, methods=["GET"]), Route("/metrics", figures, methods=["GET"])]
    routes += [Route(path, action, methods=["POST"]) for path, action in actions.items()]
    headers = {
        **PRIVATE,
        "Content-Security-Policy": POLICY,
        "Referrer-Policy": "same-origin",
    }  # or forms had no Origin
    return _Links(RequestChecks(Starlette(routes=routes), access.judge, headers))


class _Links:
    """The token of a link (`/?token=…`) counts as if it stood in a header."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        query = scope.get("query_string", b"")
        if scope["type"] == "http" and scope["path"] == "/" and 0 < len(query) <= _LONGEST_QUERY:
            tokens = parse_qs(query.decode("latin-1")).get("token", [])
            header = [(b"authorization", f"Bearer {token}".encode()) for token in tokens[:1]]
            scope = {**scope, "headers": [*scope["headers"], *header]}
        await self._app(scope, receive, send)
