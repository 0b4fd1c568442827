"""Routes the live page's requests.

    GET  /                        the page; `/?token=…`, as it is printed, lets a browser in and
         leads to `/`; `/?minutes=60` shows the speed of the last hour
    POST /pause /resume           hold the job, let it go on
    POST /stop /go-on             end after this round, or not after all
    GET  /metrics                 figures for Prometheus: no names of hosts or pages, and no token
         needed

What may be asked at all is decided in `minutch/web/access.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from minutch.cycle.fetch.watch import Watch
from minutch.inspect.live.livepage import POLICY, USUAL, WINDOWS, page
from minutch.inspect.live.metrics import CONTENT_TYPE, metrics_text
from minutch.web.access import Access
from minutch.web.serving import PRIVATE, RequestChecks

_View = Callable[[Request], Awaitable[Response]]
_WINDOWS: Final = {str(minutes): minutes for minutes in WINDOWS}
_LONGEST_QUERY: Final = 1000


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
