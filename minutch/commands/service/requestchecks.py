"""Requests to the service: how much of one may come in, of what kind, and its parts taken for what
they should be.
"""

from __future__ import annotations

import json
from typing import Any, Final

from starlette.requests import Request as HttpRequest
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from minutch.commands.service.confinedpaths import Refused
from minutch.commands.service.openapi import JSON
from minutch.web.requestchecks import headers_of

LARGEST: Final = 8 << 20
"""Bytes of a request."""


class Bounds:
    """Lets in of a request what is bearable, and no body that is not JSON."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = headers_of(scope) or {}
        content = headers.get("content-type", "").partition(";")[0].strip().lower()
        if scope["method"] == "POST" and content != JSON:
            await PlainTextResponse(f"expected {JSON}", 415)(scope, receive, send)
            return
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > LARGEST:
            await PlainTextResponse("too large", 413)(scope, receive, send)
            return
        await self._app(scope, _bounded(receive), send)


def _bounded(receive: Receive) -> Receive:
    """Bodies without a length have a bound, too."""
    taken = 0

    async def bounded() -> Any:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > LARGEST:
            raise Refused("too large")
        return message

    return bounded


async def json_of(request: HttpRequest) -> dict[str, Any]:
    try:
        body = json.loads(await request.body())
    except (ValueError, RecursionError) as exc:
        raise Refused(f"expected JSON: {exc}") from None
    if not isinstance(body, dict):
        raise Refused("expected a JSON object")
    return body


def as_text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else json.dumps(value)


def no_option(name: str, value: object) -> str:
    text = as_text(value)
    if text.startswith("-") or not text:
        raise Refused(
            f"{name}: expected a value that does not begin with a dash, found {text[:80]!r}"
        )
    return text


def number_of(request: HttpRequest, name: str, default: int) -> int:
    text = request.query_params.get(name, "")
    try:
        return int(text) if text else default
    except ValueError:
        raise Refused(f"{name}: expected a whole number, found {text[:80]!r}") from None
