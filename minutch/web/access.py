"""Decides which requests a server of minutch admits (`Access`, the one home of that decision; no
I/O), opens its socket with a token, and checks what comes in (`RequestChecks`).

Host             must be one of the server's own names: else a web page whose name was made to
                 point here could ask through its reader's browser (DNS rebinding)
Origin,          must be the server's own, where browsers send them: else a web page could
Sec-Fetch-Site   start or stop jobs, or have a report made, with a picture or a form
Authorization    `Bearer <token>`, or `Basic` with the token as the password (Nutch's clients)
Cookie           with a name that the server chooses, and the token
"""

from __future__ import annotations

import base64
import binascii
import hmac
import logging
import secrets
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from minutch.conf import Configuration
from minutch.errors import ConfigError, MinutchError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger(__name__)

LEAST_TOKEN: Final = 16
"""Characters of a token that somebody chooses."""
LOCAL: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
"""Names of this machine in a Host header."""
TOKEN_PROPERTY: Final = "minutch.service.token"
AUTH_PROPERTY: Final = "minutch.service.auth"


@dataclass(frozen=True)
class Denied:
    """The answer to a request that is not admitted."""

    status: int
    text: str


@dataclass(frozen=True)
class Access:
    """The rules by which a server lets requests in."""

    token: str | None
    """None: nobody is asked for one."""
    hosts: frozenset[str]
    """Names by which the server may be called, in lower case, without port."""
    free: frozenset[str] = frozenset()
    """Paths that need no token."""
    cookie: str = ""
    """The name of a cookie that may have the token."""
    hosts_property: str = ""
    """The property that adds to `hosts`."""
    any_address: bool = False
    """Any IP address is a name of the server: no web page can be called by one that is not its."""

    def judge(self, path: str, headers: Mapping[str, str]) -> Denied | None:
        """None for a request that may come in; `headers` have names in lower case."""
        if not self._is_ours(host_of(headers.get("host", ""))):
            hint = f" ({self.hosts_property})" if self.hosts_property else ""
            # Misdirected Request (RFC 9110, 15.5.20).
            return Denied(421, f"the Host header names no host that this service answers for{hint}")
        if not _is_own_site(headers):
            return Denied(
                403, "pages of other sites get no answer; type the address into the browser"
            )
        # After Host and Origin: pages of other sites get no answer even where nobody needs a token.
        if self.token is None or path in self.free or self.is_token(_sent(headers)):
            return None
        if self.cookie and self.is_token(_cookie(headers.get("cookie", ""), self.cookie)):
            return None
        return Denied(
            401,
            "a token is needed: `Authorization: Bearer …`, or Basic with the token as the password",
        )

    def _is_ours(self, name: str) -> bool:
        if name in self.hosts or not self.any_address:
            return name in self.hosts
        try:
            ip_address(name.strip("[]"))
        except ValueError:
            return False
        return True

    def is_token(self, candidate: str) -> bool:
        """Compares with the token, in constant time."""
        return self.token is not None and hmac.compare_digest(
            candidate.encode(), self.token.encode()
        )


def _is_own_site(headers: Mapping[str, str]) -> bool:
    # "none" is an address that was typed; programs send no such field.
    if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        return False
    origin = headers.get("origin")
    return origin is None or origin.partition("://")[2] == headers.get("host")


def _sent(headers: Mapping[str, str]) -> str:
    """Returns the token of an Authorization header; empty if there is none."""
    scheme, _, credentials = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "basic":
        try:
            credentials = (
                # Nutch's clients send a user, too, of whom nothing is asked.
                base64.b64decode(credentials.strip(), validate=True).decode().partition(":")[2]
            )
        except (binascii.Error, UnicodeDecodeError):
            return ""
    elif scheme.lower() != "bearer":
        return ""
    return credentials.strip()


def _cookie(header: str, name: str) -> str:
    pairs = (pair.strip().partition("=") for pair in header.split(";"))
    return next((value for key, _, value in pairs if key == name), "")


def host_of(header: str) -> str:
    """Returns the host of a Host header: without port, in lower case, IPv6 in its brackets."""
    text = header.strip().lower()
    end = (
        text.rfind("]") + 1
        if text.startswith("[")
        else text.find(":")
        if ":" in text
        else len(text)
    )
    return text[:end]


def is_local(host: str) -> bool:
    """Returns whether only this machine can connect to a host."""
    try:
        return host.lower() == "localhost" or ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int, option: str = "-port") -> socket.socket:
    """Returns a socket that listens; port 0: a free one. MinutchError names `option`."""
    # One address, whatever the system's resolver makes of localhost.
    name = "127.0.0.1" if host.lower() == "localhost" else host.strip("[]")
    family = socket.AF_INET6 if ":" in name else socket.AF_INET
    try:
        return socket.create_server((name, port), family=family)
    except (OSError, OverflowError) as exc:
        reason = getattr(exc, "strerror", None) or str(exc)
        raise MinutchError(
            f"can't listen on {host}:{port}: {reason}", hint=f"{option} takes another port"
        ) from exc


def token_from(conf: Configuration, host: str) -> str | None:
    """Returns the token to ask for; None without authentication (loopback alone). ConfigError."""
    if not conf.get_boolean(AUTH_PROPERTY):
        if not is_local(host):
            raise ConfigError(f"{AUTH_PROPERTY}=false is for loopback alone, not for {host}")
        log.warning("anybody who can connect may start and stop jobs (%s=false)", AUTH_PROPERTY)
        return None
    token = conf.get(TOKEN_PROPERTY, "").strip()
    # It has to pass through a header field.
    if token and (len(token) < LEAST_TOKEN or not token.isascii() or not token.isprintable()):
        raise ConfigError(
            f"{TOKEN_PROPERTY}: expected {LEAST_TOKEN} printable ASCII characters at least"
        )
    # 256 bits.
    return token or secrets.token_urlsafe(32)


def is_made(conf: Configuration) -> bool:
    """Returns whether the token was made at the start, so that it has to be shown."""
    return not conf.get(TOKEN_PROPERTY, "").strip()


# -- the check of each request ---------------------------------------------------------------------

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
        # Neither websockets nor a lifespan: such a scope gets no answer.
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
        # Each crawl imports this module, and few serve: Starlette takes 31 ms to load.
        from starlette.responses import PlainTextResponse

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
    # RFC 9112, 3.2; a dict would keep the last, while something before us judged the first.
    return None if sum(name == "host" for name, _ in pairs) > 1 else dict(pairs)
