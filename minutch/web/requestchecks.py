"""Checks requests before an app gets them, and adds headers to its answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from minutch.web.access import Denied

PRIVATE: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-DNS-Prefetch-Control": "off",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "private, no-cache",
    "X-Robots-Tag": "noindex, nofollow",
}
"""Headers of pages that are for one person on this machine."""

Judge = Callable[[str, Mapping[str, str]], Denied | None]
"""Judges a request by its path and headers (names in lower case); None lets it in."""


class RequestChecks:
    """ASGI middleware: refuses what `judge` denies, and adds `headers` that an answer lacks."""

    def __init__(
        self, app: ASGIApp, judge: Judge, headers: Mapping[str, str] | None = None
    ) -> None:
        self._app = app
        self._judge = judge
        self._headers = [
            (name.lower().encode(), value.encode()) for name, value in (headers or {}).items()
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                there = {name.lower() for name, _ in message["headers"]}
                more = [(name, value) for name, value in self._headers if name not in there]
                message["headers"] = [*message["headers"], *more]
            await send(message)

        headers = headers_of(scope)
        denied = (
            Denied(400, "expected one Host header")
            if headers is None
            else self._judge(scope["path"], headers)
        )
        if denied is None:
            await self._app(scope, receive, dressed)
            return
        more = {"WWW-Authenticate": 'Basic realm="minutch"'} if denied.status == 401 else None
        await PlainTextResponse(denied.text + "\n", denied.status, headers=more)(
            scope, receive, dressed
        )


def headers_of(scope: Scope) -> dict[str, str] | None:
    """Returns the headers of a request, names in lower case; None with more than one Host."""
    pairs = [
        (name.decode("latin-1").lower(), value.decode("latin-1"))
        for name, value in scope["headers"]
    ]
    return None if sum(name == "host" for name, _ in pairs) > 1 else dict(pairs)
