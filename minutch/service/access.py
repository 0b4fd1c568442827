"""Who may ask the service for anything. The one home of that decision. No I/O.

    Host             has to be the service's own name: else a page of the web, whose name was made to point here,
                     could ask through its reader's browser (DNS rebinding)
    Origin,          where a browser sends them, have to be the service's own: else a page of the web could start or
    Sec-Fetch-Site   stop jobs with a picture or a form
    Authorization    `Bearer <token>`, or `Basic` with the token as the password, as Nutch's clients have it

The description of the service (`/openapi.json`, `/docs`) says nothing of a crawl and needs no token.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

OPEN: Final = frozenset({"/openapi.json", "/docs"})
LEAST_TOKEN: Final = 16
"""Characters of a token that somebody chooses."""


@dataclass(frozen=True)
class Denied:
    """The answer to a request that is not let in."""

    status: int
    text: str


@dataclass(frozen=True)
class Access:
    """The door."""

    token: str | None
    """None: nobody is asked for one."""
    hosts: frozenset[str]
    """Names by which the service may be called, in lower case, without port."""

    def judge(self, path: str, headers: Mapping[str, str]) -> Denied | None:
        """None for a request that may come in; `headers` have names in lower case."""
        if host_of(headers.get("host", "")) not in self.hosts:
            return Denied(421, "the Host header names no host that this service answers for (minutch.service.hosts)")
        if not self._is_own_site(headers):
            return Denied(403, "requests from pages of other sites are refused")
        if self.token is None or path in OPEN or self._has_token(headers.get("authorization", "")):
            return None
        return Denied(401, "a token is needed: `Authorization: Bearer …`, or Basic with the token as the password")

    def _is_own_site(self, headers: Mapping[str, str]) -> bool:
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return False
        origin = headers.get("origin")
        return origin is None or origin.partition("://")[2] == headers.get("host")

    def _has_token(self, authorization: str) -> bool:
        scheme, _, given = authorization.partition(" ")
        if scheme.lower() == "basic":
            try:
                given = base64.b64decode(given.strip(), validate=True).decode().partition(":")[2]
            except (binascii.Error, UnicodeDecodeError):
                return False
        elif scheme.lower() != "bearer":
            return False
        return hmac.compare_digest(given.strip().encode(), (self.token or "").encode())


def host_of(header: str) -> str:
    """The host of a Host header: without port, in lower case, IPv6 in its brackets."""
    text = header.strip().lower()
    end = text.rfind("]") + 1 if text.startswith("[") else text.find(":") if ":" in text else len(text)
    return text[:end]
