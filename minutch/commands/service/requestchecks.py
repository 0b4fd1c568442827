"""Checks requests to the service: size and type of the body, and the types of its values."""

from __future__ import annotations

import json
from typing import Any, Final

from starlette.requests import Request as HttpRequest
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from minutch.commands.service.confinedpaths import Refused
from minutch.commands.service.openapi import JSON
from minutch.mediatypes import essence
from minutch.web.requestchecks import headers_of

LARGEST: Final = 8 << 20
"""Maximum size of a request in bytes."""


class Bounds:
    """A middleware that refuses bodies that are too large or not JSON."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = headers_of(scope) or {}
        content = essence(headers.get("content-type", ""))
        if scope["method"] == "POST" and content != JSON:
            await PlainTextResponse(f"expected {JSON}", 415)(scope, receive, send)
            return
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > LARGEST:
            await PlainTextResponse("too large", 413)(scope, receive, send)
            return
        await self._app(scope, _bounded(receive), send)


def _bounded(receive: Receive) -> Receive:
    """Limits bodies without a Content-Length."""
    received = 0

    async def bounded() -> Any:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > LARGEST:
            raise Refused("too large")
        return message

    return bounded


async def json_of(request: HttpRequest) -> dict[str, Any]:
    """Returns the body of a request, a JSON object. Raises Refused."""
    try:
        body = json.loads(await request.body())
    except (ValueError, RecursionError) as exc:
        raise Refused(f"expected JSON: {exc}") from None
    if not isinstance(body, dict):
        raise Refused("expected a JSON object")
    return body


def as_text(value: object) -> str:
    """Returns a JSON value as text, as it is written in properties and options."""
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else json.dumps(value)


def no_option(name: str, value: object) -> str:
    """Returns a value as text. Raises Refused if it is empty or would be an option."""
    text = as_text(value)
    if text.startswith("-") or not text:
        raise Refused(
            f"{name}: expected a value that does not begin with a dash, found {text[:80]!r}"
        )
    return text


def number_of(request: HttpRequest, name: str, default: int) -> int:
    """Returns a number in the query of a request. Raises Refused."""
    text = request.query_params.get(name, "")
    try:
        return int(text) if text else default
    except ValueError:
        raise Refused(f"{name}: expected a whole number, found {text[:80]!r}") from None
